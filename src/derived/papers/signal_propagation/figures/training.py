"""Test accuracy over depth and alpha."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from derived.lab.plot import SEQUENTIAL, largest, panel_label


def training_tiles(rows: pd.DataFrame) -> Figure:
    """Test accuracy over depth and alpha at each learning rate, predictions in the tiles; ``Trainability``."""
    rows = largest(rows)
    rows = rows[rows["warmup"] == 0]
    rates = sorted(rows["rate"].unique())
    figure, axes = plt.subplots(1, len(rates), figsize=(3.6 * len(rates), 3.2), squeeze=False)
    means, words = rows.groupby(["rate", "alpha", "depth"])["test_accuracy"].mean(), []
    same = {"vmin": means.min(), "vmax": means.max()}
    for ax, rate in zip(axes[0], rates, strict=True):
        part = rows[rows["rate"] == rate]
        tiles = part.pivot_table(index="alpha", columns="depth", values="test_accuracy").sort_index(ascending=False)
        amplification = part.pivot_table(index="alpha", columns="depth", values="log_pooled").loc[tiles.index]
        notes = np.exp(amplification).map(lambda value: f"×{value:.1f}")
        sns.heatmap(tiles, ax=ax, cmap=SEQUENTIAL, **same, annot=notes, fmt="", cbar_kws={"label": "test accuracy"})
        ax.set(xlabel="depth $B$", ylabel=r"$\alpha$")
        panel_label(ax, f"rate {rate:g}")
        words.append(f"{tiles.to_numpy().min():.2f} to {tiles.to_numpy().max():.2f} at rate {rate:g}")
    figure.set_label(f"Test accuracy over depth and alpha, with predicted amplifications: {', '.join(words)}.")
    return figure
