"""How the chapter's figures draw theory, measurements and their intervals.

mark                   meaning
line in INK            theory; dashed: a limit or a rival
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
sequential colours     a swept parameter
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from derived.lab import stats
from derived.lab.plot import COLOURS, INK, MUTED

THEORY = {"color": INK, "linewidth": 1.0, "zorder": 2}
DASHED = {"color": MUTED, "linewidth": 1.0, "linestyle": "--", "zorder": 1}
BLUE, RED, GREEN, PINK, ORANGE, SKY = COLOURS


def points(ax: Axes, rows: pd.DataFrame, x: str, y: str, color, marker: str = "o", size: float = 4) -> pd.DataFrame:
    """Means over replicates with their 99.9 % intervals: recorded filled, live open. Returns the means."""
    kept = []
    for recorded, part in rows.groupby("recorded"):
        groups = [(at, stats.mean(group[y])) for at, group in part.groupby(x)]
        at = np.array([each for each, _ in groups])
        value = np.array([one.value for _, one in groups])
        reach = np.array([one.high - one.value for _, one in groups])
        style = {"color": color, "markerfacecolor": color if recorded else "none", "markersize": size}
        ax.errorbar(at, value, reach, fmt=marker, elinewidth=0.9, **style)
        kept.append(pd.DataFrame({x: at, y: value}))
    return pd.concat(kept, ignore_index=True)
