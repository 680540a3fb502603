"""Measures that two topics share."""

from dataclasses import replace

import numpy as np
import pandas as pd

from derived.lab.measure import chosen
from derived.lab.stats import Estimate


def judged(rows: pd.DataFrame, where: str, column: str = "distortion", look: int = -1) -> pd.Series:
    """A column of the judged networks of one arm, by replicate, at a look: the last is the end."""
    table = chosen(rows, f"stage == 'fit' and ({where})").sort_values(["replicate", "step"])
    return table.groupby("replicate")[column].agg(lambda each: each.iloc[look])


def ordering(rows: pd.DataFrame, high: tuple[str, str]) -> pd.Series:
    """The lower similarity of two arms less the higher of matched and uniform DNA, by replicate."""
    wide = rows.pivot(index="replicate", columns="arm", values="similarity")
    lower, higher = wide[[*high]].min(axis=1, skipna=False), wide[["matched", "uniform"]]
    return lower - higher.max(axis=1, skipna=False)


def ratio(logs: Estimate) -> Estimate:
    """The geometric mean whose logarithm is estimated; an interval of two networks may have no upper end in floats."""
    with np.errstate(over="ignore"):
        return replace(logs, value=np.exp(logs.value), low=np.exp(logs.low), high=np.exp(logs.high), error=None)
