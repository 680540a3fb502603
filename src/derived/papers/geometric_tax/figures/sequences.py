"""Pooled DNA: rows in, a figure with its alt text as label out.

mark                   meaning
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
thin line              the law of a diluted step
dashed line            windows of the four models
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    DASHED,
    GREEN,
    INK,
    RED,
    THEORY,
    beside,
    largest,
    mean_and_reach,
    panel_label,
    points,
)

ARMS = {"varied": "varied\nGC", "shuffled": "each\nshuffled", "matched": "one chain\nfor all", "uniform": "uniform"}
READOUTS = {"counts": ("all counts", INK), "symmetric": ("symmetric", GREEN), "random": ("random", RED)}
WALKERS = {"DNABERT-2": 400, "NT-v2": 1000, "Evo 2": 8192, "Caduceus": 16384}


def readouts(rows: pd.DataFrame) -> Figure:
    """Similarity of distance matrices under the reverse complement, by arm and read-out; rows of ``Strands``."""
    table, said = largest(rows), []
    recorded = bool(table["recorded"].iloc[0])
    figure, ax = plt.subplots(figsize=(5.6, 3.4))
    for shift, (readout, (name, color)) in zip((-0.2, 0.0, 0.2), READOUTS.items(), strict=True):
        means = []
        for x, arm in enumerate(ARMS):
            part = table[(table["arm"] == arm) & (table["readout"] == readout)]["similarity"]
            mean, reach = mean_and_reach(part)
            face = color if recorded else "none"
            ax.errorbar(x + shift, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3)
            means.append(mean)
        where = {"shift": (0, 10), "ha": "center"} if readout == "counts" else {"shift": (10, 0)}
        beside(ax, x + shift, means[-1], name, color, **where)
        said.append(f"{name} {', '.join(f'{each:.2f}' for each in means)}")
    ax.set_xticks(range(len(ARMS)), ARMS.values())
    ax.set(xlabel="DNA", ylabel="similarity after\nreverse complement", xlim=(-0.5, 4.2), ylim=(None, 1.15))
    panel_label(ax, "Random sums: strands alike only where GC varies")
    figure.set_label(
        f"Similarity of distance matrices before and after the reverse complement, for DNA of varied GC, each sequence "
        f"shuffled, one chain for all, and uniform letters, by read-out: {'; '.join(said)}."
    )
    return figure


def dilution(rows: pd.DataFrame, walks: pd.DataFrame) -> Figure:
    """One changed letter against the window (left; rows of ``Dilution``), and four untrained encoders with one window
    and with windows in the published proportion (right; rows of ``Walks``)."""
    figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.5))
    for column, name, color in (("euclidean", "Euclidean", BLUE), ("cosine", "cosine", RED)):
        drawn = points(axes[0], rows, "L", column, color)
        beside(axes[0], drawn["L"].iloc[1], drawn["value"].iloc[1], name, color, shift=(8, 10))
    law = largest(rows).groupby("L")["law"].mean()
    axes[0].plot(law.index, law, **THEORY)
    for L in WALKERS.values():
        axes[0].axvline(L, **DASHED)
    axes[0].set(xscale="log", yscale="log", xlabel="window $L$", ylabel="step of the mean")
    panel_label(axes[0], "one letter in a window")
    table, factors = largest(walks), {}
    recorded = bool(table["recorded"].iloc[0])
    for shift, setting, color in ((-0.12, "same", BLUE), (0.12, "published", RED)):
        for x, name in enumerate(WALKERS):
            part = table[(table["setting"] == setting) & (table["encoder"] == name)]["cosine"]
            mean, reach = mean_and_reach(part)
            low = min(reach, 0.9 * mean)  # a logarithmic axis has no zero
            face = color if recorded else "none"
            axes[1].errorbar(x + shift, mean, [[low], [reach]], fmt="o", color=color, markerfacecolor=face, capsize=3)
        each = table[table["setting"] == setting].groupby("replicate")["cosine"]
        factors[setting] = np.exp(np.log(each.max() / each.min()).mean())  # draw by draw, as GT-10.c has it
    axes[1].set_xticks(range(4), ["A", "B", "C", "D"])
    axes[1].set(yscale="log", xlabel="untrained encoder", ylabel="cosine step", xlim=(-0.5, 3.6))
    at = table.groupby(["setting", "encoder"])["cosine"].mean()
    beside(axes[1], 2.88, at["same", "Caduceus"], "one window", BLUE, shift=(0, 26), ha="center", fontsize=9)
    beside(axes[1], 0.12, at["published", "DNABERT-2"], "windows as published", RED, shift=(8, 4), fontsize=9)
    times = (f"{factors[each]:.{0 if factors[each] > 10 else 1}f} times" for each in ("published", "same"))
    panel_label(axes[1], "unequal windows spread the steps\n{}, one window {}".format(*times))
    slope = {name: rows.groupby("L")[name].mean() for name in ("euclidean", "cosine")}
    fall = {name: each.iloc[0] / each.iloc[-1] for name, each in slope.items()}
    figure.set_label(
        f"From the shortest to the longest window the Euclidean step of the mean falls {fall['euclidean']:,.0f} times, "
        f"the cosine step {fall['cosine']:,.0f} times. Draw by draw four untrained encoders differ by a factor of "
        f"{factors['same']:.3g} with one window, and of {factors['published']:,.0f} with windows in the published "
        f"proportion."
    )
    return figure
