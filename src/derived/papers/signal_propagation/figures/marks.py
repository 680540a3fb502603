"""What the figures of the chapter share: colours and names of the normalisers, and how points are drawn.

mark                   meaning
line in INK            theory; dashed: an asymptote
filled, open marker    recorded, live; bars are 99.9 % intervals over initialisations
sequential colours     a swept parameter
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from derived.lab.plot import COLOURS, INK, MUTED, mean_and_reach

THEORY = {"color": INK, "linewidth": 1.0, "zorder": 2}
DASHED = {"color": MUTED, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
BLUE, RED, GREEN, PINK = COLOURS[:4]
NAMES = {"layernorm": "pre-LayerNorm", "erf": "Derf", "tanh": "DyT"}
NORM_COLOURS = {"layernorm": INK, "erf": BLUE, "tanh": RED}


def points(ax: Axes, rows: pd.DataFrame, column: str, color, every: int = 1, marker: str = "o") -> None:
    """Means over initialisations by block with their intervals: recorded filled, live open."""
    for recorded, part in rows.groupby("recorded"):
        groups = [(b, *mean_and_reach(group[column])) for b, group in part.groupby("b") if b % every == 0]
        b, value, reach = (np.array(each) for each in zip(*groups, strict=True))
        face = color if recorded else "none"
        ax.errorbar(
            b,
            value,
            reach,
            fmt=marker,
            color=color,
            markerfacecolor=face,
            markersize=4 if recorded else 6.5,
            elinewidth=0.9,
        )


def plain_log(ax: Axes, top: float) -> None:
    """Plain numbers on a logarithmic axis of amplifications, and whole blocks below it."""
    steps = (1, 2, 5) if top < 100 else (1,)
    ticks = [step * 10**power for power in range(6) for step in steps]
    ax.set_yticks([tick for tick in ticks if tick <= 1.3 * top])
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
