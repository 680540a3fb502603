"""The layer: what is proved of it, what of the paper could not be judged, and a picture of its score tables."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.claims import on_page, unseen
from derived.lab.plot import INK, panel_label

from .marks import as_matrix

PAPER = unseen(
    "HKT-0",
    r"HKT mixes the score tables of $L$ resolutions, made by trainable causal downsampling, at a cost of at most $\frac43$"
    " of standard attention ($1.3125$ at $L=3$). The scores are a positive semidefinite kernel under a condition, and split"
    " into $L$ pairs of a symmetric and an antisymmetric part. Standard attention and causal convolution are contained. The"
    " error has three parts and a bound that decays geometrically in $L$. HKT gains $4.77$, $1.44$ and $7.47$ points on"
    " ListOps, sequential CIFAR-10 and character-level IMDB.",
    "It cannot be judged here: definitions, proofs, data and settings of the paper could not be read. Nearest to it are, for"
    " our layer, HKT-1.a and HKT-E4.c on the cost, HKT-3.a on causality, HKT-4.e on the kernel, and HKT-E1.t, HKT-E3.g and"
    " HKT-E6.a on gains",
    plain="A layer that also compares summaries of past tokens costs at most a third more, is a kernel, contains attention and"
    " convolution, and does better on three tasks.",
    source="paper",
    where="abstract",
    paper_value="$1.3125$, $4.77$, $1.44$, $7.47$",
)

CLAIMS = (
    PAPER,
    on_page("HKT-1.a", where="what the abstract's 1.3125 may count", paper_value="1.3125"),
    on_page("HKT-2.a"),
    on_page("HKT-3.a"),
    on_page("HKT-4.e"),
)


def score_pyramid(rows: pd.DataFrame, symbols: Sequence[str]) -> Figure:
    """The tables of the levels, each spread over the same square, and their mixture under the mask.

    Rows: level (-1: mixture), i, j, score.
    """
    levels = sorted(level for level in rows["level"].unique() if level >= 0)
    T, names = len(symbols), ("tokens", "pairs", "fours", "eights")
    figure, axes = plt.subplots(1, len(levels) + 1, figsize=(8.6, 2.8))
    style = {"cmap": "Blues", "vmin": rows["score"].min(), "vmax": 1.15 * rows["score"].max()}
    for ax, level in zip(axes, [*levels, -1], strict=True):
        small = as_matrix(rows[rows["level"] == level], "score")
        step = 2**level if level >= 0 else 1
        table = small.repeat(step, axis=0).repeat(step, axis=1)[:T, :T]
        ax.imshow(table if level >= 0 else np.where(np.tri(T, dtype=bool), table, np.nan), **style)
        for place in np.arange(0, T, step) - 0.5 if level >= 0 else ():
            ax.axhline(place, color="white", linewidth=1 + 0.6 * level)
            ax.axvline(place, color="white", linewidth=1 + 0.6 * level)
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        panel_label(ax, f"{names[level]}, {len(small)}²" if level >= 0 else "mixed, masked")
    axes[0].set_yticks(range(T), [symbol.strip("[") for symbol in symbols], fontsize=8)
    axes[0].tick_params(length=0)
    for ax, sign in zip(axes[1:], [*["+"] * (len(levels) - 1), "="], strict=True):
        ax.annotate(sign, (0, 0.5), (-8, 0), "axes fraction", "offset points", ha="center", va="center", color=INK)
    sizes = ", ".join(str(int(rows[rows["level"] == level]["i"].max()) + 1) for level in levels)
    figure.set_label(
        f"Score tables of {' '.join(symbols)}: tables of {sizes} rows, each spread over the same square in blocks, and "
        "their mixture as a triangle, in which blocks of the coarse tables can be seen."
    )
    return figure
