"""What claims of several topics, or the page, measure beyond the combinators of ``lab.measure``."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from derived.lab.stats import LEVEL, Estimate, mean


def ratio(one: pd.Series, other: pd.Series) -> Estimate:
    """|mean| of one series over |mean| of the other, the interval from both at a joint level."""
    above, below = (mean(values, 1 - (1 - LEVEL) / 2) for values in (one, other))
    top, bottom = (sorted((abs(each.low), abs(each.high))) for each in (above, below))
    least = 0.0 if above.low < 0 < above.high else top[0]
    floor = 0.0 if below.low < 0 < below.high else bottom[0]
    return Estimate(abs(above.value / below.value), above.n, least / bottom[1], top[1] / floor if floor else np.inf)


def mean_gap(values: ArrayLike, target: ArrayLike, slack: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """The distance of means over the first axis from their targets, and five standard errors plus a stated slack."""
    values = np.asarray(values, dtype=float)
    error = values.std(axis=0, ddof=1) / len(values) ** 0.5
    return np.abs(values.mean(axis=0) - np.asarray(target)), 5 * error + slack
