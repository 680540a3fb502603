"""Measures of trained networks that topics share: ratios network by network, and what must have been learned.

Two arms are compared network by network: a pair has the same paths, first weights and batches, and its own draw of the
paths that judge it. Ratios are geometric means over pairs.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.measure import Decides, Measure, chosen, lowest
from derived.lab.stats import LEVEL, Estimate


def judged(rows: pd.DataFrame, where: str, column: str = "distortion", look: int = -1) -> pd.Series:
    """A column of the judged networks of one arm, by replicate, at a look: the last is the end."""
    table = chosen(rows, f"stage == 'fit' and ({where})").sort_values(["replicate", "step"])
    return table.groupby("replicate")[column].agg(lambda each: each.iloc[look])


def ratio(logs: Estimate) -> Estimate:
    """The geometric mean whose logarithm is estimated; an interval of two networks may have no upper end in floats."""
    with np.errstate(over="ignore"):
        return replace(logs, value=np.exp(logs.value), low=np.exp(logs.low), high=np.exp(logs.high), error=None)


def over_cases(value: Callable[[pd.DataFrame, str], pd.Series], cases: Sequence[str], decides: Decides) -> Measure:
    """The mean over pairs of ``value(rows, case)`` in each case, all judged jointly, and the case that decides."""

    def measure(rows: pd.DataFrame) -> Estimate:
        level = 1 - (1 - LEVEL) / len(cases)
        return decides([stats.mean(value(rows, case), level) for case in cases])

    return measure


def times(one: str, other: str, cases: Sequence[str] = ("",)) -> Measure:
    """D of the first arm over that of the second, in the case where it is least."""

    def logs(rows: pd.DataFrame, case: str) -> pd.Series:
        and_case = f" and {case}" if case else ""
        return np.log(judged(rows, one + and_case) / judged(rows, other + and_case))

    measure = over_cases(logs, cases, lowest)
    return lambda rows: ratio(measure(rows))


def flat(rows: pd.DataFrame, where: str) -> None:
    """ValueError unless networks end at a plateau: the last tenth of the steps takes at most 2 % of what their loss fell
    from the first look on. Rows without looks are let pass."""
    if rows["step"].nunique() > 1:
        loss = [judged(rows, where, "valid", look).mean() for look in (0, -2, -1)]
        if not loss[1] - loss[2] <= 0.02 * (loss[0] - loss[2]):
            raise ValueError(f"networks where {where} have not come to a plateau: their loss goes {loss}")


def learned(rows: pd.DataFrame, arm: str, case: str = "") -> None:
    """ValueError unless an arm is flat and finds the next value to within twice the error of hard labels, or twice what
    its own labels round off."""
    where = lambda each: f"arm == '{each}'" + (f" and {case}" if case else "")  # noqa: E731
    flat(rows, where(arm))
    missed, hard = (judged(rows, where(each), "rmse").mean() for each in (arm, "ce"))
    limit = 2 * max(hard, judged(rows, where(arm), "reconstruction").mean())
    if not missed <= limit:
        raise ValueError(f"{where(arm)} has not learned: it misses the next value by {missed}, more than {limit}")


def if_flat(measure: Measure, cases: Sequence[str]) -> Measure:
    """The measure, where hard labels and the squared error are flat on each of the systems."""

    def judged_if(rows: pd.DataFrame) -> Estimate:
        for case in cases:
            for arm in ("arm == 'ce'", "arm == 'scalar'"):
                flat(rows, f"{arm} and {case}")
        return measure(rows)

    return judged_if


def once_learned(one: str, other: str) -> Measure:
    """D of the first arm over that of the second, where hard labels and both of them have learned."""

    def measure(rows: pd.DataFrame) -> Estimate:
        for arm in ("ce", one, other):
            learned(rows, arm)
        return times(f"arm == '{one}'", f"arm == '{other}'")(rows)

    return measure
