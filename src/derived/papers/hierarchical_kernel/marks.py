"""What the figures share: kinds of attention and of summaries by name and colour, rows as a matrix, the trained kinds.

mark                   meaning
line in INK            theory; dashed: a reference
bars                   99.9 % intervals over networks
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, INK, MUTED, ORANGE, RED, SKY, beside, mean_and_reach, panel_label

from .measures import at_end, tuned_accuracy

NAMES = {"plain": "plain", "wide": "wide", "conv-qk": "conv-QK", "hkt-average": "frozen averages", "hkt": "HKT"}
POOLINGS = {"convolution": "causal convolution", "average": "causal averages", "block": "block means"}
KIND_COLOURS = {"plain": INK, "wide": MUTED, "conv-qk": ORANGE, "hkt": BLUE, "hkt-average": SKY, "hkt-block": RED}


def as_matrix(rows: pd.DataFrame, value: str, index: str = "i", columns: str = "j") -> np.ndarray:
    """A column of the rows as a matrix over two others."""
    return rows.pivot(index=index, columns=columns, values=value).to_numpy()


def brackets(symbols: Sequence[str]) -> list[tuple[int, int]]:
    """The first and last places of each bracket, inner ones first.

    >>> brackets(["[MAX", "2", "[MIN", "4", "]", "]"])
    [(2, 4), (0, 5)]
    """
    opened, found = [], []
    for place, symbol in enumerate(symbols):
        if symbol.startswith("["):
            opened.append(place)
        elif symbol == "]":
            found.append((opened.pop(), place))
    return found


def arms(
    tasks: Mapping[str, pd.DataFrame], rules: Mapping[str, Mapping[str, str]], longer: pd.DataFrame | None = None
) -> Figure:
    """Per cent right of each kind of attention on each task, with shallow rules as lines.

    ``tasks`` has the rows of a ``Compared`` by the title of their panel, ``rules`` by the same title the columns of
    shallow rules and their words. ``longer`` are rows of ``EqualWork``, drawn as a hollow mark in the second panel.
    """
    figure, axes = plt.subplots(1, len(tasks), figsize=(8.6, 3.1), sharey=True)
    words = []
    for number, (ax, (title, rows)) in enumerate(zip(axes, tasks.items(), strict=True)):
        right = 100 * tuned_accuracy(rows)
        for place, (kind, name) in enumerate(NAMES.items()):
            value, reach = mean_and_reach(right[kind])
            ax.errorbar(value, place, xerr=reach, fmt="o", color=KIND_COLOURS[kind], elinewidth=1.2)
            words.append(f"{title}, {name} {value:.1f}")
        if number == 1 and longer is not None:
            value, reach = mean_and_reach(100 * tuned_accuracy(longer)["plain"])
            ax.errorbar(value, 0.28, xerr=reach, fmt="o", color=INK, markerfacecolor="none", elinewidth=1.2)
            beside(ax, value, 0.28, "longer", MUTED, (8, -3), fontsize=8)
            words.append(f"plain trained longer {value:.1f}")
        for column, name in rules[title].items():
            known = 100 * at_end(rows)[column].mean()
            ax.axvline(known, **DASHED)
            beside(ax, known, -0.55, name, MUTED, (3, 0), rotation=90, va="top", ha="left", fontsize=8)
            words.append(f"{title}, rule {name} {known:.1f}")
        panel_label(ax, title)
        ax.margins(x=0.1)
        ax.set(xlabel="% right", ylim=(len(NAMES) - 0.5, -0.6))
    axes[0].set(yticks=range(len(NAMES)), yticklabels=NAMES.values())
    figure.suptitle("On no task does HKT lead alone", x=0.02, ha="left")
    figure.set_label(f"Per cent right at the end of training, three panels. {'; '.join(words)}.")
    return figure
