"""What the claims measure: pure functions from the rows of an experiment to an estimate."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch

from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate, mean, worst

Measure = Callable[[pd.DataFrame], Estimate]


def gap(column: str = "gap", bound: str = "bound", where: str = "") -> Measure:
    """The worst ratio of a column to its bound, over the rows of a query."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows.query(where) if where else rows
        return worst(chosen[column], chosen[bound])

    return measure


def largest(column: str, where: str = "") -> Measure:
    """The largest value of a column over the rows of a query."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows.query(where) if where else rows
        return Estimate(float(chosen[column].max()), len(chosen))

    return measure


def cost_slope(rows: pd.DataFrame) -> Estimate:
    """Slope of ln |cost - delta| in ln delta, for the q_n at which it is farthest from 3/2."""
    slopes = []
    for _, part in rows.groupby("q_n"):
        slopes.append(np.polyfit(np.log(part["delta"]), np.log(part["cost_gap"].abs()), 1)[0])
    return Estimate(float(max(slopes, key=lambda one: abs(one - 1.5))), len(slopes))


def sharpness(rows: pd.DataFrame) -> Estimate:
    """How far the worst KL of each delta is from ln(1 + 2 delta), over its rounding."""
    best = rows.groupby("delta")[["excess", "bound"]].max()
    return worst(best["excess"].abs(), best["bound"])


def share(top: pd.Series, bottom: pd.Series, level: float = LEVEL) -> Estimate:
    """Total over total of two columns of independent rows, with the jackknife's interval."""
    top, bottom = top.to_numpy(), bottom.to_numpy()
    whole, n = top.sum() / bottom.sum(), len(top)
    without = (top.sum() - top) / (bottom.sum() - bottom)
    one = mean(n * whole - (n - 1) * without, level)
    return Estimate(float(whole), n, one.low, one.high, one.error)


def free_lunch(rows: pd.DataFrame) -> Estimate:
    """Total variation spent over acceptance gained by Cactus at a budget of 0.1 with unrelated drafts."""
    rows = rows.query("kind == 'independent' and rule == 'cactus' and knob == 0.1")
    return share(rows["tv"], rows["acceptance"] - rows["exact_acceptance"])


def _over_pairs(rows: pd.DataFrame, measure: Callable[[pd.DataFrame, float], Estimate]) -> list[Estimate]:
    """One estimate for each pair of models; their intervals hold jointly."""
    cases = [case for _, case in rows.groupby("pair")]
    return [measure(case, 1 - (1 - LEVEL) / len(cases)) for case in cases]


def paired(column: str, first: dict, second: dict, sign: int = 1) -> Measure:
    """A column's mean over prompts for the first setting less that for the second; "al" is drafts kept over blocks,
    total over total. n counts the prompts of one pair of models.

    ``sign`` 1 takes the pair where the interval begins lowest, -1 the one where it ends highest; 0 takes the mean of
    the pairs, with an interval that covers the interval of each.
    """

    def difference(case: pd.DataFrame, level: float) -> Estimate:
        both = [_picked(case, which).set_index("prompt").sort_index() for which in (first, second)]
        if column != "al":
            one, other = (each[column].astype(float) for each in both)
            return bootstrap((one - other).to_numpy(), level)
        totals = np.column_stack([each[name] for each in both for name in ("kept", "blocks")])
        return bootstrap(totals, level, lambda sums: sums[..., 0] / sums[..., 1] - sums[..., 2] / sums[..., 3])

    def measure(rows: pd.DataFrame) -> Estimate:
        found = _over_pairs(rows, difference)
        lowest, highest = min(found, key=lambda one: one.low), max(found, key=lambda one: one.high)
        if sign:
            return lowest if sign > 0 else highest
        value = float(np.mean([one.value for one in found]))
        return Estimate(value, lowest.n, lowest.low, highest.high, max(one.error for one in found))

    return measure


def _picked(rows: pd.DataFrame, which: dict) -> pd.DataFrame:
    """The rows of one setting; -1 stands for the largest value that ran."""
    for name, value in which.items():
        rows = rows[rows[name] == (rows[name].max() if value == -1 else value)]
    return rows


