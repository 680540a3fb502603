"""Codes and their price: equidistant worlds, the path of optima, and all codes of one ecology (TE-1 to 5, 8 to 12).

symbol    name         meaning
beta_min  threshold    first price at which merging two cells of the quotient pays
beta_glob first        first price at which the quotient is no longer the best of all partitions
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab.claims import on_page
from derived.lab.experiment import Experiment
from derived.lab.plot import BLUE, COLOURS, DASHED, INK, MUTED, RED, beside, panel_label
from derived.lab.rng import stream

from .data.ecologies import equidistant as equidistant_ecology
from .data.ecologies import random_ecology
from .model.codes import local_threshold, optimal_partition, partition_path
from .model.partitions import set_partitions


@dataclass(frozen=True, kw_only=True)
class Equidistant(Experiment):
    """TE-5: n classes at equal distances. Rows: n, epsilon, first (beta_glob), threshold (beta_min), ratio, predicted
    (2 ln 2 (n - 1) / (n ln n)), cells (of the optimum after the first step), lost (at the mean of both prices: J of the
    quotient over the least J, in nats; the quotient is a local minimum there).
    """

    worlds: tuple[int, ...] = (3, 4, 5, 6, 8, 10)
    epsilons: tuple[float, ...] = (0.3, 0.1, 0.01, 0.001)

    tiny: ClassVar = {"worlds": (3, 4), "epsilons": (0.1, 0.001)}
    deterministic: ClassVar = {"first": 1e-4, "threshold": 1e-6, "predicted": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"n": n} for n in self.worlds]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, found = condition["n"], []
        for epsilon in self.epsilons:
            ecology = equidistant_ecology(n, epsilon)
            after, threshold = partition_path(ecology)[1], local_threshold(ecology)
            beta = (after.beta + threshold) / 2
            lost = ecology.objective(np.arange(n), beta) - optimal_partition(ecology, beta).value
            row = {"epsilon": epsilon, "first": after.beta, "threshold": threshold, "ratio": after.beta / threshold}
            row |= {"predicted": 2 * math.log(2) * (n - 1) / (n * math.log(n)), "cells": after.labels.max() + 1}
            found.append(row | {"lost": lost})
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class Picture(Experiment):
    """All partitions of one ecology of five worlds in four classes, for the figures. Rows: code, cells, excess,
    complexity, quotient, begins (the price from which it is optimal; NaN where it never is), threshold (beta_min).
    """

    deterministic: ClassVar = {"excess": 1e-9, "complexity": 1e-12}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        ecology = random_ecology(5, 2, 4, stream(0, "picture"), classes=(0, 0, 1, 2, 3))
        quotient, threshold = ecology.quotient(), local_threshold(ecology)
        begins = {tuple(each.labels): each.beta for each in partition_path(ecology)}
        found = []
        for labels in set_partitions(5):
            row = {"code": "".join(map(str, labels)), "cells": labels.max() + 1, "excess": ecology.js_excess(labels)}
            row |= {"complexity": ecology.complexity(labels), "quotient": np.array_equal(labels, quotient)}
            found.append(row | {"begins": begins.get(tuple(labels), math.nan), "threshold": threshold})
        return pd.DataFrame(found)


# Claims: TE-1 to 5, 8, 10 and 11: codes, their price, another ecology, selection. They are decided by the check cells
# of their statements.

CLAIMS = (
    on_page(
        "TE-1",
        source="paper",
        where="Theorem 8 (a), (b)",
        paper_value="gap 3.8e-16",
        plain="The least loss of a code is an entropy plus the Jensen-Shannon divergence inside its cells.",
    ),
    on_page(
        "TE-2",
        source="paper",
        where="Theorem 8 (c), Theorem 50, Corollary 52",
        paper_value="0 failures",
        plain="Training keeps apart exactly the worlds that some training context tells apart, and is silent about the rest.",
    ),
    on_page(
        "TE-4.a",
        source="paper",
        where="Theorem 55, Proposition 57, Corollary 58",
        paper_value="gap 7.1e-16",
        plain="A distinction is kept if and only if its predictive gain exceeds its price.",
    ),
    on_page("TE-5.a"),
    on_page(
        "TE-8.a",
        source="paper",
        where="Theorem 74, Propositions 77, 78",
        plain="A code that is perfect in training pays where a merged pair matters: at least so much, by a formula.",
    ),
    on_page("TE-10.d", where="a reading of Propositions 43 and 44 with Theorem 50"),
    on_page("TE-11.b", amends="TE-11.a"),
    on_page("TE-12.a", source="paper", where="Theorem 36"),
)


# Figures: Codes under a price: rows in, a figure with its alt text as label out.
#
# mark            meaning
# grey            all partitions
# blue            the best at some price, and the lower hull that they make
# orange          the quotient


def _path(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.dropna(subset="begins").sort_values("begins")


def excess_and_complexity(rows: pd.DataFrame) -> Figure:
    """Excess against entropy of all partitions, with the lower hull; rows of ``Picture``."""
    figure, ax = plt.subplots(figsize=(6.2, 3.8))
    ax.plot(rows["complexity"], rows["excess"], "o", color=MUTED, markersize=3.5, alpha=0.7)
    path = _path(rows)
    ax.plot(path["complexity"], path["excess"], "o-", color=BLUE, linewidth=1.0)
    quotient = rows[rows["quotient"]].iloc[0]
    ax.plot(quotient["complexity"], quotient["excess"], "o", color=RED, markersize=8)
    beside(ax, quotient["complexity"], quotient["excess"], "quotient", RED, (4, 14))
    longest = path["complexity"].diff().abs().argmax()
    middle = path[["complexity", "excess"]].iloc[longest - 1 : longest + 1].mean()
    beside(ax, *middle, "best at some price", BLUE, (-6, -8), ha="right")
    panel_label(ax, f"Of {len(rows)} codes the quotient is the simplest without excess")
    ax.set(xlabel="complexity of the code $H(p)$ (nats)", ylabel=r"loss above the least $\Delta(p)$ (nats)")
    free = (rows["excess"] < 1e-12).sum()
    figure.set_label(
        f"Excess against entropy for all {len(rows)} partitions of five worlds in four classes. {free} have no excess; "
        f"the quotient is the simplest of them, at {quotient['complexity']:.3f} nats. {len(path)} partitions lie on "
        f"the lower hull, down to one cell with an excess of {path['excess'].iloc[-1]:.3f}."
    )
    return figure


def walls(path: pd.DataFrame, even: pd.DataFrame) -> Figure:
    """Which of five worlds share a code, over the price: worlds at random, and worlds alike at equal distances; rows of
    ``Picture`` and of ``Equidistant``."""
    steps = [(row.begins, row.code) for row in _path(path).itertuples()]
    even = even[(even["n"] == 5) & (even["epsilon"] == even["epsilon"].max())].iloc[0]
    figure, axes = plt.subplots(2, 1, figsize=(5.4, 4.4))
    _walls(axes[0], steps, "five worlds at random: they merge step by step", 1.4 * steps[-1][0])
    joined = [(0.0, "01234"), (even["first"], "00000")]
    _walls(axes[1], joined, "five worlds at equal distances: all merge at once", 1.4 * even["threshold"])
    axes[1].axvline(even["threshold"], **DASHED)
    beside(axes[1], even["threshold"], -1.1, "a single merge pays", MUTED, (4, 0))
    for ax in axes:
        ax.set_xlabel(r"price of complexity $\beta$ (nats per nat)")
    told = ", ".join(f"{len(set(code))} from price {price:.3f}" for price, code in steps)
    figure.set_label(
        f"Five worlds as dots, in one field where they share a code, over the price. At random: cells {told}. At equal "
        f"distances all five join at {even['first']:.3f}, before a single merge pays, at {even['threshold']:.3f}."
    )
    return figure


def _walls(ax: plt.Axes, steps: list[tuple[float, str]], words: str, top: float) -> None:
    """Five dots for each step of a path, in one field where they share a code, between the prices of the step."""
    order = np.argsort([int(letter) for letter in steps[-2][1]], kind="stable")
    ends = [price for price, _ in steps[1:]] + [top]
    for (price, code), end in zip(steps, ends, strict=True):
        labels = np.array(list(code))[order]
        for letter, color in zip(dict.fromkeys(labels), COLOURS, strict=False):
            held = np.flatnonzero(labels == letter)
            ax.fill_between([price, end], held[0] - 0.36, held[-1] + 0.36, color=color, alpha=0.25, linewidth=0)
            ax.plot([(price + end) / 2] * len(held), held, "o", color=color, markersize=7)
        if price:
            ax.axvline(price, color=INK, linewidth=0.8)
    ax.set(yticks=[], xlim=(0, top), ylim=(-1.7, 4.5))
    ax.spines["left"].set_visible(False)
    panel_label(ax, words)
