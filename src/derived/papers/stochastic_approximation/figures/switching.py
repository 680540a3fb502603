"""A small transformer across switches of its world: rows in, a figure with its alt text as label out.

mark                   meaning
blue, orange lines     excess on the one coin and on the other; grey ground: the second is heard
circles, squares       without and with a context; one mark for each constant step
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, MUTED, ORANGE, RED, beside, largest, mean_and_reach, panel_label, plain_log

ARMS = {"blind": ("single tokens", ORANGE, "o"), "context": ("with a context", GREEN, "s")}
SHOWN = 25_000  # tokens of a life
BINS = 20


def switches(rows: pd.DataFrame) -> Figure:
    """The end of one life at the largest of the usual steps, the trade-off of all steps, and excess against what was
    read; rows of ``Switches``."""
    rows = largest(rows)
    figure, axes = plt.subplot_mosaic([["blind", "trade"], ["context", "read"]], figsize=(7.8, 5.4))
    rate = 0.1 if (rows["rate"] == 0.1).any() else rows["rate"].max()
    words = []
    for arm, (name, color, marker) in ARMS.items():
        part = rows[rows["arm"] == arm]
        _life(axes[arm], part[(part["rate"] == rate) & (part["model"] == 0)])
        panel_label(axes[arm], f"{name}, $a={rate:g}$")
        late = part[part["part"] == "test"].groupby("rate")[["current", "other"]].mean()
        axes["trade"].plot(late["current"], late["other"], color=color, marker=marker, label=name)
        for step, height in ((late.index[0], -10), (rate, -10 if arm == "blind" else 5)):
            beside(axes["trade"], *late.loc[step], f"$a={step:g}$", color, (5, height), fontsize=8)
        steps = (f"{here:.3f} here and {there:.3f} there at {step:g}" for step, (here, there) in late.T.items())
        words.append(f"{name}, {', '.join(steps)}")
        _read(axes["read"], part[part["chosen"]], color, marker)
    for arm in ARMS:
        axes[arm].set(ylabel="excess (nats)", xlabel="thousand tokens read")
    axes["trade"].set(xscale="log", yscale="log", xlabel="on the coin that is heard", ylabel="on the other coin")
    axes["trade"].legend(fontsize=8)
    axes["read"].set(yscale="log", xlabel="thousand tokens read", ylabel="mean of both coins")
    for axis in (axes["trade"].xaxis, axes["trade"].yaxis, axes["read"].yaxis):
        plain_log(axis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5))
    panel_label(axes["trade"], "excess (nats) by constant step")
    panel_label(axes["read"], "each at its best step")
    figure.set_label(
        "A small transformer along a stream whose coin changes. Mean excess in nats on the coin that is heard (here) "
        f"and on the other (there), by constant step: {'; '.join(words)}."
    )
    return figure


def _life(ax: Axes, life: pd.DataFrame) -> None:
    """The excess on each coin at the end of a life; the ground is grey where the second coin is heard."""
    life = life[life["tokens"] > life["tokens"].max() - SHOWN].sort_values("tokens")
    at, second = life["tokens"] / 1000, life["heard"] == 1
    for coin, color in ((0, BLUE), (1, RED)):
        ax.plot(at, life["current"].where(life["heard"] == coin, life["other"]), color=color, linewidth=1.0)
    ax.fill_between(at, 0, 1, where=second, transform=ax.get_xaxis_transform(), color=MUTED, alpha=0.2, step="pre")
    ax.set_ylim(0, None)


def _read(ax: Axes, part: pd.DataFrame, color: str, marker: str) -> None:
    """Mean excess on both coins in each twentieth of a life, over models, with its interval."""
    edges = pd.cut(part["tokens"], BINS, labels=False)
    both = part.assign(both=(part["current"] + part["other"]) / 2, bin=edges)
    means = both.groupby(["bin", "model"])["both"].mean()
    at = both.groupby("bin")["tokens"].max() / 1000
    value, reach = zip(*(mean_and_reach(each) for _, each in means.groupby("bin")), strict=True)
    ax.errorbar(at, value, reach, color=color, marker=marker, markersize=3.5, elinewidth=0.8)
