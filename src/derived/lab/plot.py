"""How figures look: one style for all chapters, colour-blind safe, readable on a light and a dark page.

theory              a thin line in INK
recorded, live      filled and open markers, with seed intervals
swept parameter     the sequential map SEQUENTIAL
"""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from derived.lab import stats

INK = "#222222"
MUTED = "#777777"
# Okabe and Ito's colours, without yellow (too pale for lines).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
SEQUENTIAL = "viridis"
DIVERGING = "RdBu_r"

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
    "svg.fonttype": "path",
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

    Least squares over y_(k+1) - y_(k) >= least, which is isotonic regression of y_(k) - k least (pooling neighbours).
    """
    values = np.asarray(values, dtype=float)
    order = np.argsort(values, kind="stable")
    pools: list[tuple[float, int]] = []  # mean and size of each pool
    for value in values[order] - least * np.arange(values.size):
        pools.append((float(value), 1))
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            (one, m), (other, k) = pools[-2:]
            pools[-2:] = [((m * one + k * other) / (m + k), m + k)]
    places = np.empty_like(values)
    places[order] = np.repeat([mean for mean, _ in pools], [size for _, size in pools])
    places[order] += least * np.arange(values.size)
    return places


def shades(count: int) -> list:
    """Colours of a swept parameter, from the map SEQUENTIAL without its palest end."""
    return [matplotlib.colormaps[SEQUENTIAL](each) for each in np.linspace(0.0, 0.8, max(count, 2))][:count]


def mean_and_reach(values: pd.Series) -> tuple[float, float]:
    """Mean of replicates and half the width of its 99.9 % interval; 0 for fewer than four or for equal values."""
    if len(values) < 4 or values.std() == 0:
        return float(values.mean()), 0.0
    one = stats.mean(values)
    return one.value, (one.high - one.low) / 2


def largest(rows: pd.DataFrame) -> pd.DataFrame:
    """The recorded rows of the largest tier if there are any, else the live ones."""
    recorded = rows[rows["recorded"]]
    return rows if recorded.empty else recorded[recorded["tier"] == recorded["tier"].iloc[-1]]
