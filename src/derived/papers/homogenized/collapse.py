"""The collapse on the clock, hot and cold: the logistic, the equation of the simplex, its times and its end.

A *replicate* is one path, independent of the others.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from derived.lab.claims import RECORDED, at_least, computed, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import by_draw, farthest_from, mean, slope, smallest
from derived.lab.plot import (
    COLOURS,
    DASHED,
    INK,
    MUTED,
    RED,
    THEORY,
    apart,
    beside,
    largest,
    panel_label,
    plain_log,
    points,
    shades,
)
from derived.lab.rng import stream

from .chains import layer_counts, off_diagonal, start
from .model.gram import gram_step, simulate_gram
from .model.heads import matched_law
from .model.overlaps import logistic_overlap, simplex_flow, time_to_overlap


@dataclass(frozen=True, kw_only=True)
class Hot(Experiment):
    """HT-7: hot attention, mean overlap against the logistic curve; rows: d, replicate, layer, tau, m, u."""

    widths: tuple[int, ...] = (16, 64, 256)
    n: int = 8
    logit_std: float = 0.3
    gamma0: float = 0.1
    h: float = 0.04
    H: int = 2
    tau: float = 6.0
    points: int = 13
    replicates: int = 1500

    tiers: ClassVar = {
        "ci": {"widths": (256,), "points": 7, "replicates": 400},
        "cpu": {"replicates": 600},
    }
    tiny: ClassVar = {"replicates": 4, "points": 3, "tau": 1.0}

    def conditions(self) -> list[dict]:
        return [{"d": d} for d in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, eta = condition["d"], math.sqrt(self.h * self.H)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, self.H)
        G, g = start(self.n, self.gamma0, self.replicates, device, dtype), stream(seed, "hot", d, device=device)
        law = matched_law(d, self.logit_std)
        chain = simulate_gram(G, layers[-1], eta, self.H, law, 1.0, generator=g, record=layers)
        m0 = (1 + (self.n - 1) * self.gamma0) / self.n
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"m": chain.mean_overlap, "u": logistic_overlap(chain.tau, m0)[:, None]},
        )


@dataclass(frozen=True, kw_only=True)
class Cold(Experiment):
    """HT-8: equiangular tokens at low temperature against the ODE of the simplex.

    Rows: d, replicate, layer, tau, gamma (mean over pairs), spread (root mean square of R_ij - gamma_theory),
    gamma_theory.
    """

    widths: tuple[int, ...] = (64, 128, 256, 1024, 4096)
    n: int = 16
    logit_std: float = 8.0
    h: float = 0.01
    H: int = 2
    tau: float = 8.0
    points: int = 9
    replicates: int = 100

    tiers: ClassVar = {
        "ci": {"widths": (64, 256), "h": 0.04, "H": 4, "tau": 4.0, "points": 5, "replicates": 160},
        "cpu": {"widths": (64, 256, 4096), "replicates": 80},
        # A pilot of another seed at h = 0.01: longer prompts feel the step more, 0.02 at n = 64 for 0.01 at n = 16.
        "gpu": {"n": 64, "widths": (1024, 4096), "h": 0.0025, "replicates": 256, "tau": 12.0, "points": 13},
    }
    tiny: ClassVar = {"widths": (32, 64), "n": 4, "replicates": 4}
    deterministic: ClassVar = {"gamma_theory": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"d": d} for d in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, eta = condition["d"], math.sqrt(self.h * self.H)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, self.H)
        G, g = start(self.n, 0.0, self.replicates, device, dtype), stream(seed, "cold", d, device=device)
        law = matched_law(d, self.logit_std)
        chain = simulate_gram(G, layers[-1], eta, self.H, law, 1.0, generator=g, record=layers)
        R = off_diagonal(chain.gram)
        exact = simplex_flow(0.0, chain.tau, self.n, self.logit_std, d)
        curve = torch.as_tensor(exact, device=device, dtype=dtype)
        spread = (R - curve[:, None, None]).square().mean(dim=-1).sqrt()
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"gamma": R.mean(dim=-1), "spread": spread, "gamma_theory": exact[:, None]},
        )


@dataclass(frozen=True, kw_only=True)
class Freezing(Experiment):
    """HT-9: the tau at which the overlap of orthogonal tokens reaches 1/2, by the ODE and by the chain at large width.

    Rows: n, logit_std, ode (d = infinity), hot (ln(n+1)); where a chain was run also replicate, chain, ode_d.
    """

    tokens: tuple[int, ...] = (8, 32, 128, 512)
    logit_stds: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
    cells: tuple[tuple[int, float], ...] = ((8, 8.0), (32, 4.0), (32, 8.0))
    d: int = 1_000_000
    h: float = 0.01
    replicates: int = 32

    tiers: ClassVar = {
        "ci": {"tokens": (8, 32), "logit_stds": (0.0, 1.0, 8.0), "cells": ((8, 8.0),)},
        "cpu": {},
        "gpu": {"tokens": (8, 32, 128, 512, 2048), "cells": ((32, 8.0), (128, 8.0), (512, 8.0))},
    }
    tiny: ClassVar = {"tokens": (8,), "logit_stds": (0.0, 1.0, 8.0), "replicates": 4, "h": 0.1}
    deterministic: ClassVar = {"ode": 1e-5, "hot": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"n": n, "logit_std": s} for n in self.tokens for s in self.logit_stds]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, s = condition["n"], condition["logit_std"]
        row = {"ode": time_to_overlap(n, s), "hot": math.log(n + 1), "ode_d": time_to_overlap(n, s, self.d)}
        if (n, s) not in {tuple(cell) for cell in self.cells}:
            return pd.DataFrame([row | {"replicate": 0, "chain": np.nan}])
        law, g = matched_law(self.d, s), stream(seed, "freezing", n, str(s), device=device)
        G, means = start(n, 0.0, self.replicates, device, dtype), []
        for layer in range(round(1.4 * row["ode"] / self.h) + 1):  # all Gram matrices at once would be 100 GB
            G = gram_step(G, self.h**0.5, 1, law, 1.0, generator=g) if layer else G
            means.append(off_diagonal(G).mean(dim=-1))
        gamma = torch.stack(means, dim=-1).cpu().numpy()
        # The first crossing of 1/2, between the two layers around it by a straight line.
        after = (gamma >= 0.5).argmax(axis=1)
        low, high = (np.take_along_axis(gamma, (after + k)[:, None], axis=1)[:, 0] for k in (-1, 0))
        times = self.h * (after - 1 + (0.5 - low) / (high - low))
        return pd.DataFrame({**row, "replicate": range(self.replicates), "chain": times})


@dataclass(frozen=True, kw_only=True)
class FinalRate(Experiment):
    """HT-10: ln(1 - m) near collapse, whatever temperature and number of tokens.

    Rows: d, n, logit_std, replicate, tau, log_missing.
    """

    cases: tuple[tuple[int, int, float], ...] = ((4, 2, 0.0), (16, 2, 0.0), (16, 8, 0.0), (16, 8, 4.0), (16, 8, 16.0))
    start: float = 0.999
    h: float = 0.02
    tau: float = 8.0
    points: int = 9
    replicates: int = 4000

    tiers: ClassVar = {
        "ci": {"cases": ((16, 2, 0.0), (16, 8, 4.0)), "points": 3, "replicates": 1000},
        "cpu": {"replicates": 4000, "points": 3},
    }
    tiny: ClassVar = {"replicates": 4, "tau": 1.0, "points": 3}

    def conditions(self) -> list[dict]:
        return [{"d": d, "n": n, "logit_std": s} for d, n, s in self.cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, n, s = (condition[name] for name in ("d", "n", "logit_std"))
        eta = math.sqrt(self.h)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, 1)
        g = stream(seed, "final, drawn again", d, n, str(s), device=device)
        G = start(n, self.start, self.replicates, device, dtype)
        chain = simulate_gram(G, layers[-1], eta, 1, matched_law(d, s), 1.0, generator=g, record=layers)
        missing = (1 - off_diagonal(chain.gram)).mean(dim=-1) * (n - 1) / n
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"log_missing": missing.log()},
        )


# Claims: Claims on the collapse: hot, cold, how long it takes and how it ends.
#
# Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.


def delays(rows: pd.DataFrame, of: str) -> pd.Series:
    """The growth of the time of the ODE from one "logit_std" or "n" to the next larger, at each of the other."""
    table = by_draw(rows["ode"], rows, ["n", "logit_std"]).first().unstack(of).to_numpy()
    return pd.Series(np.diff(table, axis=1).ravel())


def colder(rows: pd.DataFrame) -> pd.Series:
    """From one temperature to the next colder."""
    return delays(rows, "logit_std")


def longer(rows: pd.DataFrame) -> pd.Series:
    """From one length of a context to the next."""
    return delays(rows, "n")


CLAIMS = (
    statistic(
        "HT-7",
        r"The mean overlap of hot attention at $d=256$ is logistic, $\dot u=u(1-u)$.",
        Hot,
        mean("m - u", "layer > 0 and d == 256", by=["tau"], decides=farthest_from(0)),
        r"$n=8$, $d=256$, mean overlap less the logistic at the time where it is farthest off",
        within(0, 0.03),
        plain="In wide networks hot attention makes the mean overlap of a prompt grow along the logistic curve.",
        unit="mean overlap",
        source="digest",
        where="version 1, `thm:clustering_small_beta`",
        control=mean(
            "(1 + 7 * 0.1) / 8 - u", "layer > 0 and d == 256", by=["tau"], decides=farthest_from(0)
        ),  # they stay
    ),
    statistic(
        "HT-8.a",
        r"At logit deviation 8 and $d=4096$ an equiangular prompt follows the ODE of the simplex.",
        Cold,
        mean("gamma - gamma_theory", "layer > 0 and d == 4096", by=["tau"], decides=farthest_from(0)),
        r"logit deviation 8, $d=4096$, overlap less the ODE at the time where it is farthest off",
        within(0, 0.03),
        plain="In wide networks, when all pairs of tokens start at one angle, their overlap follows one scalar equation, cold ones too.",
        unit="overlap",
        source="digest",
        where="version 1, `thm:clustering_random_init`, which has any temperature; tested at one",
        judged_at=RECORDED,
        control=mean(
            "-gamma_theory", "layer > 0 and d == 4096", by=["tau"], decides=farthest_from(0)
        ),  # orthogonal for ever
        scale={"gpu": "ours"},
    ),
    statistic(
        "HT-9.a",
        r"Cold attention delays the collapse by what the ODE says.",
        Freezing,
        mean("chain / ode_d", "chain.notna()", by=["n", "logit_std"], decides=farthest_from(1)),
        r"time to overlap $\frac12$, chain over ODE at $d=10^6$, worst case",
        within(1, 0.05),
        unit="ratio of times",
        control=mean(
            "hot / chain", "chain.notna()", by=["n", "logit_std"], decides=farthest_from(1)
        ),  # hot, to be delayed
        scale={"gpu": "ours"},
    ),
    computed(
        "HT-9.c",
        "Lower temperature slows the collapse down.",
        Freezing,
        smallest(colder),
        "smallest growth of the time of the ODE from a logit deviation to the next",
        at_least(1e-6),
        plain="Lower temperature slows the collapse down.",
        unit=r"$\tau$",
        source="paper",
        where="abstract; judged in the ODE of the simplex, which is our reading. Its third brake, the dimension, has no row",
        control=smallest(
            lambda rows: colder(rows.assign(ode=rows["hot"]))
        ),  # a collapse that temperature does not touch
        horizon="2,048 tokens, logit deviation 16",
    ),
    computed(
        "HT-9.e",
        "Longer contexts slow the collapse down.",
        Freezing,
        smallest(longer),
        "smallest growth of the time of the ODE from an $n$ to the next",
        at_least(1e-6),
        unit=r"$\tau$",
        source="paper",
        where="abstract; judged in the ODE of the simplex, which is our reading, from orthogonal tokens at infinite width: from tokens that start with an overlap the delay is bounded, and at a fixed temperature the delay beyond "
        r"$\ln(n+1)$ ends in long contexts, as the page shows",
        control=smallest(
            lambda rows: longer(rows.assign(ode=by_draw(rows["ode"], rows, ["logit_std"]).transform("min")))
        ),
        horizon="2,048 tokens, logit deviation 16",
    ),
    statistic(
        "HT-10",
        r"Once collapsed to $1-m=10^{-3}$, a prompt goes on to collapse at the rate $1-\frac1d$, whatever $\beta$ and $n$.",
        FinalRate,
        slope("log_missing + (1 - 1 / d) * tau", "tau", by=["d", "n", "logit_std"], decides=farthest_from(0)),
        r"slope of $\ln(1-m)$ plus $1-\frac1d$, worst case",
        within(0, 0.05),
        unit=r"per unit of $\tau$",
        control=slope("(1 - 1 / d) * tau", "tau", by=["d", "n", "logit_std"], decides=farthest_from(0)),  # nothing ends
        horizon=r"$1-m$ from $10^{-3}$ on, over $\tau=8$",
    ),
)


# Figures: Figures of the collapse: hot, cold, its times, its levels and its end.


def round_ticks(values: ArrayLike) -> list[float]:
    """1, 2 and 5 times powers of ten (within less than a decade also 1.5, 3 and 7), from just below the least of the
    values to just above the largest."""
    low, high = np.min(values) / 1.3, np.max(values) * 1.3
    steps = (1, 2, 5) if high > 10 * low else (1, 1.5, 2, 3, 5, 7)
    return [tick for power in range(-6, 6) for tick in (step * 10.0**power for step in steps) if low < tick < high]


def logistic(rows: pd.DataFrame) -> Figure:
    """Mean overlap of hot tokens against the logistic curve; rows of ``Hot``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    curve = rows.groupby("tau")["u"].first()
    ax.plot(curve.index, curve, **THEORY)
    beside(ax, curve.index[len(curve) // 3], curve.iloc[len(curve) // 3], "logistic", INK, (-6, 6), ha="right")
    widths, words = sorted(rows["d"].unique()), []
    for d, color in zip(widths, shades(len(widths)), strict=True):
        means = points(ax, rows[rows["d"] == d], "tau", "m", color)
        ax.plot(means["tau"], means["value"], color=color, linewidth=0.8, label=f"$d={d}$")
        words.append(f"{np.abs(means['value'].to_numpy() - curve.to_numpy()).max():.3f} at d = {d}")
    ax.legend(fontsize=8)
    ax.set(xlabel=r"clock $\tau$", ylabel="mean overlap $m$", ylim=(0, 1.02))
    figure.set_label(f"Mean overlap against the clock and the logistic curve. Largest distance {', '.join(words)}.")
    return figure


def simplex(rows: pd.DataFrame) -> Figure:
    """Cold equiangular tokens against the ODE, and the spread over pairs; rows of ``Cold``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2))
    widths = sorted(rows["d"].unique())
    for k, (d, color) in enumerate(zip(widths, shades(len(widths)), strict=True)):
        part = rows[rows["d"] == d]
        theory = part.groupby("tau")["gamma_theory"].first()
        axes[0].plot(theory.index, theory, **THEORY | {"color": color})
        shifted = part.assign(at=part["tau"] + 0.04 * part["tau"].max() * (k - (len(widths) - 1) / 2))
        points(axes[0], shifted, "at", "gamma", color)
        axes[0].plot([], [], "o-", color=color, label=f"$d={d}$")
    means = points(axes[1], rows[np.isclose(rows["tau"], 2.0)], "d", "spread", INK)
    d = np.array(widths, dtype=float)
    first = float(means["value"].iloc[0])
    axes[1].plot(d, first * np.sqrt(d[0] / d), **DASHED)
    axes[0].legend(fontsize=8)
    axes[0].set(xlabel=r"clock $\tau$", ylabel=r"overlap $\gamma$", ylim=(0, 1.02))
    courses = rows.pivot_table(index="tau", columns="d", values="gamma")
    apart_by = float((courses.max(axis=1) - courses.min(axis=1)).max())
    panel_label(axes[0], f"{len(widths)} widths, one curve: at most {apart_by:.3f} apart")
    panel_label(axes[1], "wider: less scatter, like $d^{-1/2}$")
    axes[1].set(xscale="log", yscale="log", xlabel="width $d$", ylabel=r"spread at $\tau=2$")
    plain_log(axes[1].xaxis, widths)
    plain_log(axes[1].yaxis, round_ticks([*means["value"], first * np.sqrt(d[0] / d[-1])]))
    figure.set_label(
        f"Left: overlap of cold equiangular tokens and the ODE for widths {', '.join(map(str, widths))}. Right: spread "
        f"of the overlaps at clock 2: {', '.join(f'{s:.3f}' for s in means['value'])}."
    )
    return figure


def freezing(rows: pd.DataFrame) -> Figure:
    """Time to overlap 1/2 over temperature and number of tokens; rows of ``Freezing``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.5))
    tokens, words, ends = sorted(rows["n"].unique()), [], []
    for n, color in zip(tokens, shades(len(tokens)), strict=True):
        part = rows[rows["n"] == n].groupby("logit_std")["ode"].first()
        ax.plot(part.index, part, marker="o", markersize=3, color=color)
        edge = np.sqrt(2 * np.log(n))
        ax.plot(edge, np.interp(edge, part.index, part), marker="|", markersize=16, color=color)
        ends.append(part.iloc[-1])
        words.append(f"n = {n}: {part.iloc[0]:.2f} hot, {part.iloc[-1]:.1f} at logit deviation {part.index[-1]:g}")
        run = rows[(rows["n"] == n)].dropna(subset=["chain"])
        for logit, cell in run.groupby("logit_std"):
            points(ax, cell.assign(at=logit), "at", "chain", RED, "s")
    ax.set(
        yscale="log",
        xlabel=r"spread of the logits $\lambda$ (cold to the right)",
        ylabel=r"clock $\tau$ to overlap $\frac{1}{2}$",
        xlim=(-0.5, 18.5),
    )
    plain_log(ax.yaxis, round_ticks(rows["ode"]))
    edge = np.sqrt(2 * np.log(tokens[-1]))
    beside(ax, edge, np.interp(edge, part.index, part), "attention freezes", INK, (0, 14), ha="right", fontsize=9)
    panel_label(ax, f"Colder attention gathers more slowly: {tokens[-1]} tokens, {ends[-1] / part.iloc[0]:.1f} times")
    for n, end, place, color in zip(tokens, ends, np.exp(apart(np.log(ends), 0.16)), shades(len(tokens)), strict=True):
        ax.annotate(f"$n={n}$", (rows["logit_std"].max(), end), (16.4, place), color=color, va="center", fontsize=9)
    figure.set_label(f"Clock time to overlap one half against temperature: {'; '.join(words)}.")
    return figure


