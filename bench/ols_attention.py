"""Race of the least-squares chapter: ``python bench/ols_attention.py [--quick] [--keep]``.

Least squares of full rank: the package's Cholesky with one step of refinement against LAPACK's QR.
"""

import torch
from race import Race, command, require

from derived.lab.rng import stream
from derived.papers.ols_attention.data.problems import random_regression
from derived.papers.ols_attention.model.theory import ols_coefficients, rounding_bound

KAPPA = 100.0  # condition number of the second moment; its root is that of X


def build(num_problems: int, n: int, p: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Regressors and targets of many problems."""
    data = random_regression(n, p, kappa=KAPPA, batch=(num_problems,), generator=stream(0, "bench regression"))
    return data.X, data.Y


def ours(inputs: tuple) -> torch.Tensor:
    """ols_coefficients(method="full rank"), Cholesky and one step of refinement"""
    return ols_coefficients(*inputs, method="full rank")


def peer(inputs: tuple) -> torch.Tensor:
    """torch.linalg.lstsq(driver="gels")"""
    return torch.linalg.lstsq(*inputs, driver="gels").solution


def check(inputs: tuple, mine: torch.Tensor, theirs: torch.Tensor) -> None:
    """The distance of the coefficients is within the sum of two rounding bounds of the chapter."""
    X, Y = inputs
    tolerance = 2 * rounding_bound(X) * torch.linalg.matrix_norm(Y) / torch.linalg.svdvals(X).amin(dim=-1)
    gap = float((torch.linalg.matrix_norm(mine - theirs) / tolerance).max())
    require(gap <= 1, f"the coefficients differ by {gap:.3g} times what rounding leaves")


SIZES, TOY = {"num_problems": 512, "n": 100, "p": 10}, {"num_problems": 16, "n": 60, "p": 8}
RACE = Race("least squares, 512 of 100 x 10", build, ours, peer, check, SIZES, TOY)

if __name__ == "__main__":
    command("ols_attention", RACE)
