"""Race of the geometric tax: ``python bench/geometric_tax.py [--quick] [--keep]``.

RDM similarity of two clouds, which is the correlation of the ranks of their cosine distances, against SciPy's routines,
put together as their documentation says.
"""

import torch
from race import Race, command, require
from scipy.spatial.distance import pdist
from scipy.stats import spearmanr

from derived.lab.rng import stream
from derived.papers.geometric_tax.model.metrics import rdm_similarity


def build(points: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A cloud and its copy with noise, (n, p) each."""
    X = torch.randn(points, width, generator=stream(0, "cloud"), dtype=torch.float64)
    return X, X + 0.3 * torch.randn(*X.shape, generator=stream(0, "noise"), dtype=torch.float64)


def ours(both: tuple) -> float:
    """rdm_similarity"""
    return float(rdm_similarity(*both))


def peer(both: tuple) -> float:
    """scipy: pdist and spearmanr"""
    return float(spearmanr(*(pdist(each.numpy(), "cosine") for each in both)).statistic)


def check(_: tuple, mine: float, theirs: float) -> None:
    """The same ranks give the same number up to rounding."""
    require(abs(mine - theirs) <= 1e-9, f"the similarities differ: {mine} and {theirs}")


SIZES, TOY = {"points": 2000, "width": 256}, {"points": 40, "width": 8}
RACE = Race("RDM similarity, 2,000 points in 256 dimensions", build, ours, peer, check, SIZES, TOY)

if __name__ == "__main__":
    command("geometric_tax", RACE)
