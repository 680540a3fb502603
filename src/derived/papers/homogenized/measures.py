"""What the claims measure: pure functions from the rows of an experiment to an estimate.

A claim on several cases (pairs, times, settings) is judged by the case that is farthest off, each with an interval of
the level 1 - 0.001/cases, so that the whole statement has the level 99.9 %.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from derived.lab.stats import LEVEL, Estimate, mean, proportion, slope, worst

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


def lowest(cases: Sequence[pd.Series]) -> Estimate:
    """The mean of the case whose interval reaches lowest, at a joint level."""
    level = 1 - (1 - LEVEL) / len(cases)
    return min((mean(case, level) for case in cases), key=lambda one: one.low)


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


# One layer -----------------------------------------------------------------------------------------------------------


def rate_gap(rows: pd.DataFrame) -> Estimate:
    """Rates of one layer, extrapolated to h = 0 from the two smallest steps, over the diffusion's: farthest from 1."""
    ratios = []
    for _, case in rows.sort_values("h").groupby(["d", "degree"]):
        (near, far), (h, double) = case["rate"].iloc[:2], case["h"].iloc[:2]
        ratios.append((near + (near - far) * h / (double - h)) / case["exact"].iloc[0])
    return Estimate(float(max(ratios, key=lambda ratio: abs(ratio - 1))), len(ratios))


def halving(rows: pd.DataFrame) -> Estimate:
    """The factor by which the error falls when h is halved, farthest from 2."""
    factors = []
    for _, case in rows.sort_values("h").groupby(["d", "degree"]):
        error = case["error"].to_numpy()
        factors += list(error[1:] / error[:-1])
    return Estimate(float(max(factors, key=lambda factor: abs(factor - 2))), len(factors))


def head_moment(quantities: Sequence[str], tokens: Sequence[str] = ()) -> Measure:
    """value - target over the given quantities and tokens, farthest from 0."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["quantity"].isin(quantities)]
        chosen = chosen[chosen["tokens"].isin(tokens)] if tokens else chosen
        chosen = chosen.assign(off=chosen["value"] - chosen["target"])
        return joint(cases_of(chosen, "off", ("tokens", "quantity")))

    return measure


def proxy_below(rows: pd.DataFrame) -> Estimate:
    """E|G|^2 less (d-1)/d at random tokens, where it reaches highest."""
    chosen = rows[(rows["quantity"] == "proxy") & (rows["tokens"] != "coinciding")]
    cases = cases_of(chosen.assign(off=chosen["value"] - chosen["target"]), "off", ("tokens",))
    level = 1 - (1 - LEVEL) / len(cases)
    return max((mean(case, level) for case in cases), key=lambda one: one.high)


def layer_gap(column: str, theory: str, tokens: str) -> Measure:
    """(column - theory) over the largest |theory| of the tokens, in the pair where it is farthest from 0.

    The pairs of a simplex are one case: they have one drift, and a replicate is the mean over them.
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["tokens"] == tokens]
        scale = chosen.groupby("pair")[theory].mean().abs().max()
        chosen = chosen.assign(off=(chosen[column] - chosen[theory]) / scale)
        if tokens == "simplex":
            return mean(chosen.groupby("replicate")["off"].mean())
        return joint(cases_of(chosen, "off", ("pair",)))

    return measure


def kappa(factors: int) -> Measure:
    """The constant of the delta lemma at the largest width."""

    def measure(rows: pd.DataFrame) -> Estimate:
        return mean(rows[(rows["factors"] == factors) & (rows["d"] == rows["d"].max())]["kappa"])

    return measure


def slow(column: str, target: float, factors: int = 2) -> Measure:
    """Drift or bracket of the slow overlap over its form, at the largest width, in the overlap farthest off."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[(rows["factors"] == factors) & (rows["d"] == rows["d"].max())]
        return joint(cases_of(chosen, column, ("R",)), target)

    return measure


def drift_by_width(rows: pd.DataFrame) -> Estimate:
    """The drift per unit of tau at the largest width over that at the smallest, in the overlap of the larger ratio."""
    chosen = rows[rows["factors"] == 2]
    widths = [chosen[chosen["d"] == d] for d in (chosen["d"].max(), chosen["d"].min())]
    wide, narrow = (cases_of(part.assign(rate=part["drift"] / part["d"]), "rate", ("R",)) for part in widths)
    return max((ratio(*pair, cases=len(wide)) for pair in zip(wide, narrow, strict=True)), key=lambda one: one.high)


def missing(ratio: float, times: float = 1.0, target: float = 0.0) -> Measure:
    """The coefficient of the drift at beta_eff = ratio d less that at beta = infinity, with the same heads.

    Multiplied by ``times``, at the width where it is farthest from ``target``.
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["ratio"] == ratio]
        chosen = chosen.assign(missing=times * (chosen["drift"] - chosen["coldest"]))
        return joint(cases_of(chosen, "missing", ("d",)), target)

    return measure


