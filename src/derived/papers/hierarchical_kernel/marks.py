"""What the figures and tables share: kinds of attention and of summaries by name and colour, and rows as a matrix.

mark                   meaning
line in INK            theory; dashed: a reference
filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
sequential colours     a swept parameter, or a level
"""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.plot import BLUE, DASHED, INK, MUTED, ORANGE, RED, SKY, largest, mean_and_reach, plain_log

NAMES = {"plain": "plain", "wide": "wide", "conv-qk": "conv-QK", "hkt": "HKT"}
NAMES |= {"hkt-average": "frozen averages"}
POOLINGS = {"convolution": "causal convolution", "average": "causal averages"}  # the summaries of a level
POOLINGS |= {"block": "block means", "delayed": "completed blocks"}
KIND_COLOURS = {"plain": INK, "wide": MUTED, "conv-qk": ORANGE, "hkt": BLUE, "hkt-average": SKY}
KIND_COLOURS |= {"hkt-block": RED}


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


def arms_of(rows: pd.DataFrame) -> dict[str, str]:
    """The arms of a comparison by name, in the order of all its tables and figures."""
    return {kind: name for kind, name in NAMES.items() if (rows["kind"] == kind).any()}


def compared(rows: pd.DataFrame, rules: Mapping[str, str]) -> Figure:
    """Validation accuracy of each arm by learning rate, and test accuracy at its best one against compute; rows of a
    ``Compared``. ``rules`` names the columns with the accuracy of shallow rules, drawn as dashed lines."""
    best = largest(rows)
    tuning, curves = (best[best["stage"] == stage] for stage in ("validation", "test"))
    figure, axes = plt.subplots(1, 2, figsize=(7.6, 3.3), sharey=True)
    words = []
    for kind, name in arms_of(curves).items():
        color = KIND_COLOURS[kind]
        by_rate = tuning[tuning["kind"] == kind].groupby("rate")["accuracy"].mean()
        axes[0].plot(by_rate.index, by_rate, "o-", color=color, markersize=3)
        own = curves[curves["kind"] == kind]
        by_flop = own.groupby("flop")["accuracy"].mean()
        axes[1].plot(by_flop.index / 1e9, by_flop, color=color, label=name)
        value, reach = mean_and_reach(own.loc[own["step"] == own["step"].max(), "accuracy"])
        axes[1].errorbar(by_flop.index[-1] / 1e9, value, reach, fmt="o", color=color)
        words.append(f"{name} {100 * value:.1f} % at rate {own['rate'].iloc[0]:g}")
    known = {name: curves[column].mean() for column, name in rules.items()}
    for name, right in known.items():
        for ax in axes:
            ax.axhline(right, **DASHED)
        axes[0].annotate(name, (tuning["rate"].min(), right), fontsize=8, color=MUTED, va="bottom")
    axes[0].set(xscale="log", xlabel="learning rate", ylabel="validation accuracy")
    plain_log(axes[0].xaxis, sorted(tuning["rate"].unique()))
    axes[1].set(xlabel=r"$10^9$ operations of training", ylabel="test accuracy")
    axes[1].yaxis.set_tick_params(labelleft=True)
    axes[1].legend(fontsize=7, loc="lower right")
    figure.set_label(
        "Accuracy by learning rate and, at the chosen rate, against compute. "
        f"Test accuracy at the end: {', '.join(words)}; "
        f"shallow rules: {', '.join(f'{name} {100 * right:.1f} %' for name, right in known.items())}."
    )
    return figure
