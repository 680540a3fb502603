"""What measures of several topics share: a ratio of totals with its interval."""

import pandas as pd

from derived.lab import stats
from derived.lab.measure import Measure, chosen, values
from derived.lab.stats import LEVEL, Estimate


def ratio(top: pd.Series, bottom: pd.Series, level: float = LEVEL) -> Estimate:
    """Total over total of two columns of independent rows, with the jackknife's interval."""
    top, bottom = top.to_numpy(), bottom.to_numpy()
    whole, n = top.sum() / bottom.sum(), len(top)
    without = (top.sum() - top) / (bottom.sum() - bottom)
    one = stats.mean(n * whole - (n - 1) * without, level)
    return Estimate(float(whole), n, one.low, one.high, one.error)


def ratio_of_totals(top: str, bottom: str, where: str) -> Measure:
    """The total of one expression over that of another, over the rows that meet a condition."""

    def measure(rows: pd.DataFrame) -> Estimate:
        some = chosen(rows, where)
        return ratio(values(some, top), values(some, bottom))

    return measure
