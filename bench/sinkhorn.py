"""Race of Sinkhorn: ``python bench/sinkhorn.py [--quick] [--keep]``.

``sinkhorn`` against POT on an entropic problem of points in space. What is equal is the error of the marginals
that is really reached, read off the plans: POT's own threshold is an L2 norm, looked at every ten iterations.
"""

import numpy as np
import torch
from race import Race, command, require
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.sinkhorn.model.plan import sinkhorn

EPSILON, ERROR, MOST = 0.1, 1e-6, 5000


def build(B: int, n: int) -> Tensor:
    """Squared distances of random points, (B, n, n)."""
    x, y = torch.rand(2, B, n, 3, generator=stream(0, "bench points"), dtype=torch.float64)
    return torch.cdist(x, y).square()


def ours(cost: Tensor) -> Tensor:
    """sinkhorn, one batch"""
    return sinkhorn(cost / -EPSILON, tol=ERROR, max_iterations=MOST).plan


def peer(cost: Tensor) -> Tensor:
    """POT sinkhorn"""
    import ot

    n = cost.shape[-1]
    a = np.full(n, 1 / n)
    options = {"method": "sinkhorn", "numItermax": MOST, "stopThr": ERROR / n**0.5, "warn": False}
    return torch.from_numpy(np.stack([ot.sinkhorn(a, a, each, EPSILON, **options) for each in cost.numpy()]))


def check(_: Tensor, mine: Tensor, theirs: Tensor) -> None:
    """Both reach the error that was asked for, and the plans are as near as two such errors allow."""
    n = mine.shape[-1]
    for plan in (mine, theirs):
        error = float(sum((plan.sum(dim=axis) - 1 / n).abs().sum(dim=-1) for axis in (-1, -2)).max())
        require(error <= 1.05 * ERROR, f"the marginals are off by {error:.2g}, over {ERROR:.2g}")
    apart = float((mine - theirs).abs().sum(dim=(-2, -1)).max() / 2)
    require(apart <= 1e3 * ERROR, f"the plans are {apart:.2g} apart in total variation")


NOTE = "POT keeps one kernel, which underflows for cold plans; ours moves it, or takes logarithms where it must."
SIZES, TOY = {"B": 1, "n": 1024}, {"B": 4, "n": 16}
RACE = Race("B = 1, n = 1024, to 1e-6", build, ours, peer, check, SIZES, TOY, needs="ot", note=NOTE)

if __name__ == "__main__":
    command("sinkhorn", RACE)