def levels(rows: pd.DataFrame) -> Figure:
    """Participation ratio of attention over temperature; rows: n, logit_std, f."""
    figure, ax = plt.subplots(figsize=(5.5, 3.5))
    tokens, words = sorted(rows["n"].unique()), []
    for n, color in zip(tokens, shades(len(tokens)), strict=True):
        part = rows[rows["n"] == n]
        x = part["logit_std"] / np.sqrt(2 * np.log(n))
        ax.plot(x, part["f"], color=color)
        ax.plot(1, np.interp(1, x, part["f"]), "o", color=color)
        words.append(f"{np.interp(1, x, part['f']):.2f} for n = {n}")
    line = {"arrowstyle": "-", "color": color, "linewidth": 0.7}
    beside(ax, 1, np.interp(1, x, part["f"]), f"{tokens[-1]:,} tokens", color, (38, -22), arrowprops=line)
    first = rows[rows["n"] == tokens[0]]
    at = first["logit_std"] / np.sqrt(2 * np.log(tokens[0]))
    beside(
        ax, 0.85, np.interp(0.85, at, first["f"]), f"{tokens[0]:,} tokens", shades(len(tokens))[0], (-6, 3), ha="right"
    )
    x = np.linspace(1, 3, 50)
    ax.plot([0, 1, *x], [0, 0, *(1 - 1 / x)], **THEORY)
    beside(ax, 1.7, 1 - 1 / 1.7, r"the limit: $0$, then $1-\vartheta$", INK, (10, -8))
    ax.axvline(1, **DASHED)
    beside(ax, 1, 0.93, "critical temperature", MUTED, (-5, 0), ha="right")
    ax.set(xlabel=r"spread of logits over the critical one, $1/\vartheta$ (cold: right)")
    ax.set(ylabel=r"$f$: mean of $\sum_k\pi_k^2$", ylim=(-0.02, 1), xlim=(0, 3))
    panel_label(ax, f"Attention freezes gradually, even with {tokens[-1]:,} tokens")
    figure.set_label(f"Participation ratio against temperature in units of the critical one. At 1: {', '.join(words)}.")
    return figure


