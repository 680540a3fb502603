"""The construction at work: rows in, a figure with its alt text as label out.

mark                 meaning
sequential colours   mass of a plan over that of an even one
blue, red, green     order-keeping, crossed, hidden-cost target
dashed               the proven bound
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, GREEN, RED, SEQUENTIAL, beside, largest, panel_label, plain_log, points

TARGETS = {
    "comonotone": ("order kept", BLUE, "o"),
    "crossed": ("crossed", RED, "s"),
    "hidden": ("hidden cost", GREEN, "^"),
}


def block_plans(rows: pd.DataFrame) -> Figure:
    """Heat maps of a target and its approximations; rows of ``BlockPlans``."""
    rows = largest(rows)
    cells = sorted(rows["m"].unique())
    figure, axes = plt.subplots(1, len(cells), figsize=(8.6, 2.2), sharey=True)
    n = rows["i"].max() + 1
    high, words = n * n * rows["P"].max() / 2, []
    for ax, m in zip(axes, cells, strict=True):
        part = rows[rows["m"] == m]
        table = part.pivot(index="x", columns="y", values="P") * n * n
        ax.imshow(table, cmap=SEQUENTIAL, origin="lower", extent=(0, 1, 0, 1), vmin=0, vmax=high)
        w1 = part["w1"].iloc[0]
        panel_label(ax, "target" if m == 0 else f"$M={m}$, $W_1={w1:.2f}$")
        ax.set(xlabel="$y$", xticks=[0, 1], yticks=[0, 1])
        words += [f"{w1:.3f} for M = {m}"] if m else []
    axes[0].set(ylabel="$x$")
    figure.set_label(
        f"Heat maps of a coupling in the shape of an X and of {len(cells) - 1} approximations of it, ever sharper. "
        f"Distance from the target: {', '.join(words)}."
    )
    return figure


def errors(rows: pd.DataFrame) -> Figure:
    """W_1 from the target against the number of cells, with the bound; rows of ``Blocks``."""
    rows = rows[rows["w1"].notna()]
    figure, ax = plt.subplots(figsize=(6.0, 3.5))
    words = []
    for target, (name, color, marker) in TARGETS.items():
        drawn = points(ax, rows[rows["target"] == target], "m", "w1", color, marker)
        last = drawn[drawn["recorded"] == drawn["recorded"].max()].sort_values("m").iloc[-1]
        ax.plot([], [], marker, color=color, label=name)
        words.append(f"{name} {last['value']:.3f}")
    bound = largest(rows).groupby("m")["bound"].first()
    ax.plot(bound.index, bound, **DASHED)
    beside(ax, bound.index[-1], bound.iloc[-1], "bound", shift=(-34, 16))
    ax.legend(fontsize=8, loc="lower left")
    ax.set(xscale="log", yscale="log", xlabel="cells $M$ per text", ylabel="$W_1$ from the target")
    plain_log(ax.xaxis, bound.index.tolist())
    figure.set_label(
        f"Distance from three targets against the number of cells, both logarithmic, below the bound, which falls from "
        f"{bound.iloc[0]:.2f} to {bound.iloc[-1]:.2f}. At {bound.index[-1]} cells: {', '.join(words)}."
    )
    return figure
