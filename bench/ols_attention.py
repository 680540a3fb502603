"""Races of the least-squares chapter: ``python bench/ols_attention.py [--quick] [--threads 1] [--output FILE]``.

Least squares of full rank: the package's Cholesky with one step of refinement against LAPACK's QR,
torch.linalg.lstsq(driver="gels"). Each has its error beside its time, against a solution refined in extended
precision. Cholesky without the step is there for scale: its error grows like the square of the condition number,
which is about 10 here.

Results are compared before anything is timed. The full run writes results/ols_attention/bench.json; a quick run, whose
sizes are too small to report, writes under _build/.
"""

from collections.abc import Iterator

import harness
import numpy as np
import torch
from harness import Peer, Race, within

from derived.lab.rng import stream
from derived.papers.ols_attention.data.problems import random_regression
from derived.papers.ols_attention.model.theory import ols_coefficients, rounding_bound

EPS = torch.finfo(torch.float64).eps
KAPPA = 100.0  # condition number of the second moment; its root is that of X


def build_regression(num_problems: int, n: int, p: int) -> tuple:
    data = random_regression(n, p, kappa=KAPPA, batch=(num_problems,), generator=stream(0, "bench regression"))
    return data.X, data.Y


def refined(inputs: tuple) -> torch.Tensor:
    """ols_coefficients(method="full rank"), Cholesky and one step of refinement"""
    return ols_coefficients(*inputs, method="full rank")


def lstsq_gels(inputs: tuple) -> torch.Tensor:
    """torch.linalg.lstsq(driver="gels")"""
    return torch.linalg.lstsq(*inputs, driver="gels").solution


def cholesky(inputs: tuple) -> torch.Tensor:
    """Cholesky of the normal equations"""
    X, Y = inputs
    return torch.cholesky_solve(X.mT @ Y, torch.linalg.cholesky(X.mT @ X))


def same_coefficients(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The distance of the coefficients over the sum of two rounding bounds of the chapter."""
    X, Y = inputs
    s = torch.linalg.svdvals(X)
    least = torch.where(s > max(X.shape[-2:]) * EPS * s[..., :1], s, torch.inf).amin(dim=-1)
    tolerance = 2 * rounding_bound(X) * torch.linalg.matrix_norm(Y) / least
    return within(float((torch.linalg.matrix_norm(ours - peer) / tolerance).max()))


def error_of(inputs: tuple, B: torch.Tensor) -> float:
    """The largest ||B - B*|| / ||B*||, with B* refined by Newton's steps whose residuals are in extended precision."""
    X, Y = (x.numpy().astype(np.longdouble) for x in inputs)
    Xt, gram, best = X.swapaxes(-1, -2), (inputs[0].mT @ inputs[0]).numpy(), B.numpy().astype(np.longdouble)
    for _ in range(3):
        best = best + np.linalg.solve(gram, (Xt @ (Y - X @ best)).astype(float))
    apart, size = (np.square(each).sum(axis=(-2, -1)) ** 0.5 for each in (B.numpy() - best, best))
    return float((apart / size).max())


def regression_work(inputs: tuple) -> tuple[float, float]:
    """X is read, and multiplied by itself."""
    X, Y = inputs
    return X.nbytes + Y.nbytes, 2 * X.numel() * X.shape[-1]


SQUARED = "It squares the condition number and does not refine: its error is larger, as the script prints."


def races(quick: bool) -> Iterator[Race]:
    peers = (
        Peer(run=lstsq_gels, gap=same_coefficients),
        Peer(run=cholesky, gap=same_coefficients, why=SQUARED),
    )
    for batch, n, p in ((16, 60, 8), (1, 2000, 16)) if quick else ((512, 100, 10), (1, 50_000, 20)):
        name, sizes = f"least squares, {batch} of {n} x {p}", {"num_problems": batch, "n": n, "p": p}
        facts = {"error": error_of, "work": regression_work}
        yield Race(name=name, build=build_regression, sizes=sizes, ours=refined, peers=peers, **facts)


if __name__ == "__main__":
    harness.command("ols_attention", harness.contests(races), rounds=21, quick_rounds=6, dtype="float64")
