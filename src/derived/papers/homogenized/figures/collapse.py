"""Figures of the collapse: hot, cold, its times, its levels and its end."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

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
