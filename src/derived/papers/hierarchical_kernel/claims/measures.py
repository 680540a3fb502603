"""What the claims measure: pure functions from the rows of an experiment to an estimate."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from derived.lab.stats import LEVEL, Estimate, mean, proportion, worst

Measure = Callable[[pd.DataFrame], Estimate]
PAPER_GAIN = 0.0477  # the abstract's gain on synthetic ListOps, as a share


def gap(*checks: str, unit: Sequence[str] = ()) -> Measure:
    """The worst ratio of a gap to its bound, over the rows of the named checks (all rows if none is named).

    Rows that agree in the columns ``unit`` share their draws and count as one instance.
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["check"].isin(checks)] if checks else rows
        found = worst(chosen["gap"], chosen["bound"])
        return replace(found, n=len(chosen[list(unit)].drop_duplicates())) if unit else found

    return measure


def size(check: str, same: str | None = None) -> Measure:
    """The smallest gap of a check: how large a violation is at every instance.

    The witnesses count only if the check ``same`` has no gap at all; else the value is minus its largest.
    """

    def measure(rows: pd.DataFrame) -> Estimate:
        values, differing = rows.loc[rows["check"] == check, "gap"], rows.loc[rows["check"] == same, "gap"]
        return Estimate(float(-differing.max() if (differing > 0).any() else values.min()), len(values))

    return measure


def whole_levels(rows: pd.DataFrame) -> Estimate:
    """|3 4^(L-1) entries - (4^L - 1) T^2| where 2^(L-1) divides T: whole numbers, so any miss is at least 1."""
    chosen = rows[rows["T"] % 2 ** (rows["levels"] - 1) == 0]
    miss = 3 * 4 ** (chosen["levels"] - 1) * chosen["entries"] - (4 ** chosen["levels"] - 1) * chosen["T"] ** 2
    return worst(miss.abs(), np.full(len(miss), 0.5))


def three_levels(rows: pd.DataFrame) -> Estimate:
    """entries / T^2 at L = 3 where 4 divides T, the value farthest from 1.3125."""
    chosen = rows[(rows["levels"] == 3) & (rows["T"] % 4 == 0)]
    ratio = chosen["entries"] / chosen["T"] ** 2
    return Estimate(float(ratio.iloc[np.abs(ratio - 1.3125).argmax()]), len(ratio))


def below_four_thirds(column: str) -> Measure:
    """The largest of entries / (4 T^2 / 3)."""
    return lambda rows: worst(3 * rows[column], 4 * rows["T"] ** 2)


def rounded_up(rows: pd.DataFrame) -> Estimate:
    """Entries with lengths rounded up over (4/3)(T - 1)^2 + 4 (T - 1) + L."""
    T = rows["T"]
    return worst(rows["entries"], 4 / 3 * (T - 1) ** 2 + 4 * (T - 1) + rows["levels"])


def layer_cost(rows: pd.DataFrame) -> Estimate:
    """Multiply-adds of the layer at three levels over standard attention, mean over the sizes, with their range."""
    ratio = rows.loc[rows["levels"] == 3, "layer"]
    return Estimate(float(ratio.mean()), len(ratio), float(ratio.min()), float(ratio.max()))


def future(pooling: str) -> Measure:
    """The largest derivative with respect to a later token."""

    def measure(rows: pd.DataFrame) -> Estimate:
        values = rows.loc[rows["pooling"] == pooling, "future"]
        return Estimate(float(values.max()), len(values))

    return measure


