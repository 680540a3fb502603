"""How much a memory holds: rows in, a figure with its alt text as label out.

mark                  meaning
filled, open marker   recorded, live; bars are 99.9 % intervals
line in INK           theory, h / (a_V^2 (1/d + 1/V))
sequential colours    a swept parameter
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, THEORY, beside, largest, panel_label, plain_log, points, shades


def recall(rows: pd.DataFrame) -> Figure:
    """Share of right top logits against the number of pairs, by size; rows of ``Capacity``."""
    rows = largest(rows)
    sizes = sorted(set(zip(rows["V"], rows["d"], rows["h"], strict=True)))
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3))
    words = []
    for (V, d, h), color in zip(sizes, shades(len(sizes)), strict=True):
        part = rows[(rows["d"] == d) & (rows["h"] == h) & (rows["V"] == V)]
        mean = part.groupby("pairs")["recall"].mean()
        style = {"color": color, "marker": "o", "markersize": 3, "label": f"{V}, {d}, {h}"}
        axes[0].plot(mean.index / part["theory"].iloc[0], mean, **style)
        half = part.groupby("replicate")["half"].first()
        axes[1].plot(np.full(len(half), part["theory"].iloc[0]), half, "o", color=color, markersize=4)
        words.append(f"{half.mean():.0f} pairs at V = {V}, d = {d}, h = {h} (formula {part['theory'].iloc[0]:.0f})")
    axes[0].axvline(1, **DASHED)
    axes[0].axhline(0.5, **DASHED)
    ends = np.array([rows["theory"].min(), rows["theory"].max()])
    axes[1].plot(ends, ends, **THEORY)
    axes[0].set(
        xscale="log",
        xlim=(0.1, 5),
        xlabel="pairs over the formula",
        ylabel="right answers",
        ylim=(-0.02, 1.02),
    )
    axes[1].set(
        xscale="log", yscale="log", xlabel=r"formula $h/(a_V^2(1/d+1/V))$", ylabel="pairs at half of the answers"
    )
    plain_log(axes[0].xaxis, (0.125, 0.25, 0.5, 1, 2, 4))
    for axis in (axes[1].xaxis, axes[1].yaxis):
        plain_log(axis, (50, 100, 200, 400, 800))
    axes[0].legend(
        fontsize=7,
        loc="lower left",
        title="$V$, $d$, $h$",
        title_fontsize=7,
        ncols=2,
        columnspacing=0.6,
        handlelength=1,
    )
    panel_label(axes[0], "half right at the formula, whatever the size")
    panel_label(axes[1], "half-recall")
    figure.set_label(
        f"Left: share of right answers against pairs, curves of {len(sizes)} sizes. Right: pairs at which half of the "
        f"answers are right, against the formula: {'; '.join(words)}."
    )
    return figure


def noise(rows: pd.DataFrame) -> Figure:
    """Standard deviation of a logit against the number of other tokens; rows of ``Noise``: N, h, d, std, theory."""
    figure, ax = plt.subplots(figsize=(5.6, 3.0))
    shown = rows[rows["h"] == rows["h"].min()]
    drawn = points(ax, shown, "N", "std", BLUE)
    theory = shown.groupby("N")["theory"].first()
    ax.plot(theory.index, theory, **THEORY)
    beside(ax, theory.index[-1], theory.iloc[-1], r"$\eta\,(N/dh)^{1/2}$", shift=(-72, 6))
    ax.set(xscale="log", yscale="log", xlabel="other tokens in the memory $N$", ylabel="noise of a logit")
    plain_log(ax.xaxis, sorted(shown["N"].unique()))
    plain_log(ax.yaxis, (0.25, 0.5, 1, 2, 4))
    figure.set_label(
        f"Noise of a logit against the number of other tokens, on the line of the square root: from "
        f"{drawn['value'].min():.2f} at N = {drawn['N'].min():.0f} to {drawn['value'].max():.2f} at "
        f"N = {drawn['N'].max():.0f}."
    )
    return figure
