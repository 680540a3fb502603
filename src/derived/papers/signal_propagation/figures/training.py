"""Test accuracy over depth and alpha."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from derived.lab.plot import SEQUENTIAL, largest, panel_label


def training_tiles(rows: pd.DataFrame) -> Figure:
    """Test accuracy over depth and alpha, predictions in the tiles, beside the rates; ``Trainability`` at one each."""
    rows = largest(rows)
    rows = rows[rows["warmup"] == 0]
    tables = {
        name: rows.pivot_table(index="alpha", columns="depth", values=name).sort_index(ascending=False)
        for name in ("test_accuracy", "log_pooled", "rate")
    }
    accuracy, rate = tables["test_accuracy"], tables["rate"]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2))
    grown = np.exp(tables["log_pooled"]).map(lambda value: f"×{value:.1f}")
    told = rate.map(lambda value: f"{value:.2g}")
    label = {"label": "test accuracy"}
    sns.heatmap(accuracy, ax=axes[0], cmap=SEQUENTIAL, annot=grown, fmt="", cbar_kws=label)
    ends = LogNorm(rate.to_numpy().min() / 1.1, rate.to_numpy().max() * 1.1)
    sns.heatmap(rate, ax=axes[1], cmap=SEQUENTIAL, annot=told, fmt="", norm=ends, cbar=False)
    for ax, name in zip(axes, ("accuracy, and predicted growth", "best rate"), strict=True):
        ax.set(xlabel="depth $B$", ylabel=r"$\alpha$")
        panel_label(ax, name)
    words = [
        f"depth {depth}, alpha {alpha:g}: {accuracy.loc[alpha, depth]:.2f} at rate {told.loc[alpha, depth]}, "
        f"predicted growth {grown.loc[alpha, depth]}"
        for alpha in accuracy.index
        for depth in accuracy.columns
    ]
    figure.set_label(f"Test accuracy over depth and alpha, each at its best rate: {'; '.join(words)}.")
    return figure