def missing_slope(ratio: float) -> Measure:
    """The slope in ln d of ln of the missing part of the drift at beta_eff = ratio d."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["ratio"] == ratio]
        return power(chosen.assign(missing=chosen["coldest"] - chosen["drift"]), "missing", "d")

    return measure


def quotient_slope(rows: pd.DataFrame) -> Estimate:
    """The slope in ln n of ln of the largest quotient, over all temperatures and pairs of prompts of n tokens."""
    largest = np.log(rows.groupby("n")["quotient"].max())
    power = np.polyfit(np.log(largest.index.to_numpy(dtype=float)), largest.to_numpy(), 1)[0]
    return Estimate(float(power), len(rows))


def largest_quotient(rows: pd.DataFrame) -> Estimate:
    """The largest Lipschitz quotient at beta = 0: no constant that vanishes there can bound it."""
    return Estimate(float(rows["quotient"].max()), len(rows))


def angle(name: str) -> Measure:
    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["angle"] == name]
        return Estimate(float(chosen["gap"].max()), len(chosen)) if name == "sin" else gap(chosen)

    return measure


# Chains --------------------------------------------------------------------------------------------------------------


def error_ratio(large: tuple[float, int], small: tuple[float, int]) -> Measure:
    """|error| at (eta, H) = large over |error| at small."""

    def measure(rows: pd.DataFrame) -> Estimate:
        return ratio(*(rows[np.isclose(rows["eta"], eta) & (rows["H"] == H)]["error"] for eta, H in (large, small)))

    return measure


def pointwise(column: str, theory: str, by: Sequence[str], where: str) -> Measure:
    """As ``difference``, without the start, where both agree by definition."""
    return difference(column, theory, by, f"layer > 0 and {where}")


def spread_slope(rows: pd.DataFrame) -> Estimate:
    """The slope of ln spread against ln d up to d = 256 at tau = 2; replicates of each width paired by their number.

    Beyond, the attention that every layer draws anew adds a spread of its own, which falls with h and not with d.
    """
    return power(rows[np.isclose(rows["tau"], 2.0) & (rows["d"] <= 256)], "spread", "d")


def spread_slopes(rows: pd.DataFrame) -> Estimate:
    """The slope of ln spread against ln d over all widths, at the time where it is farthest from -1/2."""
    times = [case for _, case in rows[rows["layer"] > 0].groupby("tau")]
    found = [power(case, "spread", "d", 1 - (1 - LEVEL) / len(times)) for case in times]
    return max(found, key=lambda one: max(abs(one.low + 0.5), abs(one.high + 0.5)))


def time_ratio(rows: pd.DataFrame) -> Estimate:
    """Chain over ODE, the time to overlap 1/2, in the cell where it is farthest from 1."""
    run = rows.dropna(subset=["chain"])
    return joint(cases_of(run.assign(ratio=run["chain"] / run["ode_d"]), "ratio", ("n", "logit_std")), 1.0)


def standard_over_hot(rows: pd.DataFrame) -> Estimate:
    """The time at logit standard deviation 1 over ln(n+1), farthest from 1."""
    chosen = rows[rows["logit_std"] == 1.0].groupby("n")[["ode", "hot"]].first()
    ratio = (chosen["ode"] / chosen["hot"]).to_numpy()
    return Estimate(float(max(ratio, key=lambda r: abs(r - 1))), len(ratio))


def smallest_delay(rows: pd.DataFrame) -> Estimate:
    """The smallest growth of the time from one temperature to the next colder, or from one n to the next larger."""
    table = rows.groupby(["n", "logit_std"])["ode"].first().unstack("logit_std").to_numpy()
    steps = np.concatenate([np.diff(table, axis=0).ravel(), np.diff(table, axis=1).ravel()])
    return Estimate(float(steps.min()), len(steps))


def final_rate(rows: pd.DataFrame) -> Estimate:
    """The slope of ln(1 - m) in tau plus 1 - 1/d, per replicate, in the case farthest from 0."""
    found = []
    cases = list(rows.groupby(["d", "n", "logit_std"]))
    for (d, _, _), case in cases:
        wide = case.pivot(index="replicate", columns="tau", values="log_missing")
        fits = slope(wide.columns.to_numpy(), wide.to_numpy(), 1 - (1 - LEVEL) / len(cases))
        shift = 1 - 1 / d
        found.append(Estimate(fits.value + shift, fits.n, fits.low + shift, fits.high + shift, fits.error))
    return max(found, key=lambda one: max(abs(one.low), abs(one.high)))


def returned(rows: pd.DataFrame, theory: str, factors: int = 2) -> Estimate:
    """The share of paths that returned to overlap 0, less a probability."""
    chosen = rows[rows["factors"] == factors]
    share, chance = proportion(int(chosen["returned"].sum()), len(chosen)), float(chosen[theory].iloc[0])
    return Estimate(share.value - chance, share.n, share.low - chance, share.high - chance, share.error)


# Limits --------------------------------------------------------------------------------------------------------------


def order(update: str, corrector: str, column: str = "grid") -> Measure:
    """The observed order: the slope of ln error in ln eta, per random start."""

    def measure(rows: pd.DataFrame) -> Estimate:
        return power(rows[(rows["update"] == update) & (rows["corrector"] == corrector)], column, "eta")

    return measure


def noise_slope(rows: pd.DataFrame, groups: int = 24) -> Estimate:
    """The slope of ln Var m over the weights in ln H; a replicate is the variance in a group of draws."""
    sweep = rows[rows["kind"] == "heads"]
    wide = sweep.pivot(index="replicate", columns="H", values="m")
    size = len(wide) // groups
    parts = wide.to_numpy()[: groups * size].reshape(groups, size, -1)
    return slope(np.log(wide.columns.to_numpy(dtype=float)), np.log(parts.var(axis=1, ddof=1)))


def far_from_ode(rows: pd.DataFrame) -> Estimate:
    """Mean of m less the flow of self-attention, with the largest number of heads."""
    chosen = rows[(rows["kind"] == "heads") & (rows["H"] == rows.loc[rows["kind"] == "heads", "H"].max())]
    return mean(chosen["m"] - chosen["m_ode"])


def prompts_slope(rows: pd.DataFrame) -> Estimate:
    """The slope of ln |difference of the mean tokens|^2 in ln n, per draw of the weights."""
    wide = rows.pivot(index=["part", "replicate"], columns="n", values="distance")
    return slope(np.log(wide.columns.to_numpy(dtype=float)), np.log(wide.to_numpy()))


def common_noise(rows: pd.DataFrame) -> Estimate:
    """The variance of the mean token over the weights, from disjoint pairs of draws; at the n where it is lowest."""
    columns, cases = [name for name in rows.columns if name.startswith("mean_")], []
    for _, case in rows.groupby("n"):
        values = case.sort_values(["part", "replicate"])[columns].to_numpy()
        half = len(values) // 2
        cases.append(pd.Series(((values[:half] - values[half : 2 * half]) ** 2).sum(axis=1) / 2))
    return lowest(cases)


def private(rows: pd.DataFrame) -> Estimate:
    """Mean overlap of initially orthogonal tokens under private noise, at the time where it is farthest from 0."""
    chosen = rows[(rows["noise"] == "private") & (rows["gamma0"] == 0) & (rows["layer"] > 0)]
    return joint(cases_of(chosen, "gamma", ("tau",)))


def forgets(rows: pd.DataFrame) -> Estimate:
    """Mean final overlap of tokens that start at a positive one, under private noise, over the start."""
    chosen = rows[(rows["noise"] == "private") & (rows["gamma0"] > 0)]
    last = chosen[chosen["layer"] == chosen["layer"].max()]
    return mean(last["gamma"] / last["gamma0"])


def stack_gap(rows: pd.DataFrame) -> Estimate:
    """m of the stack less the ODE, for the smallest residual scale, in the case farthest from 0."""
    chosen = rows[(rows["scale"] == rows["scale"].min()) & (rows["layer"] > 0)]
    return joint(cases_of(chosen.assign(off=chosen["m"] - chosen["m_theory"]), "off", ("H", "tau")))
