"""Trained models: rows in, a figure with its alt text as label out.

mark                   meaning
colours, markers       target, or number of half-steps
filled, open marker    recorded, live; bars are 99.9 % intervals over networks
bands                  99.9 % intervals over networks
dashed                 softmax, the product coupling, or the criterion
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    COLOURS,
    DASHED,
    MUTED,
    ORANGE,
    RED,
    apart,
    beside,
    largest,
    mean_and_reach,
    panel_label,
    plain_log,
)
from derived.lab.plot import points as draw_points

TARGETS = {
    "comonotone": ("order kept", BLUE, "o"),
    "crossed": ("crossed", RED, "s"),
    "shuffled": ("shuffled: the control", ORANGE, "x"),
}

SPENT = {"operations": "floating-point operations of a network", "seconds": "seconds of one core, all networks"}


def learned(rows: pd.DataFrame) -> Figure:
    """What softmax and Sinkhorn learn, by rows and by columns, against the length; rows of ``LearnedCouplings``."""
    rows = largest(rows)
    rows = rows[rows["stage"] == "final"]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.6))
    words, lengths = [], sorted(rows["n"].astype(int).unique())
    for ax, column in zip(axes, ("ratio", "missed"), strict=True):
        ends = {}
        for (target, normaliser), part in rows.groupby(["target", "normaliser"]):
            name, color, marker = TARGETS[target]
            drawn = draw_points(ax, part, "n", column, color, marker).sort_values("n")
            style = "--" if normaliser == "softmax" else "-"
            ax.plot(drawn["n"], drawn["value"], color=color, linewidth=0.8, linestyle=style)
            words.append(f"{normaliser}, {name}, {column}: {drawn['value'].iloc[-1]:.2f}")
            if normaliser == "softmax":
                ends[name] = (float(drawn["value"].iloc[-1]), color)
        for (name, (_, color)), place in zip(
            ends.items(),
            apart([value for value, _ in ends.values()], 0.07 if column == "ratio" else 0.007),
            strict=True,
        ):
            beside(ax, rows["n"].max(), place, name, color)
        ax.set(xscale="log", xlabel="tokens $n$ of each text", xlim=(lengths[0] / 1.15, lengths[-1] * 3))
        plain_log(ax.xaxis, lengths)
    axes[0].plot(lengths, [0.25] * len(lengths), **DASHED)
    axes[0].set_ylabel("distance by rows, over that of $ab^\\top$")
    axes[1].set_ylabel("mass in wrong columns")
    for name, style in (("Sinkhorn", "-"), ("softmax", "--")):
        axes[1].plot([], [], color=MUTED, linewidth=0.8, linestyle=style, label=name)
    axes[1].legend(loc="upper right", fontsize=7)
    panel_label(axes[0], "rows")
    panel_label(axes[1], "columns")
    figure.set_label(
        f"By rows and by columns, at {lengths[-1]} tokens: {'; '.join(words)}. Lines are Sinkhorn, dashes "
        "softmax; the criterion is at 0.25."
    )
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
        ax.set(xlabel="half-steps", xticks=places, xticklabels=[str(half) for half in halves])
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
