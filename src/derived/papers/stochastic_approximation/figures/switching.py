"""A small transformer across switches of its world: rows in, a figure with its alt text as label out.

mark                   meaning
circles, squares       without and with a context
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from derived.lab.plot import GREEN, ORANGE, beside, largest, mean_and_reach, plain_log

ARMS = {"blind": ("single tokens", ORANGE, "o"), "context": ("with a context", GREEN, "s")}
BINS = 20


def switches(rows: pd.DataFrame) -> Figure:
    """Excess on both coins against what was read, each arm at its best step; rows of ``Switches``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.4, 3.6))
    words = []
    for arm, (name, color, marker) in ARMS.items():
        part = rows[rows["arm"] == arm]
        _read(ax, part[part["chosen"]], color, marker)
        late = part[part["part"] == "test"].groupby("rate")[["current", "other"]].mean()
        told = late.loc[sorted({late.index[0], part.loc[part["chosen"], "rate"].iloc[0], late.index[-1]})]
        steps = (f"{here:.3f} here and {there:.3f} there at {step:g}" for step, (here, there) in told.T.items())
        words.append(f"{name}, {', '.join(steps)}")
        last = ax.containers[-1].lines[0]
        beside(ax, last.get_xdata()[-1], last.get_ydata()[-1], name, color)
    ax.set(yscale="log", xlabel="thousand tokens read", ylabel="excess on both coins (nats)")
    ax.set_xlim(0, 1.3 * ax.get_xlim()[1])
    plain_log(ax.yaxis, (0.01, 0.02, 0.05, 0.1, 0.2, 0.5))
    figure.set_label(
        "A small transformer along a stream whose coin changes. Mean excess in nats on the coin that is heard (here) "
        f"and on the other (there), at the least, the best and the largest constant step: {'; '.join(words)}."
    )
    return figure


def _read(ax: Axes, part: pd.DataFrame, color: str, marker: str) -> None:
    """Mean excess on both coins in each twentieth of a life, over models, with its interval."""
    edges = pd.cut(part["tokens"], BINS, labels=False)
    both = part.assign(both=(part["current"] + part["other"]) / 2, bin=edges)
    means = both.groupby(["bin", "model"])["both"].mean()
    at = both.groupby("bin")["tokens"].max() / 1000
    value, reach = zip(*(mean_and_reach(each) for _, each in means.groupby("bin")), strict=True)
    ax.errorbar(at, value, reach, color=color, marker=marker, markersize=3.5, elinewidth=0.8)
