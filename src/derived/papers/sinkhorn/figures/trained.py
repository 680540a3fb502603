"""Trained models: rows in, a figure with its alt text as label out.

mark                   meaning
colours, markers       normaliser, target; or number of half-steps
filled, open marker    recorded, live; bars are 99.9 % intervals over networks
bands                  99.9 % intervals over networks
dashed                 the criterion
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    COLOURS,
    DASHED,
    GREEN,
    MUTED,
    apart,
    beside,
    largest,
    mean_and_reach,
    panel_label,
    plain_log,
)
from derived.lab.plot import points as draw_points

TARGETS = {
    "comonotone": ("order kept", "o"),
    "crossed": ("crossed", "s"),
    "shuffled": ("shuffled: the control", "x"),
}
ONCE = ("missed", "comonotone", "sinkhorn")  # its label is that of the crossed target, too
UNTOLD = [("missed", "crossed", "sinkhorn"), ("ratio", "shuffled", "sinkhorn")]
UNTOLD += [("missed", "shuffled", name) for name in ("softmax", "sinkhorn")]
NORMALISERS = {"softmax": BLUE, "sinkhorn": GREEN}

SPENT = {"operations": "floating-point operations of a network", "seconds": "seconds of one core, all networks"}


def learned(rows: pd.DataFrame) -> Figure:
    """What softmax and Sinkhorn learn, by columns and by rows, against the length; rows of ``LearnedCouplings``."""
    rows = largest(rows)
    rows = rows[rows["stage"] == "final"]
    figure, axes = plt.subplots(2, 1, figsize=(5.5, 5.0), sharex=True)
    words, lengths, ends = [], sorted(rows["n"].astype(int).unique()), {}
    for ax, column in zip(axes, ("missed", "ratio"), strict=True):
        for (target, normaliser), part in rows.groupby(["target", "normaliser"]):
            name, marker = TARGETS[target]
            color = MUTED if target == "shuffled" else NORMALISERS[normaliser]
            drawn = draw_points(ax, part, "n", column, color, marker).sort_values("n")
            ax.plot(drawn["n"], drawn["value"], color=color, linewidth=0.8)
            ends[column, target, normaliser] = end = float(drawn["value"].iloc[-1])
            words.append(f"{normaliser}, {name}, {column}: {end:.2f}")
        told = [key for key in ends if key[0] == column and key not in UNTOLD]
        for key, place in zip(told, apart([ends[key] for key in told], 0.09 * np.ptp(ax.get_ylim())), strict=True):
            name, color = TARGETS[key[1]][0], MUTED if key[1] == "shuffled" else NORMALISERS[key[2]]
            both = "both, " if key[1] == "shuffled" else "Sinkhorn, " if key[2] == "sinkhorn" else "softmax, "
            beside(ax, lengths[-1], place, both + (name if key != ONCE else "both"), color)
    for ax, level, said in ((axes[0], 0.02, "a fiftieth"), (axes[1], 0.25, "asked: at most a quarter")):
        ax.plot(lengths, [level] * len(lengths), **DASHED)
        beside(ax, lengths[0], level, said, MUTED, (0, -7))
    learned = [target for target in TARGETS if target != "shuffled"]
    wrong = {name: 100 * max(ends["missed", target, name] for target in learned) for name in NORMALISERS}
    panel_label(axes[0], f"Columns: softmax is off by {wrong['softmax']:.1f} %, Sinkhorn by {wrong['sinkhorn']:.1f} %")
    gap = max(abs(ends["ratio", target, "softmax"] - ends["ratio", target, "sinkhorn"]) for target in learned)
    panel_label(axes[1], f"Rows: the two differ by {gap:.2f} at most at {lengths[-1]} tokens")
    axes[0].set(ylabel="mass in wrong columns", ylim=(-0.07 * axes[0].get_ylim()[1], None))
    axes[1].set(ylabel="distance by rows (1: nothing learned)", ylim=(-0.07 * axes[1].get_ylim()[1], None))
    axes[1].set(xscale="log", xlabel="tokens $n$ of each text", xlim=(lengths[0] / 1.15, lengths[-1] * 6))
    plain_log(axes[1].xaxis, lengths)
    figure.set_label(f"By columns and by rows, at {lengths[-1]} tokens: {'; '.join(words)}; the criterion is at 0.25.")
    return figure


def arms(rows: pd.DataFrame) -> Figure:
    """Accuracy of each network by arm, and column errors before and after training; rows of ``Arms``."""
    rows = largest(rows)
    rows = rows[rows["chosen"] & (rows["task"] == rows["task"].iloc[0]) & (rows["stage"] == "final")]
    rows = rows[rows["steps"] == rows["steps"].min()]
    halves = sorted(rows["num_half_steps"].unique())
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2))
    face = BLUE if rows["recorded"].iloc[0] else "none"
    table = rows.pivot(index="model", columns="num_half_steps", values="accuracy")
    places = np.arange(len(halves))
    for _, line in table.iterrows():
        axes[0].plot(places, line, color=MUTED, linewidth=0.6, marker="o", markersize=3, alpha=0.7)
    words = []
    for place, half in enumerate(halves):
        value, reach = mean_and_reach(table[half])
        axes[0].errorbar(place, value, reach, fmt="D", color=BLUE, markerfacecolor=face, zorder=4)
        part = rows[rows["num_half_steps"] == half]
        for shift, column, color in ((-0.08, "deviation_before", MUTED), (0.08, "deviation_after", BLUE)):
            mean, width = mean_and_reach(part[column])
            axes[1].errorbar(place + shift, mean, width, fmt="o", color=color, label=column.removeprefix("deviation_"))
        before, after = (part[f"deviation_{each}"].mean() for each in ("before", "after"))
        steps = "1 half-step" if half == 1 else f"{half} half-steps"
        words.append(f"{steps}: accuracy {value:.3f}, column error {before:.3f} before and {after:.3f} after")
    for ax in axes:
        ax.set(xlabel="half-steps", xticks=places, xlim=(-0.3, len(halves) - 0.7))
        ax.set(xticklabels=["1 (softmax)" if half == 1 else f"{half}" for half in halves])
    axes[0].set(ylabel="test accuracy")
    axes[1].set(ylabel="column error of attention", ylim=(0, None))
    handles, labels = axes[1].get_legend_handles_labels()
    axes[1].legend(handles[:2], [f"{each} training" for each in labels[:2]], fontsize=8)
    panel_label(axes[0], "accuracy")
    panel_label(axes[1], "how far from doubly stochastic")
    figure.set_label(f"Networks by number of half-steps. {'; '.join(words)}.")
    return figure


def compute(rows: pd.DataFrame) -> Figure:
    """Loss in training against operations and seconds, at the chosen rates; rows of ``Arms``."""
    rows = largest(rows)
    curves = rows[rows["chosen"] & (rows["task"] == rows["task"].iloc[0]) & (rows["stage"] == "curve")]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharey=True)
    words, few = [], curves["steps"].min()
    for color, ((half, steps), part) in zip(COLOURS, curves.groupby(["num_half_steps", "steps"]), strict=False):
        name = ("softmax" if half == 1 else f"{half} half-steps") + (", longer" if steps > few else "")
        at = [(each[list(SPENT)].mean(), *mean_and_reach(each["loss"])) for _, each in part.groupby("step")]
        spent, loss, reach = (np.array(each) for each in zip(*at, strict=True))
        for ax, place in zip(axes, spent.T, strict=True):
            ax.plot(place, loss, color=color, linewidth=1.2, label=name)
            ax.fill_between(place, loss - reach, loss + reach, color=color, alpha=0.2, linewidth=0)
        words.append(f"{name} {loss[-1]:.3f} after {spent[-1, 0]:.2g} operations and {spent[-1, 1]:.3g} seconds")
    for ax, label in zip(axes, SPENT.values(), strict=True):
        ax.set(xscale="log", xlabel=label)
    axes[0].set(yscale="log", ylabel="loss on texts never seen (nats)")
    plain_log(axes[0].yaxis, (0.3, 0.5, 1))
    axes[1].legend(fontsize=8)
    figure.set_label(f"Mean loss of networks in training against what was spent on it. At the end: {'; '.join(words)}.")
    return figure
