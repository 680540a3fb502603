"""Balanced against unbalanced code: rows in, a figure with its alt text as label out.

mark                  meaning
filled, open marker   recorded, live; bars are 99.9 % intervals over replicates
colours               who reads: the network, or a table of letters
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import (
    BLUE,
    DASHED,
    INK,
    MUTED,
    ORANGE,
    RED,
    apart,
    beside,
    largest,
    mean_and_reach,
    panel_label,
)

READERS = {"network": BLUE, "trigram": RED, "bigram": ORANGE, "unigram": MUTED}
NAMES = {"network": "network", "trigram": "triples", "bigram": "pairs", "unigram": "single letters"}
RULER = {"four letters": "four letters", "one bit": "triples and one bit"}
PANELS = (  # twins, their name, what is drawn, its name, its value where nothing is told apart, and the axis' limits
    ("shuffled", "brackets shuffled (published)", "gap", "gap (nats per token)", 0.0, (None, None)),
    ("matched", "one bracket moved, pairs ordinary", "right", "pairs told apart", 0.5, (0.0, 1.12)),
)


def at_chosen_rate(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of each reader and mixing share at the rate of the least mean ``valid``."""
    kept = []
    for _, part in rows.groupby(["reader", "alpha"]):
        best = part.groupby("rate")["valid"].mean().idxmin()
        kept.append(part[part["rate"] == best])
    return pd.concat(kept, ignore_index=True)


def discrimination(rows: pd.DataFrame, ruler: pd.DataFrame) -> Figure:
    """Loss on shuffled less loss on balanced chunks, and the share of matched twins told apart, against the share of
    bracketed text; rows of ``Rescue`` and, for matched twins, of ``Ruler``."""
    rows, ruler = at_chosen_rate(largest(rows)), largest(ruler).query("twin == 'matched'")
    figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.4))
    recorded, words = bool(rows["recorded"].iloc[0]), []
    for ax, (twin, name, value, called_value, chance, limits) in zip(axes, PANELS, strict=True):
        some, ends = rows[rows["twin"] == twin], {}
        for reader, color in READERS.items():
            drawn = some[some["reader"] == reader].groupby("alpha")[value].apply(mean_and_reach)
            mean, reach = zip(*drawn, strict=True)
            face = color if recorded else "none"
            ax.errorbar(drawn.index, mean, reach, fmt="o-", color=color, markerfacecolor=face, linewidth=1)
            ends[reader] = mean[-1]
            words.append(f"{name}, {NAMES[reader]} {mean[-1]:.2f}")
        for reader, called in RULER.items() if twin == "matched" else ():
            mean, reach = mean_and_reach(ruler.loc[ruler["reader"] == reader, value])
            face = INK if bool(ruler["recorded"].iloc[0]) else "none"
            ax.errorbar(1.0, mean, reach, fmt="D", color=INK, markerfacecolor=face, markersize=4)
            ends[reader] = mean
            words.append(f"{name}, {called} {mean:.2f}")
        ax.set(ylabel=called_value, ylim=limits)
        low, high = ax.get_ylim()
        places = apart(list(ends.values()), 0.07 * (high - low))
        for (reader, _), place in zip(ends.items(), places, strict=True):
            beside(ax, 1.0, place, (NAMES | RULER)[reader], READERS.get(reader, INK), fontsize=8)
        ax.plot([0, 1], [chance, chance], **DASHED)
        ax.set(xlabel=r"share $\alpha$ of text with brackets", xlim=(-0.04, 1.55), xticks=np.linspace(0, 1, 6))
        panel_label(ax, name)
    fell = rows[rows["reader"] == "network"].eval("before - late").max()
    figure.set_label(
        f"Loss on unbalanced less loss on balanced code, in nats per token, and the share of pairs told apart, against "
        f"the share of bracketed training text; where all text has brackets: {'; '.join(words)}. From the last tenth "
        f"of the steps but one to the last the networks' training loss still fell, by at most {fell:.2f}."
    )
    return figure


def recipes(rows: pd.DataFrame) -> Figure:
    """The mean share of bracketed text by generation, under selection and with fitness dealt out, of populations of
    networks and of tables; rows of ``RecipePopulation``."""
    rows, words = largest(rows), []
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.2), sharex=True, sharey=True)
    for ax, (reader, name) in zip(
        axes, {"network": "networks", "trigram": "tables of letter triples"}.items(), strict=True
    ):
        for arm, color in (("selected", BLUE), ("shuffled", MUTED)):
            part = rows[(rows["reader"] == reader) & (rows["arm"] == arm)]
            wide = part.pivot(index="replicate", columns="generation", values="alpha")
            ax.plot(wide.columns + 1, wide.T, color=color, linewidth=0.6, alpha=0.35)
            ax.plot(wide.columns + 1, wide.mean(), color=color, linewidth=2)
            mean, reach = mean_and_reach(wide.iloc[:, -1])
            shift = 0.5 if arm == "selected" else 0.9
            face = color if bool(part["recorded"].iloc[0]) else "none"
            ax.errorbar(wide.columns[-1] + 1 + shift, mean, reach, fmt="o", color=color, markerfacecolor=face)
            words.append(f"{name}, {arm}, from {wide.iloc[:, 0].mean():.2f} to {mean:.2f}")
        ax.set(xlabel="generation", ylim=(0, 1))
        panel_label(ax, name)
    end = rows["generation"].max() + 1
    beside(axes[0], 1, 0.93, "selected", BLUE, shift=(0, 0))
    beside(axes[0], 1, 0.06, "fitness dealt out", MUTED, shift=(0, 0))
    axes[0].set(xlim=(0.7, end + 1.4), ylabel=r"mean share $\alpha$")
    figure.set_label(f"Mean share of bracketed text over {end} generations: {'; '.join(words)}.")
    return figure
