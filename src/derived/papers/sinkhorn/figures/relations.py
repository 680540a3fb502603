"""What couplings cannot express: rows in, a figure with its alt text as label out.

mark                  meaning
blue, green           softmax, Sinkhorn
dashed                what no coupling can go below, or a predicted slope
sequential colours    number of tokens, or temperature
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, MUTED, RED, apart, beside, largest, panel_label, shades


def cannot(sinks: pd.DataFrame, causal: pd.DataFrame, jumps: pd.DataFrame) -> Figure:
    """Three panels: the sink, the causal mask, the jump; rows of ``Sinks``, ``Causal`` and ``Jumps``."""
    figure, axes = plt.subplots(3, 1, figsize=(5.5, 5.0))
    figure.get_layout_engine().set(w_pad=0.06)
    figure.set_label(
        " ".join([_sink(axes[0], largest(sinks)), _causal(axes[1], largest(causal)), _jump(axes[2], largest(jumps))])
    )
    return figure


def _sink(ax: Axes, rows: pd.DataFrame) -> str:
    rows = rows[rows["n"] == 8].sort_values("beta")
    ax.plot(rows["beta"], rows["softmax_tv"], "o-", color=BLUE)
    floor = rows["distance"].iloc[0]
    ax.axhline(floor, **DASHED)
    beside(ax, rows["beta"].max(), floor, "no coupling comes nearer", MUTED, shift=(0, 8), ha="right")
    beside(ax, rows["beta"].iloc[1], rows["softmax_tv"].iloc[1], "softmax", BLUE, (8, 2))
    ax.set(xlabel="score of the first token", ylabel="distance (TV)", ylim=(-0.03, 1.15))
    panel_label(ax, "All at one token: softmax can, no coupling can")
    return f"Top: softmax comes within {rows['softmax_tv'].min():.1e} of the sink; every coupling is {floor:.3f} away."


def _causal(ax: Axes, rows: pd.DataFrame) -> str:
    sizes, ends, places = sorted(rows["n"].unique()), [], []
    for n, color in zip(sizes, shades(len(sizes)), strict=True):
        mean = rows[rows["n"] == n].groupby("iteration")["off_diagonal"].mean()
        ax.plot(mean.index, mean, color=color)
        places.append(float(mean.iloc[-1]))
        ends.append(f"{mean.iloc[-1]:.1e} for n = {n}")
    for n, place, color in zip(sizes, np.exp(apart(np.log(places), 2.6)), shades(len(sizes)), strict=True):
        beside(ax, mean.index[-1], place, f"{n} tokens", color)
    ax.set_ylim(bottom=min(places) / 9)
    ax.plot(mean.index, 0.2 / mean.index, **DASHED)
    early = mean.index[len(mean) // 3]
    beside(ax, early, 0.2 / early, "like $1/T$", MUTED, shift=(-5, -7), ha="right")
    ax.set(xscale="log", yscale="log", xlabel="iteration $T$", ylabel="mass off\nthe diagonal")
    panel_label(ax, "None looks ahead: only the diagonal is left")
    return f"Middle: mass off the diagonal falls like 1/T, to {', '.join(ends)}."


def _jump(ax: Axes, rows: pd.DataFrame) -> str:
    epsilons, words = sorted(rows["epsilon"].unique()), []
    colours = [RED, *shades(len(epsilons) - 1)]
    lines = [rows[rows["epsilon"] == epsilon].sort_values("shift") for epsilon in epsilons]
    places = apart([-line["jump"].iloc[-1] for line in lines], 0.3)
    for epsilon, color, part, place in zip(epsilons, colours, lines, -places, strict=True):
        ax.plot(part["shift"], part["jump"], "o-", color=color, markersize=3.5)
        name = rf"$\varepsilon={epsilon:g}$" if epsilon else "no temperature"
        beside(ax, part["shift"].iloc[-1], place, name, color, (8, 0), annotation_clip=False)
        words.append(f"{part['jump'].iloc[0]:.3f} at temperature {epsilon:g}")
    ax.set(xscale="log", xlabel="degrees to either side", ylabel="distance (TV)", ylim=(-0.03, 1.35))
    panel_label(ax, "A tiny turn: without temperature the plan jumps")
    return (
        f"Bottom: plans on both sides of the tie, {part['shift'].iloc[0]:g} degrees away, differ by {', '.join(words)}."
    )
