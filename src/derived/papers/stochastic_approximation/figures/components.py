"""Which limit a learner finds: rows in, a figure with its alt text as label out.

mark               meaning
blue, orange       components
grey dashed        root of the mean field of the mixture
"""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import COLOURS, DASHED, INK, THEORY, beside, largest, panel_label, plain_log

SHOWN = 100  # paths in a panel


def fan(rows: pd.DataFrame) -> Figure:
    """Paths of learners, each with its own stream and with the data dealt anew; rows of ``Mixtures``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.4), sharex=True, sharey=True)
    names = {"one": "each keeps its stream", "exchanged": "data dealt anew at each time"}
    annealed = rows.loc[rows["feed"] == "many", "annealed"].iloc[0]
    words = []
    for ax, (feed, name) in zip(axes, names.items(), strict=True):
        part = rows[(rows["feed"] == feed) & (rows["replicate"] < SHOWN)]
        for _, path in part.groupby("replicate"):
            ax.plot(path["n"], path["x"], color=COLOURS[path["component"].iloc[0]], linewidth=0.5, alpha=0.45)
        for root in sorted(rows["root"].unique()):
            ax.axhline(root, **THEORY)
        ax.axhline(annealed, **DASHED)
        ends = rows[(rows["feed"] == feed) & (rows["n"] == rows["n"].max())].groupby("component")["x"].mean()
        words.append(f"{name}: " + " and ".join(f"{end:.2f}" for end in ends))
        panel_label(ax, name)
        ax.set(xscale="log", xlabel="$n$")
    axes[0].set_ylabel("$x_n$")
    for k, root in rows.groupby("component")["root"].first().items():
        beside(axes[0], rows["n"].max(), root, f"world {k + 1}", COLOURS[k], (-4, 6), ha="right")
    beside(axes[0], 1, annealed, "mean field", INK, (2, 5), fontsize=8)
    plain_log(axes[0].xaxis, [10**k for k in range(5) if 10**k <= rows["n"].max()])
    figure.set_label(
        f"Paths of learners against time, by world. Mean ends of the two worlds: {'; '.join(words)}. The root of the "
        f"mean field is {annealed:.2f}; with streams of their own nobody goes there, with dealt data all do."
    )
    return figure


def worlds_apart(rows: pd.DataFrame) -> Figure:
    """Learners of one world each, and of both; rows of ``Worlds``."""
    rows = largest(rows).query("c == c.max()")
    rows = rows.assign(total=rows["x1"] + rows["x2"])
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    names = {"first": ("world 1 alone", COLOURS[0]), "second": ("world 2 alone", COLOURS[1]), "both": ("both", INK)}
    ends = {}
    for learner, (name, color) in names.items():
        part = rows[(rows["learner"] == learner) & (rows["replicate"] < SHOWN // 4)]
        for _, path in part.groupby("replicate"):
            ax.plot(path["n"], path["total"], color=color, linewidth=0.6, alpha=0.5)
        last = part[part["n"] == part["n"].max()]
        ends[name] = last["total"].median()
        shift = (-4, 6 if learner != "second" else -9)
        beside(ax, last["n"].iloc[0], last["total"].max(), name, color, shift, ha="right")
    floor = min(ends.values()) / 3  # room for the words below the lowest path
    ax.set(xscale="log", yscale="log", xlabel="$n$", ylabel="sum of the coordinates of $x_n$", ylim=(floor, None))
    told = ", ".join(f"{name} {end:.3g}" for name, end in ends.items())
    figure.set_label(f"Sum of the coordinates of learners against time; medians at the end: {told}.")
    return figure
