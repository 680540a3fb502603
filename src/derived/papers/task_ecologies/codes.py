"""Codes under a price: equidistant worlds, the path of optima, and all codes of one ecology (TE-5).

symbol    name         meaning
beta_min  threshold    first price at which merging two cells of the quotient pays
beta_glob first        first price at which the quotient is no longer the best of all partitions
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from derived.lab import measure
from derived.lab.claims import on_page, reported
from derived.lab.experiment import Experiment
from derived.lab.plot import BLUE, COLOURS, DASHED, INK, MUTED, RED, THEORY, beside, largest, panel_label, shades
from derived.lab.rng import stream

from .data.ecologies import equidistant as equidistant_ecology
from .data.ecologies import family, random_ecology
from .model.codes import local_threshold, optimal_partition, partition_path, split_cost, split_gain
from .model.partitions import is_refinement, merged, merges, set_partitions


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
class GlobalPath(Experiment):
    """TE-5: does the cheapest single merge foretell the next step of the best partition? Seven languages of letter
    frequencies each ("family"), and seven worlds at random ("random"). A row is one step of one path: replicate, step,
    beta, cells (after it), matched (the next optimum is the cheapest merge of the present one), nested (it is coarser).
    """

    replicas: int = 1000

    tiers: ClassVar = {"ci": {"replicas": 60}, "cpu": {}}
    tiny: ClassVar = {"replicas": 4}
    deterministic: ClassVar = {"beta": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"kind": kind} for kind in ("family", "random")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found = []
        for replicate in range(self.replicas):
            generator = stream(seed, "path", condition["kind"], replicate)
            ecology = family(generator) if condition["kind"] == "family" else random_ecology(7, 3, 12, generator)
            for step, (here, after) in enumerate(pairwise(partition_path(ecology))):
                price = {
                    tuple(merged(here.labels, A, B)): split_gain(ecology, A, B) / split_cost(ecology, A, B)
                    for A, B in merges(here.labels)
                }
                row = {"replicate": replicate, "step": step, "beta": after.beta, "cells": after.labels.max() + 1}
                row["matched"] = tuple(after.labels) == min(price, key=price.get)
                found.append(row | {"nested": is_refinement(here.labels, after.labels)})
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


# Claims: TE-3, 4, 5 and 15: codes under a price. All but TE-5.c are decided by the check cells of their statements.

CLAIMS = (
    on_page("TE-3", source="paper", where="Theorem 50, Corollary 52", paper_value="0 failures"),
    on_page(
        "TE-4.a",
        source="paper",
        where="Theorem 55",
        paper_value="gap 7.1e-16",
        plain="A distinction is kept if and only if its predictive gain exceeds its price.",
    ),
    on_page("TE-4.b", source="paper", where="Proposition 57, Corollary 58"),
    on_page("TE-5.a"),
    reported(
        "TE-5.c",
        "The cheapest single merge foretells the next step of the best partition, on languages with family relations.",
        GlobalPath,
        measure.mean("matched + 0.0", "kind == 'family'", unit=["replicate"]),
        "share of steps",
        source="paper",
        where="Figure 6, right",
        paper_value="12 of 13 steps",
        judged_at=("ci", "cpu"),
    ),
    on_page("TE-15"),
)


# Figures: Codes under a price: rows in, a figure with its alt text as label out.
#
# mark            meaning
# grey            all partitions
# blue            those that are best at some price, and the lower hull that they make
# orange          the quotient


def _path(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.dropna(subset="begins").sort_values("begins")


def excess_and_complexity(rows: pd.DataFrame) -> Figure:
    """Excess against entropy of all partitions, with the lower hull and the least excess at each entropy; rows of
    ``Picture``."""
    figure, ax = plt.subplots(figsize=(6.2, 3.8))
    ax.plot(rows["complexity"], rows["excess"], "o", color=MUTED, markersize=3.5, alpha=0.7)
    order = rows.sort_values("complexity")
    ax.step(order["complexity"], order["excess"].cummin(), where="post", **DASHED)
    path = _path(rows)
    ax.plot(path["complexity"], path["excess"], "o-", color=BLUE, linewidth=1.0)
    quotient = rows[rows["quotient"]].iloc[0]
    ax.plot(quotient["complexity"], quotient["excess"], "o", color=RED, markersize=8)
    beside(ax, quotient["complexity"], quotient["excess"], "quotient: simplest code\nwithout excess", RED, (4, 22))
    longest = path["complexity"].diff().abs().argmax()
    middle = path[["complexity", "excess"]].iloc[longest - 1 : longest + 1].mean()
    beside(ax, *middle, "best at some price", BLUE, (-6, -8), ha="right")
    panel_label(ax, f"Each dot: one of {len(rows)} ways to tell five worlds apart")
    ax.set(xlabel="complexity of the code $H(p)$ (nats)", ylabel=r"loss above the least $\Delta(p)$ (nats)")
    free = (rows["excess"] < 1e-12).sum()
    figure.set_label(
        f"Excess against entropy for all {len(rows)} partitions of five worlds in four classes. {free} have no "
        f"excess; the "
        f"quotient is the simplest of them, at {quotient['complexity']:.3f} nats. {len(path)} partitions lie on the "
        f"lower "
        f"hull, down to one cell with an excess of {path['excess'].iloc[-1]:.3f}."
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


def lines(rows: pd.DataFrame) -> Figure:
    """J_beta of every partition as a straight line in beta, less that of one cell; rows of ``Picture``."""
    figure, ax = plt.subplots(figsize=(6.2, 3.8))
    path = _path(rows)
    threshold, last = rows["threshold"].iloc[0], path["begins"].iloc[-1]
    beta = np.linspace(0, 1.35 * max(last, threshold), 200)
    for _, row in rows.iterrows():
        ax.plot(beta, row["excess"] + beta * row["complexity"], color=MUTED, linewidth=0.4, alpha=0.6)
    envelope = np.min([path["excess"].to_numpy() + b * path["complexity"].to_numpy() for b in beta], axis=1)
    ax.plot(beta, envelope, color=BLUE, linewidth=2.2)
    inside = path["begins"] > 0
    at = path.loc[inside, "begins"]
    height = [np.min(path["excess"] + b * path["complexity"]) for b in at]
    ax.plot(at, height, "o", color=BLUE)
    ax.axvline(threshold, **DASHED)
    beside(ax, threshold, 0.1 * envelope.max(), "from here a single\nmerge pays, $\\beta_{\\min}$", INK, (4, 0))
    panel_label(ax, f"The best code (blue) changes {len(at)} times as complexity gets dearer")
    ax.set(xlabel=r"price of complexity $\beta$ (nats per nat)", xlim=(0, beta[-1]))
    ax.set_ylabel(r"what a code costs $J_\beta(p)-L_0$ (nats)")
    ax.set_ylim(0, 1.6 * envelope.max())
    figure.set_label(
        f"The objective of {len(rows)} partitions as straight lines in the price, and their lower envelope, which "
        f"changes "
        f"partition at prices {', '.join(f'{each:.3f}' for each in at)}; the first single merge of the quotient pays "
        f"at "
        f"{threshold:.3f}."
    )
    return figure


def equidistant(rows: pd.DataFrame) -> Figure:
    """beta_glob over beta_min of equidistant classes against n; rows of ``Equidistant``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.5))
    theory = rows.drop_duplicates("n").sort_values("n")
    ax.plot(theory["n"], theory["predicted"], **THEORY)
    levels = sorted(rows["epsilon"].unique())
    for color, (epsilon, part) in zip(shades(len(levels)), rows.groupby("epsilon"), strict=True):
        ax.plot(part["n"], part["ratio"], "o", color=color, markersize=5, label=f"$t={epsilon:g}$")
    ax.axhline(1, **DASHED)
    beside(ax, theory["n"].iloc[-1], 1, "from here a single merge pays", INK, (0, -9), ha="right", fontsize=8)
    panel_label(
        ax, f"All worlds merge at {rows['ratio'].min():.2f} to {rows['ratio'].max():.2f} of the price of one merge"
    )
    ax.set(xlabel="classes $n$", ylabel=r"$\beta_{\rm glob}/\beta_{\min}$", xticks=theory["n"], ylim=(0.45, 1.05))
    ax.legend(fontsize=8, loc="lower left")
    words = [f"{row.predicted:.3f} at {row.n}" for row in theory.itertuples()]
    figure.set_label(
        "The price at which the quotient stops being the best partition, over the price at which a single merge pays, "
        "of "
        f"equidistant classes. Predicted: {', '.join(words)}. The largest relative distance at the smallest "
        f"difference of "
        f"laws is {(rows[rows['epsilon'] == levels[0]].eval('abs(ratio / predicted - 1)')).max():.1e}."
    )
    return figure


