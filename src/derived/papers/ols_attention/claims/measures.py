"""What the claims measure: pure functions from the rows of an experiment to an estimate."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from derived.lab.stats import LEVEL, Estimate, mean, proportion, slope, worst

Measure = Callable[[pd.DataFrame], Estimate]


def gap(column: str, bound: str = "bound", precision: str = "float64") -> Measure:
    """The worst ratio of a gap to its rounding bound, at one precision."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["precision"] == precision]
        return worst(chosen[column], chosen[bound])

    return measure


def share(
    where: Callable[[pd.DataFrame], pd.DataFrame],
    success: Callable[[pd.DataFrame], pd.Series],
    unit: Sequence[str] = ("replicate",),
) -> Measure:
    """The share of units all of whose rows succeed, among the rows that ``where`` selects.

    ``unit``: the columns that name one independent draw of the data; rows that agree in them share it.
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = where(rows)
        good = success(chosen).groupby([chosen[name] for name in unit]).all()
        return proportion(int(good.sum()), len(good))

    return measure


def witness(rows: pd.DataFrame, column: str) -> Estimate:
    """The largest violation that an exact instance shows."""
    values = rows.query("precision == 'float64'")[column]
    return Estimate(float(values.max()), len(values))


def farthest(estimates: Sequence[Estimate], target: float) -> Estimate:
    """The estimate whose interval reaches farthest from the target."""
    return max(estimates, key=lambda one: max(abs(one.low - target), abs(one.high - target)))


def batch_ratio(rows: pd.DataFrame) -> Estimate:
    groups = [(group["error"] / group["predicted"]) for _, group in rows.groupby(["p", "num_tokens"])]
    level = 1 - (1 - LEVEL) / len(groups)  # all intervals cover together at the level of one
    return farthest([mean(group, level) for group in groups], 1.0)


def reached(rows: pd.DataFrame) -> pd.Series:
    return (rows["l"] - rows["inverse_root"]).abs() < 1e-3


def parabola(rows: pd.DataFrame) -> Estimate:
    chosen = rows.query("shift == 'same tokens' and method == 'self'")
    return worst((chosen["error"] - (chosen["amount"] ** 2 - 1).abs()).abs(), chosen["bound"])


def shift_free(rows: pd.DataFrame) -> Estimate:
    chosen = rows.query("method != 'self'")
    return worst(chosen["error"], chosen["bound"])


def doubled(rows: pd.DataFrame) -> Estimate:
    return mean(rows.query("shift == 'scale' and method == 'self' and amount == 2")["error"])


def dial_slope(rows: pd.DataFrame) -> Estimate:
    wide = rows.pivot(index="replicate", columns="beta", values="error")
    return slope(np.log(wide.columns.to_numpy()), np.log(wide.to_numpy()))


def risk_ratio(rows: pd.DataFrame) -> Estimate:
    """Measured over optimal risk, at the spectrum where the interval reaches farthest from 1."""
    return farthest([mean(group["risk"] / group["optimal_risk"]) for _, group in rows.groupby("spectrum")], 1.0)


def learned(spectrum: str, start: str) -> Measure:
    """The share of trained layers whose risk is within 3 % of the optimal one."""
    return share(
        lambda rows: rows[(rows["spectrum"] == spectrum) & (rows["start"] == start)],
        lambda rows: (rows["risk"] / rows["optimal_risk"] - 1).abs() < 0.03,
    )


def alignment(rows: pd.DataFrame) -> Estimate:
    return farthest([mean(group["alignment"]) for _, group in rows.groupby("spectrum")], 1.0)


def exponent(degree: int) -> Measure:
    """The slope of ln K against ln N."""

    def measure(rows: pd.DataFrame) -> Estimate:
        wide = rows[rows["degree"] == degree].pivot(index="replicate", columns="N", values="K")
        return slope(np.log(wide.columns.to_numpy(float)), np.log(wide.to_numpy()))

    return measure


def rate(notion: str) -> Measure:
    """The slope of log2 K against N."""

    def measure(rows: pd.DataFrame) -> Estimate:
        wide = rows[rows["notion"] == notion].pivot(index="replicate", columns="N", values="K")
        return slope(wide.columns.to_numpy(float), np.log2(wide.to_numpy()))

    return measure


def noise_ratio(column: str) -> Measure:
    """Measured noise of the Hebb read-out over a formula, at the largest number of patterns."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[(rows["memory"] == "hebb") & (rows["num_patterns"] == rows["num_patterns"].max())]
        return mean(chosen["noise"] / chosen[column])

    return measure
