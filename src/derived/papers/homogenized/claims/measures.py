"""Measures that several topics use: pure functions from the rows of an experiment to an estimate.

A claim on several cases (pairs, times, settings) is judged by the case that is farthest off, each with an interval of
the level 1 - 0.001/cases, so that the whole statement has the level 99.9 %.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from derived.lab.stats import LEVEL, Estimate, mean, slope, worst

Measure = Callable[[pd.DataFrame], Estimate]


def gap(rows: pd.DataFrame) -> Estimate:
    return worst(rows["gap"], rows["bound"])


def apart(values: ArrayLike, target: float, slack: float = 0.0) -> tuple[list[float], float]:
    """How far the mean of independent values lies from a target, and five standard errors plus a stated slack."""
    one = mean(values)
    return [abs(one.value - target)], 5 * one.error + slack


def joint(cases: Sequence[pd.Series], target: float = 0.0) -> Estimate:
    """The mean of the case whose interval reaches farthest from ``target``, at a joint level over the cases."""
    if not cases:
        raise ValueError("no case of the claim is among the rows: it needs a larger tier")
    level = 1 - (1 - LEVEL) / len(cases)
    found = [mean(case, level) for case in cases]
    return max(found, key=lambda one: max(abs(one.low - target), abs(one.high - target)))


def ratio(one: pd.Series, other: pd.Series, cases: int = 1) -> Estimate:
    """|mean| of one series over |mean| of the other, the interval from both at a joint level over ``cases`` ratios."""
    above, below = (mean(values, 1 - (1 - LEVEL) / (2 * cases)) for values in (one, other))
    top, bottom = (sorted((abs(each.low), abs(each.high))) for each in (above, below))
    least = 0.0 if above.low < 0 < above.high else top[0]
    floor = 0.0 if below.low < 0 < below.high else bottom[0]
    return Estimate(abs(above.value / below.value), above.n, least / bottom[1], top[1] / floor if floor else np.inf)


def cases_of(rows: pd.DataFrame, column: str, by: Sequence[str]) -> list[pd.Series]:
    return [case[column] for _, case in rows.groupby(list(by))]


def difference(column: str, theory: str, by: Sequence[str], where: str = "") -> Measure:
    """Mean of column - theory, in the case where it is farthest from 0."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows.query(where) if where else rows
        return joint(cases_of(chosen.assign(difference=chosen[column] - chosen[theory]), "difference", by))

    return measure


def power(rows: pd.DataFrame, column: str, by: str, level: float = LEVEL) -> Estimate:
    """The slope of ln column in ln by, per replicate."""
    wide = rows.pivot(index="replicate", columns=by, values=column)
    return slope(np.log(wide.columns.to_numpy(dtype=float)), np.log(wide.to_numpy()), level)
