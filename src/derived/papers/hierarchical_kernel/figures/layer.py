"""The score tables of a layer."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab.plot import RED, SEQUENTIAL, panel_label

from .marks import as_matrix


def _brackets(ax: Axes, symbols: Sequence[str], below: float) -> None:
    """The nesting of a ListOps string under the horizontal axis, one line per list."""
    starts, depth = [], 0
    for place, symbol in enumerate(symbols):
        if symbol.startswith("["):
            starts.append((place, depth))
            depth += 1
        elif symbol == "]":
            start, level = starts.pop()
            depth -= 1
            y = below + 0.9 * level
            ax.plot([start, start, place, place], [y - 0.3, y, y, y - 0.3], color=RED, linewidth=1.2, clip_on=False)


def score_pyramid(rows: pd.DataFrame, symbols: Sequence[str]) -> Figure:
    """Score tables of a string, and their mixture under the mask; rows: level (-1: mixture), i, j, score."""
    levels = sorted(level for level in rows["level"].unique() if level >= 0)
    figure, grid = plt.subplots(2, len(levels) // 2 + 1, figsize=(6.4, 6.0), squeeze=False)
    *axes, last = grid.flat[: len(levels) + 1]
    for ax in grid.flat[len(levels) + 1 :]:
        ax.remove()
    bottom, top = rows["score"].min(), rows["score"].max()
    for ax, level in zip([*axes, last], [*levels, -1], strict=True):
        table = as_matrix(rows[rows["level"] == level], "score")
        if level < 0:
            table = np.where(np.tri(len(table), dtype=bool), table, np.nan)
        ax.imshow(table, cmap=SEQUENTIAL, vmin=bottom, vmax=top)
        panel_label(ax, f"level {level}: {table.shape[0]}²" if level >= 0 else "mixture, masked")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
    last.set_yticks(range(len(symbols)), [symbol.strip("[") for symbol in symbols], fontsize=6.5)
    last.tick_params(length=0)
    _brackets(last, symbols, len(symbols) + 0.6)
    sizes = ", ".join(str(int(rows[rows["level"] == level]["i"].max()) + 1) for level in levels)
    figure.set_label(
        f"Score tables of {' '.join(symbols)} as coloured squares with {sizes} rows, and their mixture with the upper "
        f"triangle masked. Scores lie between {rows['score'].min():.1f} and {rows['score'].max():.1f}; in the mixture "
        "blocks of equal colour come from the coarse tables."
    )
    return figure
