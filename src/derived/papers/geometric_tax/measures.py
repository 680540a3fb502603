"""Measures that two topics share."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.measure import chosen
from derived.lab.stats import Estimate


def judged(rows: pd.DataFrame, where: str, column: str = "distortion", look: int = -1) -> pd.Series:
    """A column of the judged networks of one arm, by replicate, at a look: the last is the end."""
    table = chosen(rows, f"stage == 'fit' and ({where})").sort_values(["replicate", "step"])
    return table.groupby("replicate")[column].agg(lambda each: each.iloc[look])


SAME = ("matched",), ("uniform",)  # two arms in which no window differs from another in composition


def ordering(rows: pd.DataFrame, high: Sequence[str], low: Sequence[str] = ("matched", "uniform")) -> Estimate:
    """The lowest similarity of some arms of DNA less the highest of others, over replicates."""
    wide = rows.pivot(index="replicate", columns="arm", values="similarity")
    return stats.mean(wide[[*high]].min(axis=1, skipna=False) - wide[[*low]].max(axis=1, skipna=False))


def ratio(logs: Estimate) -> Estimate:
    """The geometric mean whose logarithm is estimated; an interval of two networks may have no upper end in floats."""
    with np.errstate(over="ignore"):
        return replace(logs, value=np.exp(logs.value), low=np.exp(logs.low), high=np.exp(logs.high), error=None)
