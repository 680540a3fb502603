"""Jacobians of the layer, and the loss of layers that leak."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import DASHED, RED, SEQUENTIAL, largest, mean_and_reach, panel_label

from .marks import KIND_COLOURS, POOLINGS, as_matrix


def jacobians(rows: pd.DataFrame) -> Figure:
    """|dY_i/dx_t| for several poolings; rows: pooling, i, t, size. Sizes below 100 eps are left empty: rounding."""
    names = list(dict.fromkeys(rows["pooling"]))
    figure, axes = plt.subplots(1, len(names), figsize=(7.2, 2.6))
    words = []
    for ax, name in zip(axes, names, strict=True):
        table = as_matrix(rows[rows["pooling"] == name], "size", "i", "t")
        seen = table > 100 * np.finfo(float).eps
        ax.imshow(np.log10(np.where(seen, table, np.nan)), cmap=SEQUENTIAL, vmin=-4, vmax=0.5)
        ax.plot([-0.5, len(table) - 0.5], [-0.5, len(table) - 0.5], color=RED, linewidth=1)
        panel_label(ax, POOLINGS[name])
        ax.set(xticks=[], yticks=[], xlabel="token $t$")
        words.append(f"{POOLINGS[name]} {np.triu(table, 1).max():.2g}")
    axes[0].set_ylabel("output $i$")
    figure.set_label(
        f"Jacobian of the layer, outputs by tokens, for {len(names)} ways to pool. Largest entry above the diagonal: "
        f"{', '.join(words)}. Empty squares are zeros up to rounding."
    )
    return figure


def leak(rows: pd.DataFrame) -> Figure:
    """Loss on fresh i.i.d. symbols less ln V by kind; rows of Leak."""
    kinds = {"plain": "plain", "hkt": "HKT", "hkt-block": "HKT with block means"}
    figure, ax = plt.subplots(figsize=(6.4, 2.2))
    words = []
    for place, kind in enumerate(kinds):
        for recorded, part in rows[rows["kind"] == kind].groupby("recorded"):
            color, face = KIND_COLOURS[kind], KIND_COLOURS[kind] if recorded else "none"
            value, reach = mean_and_reach(part["loss"] - part["chance"])
            height = place + (0.12 if recorded else -0.12)
            ax.errorbar(value, height, xerr=reach, fmt="o", color=color, markerfacecolor=face)
        best = largest(rows[rows["kind"] == kind])
        words.append(
            f"{kinds[kind]} {(best['loss'] - best['chance']).mean():+.3f}, accuracy {best['accuracy'].mean():.2f}"
        )
    ax.axvline(0, **DASHED)
    ax.set(yticks=range(len(kinds)), yticklabels=kinds.values(), xlabel=r"test loss less $\ln V$ [nats]")
    ax.set_ylim(-0.6, len(kinds) - 0.4)
    figure.set_label(f"Loss on symbols that nobody can predict, less that of chance: {'; '.join(words)}.")
    return figure
