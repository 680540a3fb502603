"""What a layer costs, counted and timed."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, GREEN, INK, MUTED, ORANGE, beside, largest, mean_and_reach, panel_label

IMPLS = {"plain": "one level", "reference": "materialised", "tables": "coarse tables", "fused": "wide features"}


def cost_bars(counts: pd.DataFrame, seconds: pd.DataFrame) -> Figure:
    """Entries and multiply-adds of a layer by number of levels; seconds of its attention by implementation. Rows of
    MultiplyAdds and Overhead."""
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), width_ratios=[1.15, 1])
    chosen = counts[(counts["T"] == 1024) & (counts["d"] == 64)].set_index("levels")
    columns = {"entries": "score entries", "layer": "whole layer", "layer_fused": "layer run fused"}
    for shift, (column, name), color in zip((-0.26, 0, 0.26), columns.items(), (BLUE, GREEN, ORANGE), strict=True):
        axes[0].bar(chosen.index + shift, chosen[column], 0.24, color=color, label=name)
    axes[0].axhline(4 / 3, **DASHED)
    beside(axes[0], chosen.index[0], 4 / 3, "4/3", MUTED, (0, 8), ha="center")
    axes[0].set(xlabel="levels $L$", ylabel="ratio to standard attention", xticks=chosen.index)
    axes[0].legend(fontsize=8, loc="upper left")
    panel_label(axes[0], "counted, $T=1024$, $d=64$")
    seconds = largest(seconds)
    T = int(seconds["T"].max())
    wide = seconds[seconds["T"] == T].pivot(index="round", columns="impl", values="seconds")
    words, means = [], []
    for place, (impl, name) in enumerate(IMPLS.items()):
        ratio = wide[impl] / wide["sdpa"]
        axes[1].plot(ratio, np.full(len(ratio), place), "o", color=BLUE, alpha=0.4, markersize=4)
        value, reach = mean_and_reach(ratio)
        axes[1].errorbar(value, place + 0.22, xerr=reach, fmt="|", color=INK, markersize=12)
        words.append(f"{name} {value:.2f} ± {reach:.2f}")
        means.append(value)
    beside(axes[1], value, place + 0.22, "mean, 99.9 %", INK, (12, 4), fontsize=8)
    beside(axes[1], ratio.max(), place, "one round", BLUE, (8, -3), fontsize=8)
    axes[1].axvline(1, **DASHED)
    beside(axes[1], 1, 0.5 * len(IMPLS) - 0.5, "torch", MUTED, (4, 0))
    axes[1].set(yticks=range(len(IMPLS)), yticklabels=IMPLS.values(), xscale="log", ylim=(-0.6, len(IMPLS) - 0.4))
    axes[1].set_xlabel(f"seconds over torch's, $T={T}$")
    slower = sum(mean > 1 for mean in means)
    panel_label(axes[1], f"timed: {'all' if slower == len(means) else slower} slower than torch's")
    three = chosen.loc[3]
    figure.set_label(
        f"Left, bars of cost by number of levels: at three levels {three['entries']:.4f} of the entries, "
        f"{three['layer']:.3f} of a layer's multiply-adds, {three['layer_fused']:.2f} if run fused. Right, seconds of "
        f"the attention alone at length {T} over torch's, means with 99.9 % intervals: {', '.join(words)}."
    )
    return figure
