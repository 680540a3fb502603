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
    MUTED,
    RED,
    beside,
    largest,
    mean_and_reach,
    panel_label,
    plain_log,
)

KINDS = {
    "trained": "home",
    "again": "new\ntexts",
    "relative": "related",
    "far": "far",
    "alien": "alien",
}
LISTS = ("trained", "related", "alien")
FAR = 4  # the place of the relative that is nine tenths fresh
COLUMNS = {"excess": ("loss above\nthe floor", BLUE), "disagreement": ("disagreement\nof models", RED)}
PUBLISHED = 3.6  # times as much disagreement with the alien language, in the paper


def off_ecology(rows: pd.DataFrame) -> Figure:
    """Loss above the known floor and disagreement, over those at home, by kind of language; rows of ``Abroad``."""
    rows = largest(rows)
    rows = rows.assign(category=rows["category"].mask(rows["language"] == FAR, "far"))
    figure, ax = plt.subplots(figsize=(5.5, 3.9))
    recorded, words, ends = bool(rows["recorded"].iloc[0]), [], {}
    for (column, (label, color)), shift in zip(COLUMNS.items(), (-0.12, 0.12), strict=True):
        means, drawn = rows.groupby(["category", "replicate"])[column].mean(), []
        for x, category in enumerate(KINDS):
            each = means[category] / means["trained"]
            mean, reach = mean_and_reach(each)
            face = color if recorded else "none"
            ax.plot(np.full(len(each), x + shift), each, ".", color=color, alpha=0.4, markersize=4)
            ax.errorbar(x + shift, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3)
            drawn.append(mean)
            words.append(f"{' '.join(KINDS[category].split())} {column} {means[category].mean():.3g}")
        ax.plot(np.arange(len(drawn)) + shift, drawn, color=color, linewidth=0.8)
        ends[column] = drawn[-1]
        beside(ax, len(drawn) - 1 + shift, drawn[-1], label, color, (12 - 50 * shift, 0), annotation_clip=False)
    ax.plot(4.12, PUBLISHED, "*", color=RED, markerfacecolor="none", markersize=10)
    beside(ax, 4.12, PUBLISHED, "disagreement,\nthe paper", RED, (6, 0), annotation_clip=False)
    ax.plot([0, 4], [1, 1], **DASHED)
    ax.set(yscale="log", xlim=(-0.5, 6.0), xlabel="language", ylabel="times what it is at home")
    ax.set_xticks(range(len(KINDS)), [*KINDS.values()])
    plain_log(ax.yaxis, (0.5, 1, 2, 4, 8))
    excess, disagreement = (f"{ends[column]:.1f}" for column in ("excess", "disagreement"))
    panel_label(ax, f"Alien: {excess} times the loss above the floor,\n{disagreement} times the disagreement")
    figure.set_label(f"Models of three languages by kind of language, means over replicates: {'; '.join(words)}.")
    return figure


def words_abroad(*tables: pd.DataFrame) -> Figure:
    """Loss above that of a table of the very language, by kind of list, a panel an experiment; rows of ``NamesAbroad``
    and ``ErasAbroad``."""
    figure, axes = plt.subplots(1, len(tables), figsize=(3.6 * len(tables), 3.2), squeeze=False)
    words = []
    for ax, rows in zip(axes[0], map(largest, tables), strict=True):
        more = {}
        for arm, shift, color in (("dealt", 0.15, MUTED), ("as they are", -0.15, BLUE)):
            means = rows[rows["arm"] == arm].groupby(["category", "replicate"])["excess"].mean()
            told, more[arm] = [], means["alien"].mean() - means["trained"].mean()
            for x, (category, kind) in enumerate(zip(("trained", "relative", "alien"), LISTS, strict=True)):
                mean, reach = mean_and_reach(means[category])
                face = color if rows["recorded"].iloc[0] else "none"
                ax.errorbar(x + shift, mean, reach, fmt="o", color=color, markerfacecolor=face, capsize=3)
                told.append(f"{kind} {mean:.2f}")
            name = "dealt by chance" if arm == "dealt" else arm
            ax.plot([], [], "o", color=color, label=name)
            words.append(f"{', '.join(told)} ({name})")
        ax.set(xticks=range(3), xlim=(-0.5, 2.5), ylabel="loss above the list's own table (nats)")
        ax.set_xticklabels(LISTS)
        of = "eras of speeches" if rows["language"].str.startswith("from").any() else "names by language"
        ax.set_xlabel(of)
        told = (f"{abs(more[arm]):.2f} nats {'more' if more[arm] > 0 else 'less'}" for arm in ("as they are", "dealt"))
        panel_label(ax, "alien lists cost {},\ndealt by chance {}".format(*told))
    axes[0][0].legend(fontsize=8, loc="upper left")
    figure.set_label(f"Loss above that of a table of the very list by kind of list: {'; '.join(words)}.")
    return figure


def names_kept(rows: pd.DataFrame) -> Figure:
    """How much farther apart names of different gender are than of the same, by sentence; rows of ``NamesKept``."""
    rows = largest(rows)
    figure, ax = plt.subplots(figsize=(6.4, 3.4))
    words, labels, last = [], [], {}
    for y, ((telling, sentence), part) in enumerate(rows.groupby(["telling", "sentence"], sort=True)):
        for weights, color, marker in (("untrained", MUTED, "s"), ("trained", RED if telling else BLUE, "o")):
            one = part[part["weights"] == weights]
            ratio = one["between"].mean() / one["within"].mean()
            face = color if rows["recorded"].iloc[0] else "none"
            ax.plot(ratio, y, marker, color=color, markerfacecolor=face)
            last[color] = (ratio, y)
            words.append(f"{sentence.replace('{}', '…')} {ratio:.1f} {weights}")
        labels.append(sentence.replace("{}", "…") + " …")
    beside(ax, *last[RED], "a pronoun may come", RED, (-7, 0), ha="right")
    beside(ax, *last[BLUE], "none can", BLUE)
    beside(ax, last[MUTED][0], last[MUTED][1] - 1, "before training", MUTED, (8, 0))
    ax.axvline(1, **DASHED)
    ax.set(yticks=range(len(labels)), xlabel="apart by gender, over apart within it", xscale="log")
    plain_log(ax.xaxis, (1, 2, 5, 10, 20))
    ax.set_yticklabels(labels, fontsize=8)
    figure.set_label(f"Divergence between names of different over that of the same gender: {'; '.join(words)}.")
    return figure
