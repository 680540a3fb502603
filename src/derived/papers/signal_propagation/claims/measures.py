"""Measures that several topics use: fold errors and ratios at the input block."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import stats as laws

from derived.lab.stats import LEVEL, Estimate, mean

Measure = Callable[[pd.DataFrame], Estimate]
REPLICATE = ("part", "init", "replicate")  # whichever of them the rows have name one initialisation


def table_of(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Initialisations by blocks."""
    keys = [name for name in REPLICATE if name in rows.columns]
    return rows.pivot(index=keys, columns="b", values=column)


def fold(measured: np.ndarray, theory: np.ndarray, level: float) -> Estimate:
    """The geometric-mean fold error, over blocks, of the mean over initialisations (inits, blocks), with its interval.

    With m_b = ln(mean / theory) and its standard error e_b the triangle inequality bounds the error of mean_b |m_b| by
    mean_b |m_b - true m_b|; Student's t times mean_b e_b covers that however the blocks of a network are correlated,
    and where the sign of m_b is in doubt, at the kink of |.|. A fold error is at least 1.
    """
    inits = len(measured)
    centre = measured.mean(axis=0)
    errors = measured.std(axis=0, ddof=1) / np.sqrt(inits) / centre
    value = float(np.abs(np.log(centre / theory)).mean())
    reach = float(laws.t.ppf((1 + level) / 2, inits - 1) * errors.mean())
    return Estimate(np.exp(value), inits, np.exp(max(value - reach, 0.0)), np.exp(value + reach))


def gmfe_of(column: str, by: Sequence[str] = ("norm", "heads"), edge: str = "last") -> Measure:
    """The fold error of a measured column, in the case where its interval reaches highest; joint level over cases.

    ``edge`` is the block at which theory and measurement agree by definition, left out: "last" or "first".
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        cases, keep = [rows for _, rows in rows.groupby(list(by))], slice(0, -1) if edge == "last" else slice(1, None)
        level = 1 - (1 - LEVEL) / len(cases)
        tables = [(table_of(case, column), table_of(case, f"{column}_theory")) for case in cases]
        found = [fold(m.to_numpy()[:, keep], t.to_numpy()[0, keep], level) for m, t in tables]
        return max(found, key=lambda one: one.high)

    return measure


def end_ratio(numerator: str, denominator: str, by: Sequence[str] = ()) -> Measure:
    """measured / theory at block 0, mean over initialisations, in the case whose interval reaches lowest."""

    def measure(rows: pd.DataFrame) -> Estimate:
        first = rows[rows["b"] == 0]
        cases = [case for _, case in first.groupby(list(by))] if by else [first]
        level = 1 - (1 - LEVEL) / len(cases)
        found = [mean(case[numerator] / case[denominator], level) for case in cases]
        return min(found, key=lambda one: one.low)

    return measure
