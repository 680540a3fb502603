"""Random transformers with few tokens: gradients with and without K, and two kinds of output gradient."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, MUTED, RED, THEORY, largest, panel_label, points

from .marks import NAMES, NORM_COLOURS, amplification_axis


def _like(shown: pd.DataFrame, part: pd.DataFrame) -> pd.DataFrame:
    """The rows, live and recorded, of the normaliser and the number of heads of ``part``."""
    return shown[(shown["norm"] == part["norm"].iloc[0]) & (shown["heads"] == part["heads"].iloc[0])]


def companion(rows: pd.DataFrame) -> Figure:
    """J^{B,b} of narrow networks with few tokens, with and without K; rows of ``Networks``."""
    shown, rows = rows, largest(rows)
    norms = [norm for norm in NAMES if norm in set(rows["norm"])]
    figure, axes = plt.subplots(1, len(norms), figsize=(7.4, 3.0), sharey=True)
    words = []
    for ax, norm in zip(axes, norms, strict=True):
        part = rows[(rows["norm"] == norm) & (rows["heads"] == rows["heads"].max())]
        first = part.groupby("b").first()
        ax.plot(first.index, first["J_theory"], **THEORY)
        ax.plot(first.index, first["J_without_K"], color=RED, linewidth=1.0, linestyle="--")
        ax.plot(first.index, first["J_without_attention"], color=MUTED, linewidth=1.0, linestyle=":")
        points(ax, _like(shown, part), "b", "J", BLUE)
        panel_label(ax, NAMES[norm])
        ax.set_xlabel("block $b$")
        amplification_axis(ax, part["J"].max())
        start = part[part["b"] == 0]
        values = [start[name].mean() for name in ("J", "J_theory", "J_without_K", "J_without_attention")]
        words.append(f"{NAMES[norm]} " + ", ".join(f"{value:.2f}" for value in values))
    axes[0].set_ylabel(r"$J^{B,b}$")
    axes[0].plot([], [], **THEORY, label="with $K$")
    axes[0].plot([], [], color=RED, linestyle="--", label="without $K$")
    axes[0].plot([], [], color=MUTED, linestyle=":", label="no attention")
    axes[0].legend(fontsize=8, loc="lower left")
    figure.set_label(
        "Gradient norm against block in three panels. At the input, measured, with K, without K, without attention: "
        f"{'; '.join(words)}."
    )
    return figure


def two_heads(rows: pd.DataFrame) -> Figure:
    """Amplification of independent and of pooled output gradients; rows of ``Networks``."""
    shown, rows = rows, largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.3))
    words = []
    for norm in ("layernorm", "erf"):
        part = rows[(rows["norm"] == norm) & (rows["heads"] == rows["heads"].max())]
        first = part.groupby("b").first()
        for column, marker in (("pooled", "s"), ("J", "o")):
            ax.plot(first.index, first[f"{column}_theory"], **THEORY | {"color": NORM_COLOURS[norm]})
            points(ax, _like(shown, part), "b", column, NORM_COLOURS[norm], marker)
        start = part[part["b"] == 0]
        words.append(f"{NAMES[norm]} {start['J'].mean():.2f} and {start['pooled'].mean():.1f}")
    for marker, text in (("s", "one gradient for all tokens"), ("o", "independent gradients")):
        ax.plot([], [], marker, color=MUTED, label=text)
    for norm in ("layernorm", "erf"):
        ax.plot([], [], color=NORM_COLOURS[norm], label=NAMES[norm])
    ax.legend(fontsize=8)
    ax.set(xlabel="block $b$", ylabel="amplification")
    amplification_axis(ax, rows["pooled"].max())
    figure.set_label(
        f"Amplification against block for two kinds of output gradient. At the input, independent and "
        f"pooled: {'; '.join(words)}. "
        "The lines of the recurrence from (1, 0) and from (1, 1) pass through the markers."
    )
    return figure
