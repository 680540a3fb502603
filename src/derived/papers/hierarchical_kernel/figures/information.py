"""Information through the levels, averages that become Gaussian, and memory."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, INK, MUTED, ORANGE, RED, THEORY, beside, panel_label, shades


def information(rows: pd.DataFrame) -> Figure:
    """I(X; Y) of each instance as a stack of its parts; rows of Budgets."""
    sizes = [size for size in sorted(rows["size"].unique()) if size > 0] or [0.0]
    figure, axes = plt.subplots(1, len(sizes), figsize=(7.2, 3.2), squeeze=False)
    parts = {
        "gaussian": ("second moments, $I_G$", MUTED),
        "width": ("head width", GREEN),
        "resolution": ("resolution", BLUE),
    }
    for ax, size in zip(axes[0], sizes, strict=True):
        part = rows[rows["size"] == size].sort_values("total").reset_index(drop=True)
        ax.bar(part.index, part["correction"], color=RED, label="correction")
        base = np.maximum(part["correction"], 0.0)
        for column, (name, color) in parts.items():
            ax.bar(part.index, part[column], bottom=base, color=color, label=name)
            base = base + part[column]
        ax.plot(part.index, part["total"], "_", color=INK, markersize=9, label="$I(X;Y)$")
        ax.axhline(0, color=INK, linewidth=0.6)
        ax.set(xticks=[], xlabel=f"random mixtures, centres × {size:g}, sorted")
        where = "near" if size == sizes[0] else "far"
        over = max(0.0, -part["correction"].min())
        panel_label(ax, f"{where} centres: second moments\nat most {over:.2f} nats too high")
    axes[0][0].set_ylabel("nats")
    axes[0][0].legend(fontsize=7)
    low, high = rows["correction"].min(), rows["correction"].max()
    figure.set_label(
        f"Stacked bars of information budgets. The correction runs from {low:.2f} to {high:.2f} nats; where "
        "it is negative it stands below zero, and the other parts together exceed the total by it."
    )
    return figure


def averages(rows: pd.DataFrame) -> Figure:
    """Kurtosis and negentropy against level, logarithmic; rows of Averages."""
    figure, ax = plt.subplots(figsize=(6.2, 3.3))
    cases = {"digits": ("$|$kurtosis$|$, digits", BLUE), "exponential": ("negentropy, exponential", ORANGE)}
    cases["uniform"] = ("negentropy, uniform", GREEN)
    words = []
    for law, (name, color) in cases.items():
        part = rows[rows["law"] == law].sort_values("level")
        ax.plot(part["level"], part["predicted"].abs(), **THEORY)
        ax.plot(part["level"], part["value"].abs(), "o", color=color)
        last = part["value"].abs().to_numpy()
        beside(ax, part["level"].max(), last[-1], name, color)
        words.append(f"{name.replace('$', '')} {last[-1] / last[-2]:.3f}")
    ax.set(yscale="log", xlabel="level $l$", ylabel="$|$kurtosis$|$, negentropy (nats)")
    ax.set(xlim=(-0.3, 1.45 * rows["level"].max()), xticks=sorted(rows["level"].unique()))
    panel_label(ax, "Averages become Gaussian")
    figure.set_label(f"Falling straight lines on a logarithmic axis. Last ratios: {', '.join(words)}.")
    return figure


def blindness(rows: pd.DataFrame) -> Figure:
    """Mardia's b over p (p + 2) against n / p; rows of Blindness."""
    figure, ax = plt.subplots(figsize=(6.2, 3.0))
    p = rows["p"].max()
    chosen, words = rows[rows["p"] == p], []
    for law, color in (("laplace", RED), ("normal", INK), ("uniform", BLUE)):
        part = chosen[chosen["law"] == law].groupby("n")["b"]
        mean, spread = part.mean() / (p * (p + 2)), part.std() / (p * (p + 2))
        ax.errorbar(mean.index / p, mean, spread, fmt="o-", color=color)
        beside(ax, mean.index[-1] / p, mean.iloc[-1], law, color)
        words.append(f"{law} {mean.iloc[0]:.3f} to {mean.iloc[-1]:.3f}")
    ax.set(xscale="log", xlabel="samples over dimensions $n/p$", ylabel="Mardia's statistic\nover its normal limit")
    panel_label(ax, "With few samples all distributions look alike")
    ax.set_xlim(right=3 * chosen["n"].max() / p)
    figure.set_label(
        f"Mardia's statistic against sample size over width, p = {p}. All start at one point and part as the sample "
        f"grows: {', '.join(words)}."
    )
    return figure


def memory(rows: pd.DataFrame) -> Figure:
    """Variance of the mean of 2^l terms; rows of Memory."""
    figure, ax = plt.subplots(figsize=(6.2, 3.2))
    hursts, words = sorted(rows.loc[rows["process"] == "fgn", "H"].unique()), []
    for H, color in zip(hursts, shades(len(hursts)), strict=True):
        part = rows[(rows["process"] == "fgn") & (rows["H"] == H)].sort_values("level")
        ax.plot(part["level"], part["closed"], **THEORY)
        ax.plot(part["level"], part["variance"], "o", color=color)
        beside(ax, part["level"].max(), part["variance"].iloc[-1], f"$H={H:g}$", color)
        words.append(f"{part['variance'].iloc[-1] / part['variance'].iloc[-2]:.3f} at H = {H:g}")
    ar = rows[rows["process"] == "ar1"].sort_values("level")
    ax.plot(ar["level"], ar["variance"], "s", color=RED, markerfacecolor="none")
    beside(ax, ar["level"].max(), ar["variance"].iloc[-1], "AR(1)", RED)
    ax.set(yscale="log", xlabel="level $l$", ylabel=r"variance of $x^{(l)}$", xlim=(-0.3, 1.2 * rows["level"].max()))
    figure.set_label(f"Variance by level, markers on straight lines. Factors per level: {', '.join(words)}.")
    return figure
