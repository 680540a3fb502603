"""Estimates with their intervals.

value      the point estimate
low, high  a 99.9 % interval, unless another level is given; None where the value is exact
error      its standard error
n          number of independent replicates (or of instances checked)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

LEVEL = 0.999  # the level of every published interval


@dataclass(frozen=True)
class Estimate:
    """A value, how many independent replicates or instances it rests on, and how far it can be trusted."""

    value: float
    n: int
    low: float | None = None
    high: float | None = None
    error: float | None = None


def _finite(values: ArrayLike, at_least: int) -> np.ndarray:
    array = np.asarray(values, dtype=float).reshape(-1)
    if array.size < at_least:
        raise ValueError(f"{array.size} replicates were given; an interval needs at least {at_least}")
    if not np.isfinite(array).all():
        raise ValueError(
            f"{(~np.isfinite(array)).sum()} of {array.size} replicates are not finite; report them instead"
        )
    return array


def mean(values: ArrayLike, level: float = LEVEL) -> Estimate:
    """The mean of independent replicates with Student's interval: mean ± t_{n-1} · s/√n."""
    array = _finite(values, 2)
    centre, error = float(array.mean()), float(array.std(ddof=1) / np.sqrt(array.size))
    reach = float(stats.t.ppf((1 + level) / 2, array.size - 1)) * error
    return Estimate(centre, array.size, centre - reach, centre + reach, error)


def proportion(successes: int, n: int, level: float = LEVEL) -> Estimate:
    """A share of n independent trials with Clopper and Pearson's interval, which covers at every true share."""
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"{successes} successes of {n} trials is no share: need 0 <= successes <= n and n >= 1")
    tail, share = (1 - level) / 2, successes / n
    low = float(stats.beta.ppf(tail, successes, n - successes + 1)) if successes else 0.0
    high = float(stats.beta.isf(tail, successes + 1, n - successes)) if successes < n else 1.0
    return Estimate(share, n, low, high, float(np.sqrt(share * (1 - share) / n)))


def slope(x: ArrayLike, y: ArrayLike, level: float = LEVEL) -> Estimate:
    """The slope of y against x, least squares in each replicate, then the mean over replicates with its interval.

    ``x`` (points,), ``y`` (replicates, points). The fit is done per replicate because the points of one replicate need
    not be independent; the replicates are.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if x.ndim != 1 or y.ndim != 2 or y.shape[1] != x.size or x.size < 2 or np.ptp(x) == 0:
        raise ValueError(
            f"x {x.shape} and y {y.shape}: need x (points,) with two distinct points, y (replicates, points)"
        )
    centred = x - x.mean()
    return mean(y @ centred / (centred @ centred), level)


def worst(gap: ArrayLike, bound: ArrayLike) -> Estimate:
    """The largest ratio of a gap to its bound over n instances; NaN if any gap is NaN, so that it can never pass."""
    gap, bound = (np.asarray(each, dtype=float).reshape(-1) for each in (gap, bound))
    if (bound < 0).any():
        raise ValueError(
            f"{int((bound < 0).sum())} of {bound.size} bounds are negative: a bound on a gap is at least 0"
        )
    ratio = gap / bound
    return Estimate(float(ratio.max()), ratio.size)
