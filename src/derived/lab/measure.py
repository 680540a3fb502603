"""Measures: pure functions from the rows of an experiment to an estimate, and the few ways to combine them.

value   what is measured on each row: a column, an expression of columns ("m - m_theory"), or a function of the rows
where   which rows: a condition as ``pandas.DataFrame.query`` reads it ("layer > 0 and norm == 'erf'")
unit    the columns that name one independent draw; rows that agree in them count once
by      the columns that tell cases apart; cases are judged jointly, each at the level 1 - (1 - LEVEL) / cases,
        so that all their intervals cover together at LEVEL (Bonferroni)
looks   how often a claim has been looked at, this run included; each look has its share of 1 - LEVEL, likewise
decides what speaks for all: ``lowest``, ``highest``, made of all cases, or the one that is ``farthest_from(target)``
"""

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from pandas.core.groupby import SeriesGroupBy

from derived.lab import stats
from derived.lab.stats import LEVEL, Estimate

Measure = Callable[[pd.DataFrame], Estimate]
Value = str | Callable[[pd.DataFrame], pd.Series]
Decides = Callable[[Sequence[Estimate]], Estimate]


def chosen(rows: pd.DataFrame, where: str = "") -> pd.DataFrame:
    """The rows that meet a condition; ValueError where none does, since nothing follows from no rows."""
    found = rows.query(where, engine="python") if where else rows
    if found.empty:
        raise ValueError(
            f"no row meets the condition {where!r}: it needs a larger tier" if where else "there is no row"
        )
    return found


def values(rows: pd.DataFrame, value: Value) -> pd.Series:
    """What is measured on each row; ValueError for NaN, there and in a column that an expression names: NaN < 1 is no.

    >>> values(pd.DataFrame({"m": [3.0, 5.0], "theory": [2.0, 5.0]}), "m - theory").tolist()
    [1.0, 0.0]
    """
    named: set[str] = set()
    if callable(value):
        found = value(rows)
    elif value in rows:
        found = rows[value]
    else:
        named = {node.id for node in ast.walk(ast.parse(value)) if isinstance(node, ast.Name)}
        found = rows.eval(value, engine="python")
    for each in [*(rows[name] for name in rows if name in named), found]:
        if missing := int(np.sum(pd.isna(each))):
            raise ValueError(f"{missing} of {len(rows)} rows have no number to measure")
    return found


def by_draw(found: pd.Series, rows: pd.DataFrame, unit: Sequence[str]) -> SeriesGroupBy:
    """Group measured values by the columns that name a draw; ValueError for a missing value or key, which pandas would
    silently skip.
    """
    missing = int((found.isna() | rows[list(unit)].isna().any(axis="columns")).sum())
    if missing:
        raise ValueError(f"{missing} of {len(rows)} rows have no number, or none of the names {', '.join(unit)}")
    return found.groupby([rows[name] for name in unit])


# One number without chance --------------------------------------------------------------------------------------------


def worst(gap: Value = "gap", bound: Value = "bound", where: str = "") -> Measure:
    """The largest ratio of a gap to its bound; n counts rows."""

    def measure(rows: pd.DataFrame) -> Estimate:
        some = chosen(rows, where)
        return stats.worst(values(some, gap), values(some, bound))

    return measure


def _extreme(value: Value, where: str, extreme: Callable[[pd.Series], float]) -> Measure:
    def measure(rows: pd.DataFrame) -> Estimate:
        found = values(chosen(rows, where), value)
        return Estimate(float(extreme(found)), len(found))

    return measure


def largest(value: Value, where: str = "") -> Measure:
    """The largest value over the rows."""
    return _extreme(value, where, pd.Series.max)


def smallest(value: Value, where: str = "") -> Measure:
    """The smallest value over the rows."""
    return _extreme(value, where, pd.Series.min)


def lowest(found: Sequence[Estimate]) -> Estimate:
    """The least of several that are judged jointly: its interval is from the lowest beginning to the lowest end. n and
    error are those of the case that reaches lowest.

    >>> lowest([Estimate(2.0, 9, 0.0, 4.0), Estimate(1.0, 9, 0.5, 1.5)])
    Estimate(value=1.0, n=9, low=0.0, high=1.5, error=None)
    """
    widest = min(found, key=lambda one: one.low)
    return replace(widest, value=min(one.value for one in found), high=min(one.high for one in found))


