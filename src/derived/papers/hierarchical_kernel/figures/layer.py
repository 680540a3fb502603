"""The score tables of a layer."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import RED, panel_label

from .marks import as_matrix, brackets


def score_pyramid(rows: pd.DataFrame, symbols: Sequence[str]) -> Figure:
    """Mixed scores of a string under the mask with its brackets drawn on them, and the tables of the levels beside.

    Rows: level (-1: mixture), i, j, score.
    """
    levels = sorted(level for level in rows["level"].unique() if level >= 0)
    figure, ax = plt.subplots(figsize=(6.6, 5.8))
    style = {"cmap": "Blues", "vmin": rows["score"].min(), "vmax": 1.2 * rows["score"].max()}
    table = as_matrix(rows[rows["level"] == -1], "score")
    ax.imshow(np.where(np.tri(len(table), dtype=bool), table, np.nan), **style)
    names = [symbol.strip("[") for symbol in symbols]
    ax.set_yticks(range(len(symbols)), names, fontsize=8)
    ax.set_xticks(range(len(symbols)), names, fontsize=8, rotation=90)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for first, last in brackets(symbols):
        low, high = first - 0.5, last + 0.5
        ax.plot([low, low, high, low], [low, high, high, low], color=RED, linewidth=1.6)
    panel_label(ax, "Coarse blocks follow the brackets")
    for number, level in enumerate(levels):
        small = ax.inset_axes((0.42 + 0.2 * number, 0.74, 0.17, 0.17))
        one = as_matrix(rows[rows["level"] == level], "score")
        small.imshow(one, **style)
        small.set(xticks=[], yticks=[])
        panel_label(small, f"level {level}: {len(one)}²")
    sizes = ", ".join(str(int(rows[rows["level"] == level]["i"].max()) + 1) for level in levels)
    figure.set_label(
        f"Mixed scores of {' '.join(symbols)} as a triangle of coloured squares, a triangle drawn around each bracket, "
        f"and the tables of the levels with {sizes} rows. Scores lie between {rows['score'].min():.1f} and "
        f"{rows['score'].max():.1f}; in the mixture blocks of equal colour come from the coarse tables."
    )
    return figure
