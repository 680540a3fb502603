"""The fold error of a measured curve, and the case farthest from one, which several topics judge."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from derived.lab import stats
from derived.lab.stats import Estimate

REPLICATE = ("part", "init", "replicate")  # whichever of them the rows have name one initialisation


def fold(measured: np.ndarray, theory: np.ndarray, level: float) -> Estimate:
    """The geometric-mean fold error, over blocks, of the mean over initialisations (inits, blocks), with its interval.

    With m_b = ln(mean / theory) and its standard error e_b the triangle inequality bounds the error of mean_b |m_b| by
    mean_b |m_b - true m_b|; Student's t times mean_b e_b covers that however the blocks of a network are correlated,
    and where the sign of m_b is in doubt, at the kink of |.|. A fold error is at least 1.
    """
    blocks = [stats.mean(column, level) for column in measured.T]
    centre = np.array([one.value for one in blocks])
    value = float(np.abs(np.log(centre / theory)).mean())
    reach = float(np.mean([(one.high - one.value) / one.value for one in blocks]))
    return Estimate(np.exp(value), len(measured), np.exp(max(value - reach, 0.0)), np.exp(value + reach))


def fold_error(column: str):
    """``fold`` of a measured column against the one with ``_theory``, for a case and a level.

    The last block, at which theory and measurement agree by definition, is left out.
    """

    def one(case: pd.DataFrame, level: float) -> Estimate:
        inits = [name for name in REPLICATE if name in case.columns]
        measured, theory = (
            case.pivot(index=inits, columns="b", values=name).to_numpy()[:, :-1]
            for name in (column, f"{column}_theory")
        )
        return fold(measured, theory[0], level)

    return one


def farthest(cases: Sequence[Estimate]) -> Estimate:
    """The estimate of a ratio whose interval reaches farthest from one, in logarithms."""
    return max(cases, key=lambda one: max(abs(np.log(max(end, 1e-300))) for end in (one.low, one.high)))
