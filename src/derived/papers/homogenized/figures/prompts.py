"""Figures of the common noise and of its control."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, RED, THEORY, beside, largest, points


def prompts(rows: pd.DataFrame) -> Figure:
    """Two prompts, one draw of weights; rows of ``Prompts``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.5))
    means = points(ax, rows, "n", "distance", BLUE)
    ax.plot(means["n"], means["value"].iloc[0] * means["n"].iloc[0] / means["n"], **THEORY)
    columns, common = [name for name in rows.columns if name.startswith("mean_")], {}
    for n, part in rows.groupby("n"):
        common[n] = float(part[columns].var().sum())
    ax.plot(list(common), list(common.values()), "s", color=RED, markersize=4)
    beside(ax, means["n"].iloc[-1], list(common.values())[-1], "two draws of weights", RED, (-120, -13))
    beside(ax, means["n"].iloc[-1], means["value"].iloc[-1], "two prompts", BLUE, (-70, -8))
    ax.set(xscale="log", yscale="log", xlabel="tokens $n$", ylabel="squared distance, variance")
    slope = np.polyfit(np.log(means["n"]), np.log(means["value"]), 1)[0]
    figure.set_label(
        f"Squared distance of the mean tokens of two prompts under the same weights against n, slope {slope:.2f}; the "
        f"variance over weights stays: {', '.join(f'{v:.2f}' for v in common.values())}."
    )
    return figure


def control(rows: pd.DataFrame) -> Figure:
    """Common against private noise; rows of ``PrivateNoise``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.0, 3.2))
    words = []
    for noise, color in (("common", BLUE), ("private", RED)):
        for gamma, part in rows[rows["noise"] == noise].groupby("gamma0"):
            means = points(ax, part, "tau", "gamma", color)
            ax.plot(means["tau"], means["value"], color=color, linewidth=0.8)
            words.append(f"{noise} from {gamma:g} to {means['value'].iloc[-1]:.2f}")
        ax.plot([], [], "o-", color=color, label=f"{noise} noise")
    ax.legend(fontsize=8)
    ax.set(xlabel=r"clock $\tau$", ylabel="mean overlap of pairs")
    figure.set_label(f"Mean overlap against the clock: {', '.join(words)}.")
    return figure