def final_rate(rows: pd.DataFrame) -> Figure:
    """ln(1 - m) near collapse; rows of ``FinalRate``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    cases, words = list(rows.groupby(["d", "n", "logit_std"])), []
    for k, ((d, n, logit), part) in enumerate(cases):
        start = part.loc[part["layer"] == 0, "log_missing"].mean()
        shifted = part.assign(at=part["tau"] + 0.12 * (k - len(cases) / 2), missing=part["log_missing"] - start)
        means = points(ax, shifted, "at", "missing", COLOURS[k % 6])
        ax.plot([], [], "o", color=COLOURS[k % 6], label=rf"$d={d}$, $n={n}$, $\lambda={logit:g}$")
        words.append(f"{np.polyfit(means['at'], means['value'], 1)[0]:.3f} for d = {d}, n = {n}, {logit:g}")
    tau = np.array([0, rows["tau"].max()])
    for d in sorted(rows["d"].unique()):
        ax.plot(tau, -(1 - 1 / d) * tau, **THEORY)
        beside(ax, tau[1], -(1 - 1 / d) * tau[1], f"$-(1-1/{d})$", shift=(12, 0))
    ax.legend(fontsize=8)
    ax.set(xlabel=r"clock $\tau$", ylabel=r"$\ln(1-m)$, less its start", xlim=(-0.5, tau[1] * 1.25))
    panel_label(ax, r"At the end one rate, $1-1/d$")
    figure.set_label(f"Logarithm of one minus the mean overlap against the clock. Slopes {'; '.join(words)}.")
    return figure
