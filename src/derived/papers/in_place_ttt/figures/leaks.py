"""Who reads whom, and where the future leaks in: rows in, a figure with its alt text as label out.

mark       meaning
blue       reads, or depends on
red        depends on a later input: a leak
grey line  the diagonal, the token itself
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from derived.lab.plot import BLUE, INK, MUTED, RED, beside, largest, panel_label

EMPTY = (1.0, 1.0, 1.0, 0.0)


def masks(rows: pd.DataFrame) -> Figure:
    """Squares where a token reads another; rows: panel, reader, read (position), reads (bool)."""
    names = list(dict.fromkeys(rows["panel"]))
    figure, axes = plt.subplots(1, len(names), figsize=(7.6, 2.3), sharey=True, squeeze=False)
    words = []
    for ax, name in zip(axes[0], names, strict=True):
        table = rows[rows["panel"] == name].pivot(index="reader", columns="read", values="reads").to_numpy(dtype=float)
        ax.imshow(table, cmap=ListedColormap([EMPTY, BLUE]), vmin=0, vmax=1)
        ax.plot([-0.5, len(table) - 0.5], [-0.5, len(table) - 0.5], color=MUTED, linewidth=0.8)
        ax.set(xticks=[], yticks=[], xlabel="token $t$")
        panel_label(ax, name)
        words.append(f"{name} {table.mean():.0%}")
    axes[0, 0].set_ylabel("reads, token $n$")
    figure.set_label(f"Square tables of who reads whom. Share of all pairs that are read: {', '.join(words)}.")
    return figure


def chunk_diagram(chunk: int = 5) -> Figure:
    """Two chunks: read with W_i, taps inside the chunk, write, read with W_(i+1)."""
    figure, ax = plt.subplots(figsize=(7.4, 2.7))
    for i in range(2):
        left = i * (chunk + 1.2)
        ax.plot(left + np.arange(chunk), np.zeros(chunk), "o", color=BLUE, markersize=8)
        ax.add_patch(plt.Rectangle((left - 0.5, -0.35), chunk, 0.7, fill=False, edgecolor=MUTED))
        state = f"$W_{{i+{i}}}$" if i else "$W_i$"
        ax.annotate(state, (left + chunk / 2 - 0.5, 1.6), ha="center", va="center", color=INK, fontsize=12)
        ax.annotate("", (left + chunk / 2 - 0.5, 0.4), (left + chunk / 2 - 0.5, 1.35), arrowprops={"arrowstyle": "->"})
        beside(ax, left + chunk / 2 - 0.5, 0.9, "read", INK, (5, 0))
        for k in range(-2, 3):
            at = left + chunk - 1 + k
            inside = k <= 0
            color = BLUE if inside else RED
            ax.annotate(
                "", (left + chunk - 1, -1.0), (at, -0.4), arrowprops={"arrowstyle": "-", "color": color, "lw": 1.2}
            )
            if not inside:
                ax.plot(at - 0.5 * (k if k == 1 else 1.0), -0.62, "x", color=RED, markersize=6)
        beside(ax, left + chunk - 1, -1.1, r"value $\hat v_t$ of the last token", INK, (0, -8), ha="center")
    ax.annotate(
        "", (chunk + 1.2 + chunk / 2 - 1.0, 1.6), (chunk / 2 - 0.1, 1.6), arrowprops={"arrowstyle": "->", "color": RED}
    )
    beside(ax, chunk + 0.1, 1.9, r"write $+\,\eta\,\hat V_{[i]}^\top Z_{[i]}$", RED, (0, 0), ha="center")
    ax.set(xlim=(-1, 2 * chunk + 2.6), ylim=(-1.6, 2.2))
    ax.axis("off")
    figure.set_label(
        f"Two chunks of {chunk} tokens. Each is read with the state above it; after the first is read, its increment "
        "is added to the state for the second. The taps of the last token's value stop at the edge of its chunk."
    )
    return figure


def leak(rows: pd.DataFrame) -> Figure:
    """Which later inputs an output depends on, as cells of a matrix; rows of ``Leaks``: variant, position (n), future
    (m - n), jacobian."""
    rows = largest(rows)
    names = list(dict.fromkeys(rows["variant"]))
    length = int((rows["position"] + rows["future"]).max()) + 1
    figure, axes = plt.subplots(1, len(names), figsize=(7.6, 2.3), sharey=True)
    past, words = np.tri(length), []
    for ax, name in zip(axes, names, strict=True):
        seen = rows[(rows["variant"] == name) & (rows["future"] > 0) & (rows["jacobian"] > 0)]
        ax.pcolormesh(np.where(past > 0, 1.0, np.nan), cmap=ListedColormap([BLUE]), alpha=0.35)
        for n, m in zip(seen["position"], seen["position"] + seen["future"], strict=True):
            ax.add_patch(Rectangle((m, n), 1, 1, color=RED, linewidth=0))
        ax.set(aspect="equal", xticks=[], yticks=[], xlim=(0, length), ylim=(length, 0))
        pairs = seen[["position", "future"]].drop_duplicates()
        ax.set_xlabel(f"{len(pairs)} leaks" if len(pairs) else "no leak", color=RED if len(pairs) else INK)
        panel_label(ax, name)
        words.append(f"{name} {len(pairs)}")
    axes[0].set_ylabel("output $n$")
    figure.set_label(
        f"Inputs across, outputs down, past inputs pale. Pairs of an output and a later input that it depends on, by "
        f"variant: {', '.join(words)}."
    )
    return figure
