"""How much noise other pairs make, and how many pairs a memory of d x h numbers holds."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch.nn.functional import normalize

from derived.lab import measure
from derived.lab.claims import statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import farthest_from
from derived.lab.plot import BLUE, DASHED, THEORY, beside, largest, panel_label, plain_log, points, shades
from derived.lab.rng import stream

from .model import theory


@dataclass(frozen=True, kw_only=True)
class Noise(Experiment):
    """IPT-8.b: the size of what N unrelated pairs add to a logit.

    Unit embeddings in random directions, none of those read is written; keys with entries of variance 1/h; unit
    queries. Rows: N, h, replicate, std (root mean square over logits and queries), theory (sqrt(N / (dh))).
    """

    replicates: int = 64
    counts: tuple[int, ...] = (64, 256, 1024, 4096)
    widths: tuple[int, ...] = (16, 64, 256)
    d: int = 32
    logits: int = 64
    queries: int = 64

    tiers: ClassVar = {"ci": {"replicates": 20, "counts": (64, 256, 1024)}, "cpu": {}}
    tiny: ClassVar = {"replicates": 4, "counts": (32, 128), "widths": (8, 32), "d": 16}
    deterministic: ClassVar = {"theory": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"N": N, "h": h} for N, h in itertools.product(self.counts, self.widths)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, h = condition["N"], condition["h"]
        std = [self.one(N, h, stream(seed, "noise", N, h, r), device, dtype) for r in range(self.replicates)]
        columns = {"d": self.d, "std": torch.stack(std), "theory": theory.logit_noise(N, self.d, h)}
        return rows({"replicate": range(self.replicates)}, columns)

    def one(self, N: int, h: int, draw: torch.Generator, device, dtype) -> torch.Tensor:
        drawn = lambda *shape: torch.randn(*shape, generator=draw, dtype=dtype).to(device)  # noqa: E731
        read, written = (normalize(drawn(number, self.d), dim=-1) for number in (self.logits, N))
        keys, queries = drawn(N, h) / h**0.5, normalize(drawn(self.queries, h), dim=-1)
        return (read @ written.mT @ (keys @ queries.mT)).square().mean().sqrt()


@dataclass(frozen=True, kw_only=True)
class Capacity(Experiment):
    """IPT-8.c and 8.d: right answers against the number of pairs, each key new and each value one of V tokens.

    Rows: d, h, V, replicate, point (place on the grid), pairs, recall (of up to ``asked`` stored pairs, the largest
    logit right), half (pairs at which recall is 1/2, interpolated in the logarithm, the same at every point), rule
    (dh / (2 ln V)), theory (h / (a_V^2 (1/d + 1/V))).
    """

    replicates: int = 64
    sizes: tuple[tuple[int, int, int], ...] = (
        *((32, 64, 256), (64, 32, 256), (64, 64, 256), (64, 128, 256), (128, 64, 256)),
        *((64, 64, 8), (64, 64, 16), (128, 64, 16), (64, 64, 64), (64, 64, 4096)),
    )
    asked: int = 256
    shares: tuple[float, ...] = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)

    tiers: ClassVar = {"ci": {"replicates": 16}, "cpu": {"replicates": 24}}
    tiny: ClassVar = {"replicates": 4, "sizes": ((16, 16, 32), (32, 16, 4)), "asked": 64}
    deterministic: ClassVar = {"rule": 1e-12, "theory": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"d": d, "h": h, "V": V} for d, h, V in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, h, V = (condition[name] for name in ("d", "h", "V"))
        theory_of_few = theory.capacity_of_few(d, h, V)
        pairs = [max(1, round(share * theory_of_few)) for share in self.shares]
        draws = [[stream(seed, "capacity", d, h, V, N, r) for N in pairs] for r in range(self.replicates)]
        recall = np.array(
            [
                [self.recall(d, h, V, N, draw, device, dtype) for N, draw in zip(pairs, each, strict=True)]
                for each in draws
            ]
        )
        half = [np.exp(np.interp(-0.5, -one, np.log(pairs))) for one in np.minimum.accumulate(recall, axis=1)]
        index = {"replicate": range(self.replicates), ("point", "pairs"): (range(len(pairs)), pairs)}
        rules = {"rule": theory.capacity(d, h, V), "theory": theory_of_few}
        return rows(index, {"recall": recall, "half": np.array(half)[:, None]} | rules)

    def recall(self, d: int, h: int, V: int, N: int, draw: torch.Generator, device, dtype) -> float:
        drawn = lambda *shape: torch.randn(*shape, generator=draw, dtype=dtype).to(device)  # noqa: E731
        e, keys = normalize(drawn(V, d), dim=-1), drawn(N, h) / h**0.5
        tokens = torch.randint(V, (N,), generator=draw).to(device)
        asked = keys[: self.asked]
        answers = (e @ (e[tokens].mT @ keys @ asked.mT)).argmax(dim=0)
        return (answers == tokens[: self.asked]).double().mean().item()


# Claims: IPT-8.b and 8.c: the noise that an expectation hides, and how many pairs a memory holds.
#
# Criteria and expected verdicts were written before the recorded runs, unless a claim says otherwise.

CLAIMS = (
    statistic(
        "IPT-8.b",
        r"The noise of $N$ unrelated pairs on a logit is $\eta\sqrt{N/(dh)}$ for a unit query and unit embeddings in random directions.",
        Noise,
        measure.mean("std / theory", by=["N", "h"], decides=farthest_from(1)),
        "noise over the closed form, the case farthest from it",
        within(1, 0.15),
        unit="of the closed form",
        control=measure.mean(
            "std * h / N", by=["N", "h"], decides=farthest_from(1)
        ),  # forgets that noise adds in squares
    ),
    statistic(
        "IPT-8.c",
        r"With $V$ tokens, from 8 to 4096, and widths $d$ of 32 to 128 a memory of $d$ by $h$ numbers answers half of the questions right at $h/(a_V^2(1/d+1/V))$ pairs, to a quarter.",
        Capacity,
        measure.mean("half / theory", "point == 0", by=["d", "h", "V"], decides=farthest_from(1)),
        "pairs at half of the answers over the formula, the size farthest from it",
        within(1, 0.25),
        unit="of the formula",
        control=measure.mean("half / rule", "point == 0", by=["d", "h", "V"], decides=farthest_from(1)),
    ),
)


# Figures: How much a memory holds: rows in, a figure with its alt text as label out.
#
# mark                  meaning
# filled, open marker   recorded, live; bars are 99.9 % intervals
# line in INK           theory, h / (a_V^2 (1/d + 1/V))
# sequential colours    a swept parameter


def recall(rows: pd.DataFrame) -> Figure:
    """Share of right top logits against the number of pairs, by size; rows of ``Capacity``."""
    rows = largest(rows)
    sizes = sorted(set(zip(rows["V"], rows["d"], rows["h"], strict=True)))
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3))
    words = []
    for (V, d, h), color in zip(sizes, shades(len(sizes)), strict=True):
        part = rows[(rows["d"] == d) & (rows["h"] == h) & (rows["V"] == V)]
        mean = part.groupby("pairs")["recall"].mean()
        style = {"color": color, "marker": "o", "markersize": 3, "label": f"{V}, {d}, {h}"}
        axes[0].plot(mean.index / part["theory"].iloc[0], mean, **style)
        half = part.groupby("replicate")["half"].first()
        axes[1].plot(np.full(len(half), part["theory"].iloc[0]), half, "o", color=color, markersize=4)
        words.append(f"{half.mean():.0f} pairs at V = {V}, d = {d}, h = {h} (formula {part['theory'].iloc[0]:.0f})")
    axes[0].axvline(1, **DASHED)
    axes[0].axhline(0.5, **DASHED)
    ends = np.array([rows["theory"].min(), rows["theory"].max()])
    axes[1].plot(ends, ends, **THEORY)
    axes[0].set(
        xscale="log",
        xlim=(0.1, 5),
        xlabel="pairs over the formula",
        ylabel="right answers",
        ylim=(-0.02, 1.02),
    )
    axes[1].set(
        xscale="log", yscale="log", xlabel=r"formula $h/(a_V^2(1/d+1/V))$", ylabel="pairs at half of the answers"
    )
    plain_log(axes[0].xaxis, (0.125, 0.25, 0.5, 1, 2, 4))
    for axis in (axes[1].xaxis, axes[1].yaxis):
        plain_log(axis, (50, 100, 200, 400, 800))
    axes[0].legend(
        fontsize=7,
        loc="lower left",
        title="$V$, $d$, $h$",
        title_fontsize=7,
        ncols=2,
        columnspacing=0.6,
        handlelength=1,
    )
    panel_label(axes[0], "half right at the formula, whatever the size")
    panel_label(axes[1], "half-recall")
    figure.set_label(
        f"Left: share of right answers against pairs, curves of {len(sizes)} sizes. Right: pairs at which half of the "
        f"answers are right, against the formula: {'; '.join(words)}."
    )
    return figure


def noise(rows: pd.DataFrame) -> Figure:
    """Standard deviation of a logit against the number of other tokens; rows of ``Noise``: N, h, d, std, theory."""
    figure, ax = plt.subplots(figsize=(5.6, 3.0))
    shown = rows[rows["h"] == rows["h"].min()]
    drawn = points(ax, shown, "N", "std", BLUE)
    theory = shown.groupby("N")["theory"].first()
    ax.plot(theory.index, theory, **THEORY)
    beside(ax, theory.index[-1], theory.iloc[-1], r"$\eta\,(N/dh)^{1/2}$", shift=(-72, 6))
    ax.set(xscale="log", yscale="log", xlabel="other tokens in the memory $N$", ylabel="noise of a logit")
    plain_log(ax.xaxis, sorted(shown["N"].unique()))
    plain_log(ax.yaxis, (0.25, 0.5, 1, 2, 4))
    figure.set_label(
        f"Noise of a logit against the number of other tokens, on the line of the square root: from "
        f"{drawn['value'].min():.2f} at N = {drawn['N'].min():.0f} to {drawn['value'].max():.2f} at "
        f"N = {drawn['N'].max():.0f}."
    )
    return figure