def bootstrap(
    values: np.ndarray,
    level: float = LEVEL,
    of: Callable[[torch.Tensor], torch.Tensor] = lambda means: means[..., 0],
    draws: int = 60_000,
) -> Estimate:
    """The mean over prompts, or a function ``of`` the means of several columns, with its percentile bootstrap interval:
    15 draws lie beyond each end of a joint interval of two pairs. The resampling is fixed: one answer."""
    table = torch.tensor(values, dtype=torch.float64)
    table = table.unsqueeze(-1) if table.ndim == 1 else table
    n = len(table)
    if n < 2 or not bool(table.isfinite().all()):
        raise ValueError(f"{n} prompts, {int(table.isfinite().all(dim=-1).sum())} finite; give two or more, all finite")
    draw, found = stream(0, "bootstrap"), []
    for _ in range(60):
        picked = torch.randint(n, (draws // 60, n), generator=draw)
        found.append(of(torch.stack([column[picked].mean(dim=-1) for column in table.unbind(dim=-1)], dim=-1)))
    resampled = torch.cat(found).numpy()
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(of(table.mean(dim=0)).item(), n, float(low), float(high), float(resampled.std()))


def speedup(rows: pd.DataFrame) -> Estimate:
    """Tokens per second at the largest delta over plain decoding, truncated laws, for the pair of models where it is
    least: ratio of the mean times per token over prompts, one text at a time."""

    def ratio(case: pd.DataFrame, level: float) -> Estimate:
        case = case.assign(cost=case["seconds"] / case["tokens"])
        slow, fast = (
            _picked(case, {"shape": "truncated", **which}).set_index("prompt")["cost"].sort_index()
            for which in ({"rule": "alone"}, {"rule": "cactus", "knob": -1})
        )
        return share(slow, fast, level)

    return min(_over_pairs(rows, ratio), key=lambda one: one.value)


def near_optimal(kind: str, delta: float) -> Measure:
    """Cactus' gain in acceptance over the best possible at the same KL, total over total, for one kind of draft."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = rows[(rows["kind"] == kind) & (rows["rule"] == "cactus") & (rows["knob"] == delta)]
        return share(chosen["gain"], chosen["best_gain"])

    return measure


def kept_point_mass(rows: pd.DataFrame) -> Estimate:
    """1 - h_n of the linear program where typical acceptance keeps n, over its tolerance."""
    kept = rows.loc[rows["kept"], "program"]
    return worst((1 - kept).abs(), np.full(len(kept), 1e-9))


def typical_excess(rows: pd.DataFrame) -> Estimate:
    """KL of typical acceptance less that of Cactus at the same mean acceptance, over pairs."""
    chosen = rows[(rows["rule"] == "tas") & (rows["kind"] == "noised")]
    return mean(chosen["kl"] - chosen["kl_cactus"])


def clock_ratio(slow: str, fast: str) -> Measure:
    """Ratio of two times at the largest batch and vocabulary, geometric mean over rounds in which they took turns."""

    def measure(rows: pd.DataFrame) -> Estimate:
        last = _picked(rows, {"B": -1, "V": -1})
        one = mean(np.log(last[slow] / last[fast]))
        ends = [float(np.exp(each)) for each in (one.value, one.low, one.high)]
        return Estimate(ends[0], one.n, ends[1], ends[2], one.error * ends[0])

    return measure


def average(column: str, **which: object) -> Measure:
    """The mean of a column over the texts of one setting of ``TrainedPair``; "al" is total over total."""

    def measure(rows: pd.DataFrame) -> Estimate:
        chosen = _picked(rows, which)
        return share(chosen["kept"], chosen["blocks"]) if column == "al" else mean(chosen[column])

    return measure


def budget(rows: pd.DataFrame) -> pd.Series:
    """delta of each row of a trained pair: Cactus's own, or for a rival that of the Cactus whose acceptance it has."""
    return rows["knob"].where(rows["matched"] == 0, rows["matched"])
