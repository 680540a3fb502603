"""Trained networks: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; bars are 99.9 % intervals over trained networks
small points           single networks
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, COLOURS, INK, apart, beside, largest, mean_and_reach, panel_label, plain_log

ARMS = {
    "ce": "hard labels",
    "shuffled": "shuffled names",
    "blurred": "blurred labels",
    "codes": "random codes",
    "scalar": "the value",
    "untrained": "untrained",
}
CONTROLS = ("shuffled", "codes", "untrained")
SYSTEMS = {"lorenz": "Lorenz", "oscillators": "oscillators", "waveforms": "wave forms"}
ENCODERS = {
    "attention": "transformer",
    "state": "state space",
    "convolution": "convolution",
    "leaking": "with the leak",
}
COLOUR = dict(zip(ARMS, COLOURS, strict=True))
DISTORTION, TRUTH = "distortion $D$", "$R^2$, unobserved"


def finished(rows: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """The judged networks at the end of their training."""
    last = rows[rows["stage"] == "fit"].sort_values("step")
    return last.groupby([*by, "replicate"], sort=False).last().reset_index()


def _networks(ax: Axes, x: float, values: pd.Series, color, recorded: bool) -> float:
    """Single networks beside each other, and their mean with its interval; returns the mean."""
    mean, reach = mean_and_reach(values)
    ax.plot(
        x + 0.16 * np.sin(np.arange(len(values)) * 2.4), values, ".", color=color, alpha=0.4, markersize=4, zorder=2
    )
    face = color if recorded else "none"
    ax.errorbar(x, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3, zorder=3)
    return mean


def arms(rows: pd.DataFrame) -> Figure:
    """The published distortion of six arms on three systems; rows of ``Arms``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.9))
    words = _by_arm(ax, rows, "distortion")
    _times(ax, rows)
    ax.set(xscale="log", xlabel="distortion $D$ (less is better)")
    plain_log(ax.xaxis, (0.03, 0.05, 0.1, 0.2, 0.5))
    figure.set_label(f"Distortion of six ways to train one encoder on three systems. {'; '.join(words)}.")
    return figure


def truth(rows: pd.DataFrame) -> Figure:
    """What a linear map reads of unobserved coordinates from the states of six arms; rows of ``Arms``."""
    figure, ax = plt.subplots(figsize=(5.4, 3.9))
    words = _by_arm(ax, rows, "hidden")
    ax.set_xlabel("$R^2$ of coordinates that no network saw (more is better)")
    figure.set_label(
        f"R squared of the unobserved coordinates, six ways to train on three systems. {'; '.join(words)}."
    )
    return figure


def _times(ax: Axes, rows: pd.DataFrame) -> None:
    """An arrow from the value to hard labels on the first system, with how many times as much that is."""
    means = finished(largest(rows), ["system", "arm"]).groupby(["system", "arm"])["distortion"].mean()["lorenz"]
    places = {label.get_text(): place for place, label in zip(ax.get_yticks(), ax.get_yticklabels(), strict=True)}
    low, high, place = means["scalar"], means["ce"], places[ARMS["ce"]] + 0.22
    ax.plot([low, low], [places[ARMS["scalar"]] + 0.22, place], ":", color=BLUE, linewidth=1)
    ax.annotate("", (0.93 * high, place), (low, place), arrowprops={"arrowstyle": "->", "color": BLUE})
    beside(ax, low, place, f"{high / low:.1f} times", BLUE, (5, -8), fontsize=9)


def _by_arm(ax: Axes, rows: pd.DataFrame, measure: str) -> list[str]:
    """A line for each arm with a dot for each system and small points for single networks, the first system's lowest
    distortion at the top, the controls below a thick line; returns the means in words."""
    table = finished(largest(rows), ["system", "arm"])
    order = table[table["system"] == "lorenz"].groupby("arm")["distortion"].mean().sort_values(ascending=False).index
    order = sorted(order, key=lambda arm: arm not in CONTROLS)  # the controls first, that is at the bottom
    face = {} if table["recorded"].iloc[0] else {"markerfacecolor": "none"}
    words = []
    for shift, color, (system, name) in zip((0.22, 0.0, -0.22), COLOURS, SYSTEMS.items(), strict=False):
        means = []
        for place, arm in enumerate(order):
            values = table[(table["system"] == system) & (table["arm"] == arm)][measure]
            mean, reach = mean_and_reach(values)
            ax.plot(values, [place + shift] * len(values), ".", color=color, alpha=0.3, markersize=5)
            ax.errorbar(
                mean, place + shift, xerr=reach, fmt="o", color=color, markersize=7, capsize=3, zorder=3, **face
            )
            means.append(f"{ARMS[arm]} {mean:.3f}")
        ax.plot([], [], "o", color=color, label=name)
        words.append(f"{name}: {', '.join(means)}")
    ax.set(yticks=range(len(order)), yticklabels=[ARMS[arm] for arm in order])
    ax.tick_params(axis="y", length=0)
    for place in range(1, len(order)):
        ax.axhline(
            place - 0.5, color=INK, **({"linewidth": 1} if place == len(CONTROLS) else {"linewidth": 0.3, "alpha": 0.4})
        )
    ax.annotate("controls", (1, len(CONTROLS) - 0.55), xycoords=("axes fraction", "data"), ha="right", va="top")
    ax.legend(loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=3)
    return words


