"""What couplings cannot express: rows in, a figure with its alt text as label out.

mark                  meaning
blue, green           softmax, Sinkhorn
dashed                what no coupling can go below, or a predicted slope
sequential colours    number of tokens, or temperature
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, INK, RED, beside, largest, panel_label, shades


def cannot(sinks: pd.DataFrame, causal: pd.DataFrame, jumps: pd.DataFrame) -> Figure:
    """Three panels: the sink, the causal mask, the jump; rows of ``Sinks``, ``Causal`` and ``Jumps``."""
    figure, axes = plt.subplots(1, 3, figsize=(8.6, 3.0))
    words = [_sink(axes[0], largest(sinks)), _causal(axes[1], largest(causal)), _jump(axes[2], largest(jumps))]
    for ax, text in zip(axes, ("a sink", "a causal mask", "a jump"), strict=True):
        panel_label(ax, text)
    figure.set_label(" ".join(words))
    return figure


def _sink(ax: Axes, rows: pd.DataFrame) -> str:
    rows = rows[rows["n"] == 8].sort_values("beta")
    ax.plot(rows["beta"], rows["softmax_tv"], "o-", color=BLUE)
    floor = rows["distance"].iloc[0]
    ax.axhline(floor, **DASHED)
    beside(ax, rows["beta"].max(), floor, r"every coupling, $1-\frac{1}{n}$", shift=(0, 7), ha="right")
    beside(ax, rows["beta"].iloc[1], rows["softmax_tv"].iloc[1], "softmax", BLUE)
    ax.set(xlabel=r"score $z$ of token 1", ylabel="TV from the sink", ylim=(-0.03, 1.05))
    return f"Left: softmax comes within {rows['softmax_tv'].min():.1e} of the sink; every coupling is {floor:.3f} away."


def _causal(ax: Axes, rows: pd.DataFrame) -> str:
    sizes, ends = sorted(rows["n"].unique()), []
    for n, color in zip(sizes, shades(len(sizes)), strict=True):
        mean = rows[rows["n"] == n].groupby("iteration")["off_diagonal"].mean()
        ax.plot(mean.index, mean, color=color, label=f"$n={n}$")
        ends.append(f"{mean.iloc[-1]:.1e} for n = {n}")
    ax.plot(mean.index, 0.2 / mean.index, **DASHED)
    early = mean.index[len(mean) // 3]
    beside(ax, early, 0.2 / early, "like $1/T$", shift=(-3, -7), ha="right")
    ax.legend(fontsize=8, loc="upper right")
    ax.set(xscale="log", yscale="log", xlabel="iteration $T$", ylabel="mass off the diagonal")
    return f"Middle: mass off the diagonal falls like 1/T, to {', '.join(ends)}."


def _jump(ax: Axes, rows: pd.DataFrame) -> str:
    epsilons, words = sorted(rows["epsilon"].unique()), []
    for epsilon, color in zip(epsilons, [RED, *shades(len(epsilons) - 1)], strict=True):
        part = rows[rows["epsilon"] == epsilon].sort_values("shift")
        ax.plot(part["shift"], part["jump"], "o-", color=color, markersize=3.5, label=rf"$\varepsilon={epsilon:g}$")
        words.append(f"{part['jump'].iloc[0]:.3f} at temperature {epsilon:g}")
    ax.legend(fontsize=8, loc="center left", bbox_to_anchor=(0.0, 0.62))
    ax.tick_params(colors=INK)
    ax.set(xscale="log", xlabel="degrees to either side", ylabel="TV between the two plans", ylim=(-0.03, 1.05))
    return (
        f"Right: plans on both sides of the tie, {part['shift'].iloc[0]:g} degrees away, differ by {', '.join(words)}."
    )
