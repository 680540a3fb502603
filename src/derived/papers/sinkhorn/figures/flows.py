"""Tokens as particles, and their limit: rows in, a figure with its alt text as label out.

mark                  meaning
blue, green           softmax, Sinkhorn
line in INK           theory
sequential colours    time
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, GREEN, INK, MUTED, THEORY, beside, largest, panel_label, plain_log

NAMES = {"softmax": ("softmax", BLUE, "o"), "sinkhorn": ("Sinkhorn", GREEN, "s")}
LIMITS = {"softmax": 1.0, "sinkhorn": 0.5}


def particles(rows: pd.DataFrame) -> Figure:
    """Paths under both drifts; rows of ``Particles``."""
    rows = largest(rows)
    rows = rows[rows["instance"] == 0]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.9), sharex=True, sharey=True)
    words = []
    for ax, (key, (name, color, _)) in zip(axes, NAMES.items(), strict=False):
        part = rows[rows["normaliser"] == key]
        for _, path in part.groupby("particle"):
            ax.plot(path["x"], path["y"], color=MUTED, linewidth=0.7, alpha=0.7)
        for step, fill in ((part["step"].min(), "none"), (part["step"].max(), color)):
            cloud = part[part["step"] == step]
            ax.plot(cloud["x"], cloud["y"], "o", color=color, markerfacecolor=fill, markersize=4)
        ax.set(xlabel="$x_1$", aspect="equal")
        ax.margins(0.08)
        panel_label(ax, name)
        energy = part.groupby("time")["energy"].first()
        words.append(f"{name} from {energy.iloc[0]:.2f} to {energy.iloc[-1]:.2f}, largest {energy.max():.2f}")
    axes[0].set(ylabel="$x_2$")
    figure.set_label(
        "Paths of particles under the drift of softmax and of Sinkhorn, open at the start and filled at the end. "
        f"Energy along them: {'; '.join(words)}."
    )
    return figure


def heat_limit(rows: pd.DataFrame) -> Figure:
    """Drift against the score, and their slope against the bandwidth; rows of ``HeatLimit``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.1))
    reach = np.array([rows["score"].min(), rows["score"].max()])
    words = []
    for key, (name, color, marker) in NAMES.items():
        part = rows[rows["normaliser"] == key]
        narrow = part[part["width"] == part["width"].min()]
        axes[0].plot(reach, LIMITS[key] * reach, **THEORY)
        axes[0].plot(narrow["score"], narrow["drift"], marker, color=color, markersize=3, label=name)
        slope = part.groupby("width")["slope"].first()
        axes[1].axhline(LIMITS[key], **THEORY)
        axes[1].plot(slope.index, slope, marker, color=color, markerfacecolor="none")
        beside(axes[1], slope.index[1], slope.iloc[1], name, color, (0, 10 if key == "sinkhorn" else -10))
        words.append(f"{name} {slope.iloc[0]:.4f} at bandwidth {slope.index[0]:g}")
    axes[0].legend(fontsize=8)
    axes[0].set(xlabel=r"$\nabla\ln\rho$", ylabel=r"drift $/\,\varepsilon$")
    axes[1].set(xscale="log", xlabel=r"bandwidth $\varepsilon^{1/2}$", ylabel="slope", ylim=(0.4, 1.08))
    plain_log(axes[1].xaxis, sorted(rows["width"].unique()))
    words_above = r"softmax drifts along $\nabla\ln\rho$, Sinkhorn half as fast"
    figure.suptitle(words_above, x=0.02, ha="left", fontsize=10, color=INK)
    figure.set_label(
        f"Left: drift over epsilon against the gradient of the log density, on lines of slope 1 and 1/2. Right: the "
        f"slope against the bandwidth: {', '.join(words)}."
    )
    return figure