def learning(rows: pd.DataFrame) -> Figure:
    """The distortion during training on Lorenz paths, against steps and against the error of prediction; ``Arms``."""
    table = largest(rows)
    table = table[(table["stage"] == "fit") & (table["system"] == "lorenz") & (table["arm"] != "untrained")]
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3), sharey=True)
    curves = table.groupby(["arm", "step"])[["distortion", "rmse"]].mean()
    ends = {arm: curves.loc[arm]["distortion"].iloc[-1] for arm in ARMS if arm != "untrained"}
    places = dict(zip(ends, apart([*ends.values()], 0.06 * curves["distortion"].max()), strict=True))
    steps = table["step"].max()
    for arm, place in places.items():
        curve, color = curves.loc[arm], COLOUR[arm]
        axes[0].plot(curve.index, curve["distortion"], "o-", color=color, markersize=3)
        for _, one in table[table["arm"] == arm].groupby("replicate"):
            axes[0].plot(one["step"], one["distortion"], color=color, alpha=0.15, linewidth=0.7)
        axes[1].plot(curve["rmse"], curve["distortion"], "-", color=color)
        axes[1].plot(curve["rmse"].iloc[-1], curve["distortion"].iloc[-1], "o", color=color)
        beside(axes[0], steps, place, ARMS[arm], color, fontsize=8)
    axes[0].set(xlabel="training step", ylabel=DISTORTION, xlim=(0, 1.42 * steps), ylim=(0, None))
    axes[1].set(xlabel="error of the next value, share of the range", xscale="log")
    axes[1].invert_xaxis()
    panel_label(axes[1], "from a tenth of the training to its end (dot)")
    said = ", ".join(
        f"{ARMS[arm]} {curves.loc[arm]['distortion'].iloc[0]:.2g} to {end:.2g}" for arm, end in ends.items()
    )
    figure.set_label(f"Distortion on Lorenz paths from a tenth of the training to its end: {said}.")
    return figure


def blur(rows: pd.DataFrame) -> Figure:
    """The distortion and the truth found, against the width of the labels; rows of ``Blur``."""
    table = finished(largest(rows), ["blurred"])
    recorded, widths = bool(table["recorded"].iloc[0]), sorted(table["blurred"].unique())
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.1))
    for ax, measure, label in zip(axes, ("distortion", "hidden"), (DISTORTION, TRUTH), strict=True):
        for x, width in enumerate(widths):
            _networks(ax, x, table[table["blurred"] == width][measure], COLOURS[0 if width == 0 else 2], recorded)
        ax.set_xticks(range(len(widths)), ["hard", *(f"{100 * width:g} %" for width in widths[1:])])
        ax.set(xlabel="blur of a label, share of the range", ylabel=label)
    axes[0].set_ylim(0, None)
    means = table.groupby("blurred")["distortion"].mean()
    said = ", ".join(f"{'hard' if width == 0 else f'{100 * width:g} %'} {mean:.2g}" for width, mean in means.items())
    figure.set_label(f"Distortion against the blur of a label: {said}.")
    return figure


def encoders(rows: pd.DataFrame) -> Figure:
    """The distortion, and the error of prediction that shows the leak, for four encoders; rows of ``Encoders``."""
    table = finished(largest(rows), ["encoder", "arm"])
    recorded, words = bool(table["recorded"].iloc[0]), []
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.4))
    for ax, measure in zip(axes, ("distortion", "rmse"), strict=True):
        for x, (encoder, name) in enumerate(ENCODERS.items()):
            for arm, shift in (("ce", -0.15), ("scalar", 0.15)):
                part = table[(table["encoder"] == encoder) & (table["arm"] == arm)]
                mean = _networks(ax, x + shift, part[measure], COLOUR[arm], recorded)
                if measure == "distortion":
                    words.append(f"{name}, {ARMS[arm]} {mean:.2g}")
        ax.set_xticks(range(len(ENCODERS)), ENCODERS.values(), rotation=25, ha="right", fontsize=8)
        ax.set_xlabel("encoder")
    axes[0].set(ylabel=DISTORTION, ylim=(0, None))
    each = table.groupby(["encoder", "arm"])["distortion"].mean().unstack().eval("ce / scalar")
    panel_label(axes[0], f"In each encoder hard labels distort\n{each.min():.1f} to {each.max():.1f} times as much")
    axes[1].set(ylabel="error of the next value", yscale="log")
    low, high = table["rmse"].min(), table["rmse"].max()
    plain_log(
        axes[1].yaxis, [tick for tick in (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if low / 2 < tick < 2 * high]
    )
    for arm in ("ce", "scalar"):
        axes[0].plot([], [], "o", color=COLOUR[arm], label=ARMS[arm])
    axes[0].legend(fontsize=8)
    figure.set_label(f"Distortion by encoder and by what it is asked for: {'; '.join(words)}.")
    return figure
