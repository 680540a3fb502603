"""How figures look: one style for all chapters, colour-blind safe, readable on a light and a dark page.

theory              a thin line in INK: THEORY; a limit, a bound or a rival DASHED
recorded, live      filled and open markers, with seed intervals: ``points``
swept parameter     the sequential map SEQUENTIAL
"""

from collections.abc import Sequence

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, NullFormatter
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from derived.lab import stats

INK = "#222222"
MUTED = "#777777"
# Okabe and Ito's colours, without yellow (too pale for lines).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
BLUE, RED, GREEN, PINK, ORANGE, SKY = COLOURS
SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"
THEORY = {"color": INK, "linewidth": 1.0, "zorder": 2}
DASHED = {"color": MUTED, "linewidth": 1.0, "linestyle": "--", "zorder": 1}  # a limit, a bound, a rival

STYLE = {
    "axes.edgecolor": INK,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "font.size": 10,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "svg.fonttype": "none",
    "svg.hashsalt": "derived",
}
matplotlib.rcParams.update(STYLE)


def panel_label(ax: Axes, text: str) -> None:
    """What a panel shows, above its upper left corner."""
    ax.annotate(text, (0, 1), (0, 6), xycoords="axes fraction", textcoords="offset points", color=INK)


def beside(
    ax: Axes, x: float, y: float, text: str, color: str = INK, shift: tuple[float, float] = (6, 0), **style
) -> None:
    """A direct label beside a point of the data, shifted by points of the page."""
    ax.annotate(text, (x, y), shift, textcoords="offset points", color=color, **({"va": "center"} | style))


def apart(values: ArrayLike, least: float) -> np.ndarray:
    """Places for labels: the values in their order, moved as little as needed to lie ``least`` apart.

    Least squares over y_(k+1) - y_(k) >= least, which is isotonic regression of y_(k) - k least.

    >>> apart([2.0, 1.0, 1.5], 1.0)
    array([2.5, 0.5, 1.5])
    """
    values = np.asarray(values, dtype=float)
    order = np.argsort(values, kind="stable")
    steps = least * np.arange(values.size)
    places = np.empty_like(values)
    places[order] = isotonic_regression(values[order] - steps).x + steps
    return places


def plain_log(axis: Axis, ticks: Sequence[float]) -> None:
    """Plain numbers at these ticks of a logarithmic axis, and none between them."""
    axis.set_ticks(ticks)
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def shades(count: int) -> list:
    """Colours of a swept parameter, from the map SEQUENTIAL without its palest end."""
    return [matplotlib.colormaps[SEQUENTIAL](each) for each in np.linspace(0.0, 0.8, max(count, 2))][:count]


def mean_and_reach(values: pd.Series) -> tuple[float, float]:
    """Mean of replicates and half the width of its 99.9 % interval; 0 for fewer than four or for equal values."""
    if len(values) < 4 or values.std() == 0:
        return float(values.mean()), 0.0
    one = stats.mean(values)
    return one.value, (one.high - one.low) / 2


def points(ax: Axes, rows: pd.DataFrame, x: str, y: str, color, marker: str = "o") -> pd.DataFrame:
    """Draw the mean of ``y`` over replicates at each ``x`` with its 99.9 % interval: recorded filled, live open.

    Returns what was drawn: x, value, reach (half the interval, see ``mean_and_reach``), recorded; live first.
    """
    groups = rows.groupby(["recorded", x])[y]
    drawn = pd.DataFrame([(at, *mean_and_reach(part), recorded) for (recorded, at), part in groups])
    drawn.columns = [x, "value", "reach", "recorded"]
    for recorded, part in drawn.groupby("recorded"):
        face, size = (color, 4) if recorded else ("none", 6.5)
        style = {"color": color, "markerfacecolor": face, "markersize": size, "elinewidth": 0.9, "zorder": 3}
        ax.errorbar(part[x], part["value"], part["reach"], fmt=marker, **style)
    return drawn


def largest(rows: pd.DataFrame) -> pd.DataFrame:
    """The recorded rows of the largest tier if there are any, else the live ones."""
    recorded = rows[rows["recorded"]]
    return rows if recorded.empty else recorded[recorded["tier"] == recorded["tier"].iloc[-1]]
