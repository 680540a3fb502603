"""Jacobians of the layer, and the loss of layers that leak."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import INK, RED, SEQUENTIAL, THEORY, beside, largest, panel_label

from .marks import KIND_COLOURS, POOLINGS, as_matrix


def jacobians(rows: pd.DataFrame) -> Figure:
    """|dY_i/dx_t| for several poolings; rows: pooling, i, t, size. Sizes below 100 eps are left empty: rounding."""
    names = list(dict.fromkeys(rows["pooling"]))
    figure, axes = plt.subplots(1, len(names), figsize=(7.2, 2.9))
    words = []
    for ax, name in zip(axes, names, strict=True):
        table = as_matrix(rows[rows["pooling"] == name], "size", "i", "t")
        seen = table > 100 * np.finfo(float).eps
        ax.imshow(np.log10(np.where(seen, table, np.nan)), cmap=SEQUENTIAL, vmin=-4, vmax=0.5)
        ax.plot([-0.5, len(table) - 0.5], [-0.5, len(table) - 0.5], color=RED, linewidth=1)
        ahead = "see ahead" if np.triu(seen, 1).any() else "causal"
        panel_label(ax, f"{POOLINGS[name].removeprefix('causal ')}: {ahead}")
        ax.set(xticks=[], yticks=[], xlabel="token $t$")
        words.append(f"{POOLINGS[name]} {np.triu(table, 1).max():.2g}")
    axes[0].set_ylabel("output $i$")
    figure.set_label(
        f"Jacobian of the layer, outputs by tokens, for {len(names)} ways to pool. Largest entry above the diagonal: "
        f"{', '.join(words)}. Empty squares are zeros up to rounding."
    )
    return figure


def leak(rows: pd.DataFrame) -> Figure:
    """Loss of each network on fresh i.i.d. symbols, by kind, against what is possible; rows of Leak."""
    rows = largest(rows)
    kinds = {"plain": "plain\nattention", "hkt": "HKT", "hkt-block": "HKT, block means:\nit sees the answer"}
    figure, ax = plt.subplots(figsize=(5.4, 3.5))
    chance, words = rows["chance"].iloc[0], []
    for place, kind in enumerate(kinds):
        part = rows[rows["kind"] == kind]
        spread = np.linspace(-0.22, 0.22, len(part))
        ax.plot(place + spread, part["loss"], "o", color=KIND_COLOURS[kind], markersize=5)
        words.append(f"{kind} {(part['loss'] - chance).mean():+.3f}, accuracy {part['accuracy'].mean():.2f}")
    below = float(rows.loc[rows["kind"] == "hkt-block", "loss"].mean())
    ax.axhline(chance, **THEORY)
    beside(ax, -0.45, chance, "chance: nobody can do better", INK, (0, 9))
    ax.annotate("", (2.4, below), (2.4, chance), arrowprops={"arrowstyle": "<->", "color": RED, "linewidth": 1.4})
    beside(ax, 2.4, (below + chance) / 2, f"{chance - below:.2f} nats", RED, (5, 0))
    ax.set(xticks=range(len(kinds)), xticklabels=kinds.values(), ylabel="test loss [nats]", xlim=(-0.5, 2.95))
    ax.set_ylim(min(below, rows["loss"].min()) - 0.08, chance + 0.12)
    figure.set_label(f"Loss on symbols that nobody can predict, less that of chance: {'; '.join(words)}.")
    return figure