def highest(found: Sequence[Estimate]) -> Estimate:
    """The greatest of several that are judged jointly, likewise."""
    widest = max(found, key=lambda one: one.high)
    return replace(widest, value=max(one.value for one in found), low=max(one.low for one in found))


def farthest_from(target: float) -> Decides:
    """The estimate whose interval reaches farthest from a target."""
    return lambda found: max(found, key=lambda one: max(abs(one.low - target), abs(one.high - target)))


def jointly(
    one: Callable[[pd.DataFrame, float], Estimate],
    by: Sequence[str],
    decides: Decides,
    where: str = "",
    looks: int = 1,
) -> Measure:
    """An estimate per case, all judged together, and what decides.

    ``one`` takes the rows of a case and the level of its interval.
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        cases = [case for _, case in chosen(rows, where).groupby(list(by), dropna=False)]
        level = 1 - (1 - LEVEL) / (len(cases) * looks)
        return decides([one(case, level) for case in cases])

    return measure


def _per_case(
    one: Callable[[pd.DataFrame, float], Estimate],
    by: Sequence[str],
    decides: Decides | None,
    where: str,
    looks: int = 1,
) -> Measure:
    if bool(by) != (decides is not None):
        raise ValueError("say both `by` and which case `decides`, or neither")
    if by:
        return jointly(one, by, decides, where, looks)
    return lambda rows: one(chosen(rows, where), 1 - (1 - LEVEL) / looks)


def mean(
    value: Value, where: str = "", *, unit: Sequence[str] = (), by: Sequence[str] = (), decides: Decides | None = None
) -> Measure:
    """The mean over rows with Student's interval; over draws, each the mean of its rows, where ``unit`` names them.

    >>> rows = pd.DataFrame({"d": [8, 8, 32, 32], "x": [1.0, 1.2, 2.0, 2.4]})
    >>> mean("x", by=["d"], decides=highest)(rows).value
    2.2
    """

    def one(rows: pd.DataFrame, level: float) -> Estimate:
        found = values(rows, value)
        return stats.mean(by_draw(found, rows, unit).mean() if unit else found, level)

    return _per_case(one, by, decides, where)


def share(success: Value, where: str = "", *, unit: Sequence[str] = ("replicate",)) -> Measure:
    """The share of draws all of whose rows succeed, with Clopper and Pearson's interval.

    ``unit=()`` takes each row as a draw.

    >>> rows = pd.DataFrame({"replicate": [0, 0, 1, 1], "error": [0.1, 0.2, 0.1, 0.9]})
    >>> share("error < 0.5")(rows).value
    0.5
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        some = chosen(rows, where)
        good = values(some, success).astype(bool)
        good = by_draw(good, some, unit).all() if unit else good
        return stats.proportion(int(good.sum()), len(good))

    return measure


def slope(
    value: Value,
    against: str,
    where: str = "",
    *,
    x: Callable[[np.ndarray], np.ndarray] = np.asarray,
    y: Callable[[np.ndarray], np.ndarray] = np.asarray,
    unit: Sequence[str] = ("replicate",),
    by: Sequence[str] = (),
    decides: Decides | None = None,
    looks: int = 1,
) -> Measure:
    """The slope of y(value) in x(against): least squares in each draw, then the mean over draws.

    A draw that lacks a point has no fit; ValueError, like all that an interval does not allow.
    """

    def one(rows: pd.DataFrame, level: float) -> Estimate:
        table = rows[[*unit, against]].assign(value=values(rows, value))
        wide = table.pivot(index=list(unit), columns=against, values="value")
        return stats.slope(x(wide.columns.to_numpy(dtype=float)), y(wide.to_numpy(dtype=float)), level)

    return _per_case(one, by, decides, where, looks)


def power(value: Value, against: str, where: str = "", **facts) -> Measure:
    """The exponent of a power law: the slope of ln value in ln against, as ``slope`` takes it.

    >>> rows = pd.DataFrame([(r, d, c * d**2) for r, c in enumerate((1.0, 3.0)) for d in (2, 4)])
    >>> round(power("x", "d")(rows.set_axis(["replicate", "d", "x"], axis="columns")).value, 12)
    2.0
    """
    return slope(value, against, where, x=np.log, y=np.log, **facts)