def foretold(rows: pd.DataFrame) -> Figure:
    """How many steps of the best partition the cheapest single merge predicts; rows of ``GlobalPath``."""
    figure, ax = plt.subplots(figsize=(5.6, 3.0))
    shares = largest(rows).groupby(["kind", "replicate"])[["matched", "nested"]].mean().groupby("kind").mean()
    names = {"family": "languages of a family", "random": "random worlds"}
    for place, kind in enumerate(names):
        for color, column, shift in ((BLUE, "matched", -0.17), (RED, "nested", 0.17)):
            share = shares.loc[kind, column]
            ax.barh(place + shift, share, 0.3, color=color, label=column if place == 0 else None)
            beside(ax, share, place + shift, f"{share:.2f}", INK, (4, 0), fontsize=9)
    ax.set(xlabel="share of the steps of a path", yticks=range(2), yticklabels=names.values(), xlim=(0, 1.18))
    ax.legend(
        ["the cheapest merge predicts it", "it only merges cells"],
        fontsize=8,
        loc="upper center",
        bbox_to_anchor=(0.5, 1.22),
        ncols=2,
    )
    words = [f"{names[kind]}: {row.matched:.2f} predicted, {row.nested:.2f} nested" for kind, row in shares.iterrows()]
    figure.set_label(f"Share of steps that the cheapest single merge predicts: {'; '.join(words)}.")
    return figure
