"""Best rate and test accuracy over the predicted growth."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import beside, largest, mean_and_reach, panel_label, plain_log, shades


def best_rates(rows: pd.DataFrame) -> Figure:
    """The best rate and the test accuracy against the predicted growth, a line an alpha; ``Trainability`` at the best
    rates."""
    rows = largest(rows)
    rows = rows[rows["warmup"] == 0]
    alphas, words, gains = sorted(rows["alpha"].unique()), [], []
    figure, axes = plt.subplots(2, 1, figsize=(5.5, 5.0), sharex=True)
    for alpha, color in zip(alphas, shades(len(alphas)), strict=True):
        cells = [part for _, part in rows[rows["alpha"] == alpha].groupby("depth")]
        growth, rate = (np.array([one[name].mean() for one in cells]) for name in ("log_pooled", "rate"))
        accuracy, reach = np.transpose([mean_and_reach(one["test_accuracy"]) for one in cells])
        face = color if rows["recorded"].iloc[0] else "none"
        for ax, values, half in zip(axes, (rate, accuracy), (None, reach), strict=True):
            ax.errorbar(np.exp(growth), values, half, fmt="o-", color=color, markerfacecolor=face, elinewidth=0.9)
        beside(axes[0], np.exp(growth[-1]), rate[-1], rf"$\alpha={alpha:g}$", color, (-7, -5), ha="right")
        gains.append(f"{accuracy[-1] - accuracy[0]:+.2f} at $\\alpha={alpha:g}$".replace("-", "−"))
        for one, x, y, at in zip(cells, growth, accuracy, rate, strict=True):
            depth = one["depth"].iloc[0]
            label = f"{depth:g}" if words else f"depth {depth:g}"
            below = depth == cells[-1]["depth"].iloc[0]  # clear of the next line
            beside(axes[0], np.exp(x), at, label, color, (2, -11) if below else (4, 7))
            words.append(
                f"depth {depth:g}, alpha {alpha:g}: {y:.2f} at rate {at:.2g}, predicted growth ×{np.exp(x):.1f}"
            )
    axes[0].set(yscale="log", ylabel="best learning rate", ylim=(0.6 * rows["rate"].min(), 1.6 * rows["rate"].max()))
    axes[1].set(xscale="log", ylabel="test accuracy at that rate", xlabel="predicted growth of the pooled gradient")
    plain_log(axes[0].yaxis, (0.0005, 0.001, 0.002, 0.004))
    plain_log(axes[1].xaxis, (1, 1.5, 2, 3, 5, 8))
    panel_label(axes[0], "By and large, more predicted growth, a smaller best rate")
    panel_label(axes[1], f"Accuracy over depth: {gains[0]}, {gains[-1]}")
    figure.set_label(f"Best rate and test accuracy against the predicted growth: {'; '.join(words)}.")
    return figure
