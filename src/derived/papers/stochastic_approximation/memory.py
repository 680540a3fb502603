"""Memory that mixes too slowly for large steps: heavy-tailed sojourns and long-range noise (SA-6, SA-7).

symbol   name    meaning                                                                      axes
beta     beta    tail of the sojourns, P(tau > t) = t^-beta                                   scalar
alpha    alpha   step exponent, a_n = n^-alpha                                                (A,)
H        H       Hurst exponent                                                               scalar
x_n      x       iterate of x <- x + a_n (Y_n - x); the mean of Y is 1/2 (0 for noise)        (R,) or (A, R)
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, at_most, computed, on_page, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import farthest_from, lowest
from derived.lab.plot import (
    BLUE,
    COLOURS,
    INK,
    RED,
    SEQUENTIAL,
    THEORY,
    beside,
    largest,
    panel_label,
    plain_log,
    points,
)
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.environments import FractionalGaussian, HeavyTailedRenewal
from .model.core import StepSize, record_times, robbins_monro
from .model.theory import (
    expected_freezes,
    filtered_variance,
    fractional_autocovariance,
    renewal_autocovariance,
    sa_weights,
)

FAR = 0.3  # an excursion: farther than this from the mean 1/2


def to_data(x: Tensor, y: Tensor) -> Tensor:
    """h(x, y) = y - x."""
    return y - x


def excursions(x: Tensor, windows: tuple[int, ...], first: int) -> Tensor:
    """Whether |x_n - 1/2| > FAR for some n in [N, 2N], for each window N, from x at n = first, first + 1, ..."""
    far = (x - 0.5).abs() > FAR
    return torch.stack([far[N - first : 2 * N - first + 1].any(dim=0) for N in windows])


@dataclass(frozen=True, kw_only=True)
class Renewal(Experiment):
    """SA-6: running means (a_n = 1/n) of 0-1 data with heavy-tailed sojourns. Rows: beta, group, n, median (of
    |x - 1/2| over the group), rmse, exact (the root mean square by the exact autocovariance)."""

    beta: float = 1.5
    groups: int = 120
    size: int = 200
    first: int = 2048
    steps: int = 2**16
    points: int = 6

    tiers: ClassVar = {"ci": {"groups": 20, "size": 100, "first": 512, "steps": 2**12, "points": 4}, "cpu": {}}
    tiny: ClassVar = {"groups": 2, "size": 20, "first": 64, "steps": 256, "points": 3}
    deterministic: ClassVar = {"exact": 1e-8}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        times, data = record_times(self.steps, self.points, self.first), HeavyTailedRenewal(self.beta)
        n = torch.tensor(times, dtype=dtype, device=device).unsqueeze(-1)
        median, rmse = [], []
        for group in range(self.groups):
            y = data.draw(self.steps, self.size, stream(seed, "sojourns", group)).y.to(device)
            off = (y.cumsum(dim=0)[n.squeeze(dim=-1).long() - 1] / n - 0.5).abs()
            median.append(off.median(dim=1).values)
            rmse.append(off.square().mean(dim=1).sqrt())
        gamma = renewal_autocovariance(self.beta, self.steps)
        exact = [filtered_variance(np.full(n, 1 / n), gamma) ** 0.5 for n in times]
        columns = {"median": torch.stack(median, dim=1), "rmse": torch.stack(rmse, dim=1)}
        columns["exact"] = np.array(exact)[:, None]
        return rows({"beta": self.beta, "n": times, "group": range(self.groups)}, columns)


@dataclass(frozen=True, kw_only=True)
class Freezes(Experiment):
    """SA-6: excursions and the sojourns that cause them, at beta = 1.5 (threshold 2/3). Rows: alpha, N, replicate,
    excursion (sup over [N, 2N] of |x - 1/2| above 0.3), count (sojourns that start in [N, 2N) and outlast n^alpha),
    predicted (their expected number). All alpha share data."""

    beta: float = 1.5
    windows: tuple[int, ...] = (2**10, 2**11, 2**12, 2**13, 2**14, 2**15)
    replicas: int = 1000
    block: int = 250  # replicas at a time: all their paths in the windows are in memory

    tiers: ClassVar = {"ci": {"windows": (2**9, 2**10, 2**11)}, "cpu": {}}
    tiny: ClassVar = {"windows": (64, 128), "replicas": 40, "block": 20}

    def conditions(self) -> list[dict]:
        return [{"alpha": alpha} for alpha in (0.55, 0.9)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        alpha, first, last = condition["alpha"], self.windows[0], 2 * self.windows[-1]
        reach = last + int(last**alpha) + 1  # a sojourn that starts before `last` shows its length by then
        excursion, count = [], []
        for block in range(self.replicas // self.block):
            y = HeavyTailedRenewal(self.beta).draw(reach, self.block, stream(seed, "freezes", block)).y.to(device)
            times = range(first, last + 1)
            start = torch.full_like(y[0], 0.5)
            x = robbins_monro(to_data, y[:last], StepSize.power(1.0, alpha), start, record=times).x
            excursion.append(excursions(x, self.windows, first))
            count.append(self.counts(y, alpha))
        columns = {"excursion": torch.cat(excursion, dim=1), "count": torch.cat(count, dim=1)}
        columns["predicted"] = np.array([[expected_freezes(self.beta, alpha, 1.0, N)] for N in self.windows])
        return rows({"N": self.windows, "replicate": range(len(columns["count"][0]))}, columns)

    def counts(self, y: Tensor, alpha: float) -> Tensor:
        """Sojourns that start at n in [N, 2N), n counted from 1, and are longer than n^alpha: (windows, R)."""
        switch = y[1:] != y[:-1]  # entry n - 2: a sojourn starts at time n
        sofar = torch.cat([torch.zeros_like(switch[:1], dtype=torch.int32), switch.cumsum(dim=0, dtype=torch.int32)])
        found = []
        for N in self.windows:
            n = torch.arange(N, 2 * N, device=y.device)
            end = n + n.double().pow(alpha).floor().long()
            found.append((switch[n - 2] & (sofar[end - 1] == sofar[n - 1])).sum(dim=0))
        return torch.stack(found)


@dataclass(frozen=True, kw_only=True)
class Line(Experiment):
    """SA-6: whether excursions in [N, 2N] become more or less frequent as N grows, a tenth "below" and "above" the line
    alpha = 1/beta. Data "as drawn", and "shuffled" in time (the control), seen from the stream's own mean. Rows: beta,
    data, side, replicate, early, late (an excursion in the first and in the last window), trend (late - early, with the
    other sign above the line). Both sides share data."""

    betas: tuple[float, ...] = (1.3, 1.4, 1.5)
    offset: float = 0.1
    windows: tuple[int, int] = (2**10, 2**14)
    replicas: int = 2500
    block: int = 250

    tiers: ClassVar = {"ci": {"windows": (2**8, 2**10), "replicas": 100, "block": 100}, "cpu": {}}
    tiny: ClassVar = {"windows": (16, 64), "replicas": 20, "block": 20}

    def conditions(self) -> list[dict]:
        return [{"beta": beta, "data": data} for beta in self.betas for data in ("as drawn", "shuffled")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        beta, last, found = condition["beta"], 2 * self.windows[1], []
        sides = {"below": 1 / beta - self.offset, "above": 1 / beta + self.offset}
        steps = torch.stack([StepSize.power(1.0, alpha).values(last) for alpha in sides.values()], dim=1).unsqueeze(-1)
        times = [n for N in self.windows for n in range(N, 2 * N + 1)]
        for block in range(self.replicas // self.block):
            y = HeavyTailedRenewal(beta).draw(last, self.block, stream(seed, "trend", block)).y
            if condition["data"] == "shuffled":
                order = torch.rand(last, self.block, generator=stream(seed, "mixed", block)).argsort(dim=0)
                y = y.gather(0, order) - y.mean(dim=0) + 0.5
            start = torch.full((len(sides), self.block), 0.5, dtype=dtype, device=device)
            x = robbins_monro(to_data, y.to(device), steps, start, record=times).x
            far = (x - 0.5).abs() > FAR
            found.append(torch.stack([part.any(dim=0) for part in far.split([N + 1 for N in self.windows])]))
        early, late = torch.cat(found, dim=-1).double()  # (sides, R) each
        trend = (late - early) * torch.tensor([[1.0], [-1.0]]).to(late)
        index = {"side": list(sides), "replicate": range(early.shape[1])}
        return rows(index, {"early": early, "late": late, "trend": trend})


@dataclass(frozen=True, kw_only=True)
class Shuffled(Experiment):
    """Control of SA-6: each stream as it is, and shuffled in time (its values are kept, its sojourns are gone), at
    n^-0.55. Rows: data, replicate, excursion (more than 0.3 from the stream's own mean for some n in [N, 2N])."""

    beta: float = 1.5
    alpha: float = 0.55
    window: int = 2048
    replicas: int = 400

    tiny: ClassVar = {"window": 512, "replicas": 60}

    def conditions(self) -> list[dict]:
        return [{"data": data} for data in ("as drawn", "shuffled")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        last = 2 * self.window
        y = HeavyTailedRenewal(self.beta).draw(last, self.replicas, stream(seed, "control")).y
        if condition["data"] == "shuffled":
            y = y.gather(0, torch.rand(last, self.replicas, generator=stream(seed, "order")).argsort(dim=0))
        centred = (y - y.mean(dim=0) + 0.5).to(device)
        times, start = range(self.window, last + 1), torch.full_like(centred[0], 0.5)
        x = robbins_monro(to_data, centred, StepSize.power(1.0, self.alpha), start, record=times).x
        return rows({"replicate": range(self.replicas)}, {"excursion": excursions(x, (self.window,), self.window)[0]})


@dataclass(frozen=True, kw_only=True)
class PhaseDiagram(Experiment):
    """Figure and explorer of SA-6: share of replicas with an excursion in [N, 2N]. Rows: beta, alpha, N, share,
    replicas. All alpha share data."""

    betas: tuple[float, ...] = (1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.25, 2.5)
    alphas: tuple[float, ...] = (0.51, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
    windows: tuple[int, ...] = (2**7, 2**9, 2**11, 2**13)
    replicas: int = 200

    tiers: ClassVar = {"ci": {"windows": (2**7, 2**9), "replicas": 60}, "cpu": {}}
    tiny: ClassVar = {"betas": (1.2, 2.5), "windows": (16, 64), "replicas": 20}

    def conditions(self) -> list[dict]:
        return [{"beta": beta} for beta in self.betas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        first, last = self.windows[0], 2 * self.windows[-1]
        data = HeavyTailedRenewal(condition["beta"])
        y = data.draw(last, self.replicas, stream(seed, "phase")).y.to(device)
        steps = torch.stack([StepSize.power(1.0, alpha).values(last) for alpha in self.alphas], dim=1)
        start = torch.full((len(self.alphas), self.replicas), 0.5, dtype=dtype, device=device)
        x = robbins_monro(to_data, y, steps.unsqueeze(-1), start, record=range(first, last + 1)).x
        share = excursions(x, self.windows, first).double().mean(dim=-1)
        return rows({"N": self.windows, "alpha": self.alphas}, {"share": share, "replicas": self.replicas})


@dataclass(frozen=True, kw_only=True)
class SamplePaths(Experiment):
    """Explorer of SA-6: one path for each beta and alpha. Rows: beta, alpha, n, x, y. All beta share uniforms."""

    betas: tuple[float, ...] = (1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.25, 2.5)
    alphas: tuple[float, ...] = (0.51, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
    steps: int = 8192
    points: int = 256

    tiers: ClassVar = {"ci": {"steps": 2048, "points": 64}, "cpu": {}}
    tiny: ClassVar = {"betas": (1.5,), "steps": 64, "points": 8}

    def conditions(self) -> list[dict]:
        return [{"beta": beta} for beta in self.betas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        y = HeavyTailedRenewal(condition["beta"]).draw(self.steps, 1, stream(seed, "path")).y.to(device)
        steps = torch.stack([StepSize.power(1.0, alpha).values(self.steps) for alpha in self.alphas], dim=1)
        start = torch.full((len(self.alphas), 1), 0.5, dtype=dtype, device=device)
        times = range(self.steps // self.points, self.steps + 1, self.steps // self.points)
        x = robbins_monro(to_data, y, steps.unsqueeze(-1), start, record=times).x.squeeze(dim=-1)
        seen = y[torch.tensor(times) - 1]
        return rows({"n": times, "alpha": self.alphas}, {"x": x, "y": seen})


@dataclass(frozen=True, kw_only=True)
class LongRange(Experiment):
    """SA-7: fractional noise. Rows: H, alpha, group, n, rmse, exact (by the weights of the samples in x_n), target
    (-alpha (1 - H)), ratio (mean square over exact^2), scaled (exact n^-target: flat where the exponent is right)."""

    groups: int = 20
    size: int = 200
    first: int = 512
    steps: int = 2**14
    points: int = 6

    tiers: ClassVar = {
        "ci": {"size": 100, "first": 256, "steps": 2**11, "points": 4},
        "cpu": {},
    }
    tiny: ClassVar = {"groups": 3, "size": 20, "first": 64, "steps": 256, "points": 3}
    deterministic: ClassVar = {"exact": 1e-8, "target": 1e-12, "scaled": 1e-8}

    def conditions(self) -> list[dict]:
        cases = ((0.5, 1.0), (0.65, 1.0), (0.8, 1.0), (0.8, 0.7))
        return [{"H": H, "alpha": alpha} for H, alpha in cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        H, step = condition["H"], StepSize.power(1.0, condition["alpha"])
        times = record_times(self.steps, self.points, self.first)
        y = FractionalGaussian(H).draw(self.steps, self.groups * self.size, stream(seed, "fractional")).y.to(device)
        x = robbins_monro(to_data, y, step, torch.zeros_like(y[0]), record=times).x
        rmse = x.unflatten(1, (self.groups, self.size)).square().mean(dim=2).sqrt().cpu().numpy()
        gamma = fractional_autocovariance(H, self.steps)
        exact = np.array([[filtered_variance(sa_weights(step, n), gamma) ** 0.5] for n in times])
        target = -condition["alpha"] * (1 - H)
        columns = {"rmse": rmse, "exact": exact, "target": target, "ratio": (rmse / exact) ** 2}
        columns["scaled"] = exact * np.array(times)[:, None] ** -target
        return rows({"n": times, "group": range(self.groups)}, columns)


# Claims: SA-6 and SA-7: memory that mixes slowly. Criteria and expected verdicts were written before the run, unless a
# claim says otherwise.

LAST = "N == N.max() and alpha == {}"
LOW = 0.55  # the exponent of steps below the threshold


def exact_slope(rows: pd.DataFrame) -> Estimate:
    """Slope of ln exact in ln n; the column is the same in every group. ValueError where a number is missing."""
    exact = measure.by_draw(rows["exact"], rows, ["n"]).first()
    return Estimate(float(np.polyfit(np.log(exact.index), np.log(exact), 1)[0]), len(exact))


def long_sojourns(outlast: float) -> measure.Measure:
    """Sojourns that outlast n^outlast over the expected number of those that outlast n^0.55, the farthest of the N."""

    def ratio(rows: pd.DataFrame) -> Estimate:
        expected = rows[rows["alpha"] == LOW].groupby("N")["predicted"].first()
        some = measure.chosen(rows, f"alpha == {outlast}")
        some = some.assign(ratio=some["count"] / some["N"].map(expected))
        return measure.mean("ratio", by=["N"], decides=farthest_from(1))(some)

    return ratio


TREND = measure.mean("trend", "data == 'as drawn'", unit=["beta", "replicate"], by=["side"], decides=lowest)


def sides_exchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Line`` in which every second stream is called by the other side, so that the side says nothing."""
    odd = rows["replicate"] % 2 == 1
    side = rows["side"].where(~odd, rows["side"].map({"below": "above", "above": "below"}))
    return rows.assign(side=side, trend=rows["trend"].where(~odd, -rows["trend"]))


CLAIMS = (
    statistic(
        "SA-6.a",
        r"With sojourns of tail $t^{-\beta}$, $1<\beta<2$, the typical error of running means falls as $n^{-(1-1/\beta)}$: $n^{-1/3}$ at $\beta=\frac32$.",
        Renewal,
        measure.power("median", "n", unit=["group"]),
        r"slope of the median of $\lvert x_n-\frac12\rvert$ in groups of replicas",
        within(-1 / 3, 0.05, r"-\frac13"),
        unit="exponent",
        control=measure.power("rmse", "n", unit=["group"]),  # the other size of the same errors
        horizon="$n=65{,}536$ at tier cpu",
    ),
    computed(
        "SA-6.b",
        r"With sojourns of tail $t^{-\beta}$, $1<\beta<2$, the root mean square error of running means falls as $n^{-(\beta-1)/2}$, more slowly than the typical error: $n^{-1/4}$ at $\beta=\frac32$.",
        Renewal,
        exact_slope,
        "slope of the root mean square error by the exact autocovariance",
        within(-0.25, 0.03, r"-\frac14"),
        unit="exponent",
        control=lambda rows: exact_slope(rows.assign(exact=rows["n"] ** -0.5)),  # independent data
        horizon="$n=65{,}536$ at tier cpu",
    ),
    statistic(
        "SA-6.c",
        r"At $a_n=n^{-0.55}$, below the threshold $\alpha=1/\beta=\frac23$, stationary ergodic data of 0s and 1s still throw the iterate far off after $N$ steps, though $\sum a_n^2<\infty$.",
        Freezes,
        measure.share("excursion", LAST.format(0.55)),
        r"share of replicas with $\lvert x_n-\frac12\rvert>0.3$ for some $n$ in $[N,2N]$, the largest $N$",
        at_least(0.5),
        unit="share",
        where="for ever, by the theorem on the threshold; a row sees one $N$",
        plain="With steps much larger than 1/n, even ergodic data can throw the iterate off late in its life.",
        control=measure.share("excursion", LAST.format(0.9)),
        horizon="$N=2^{15}$ at tier cpu",
    ),
    statistic(
        "SA-6.d",
        r"At $a_n=n^{-0.9}$, above the threshold $\alpha=1/\beta=\frac23$, stationary ergodic data of 0s and 1s rarely throw the iterate far off after $N$ steps.",
        Freezes,
        measure.share("excursion", LAST.format(0.9)),
        r"share of replicas with $\lvert x_n-\frac12\rvert>0.3$ for some $n$ in $[N,2N]$, the largest $N$",
        at_most(0.1),
        unit="share",
        where="that excursions end is the theorem on the threshold; a row sees one $N$",
        control=measure.share("excursion", LAST.format(0.55)),
        horizon="$N=2^{15}$ at tier cpu",
    ),
    statistic(
        "SA-6.e",
        r"Sojourns that start in $[N,2N)$ and outlast $n^\alpha$ number $\sum_n n^{-\alpha\beta}/\mathbb E\tau$ on average, up to whole parts.",
        Freezes,
        long_sojourns(LOW),
        r"number of them over its expectation, the farthest of the $N$",
        within(1, 0.25),
        unit="ratio",
        control=long_sojourns(0.9),
        horizon="$N=2^{15}$ at tier cpu",
    ),
    statistic(
        "SA-6.f",
        r"Streams with heavy-tailed sojourns, shuffled in time, their values kept and their sojourns gone, have no excursions at $a_n=n^{-0.55}$.",
        Shuffled,
        measure.share("excursion", "data == 'shuffled'"),
        r"share of streams with an iterate more than $0.3$ from the stream's own mean for some $n$ in $[2048,4096]$",
        at_most(0.02),
        unit="share",
        control=measure.share("excursion", "data == 'as drawn'"),
    ),
    statistic(
        "SA-6.g",
        r"For sojourns of tail $t^{-\beta}$ excursions of the iterate in $[N,2N]$ become more frequent as $N$ grows where $\alpha=\frac1\beta-0.1$, and less frequent where $\alpha=\frac1\beta+0.1$.",
        Line,
        TREND,
        r"share of streams with $\lvert x_n-\frac12\rvert>0.3$ for some $n$ in $[N,2N]$, its change from $N=2^{10}$ to $2^{14}$ (above the line its fall), mean over $\beta=1.3,1.4,1.5$, the lesser of two sides",
        at_least(0.01),
        unit="share",
        judged_at=RECORDED,
        control=lambda rows: TREND(sides_exchanged(rows)),
        horizon="$N=2^{14}$ at tier cpu",
    ),
    on_page("SA-7.a", horizon="$n=163{,}840$"),
)


# Figures: Memory against the step: rows in, a figure with its alt text as label out.
#
# mark                 meaning
# blue, orange         the smaller and the larger step exponent on the same stream
# line in INK          the threshold alpha = 1/beta
# map                  share of streams with an excursion in [N, 2N]


def phase(diagram: pd.DataFrame, paths: pd.DataFrame, beta: float = 1.5, alphas: tuple = (0.55, 0.9)) -> Figure:
    """Two learners on one stream, and the phase diagram; rows of ``PhaseDiagram`` and ``SamplePaths``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.6, 3.5), width_ratios=(1.25, 1))
    one = largest(paths)
    one = one[one["beta"] == beta]
    far = []
    for alpha, color, shift in zip(alphas, (RED, BLUE), (0.0, 0.0), strict=True):
        path = one[one["alpha"] == alpha].sort_values("n")
        left.plot(path["n"], path["x"] + shift, color=color, linewidth=1.1, label=rf"$\alpha={alpha:g}$")
        late = path[path["n"] > path["n"].max() / 2]["x"]
        far.append(f"alpha {alpha:g}: from {late.min():.2f} to {late.max():.2f}")
    left.axhline(0.5, **THEORY)
    left.set(xlabel="$n$", ylabel="$x_n$", ylim=(-0.03, 1.03))
    left.legend(fontsize=8, loc="lower right", framealpha=0.8, frameon=True)
    panel_label(left, rf"one stream, $\beta={beta:g}$")
    best = largest(diagram)
    top = best[best["N"] == best["N"].max()]
    wide = top.pivot_table(index="alpha", columns="beta", values="share")
    drawn = right.pcolormesh(*_edges(wide), wide.to_numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
    figure.colorbar(drawn, ax=right)
    line = np.linspace(wide.columns.min(), 2.0, 100)
    right.plot(line, 1 / line, color="white", linewidth=2.4)
    right.plot(line, 1 / line, color=INK, linewidth=1.2)
    beside(right, 1.6, 0.66, r"$\alpha=1/\beta$", "white")
    right.set(xlabel=r"memory: tail exponent $\beta$", ylabel=r"step exponent $\alpha$")
    low, high = _sides(top)
    panel_label(right, f"share that swings late:\n{100 * low:.0f} % below the line, {100 * high:.0f} % above")
    figure.set_label(
        f"Left: two learners on one stream with beta {beta:g}, second half of the run; {'; '.join(far)}. Right: share "
        f"of streams with an excursion beyond 0.3 in [N, 2N] at N = {top['N'].iloc[0]}, by beta and alpha; mean share "
        f"{low:.2f} on and below the line alpha = 1/beta, {high:.2f} above it."
    )
    return figure


def _edges(wide: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Edges of the cells around the grid's values, for columns and rows."""
    found = []
    for values in (wide.columns.to_numpy(dtype=float), wide.index.to_numpy(dtype=float)):
        middle = (values[1:] + values[:-1]) / 2
        found.append(np.concatenate([[2 * values[0] - middle[0]], middle, [2 * values[-1] - middle[-1]]]))
    return found[0], found[1]


def _sides(rows: pd.DataFrame) -> tuple[float, float]:
    below = rows["alpha"] * rows["beta"] <= 1
    return float(rows.loc[below, "share"].mean()), float(rows.loc[~below, "share"].mean())


def _times(ax: Axes, rows: pd.DataFrame) -> None:
    """Plain numbers on the axis of time, and room for labels at its end."""
    first, last = rows["n"].min(), rows["n"].max()
    plain_log(ax.xaxis, [n for n in (500, 1000, 2000, 4000, 8000, 16000) if first <= 1.1 * n and n <= 1.1 * last])
    ax.set_xlim(0.85 * first, last * (last / first) ** 0.45)


def typical_and_root(rows: pd.DataFrame) -> Figure:
    """Median and root mean square error at steps 1/n under heavy tails; rows of ``Renewal``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.3))
    words = []
    for column, color, name in (("rmse", RED, "root mean square"), ("median", BLUE, "median")):
        drawn = points(ax, rows, "n", column, color)
        best = largest(rows).groupby("n")[column].mean()
        slope = np.polyfit(np.log(best.index), np.log(best), 1)[0]
        words.append(f"{name}: slope {slope:.2f}")
        end = drawn.loc[drawn["n"].idxmax()]
        beside(ax, end["n"], end["value"], name, color, (9, 0))
    exact = rows.drop_duplicates("n").sort_values("n")
    ax.plot(exact["n"], exact["exact"], **THEORY)
    start = drawn.sort_values("n").iloc[0]
    n = np.array([drawn["n"].min(), drawn["n"].max()])
    slow = start["value"] * (n / n[0]) ** (1 / rows["beta"].iloc[0] - 1)
    ax.plot(n, slow, **{**THEORY, "linestyle": ":"})
    beside(ax, *np.exp(np.log([n, slow]).mean(axis=1)), "$n^{-1/3}$", INK, (-4, -9), ha="right")
    ax.set(xscale="log", yscale="log", xlabel="$n$", ylabel=r"error of the mean, $\beta=1.5$")
    panel_label(ax, "The typical stream errs less than the root mean square")
    _times(ax, rows)
    plain_log(ax.yaxis, (0.02, 0.05, 0.1))
    figure.set_label(
        f"Errors of the mean of a heavy-tailed stream against time. {'; '.join(words)}. The exact root mean square is "
        "a line through its points; the median falls faster, as n to minus one third."
    )
    return figure


def long_range(rows: pd.DataFrame) -> Figure:
    """Errors under fractional noise; rows of ``LongRange``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.3))
    words = []
    for place, ((H, alpha), part) in enumerate(rows.groupby(["H", "alpha"])):
        points(ax, part, "n", "rmse", COLOURS[place])
        exact = part.drop_duplicates("n").sort_values("n")
        ax.plot(exact["n"], exact["exact"], **THEORY)
        end = exact.iloc[-1]
        beside(
            ax,
            end["n"],
            end["exact"],
            rf"$H={H:g}$, $\alpha={alpha:g}$",
            COLOURS[place],
            (9, 0),
            fontsize=9,
        )
        slope = np.polyfit(np.log(exact["n"]), np.log(exact["exact"]), 1)[0]
        words.append(f"H {H:g}, alpha {alpha:g}: slope {slope:.3f}, predicted {part['target'].iloc[0]:.3f}")
    ax.set(xscale="log", yscale="log", xlabel="$n$", ylabel="root mean square error")
    _times(ax, rows)
    plain_log(ax.yaxis, (0.02, 0.05, 0.1, 0.2, 0.4))
    figure.set_label(f"Errors under fractional noise against time, on their exact curves. {'; '.join(words)}.")
    return figure