def below_chance(kind: str) -> Measure:
    """Loss on fresh symbols less ln V: the mean over replicates."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["kind"] == kind]
        return mean(chosen["loss"] - chosen["chance"])

    return measure


def sensitivity(rows: pd.DataFrame) -> Estimate:
    """The least sensitivity to a third token with two levels or more; minus the largest with one, if that is not 0."""
    one, more = rows.loc[rows["levels"] == 1, "sensitivity"], rows.loc[rows["levels"] > 1, "sensitivity"]
    return Estimate(float(more.min() if one.max() == 0 else -one.max()), len(rows))


def difference_distance(rows: pd.DataFrame) -> Estimate:
    """The least squared distance to (1, -1), the first instance of its kind."""
    chosen = rows[(rows["kernel"] == "difference") & (rows["instance"] == 0)]
    return Estimate(float(chosen["distance"].min()), len(chosen))


def convolved(kernel: str) -> Measure:
    """|distance - closed| over its bound."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[rows["kernel"] == kernel]
        return worst((chosen["distance"] - chosen["closed"]).abs(), chosen["bound"])

    return measure


def lucky(d: int) -> Measure:
    """The share of random heads with d_k = d whose form is psd."""

    def measure(rows: pd.DataFrame) -> Estimate:
        row = rows[rows["d"] == d].iloc[0]
        return proportion(int(row["successes"]), int(row["trials"]))

    return measure


def lowest_correction(rows: pd.DataFrame) -> Estimate:
    """Minus the lowest non-Gaussian correction: positive if some correction is negative."""
    return Estimate(float(-rows["correction"].min()), rows["instance"].nunique())


def overrated(rows: pd.DataFrame) -> Estimate:
    """Minus the correction over I_G: above 1 where less than no information would be left; rounding is allowed."""
    found = worst(-rows["correction"], rows["gaussian"] + rows["bound"])
    return replace(found, n=rows["instance"].nunique())  # an instance scaled to several sizes is one


def halving(rows: pd.DataFrame) -> Estimate:
    """Excess kurtosis times 2^l over that of one term, less one: sums of up to 577 terms lose 2000 eps each at most."""
    chosen = rows[rows["law"] == "digits"]
    # fourth and second moments are sums of n terms; the excess is a difference of numbers near 3
    loss = 8 * 10 * 2.0 ** chosen["level"] * np.finfo(float).eps * 3 / chosen["predicted"].abs()
    return worst((chosen["value"] / chosen["predicted"] - 1).abs(), loss)


def last_ratio(law: str) -> Measure:
    """The negentropy of the coarsest level over that of the level before."""

    def measure(rows: pd.DataFrame) -> Estimate:
        values = rows[rows["law"] == law].sort_values("level")["value"].to_numpy()
        return Estimate(float(values[-1] / values[-2]), 1)

    return measure


def edgeworth(*laws: str) -> Measure:
    """The negentropy of the coarsest level over its leading term, for the law where it is farthest from 1."""

    def measure(rows: pd.DataFrame) -> Estimate:
        last = rows[rows["law"].isin(laws)].sort_values("level").groupby("law").last()
        ratio = last["value"] / last["predicted"]
        return Estimate(float(ratio.iloc[(ratio - 1).abs().argmax()]), len(ratio))

    return measure


def blind(rows: pd.DataFrame) -> Estimate:
    """|b - p^2| at n = p + 1 over the rounding of b."""
    chosen = rows[rows["n"] == rows["p"] + 1]
    return worst((chosen["b"] - chosen["p"] ** 2).abs(), chosen["bound"])


def telling_samples(rows: pd.DataFrame) -> float:
    """The least n/p, at the largest width, from which on the bars b +- one deviation of any two laws are apart."""
    chosen = rows[rows["p"] == rows["p"].max()]
    table = chosen.groupby(["n", "law"])["b"].agg(["mean", "std"]).sort_values("mean").reset_index()
    apart = {}
    for n, part in table.groupby("n"):
        apart[n] = bool(((part["mean"] - part["std"]).iloc[1:].values > (part["mean"] + part["std"]).iloc[:-1]).all())
    told = [n for n in sorted(apart) if all(apart[m] for m in apart if m >= n)]
    return float(told[0] / chosen["p"].iloc[0]) if told else float("inf")


