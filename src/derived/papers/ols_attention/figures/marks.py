"""The marks that the figures of this chapter share.

mark                   meaning
thin line in INK       theory
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
sequential colours     a swept parameter
"""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, ScalarFormatter

from derived.lab import stats
from derived.lab.plot import COLOURS, INK

BLUE, RED, GREEN, PINK = COLOURS[:4]


THEORY = {"color": INK, "linewidth": 0.9}


SMALLEST = 1e-17  # what a logarithmic axis shows in place of zero


def plain_log(axis: matplotlib.axis.Axis, ticks: Sequence[float]) -> None:
    """A logarithmic axis with plain numbers at these ticks."""
    axis.set_ticks(ticks)
    axis.set_major_formatter(ScalarFormatter())
    axis.set_minor_formatter(NullFormatter())


def measured(ax: Axes, rows: pd.DataFrame, x: str, y: str, color: str, marker: str = "o") -> pd.DataFrame:
    """The mean of ``y`` over replicates at each ``x`` with its interval: recorded filled, live open."""
    points = []
    for (recorded, at), group in rows.groupby(["recorded", x]):
        one = stats.mean(group[y])
        points.append({x: at, "value": one.value, "low": one.low, "high": one.high, "recorded": recorded})
    points = pd.DataFrame(points)
    for recorded, part in points.groupby("recorded"):
        reach = [part["value"] - part["low"], part["high"] - part["value"]]
        style = {"markerfacecolor": color if recorded else "none", "markersize": 5 if recorded else 6.5}
        ax.errorbar(part[x], part["value"], reach, fmt=marker, color=color, elinewidth=1, zorder=3, **style)
    return points


def shown(points: pd.DataFrame) -> pd.DataFrame:
    """The recorded points, or the live ones if nothing is recorded."""
    return points[points["recorded"] == points["recorded"].max()]


def fitted_slope(x: pd.Index, y: pd.Series) -> float:
    return float(np.polyfit(x.to_numpy(float), y.to_numpy(float), 1)[0])


def runs_shown(rows: pd.DataFrame) -> str:
    """Which runs a figure shows, in words."""
    return "live and recorded runs" if rows["recorded"].any() else "the live run"
