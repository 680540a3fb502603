"""Away from the training ecology: rows in, a figure with its alt text as label out.

mark            meaning
blue            sigma^2 of the pair, and its level epsilon
orange          gain of the split, and its price
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, INK, RED, THEORY, beside, panel_label, shades


def thresholds(rows: pd.DataFrame) -> Figure:
    """sigma^2 and gain of one pair against the share of the new ecology, and both thresholds; rows of ``Injection``."""
    part = rows[rows["replicate"] == rows["replicate"].min()]
    one = part.iloc[0]
    figure, ax = plt.subplots(figsize=(5.8, 3.6))
    for color, column, level, share, name in (
        (BLUE, "sigma2", "epsilon", "alpha_star", r"distance $\sigma^2$; dashed: told apart"),
        (RED, "gain", "level", "alpha_split", r"gain of a split; dashed: its price"),
    ):
        ax.plot(part["alpha"], part[column], "o", color=color, markersize=4)
        ax.plot(
            part["alpha"], part["linear2" if column == "sigma2" else "linear"], color=color, linewidth=1.0, label=name
        )
        ax.plot([0, one[share]], [one[level]] * 2, color=color, linewidth=0.9, linestyle="--")
        ax.plot([one[share]] * 2, [0, one[level]], color=color, linewidth=0.9, linestyle="--")
    beside(ax, one["alpha_star"], 0, r"$\alpha^*$", BLUE, (-4, 8), ha="right")
    beside(ax, one["alpha_split"], 0, r"$\alpha_{\rm JS}$", RED, (4, 8))
    ax.set(
        xlabel=r"share $\alpha$ of the new ecology", ylabel="gain (nats), squared distance", ylim=(0, None), xlim=(0, 1)
    )
    ax.legend(fontsize=8, loc="upper left")
    panel_label(ax, f"Told apart from {one['alpha_star']:.0%}, worth a split from {one['alpha_split']:.0%}")
    wrong = rows.drop_duplicates("replicate")["wrong"]
    figure.set_label(
        f"Both grow linearly with the share: the squared distance passes its level at {one['alpha_star']:.2f}, the "
        f"gain its "
        f"price at {one['alpha_split']:.2f}. One level for two pairs: in {(wrong > 0).mean():.0%} of {len(wrong)} "
        f"draws "
        f"the other pair counts as resolved while merging it is still better, by up to {wrong.max():.4f} nats."
    )
    return figure


def off_ecology(rows: pd.DataFrame) -> Figure:
    """What a code pays where it was not trained, against the bound of each pair that it merges; rows of
    ``OffEcology``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.8))
    sizes = sorted(rows["size"].unique())
    for color, (size, part) in zip(shades(len(sizes)), rows.groupby("size"), strict=True):
        ax.plot(part["pair"], part["cell"], "o", color=color, markersize=4, alpha=0.8, label=f"{size} worlds")
    ends = np.array([rows["pair"].min(), rows["cell"].max()])
    ax.plot(ends, ends, **THEORY)
    beside(ax, ends[0], ends[0], "bound", INK, (10, 0), fontsize=9)
    ax.set(xscale="log", yscale="log", xlabel="bound of the pair (nats)", ylabel="what its cell pays (nats)")
    panel_label(ax, "A merged cell pays at least its pair's bound")
    ax.legend(title="in the cell", fontsize=8, title_fontsize=8, loc="lower right")
    more = rows.loc[rows["size"] > 2, "own"]
    figure.set_label(
        f"What the cell of a merged pair pays off its ecology against the bound, {len(rows)} pairs: on the bound "
        f"where the "
        f"cell is the pair, above it in larger cells, where the bound is at most {more.max():.2f} of it."
    )
    return figure