def self_similar(rows: pd.DataFrame) -> Estimate:
    """|variance / closed - 1| of fractional Gaussian noise, over the rounding of a mean of 4^l covariances."""
    chosen = rows[rows["process"] == "fgn"]
    # a covariance is a difference of numbers up to 2 T^2H; relative to the result that is T^2 at most
    loss = 8 * np.finfo(float).eps * 4.0 ** chosen["level"] / chosen["closed"]
    return worst((chosen["variance"] / chosen["closed"] - 1).abs(), loss)


def slope_of_memory(process: str, H: float) -> Measure:
    """log2 of the ratio of the last two variances."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[(rows["process"] == process) & (rows["H"] == H)].sort_values("level")["variance"].to_numpy()
        return Estimate(float(np.log2(chosen[-1] / chosen[-2])), 1)

    return measure


def mismatches(rows: pd.DataFrame) -> Estimate:
    return Estimate(float(rows["mismatches"].sum()), int(rows["trees"].sum()))


def rule(name: str, kind: str) -> Measure:
    """The accuracy of a shallow rule on a range of lengths."""

    def measure(rows: pd.DataFrame) -> Estimate:
        row = rows[(rows["range"] == name) & (rows["rule"] == kind)].iloc[0]
        return proportion(int(row["right"]), int(row["trees"]))

    return measure


def per_replicate(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Replicates by kinds of attention."""
    first = rows[(rows["block"] == 0) & (rows["level"] == 0)]
    return first.pivot(index=["part", "replicate"], columns="kind", values=column)


def gain(over: str, kind: str = "hkt", column: str = "accuracy") -> Measure:
    """Test accuracy of a kind less that of another, paired by replicate."""

    def measure(rows: pd.DataFrame) -> Estimate:
        wide = per_replicate(rows, column)
        return mean(wide[kind] - wide[over])

    return measure


def over_rule(rows: pd.DataFrame) -> Estimate:
    """Accuracy less that of the shallow rule on the same test data, for the kind whose interval reaches lowest."""
    accuracy, shallow = per_replicate(rows, "accuracy"), per_replicate(rows, "rule")
    level = 1 - (1 - LEVEL) / accuracy.shape[1]
    found = [mean(accuracy[kind] - shallow[kind], level) for kind in accuracy.columns]
    return min(found, key=lambda one: one.low)


def coarse_weight(rows: pd.DataFrame) -> Estimate:
    """The share of alpha that trained HKT gives to levels above 0, mean over blocks and heads."""
    chosen = rows[(rows["kind"] == "hkt") & (rows["level"] == 0)]
    return mean(1 - chosen.groupby(["part", "replicate"])["alpha"].mean())


def by_level(rows: pd.DataFrame, block: int, column: str) -> pd.DataFrame:
    """Replicates by levels of a block of trained HKT."""
    chosen = rows[(rows["kind"] == "hkt") & (rows["block"] == block)]
    return chosen.pivot(index=["part", "replicate"], columns="level", values=column).sort_index(axis=1)


def kurtosis_fall(block: int) -> Measure:
    """|Excess kurtosis| of the coarsest level over that of level 0 in a block of trained HKT."""

    def measure(rows: pd.DataFrame) -> Estimate:
        table = by_level(rows, block, "kurtosis").abs()
        return mean(table.iloc[:, -1] / table.iloc[:, 0])

    return measure


def mardia_rise(block: int) -> Measure:
    """Mardia's z at the coarsest level less that of level 0 in a block of trained HKT."""

    def measure(rows: pd.DataFrame) -> Estimate:
        table = by_level(rows, block, "mardia")
        return mean(table.iloc[:, -1] - table.iloc[:, 0])

    return measure


def overhead(impl: str, peer: str, T: int | None = None) -> Measure:
    """Seconds of an implementation over a peer in the same round, mean over rounds, at one length (the longest)."""

    def measure(rows: pd.DataFrame) -> Estimate:
        wide = rows[rows["T"] == (T or rows["T"].max())].pivot(index="round", columns="impl", values="seconds")
        return mean(wide[impl] / wide[peer])

    return measure
