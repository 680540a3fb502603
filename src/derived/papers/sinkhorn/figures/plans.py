"""Scores and their two normalisations: rows in, a figure with its alt text as label out.

mark                 meaning
sequential colours   an entry of a matrix, 1 where attention is even
bars below           column sums; the line is 1
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, SEQUENTIAL, THEORY, panel_label


def three_matrices(rows: pd.DataFrame) -> Figure:
    """Matrices side by side, each above the sums of its columns over their number; rows: matrix, i, j, value."""
    names = list(dict.fromkeys(rows["matrix"]))
    sizes = {"height_ratios": [3, 1], "hspace": 0.08}
    figure, axes = plt.subplots(2, len(names), figsize=(7.4, 3.6), sharex=True, sharey="row", gridspec_kw=sizes)
    high, words = rows["value"].quantile(0.97), []
    for (top, below), name in zip(axes.T, names, strict=True):
        table = rows[rows["matrix"] == name].pivot(index="i", columns="j", values="value")
        mesh = top.imshow(table, cmap=SEQUENTIAL, vmin=0, vmax=high, aspect="auto")
        sums = table.sum(axis=0) / len(table)
        below.bar(table.columns, sums, 0.75, color=BLUE)
        below.axhline(1.0, **THEORY)
        top.set(xticks=[], yticks=[])
        below.set(xlabel="token $j$", xticks=table.columns, xticklabels=[str(j + 1) for j in table.columns])
        panel_label(top, name)
        words.append(f"{name.replace('$', '')}: {sums.min():.2f} to {sums.max():.2f}")
    axes[0, 0].set(ylabel="token $i$")
    axes[1, 0].set(ylabel="column mean")
    figure.colorbar(mesh, ax=axes[0].tolist(), label="entry", extend="max", aspect=12)
    figure.set_label(f"Three matrices from the same scores, and the means of their columns: {'; '.join(words)}.")
    return figure
