"""Trained models on languages that they never read: rows in, a figure with its alt text as label out.

mark                  meaning
filled, open marker   recorded, live; bars are 99.9 % intervals over replicates
small points          single replicates
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    DASHED,
    GREEN,
    MUTED,
    ORANGE,
    RED,
    SKY,
    largest,
    mean_and_reach,
    panel_label,
    plain_log,
)

CATEGORIES = {"trained": BLUE, "again": SKY, "relative": GREEN, "far": ORANGE, "alien": RED}
NAMES = {
    "trained": "trained",
    "again": "trained,\nnew texts",
    "relative": "related",
    "far": "far\nrelative",
    "alien": "alien",
}
FAR = 4  # the place of the relative that is nine tenths fresh
COLUMNS = {
    "loss": "loss (nats per letter)",
    "excess": "loss above the floor (nats)",
    "disagreement": "disagreement of models (nats)",
}


def off_ecology(rows: pd.DataFrame) -> Figure:
    """Loss, loss above the known floor and disagreement by kind of language; rows of ``Abroad``."""
    rows = largest(rows)
    rows = rows.assign(category=rows["category"].mask(rows["language"] == FAR, "far"))
    figure, axes = plt.subplots(1, 3, figsize=(8.0, 3.2))
    recorded, words = bool(rows["recorded"].iloc[0]), []
    for ax, (column, label) in zip(axes, COLUMNS.items(), strict=True):
        means = rows.groupby(["category", "replicate"])[column].mean()
        for x, (category, color) in enumerate(CATEGORIES.items()):
            each = means[category]
            mean, reach = mean_and_reach(each)
            ax.plot(x + 0.12 * np.sin(2.4 * np.arange(len(each))), each, ".", color=color, alpha=0.4, markersize=4)
            ax.errorbar(x, mean, reach, fmt="o", color=color, markerfacecolor=color if recorded else "none", capsize=3)
            words.append(f"{' '.join(NAMES[category].split())} {column} {mean:.3g}")
        ax.set(xticks=range(5), xlim=(-0.5, 4.5), ylabel=label, xlabel="language")
        ax.set_xticklabels([NAMES[each] for each in CATEGORIES], fontsize=8, rotation=30)
        ax.set_ylim(bottom=0)
    figure.set_label(f"Models of three languages by kind of language, means over replicates: {'; '.join(words)}.")
    return figure


def words_abroad(*tables: pd.DataFrame) -> Figure:
    """Loss above that of a table of the very language, by kind of list, a panel an experiment; rows of ``NamesAbroad``
    and ``ErasAbroad``."""
    figure, axes = plt.subplots(1, len(tables), figsize=(3.6 * len(tables), 3.2), squeeze=False)
    words = []
    for ax, rows in zip(axes[0], map(largest, tables), strict=True):
        for arm, shift, color in (("dealt", 0.15, MUTED), ("as they are", -0.15, BLUE)):
            means = rows[rows["arm"] == arm].groupby(["category", "replicate"])["excess"].mean()
            told = []
            for x, category in enumerate(("trained", "relative", "alien")):
                mean, reach = mean_and_reach(means[category])
                face = color if rows["recorded"].iloc[0] else "none"
                ax.errorbar(x + shift, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3)
                told.append(f"{NAMES[category]} {mean:.2f}")
            name = "dealt by chance" if arm == "dealt" else arm
            ax.plot([], [], "o", color=color, label=name)
            words.append(f"{', '.join(told)} ({name})")
        ax.set(xticks=range(3), xlim=(-0.5, 2.5), ylabel="loss above the list's own table (nats)")
        ax.set_xticklabels(["trained", "related", "alien"])
        panel_label(ax, "eras of speeches" if rows["language"].str.startswith("from").any() else "names by language")
    axes[0][0].legend(fontsize=8, loc="upper left")
    figure.set_label(f"Loss above that of a table of the very list by kind of list: {'; '.join(words)}.")
    return figure


def names_kept(rows: pd.DataFrame) -> Figure:
    """How much farther apart names of different gender are than of the same, by sentence; rows of ``NamesKept``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    words, labels = [], []
    for y, ((telling, sentence), part) in enumerate(rows.groupby(["telling", "sentence"], sort=True)):
        for weights, color, marker in (("untrained", MUTED, "s"), ("trained", RED if telling else BLUE, "o")):
            one = part[part["weights"] == weights]
            ratio = one["between"].mean() / one["within"].mean()
            face = color if rows["recorded"].iloc[0] else "none"
            ax.plot(ratio, y, marker, color=color, markerfacecolor=face)
            words.append(f"{sentence.replace('{}', '…')} {ratio:.1f} {weights}")
        labels.append(sentence.replace("{}", "…") + " …")
    ax.axvline(1, **DASHED)
    ax.set(yticks=range(len(labels)), xlabel="apart by gender, over apart within it", xscale="log")
    plain_log(ax.xaxis, (1, 2, 5, 10, 20))
    ax.set_yticklabels(labels, fontsize=8)
    figure.set_label(f"Divergence between names of different over that of the same gender: {'; '.join(words)}.")
    return figure
