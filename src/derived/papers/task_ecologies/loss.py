"""The loss of a code where contexts know the world (TE-6).

gap      largest distance of two routes to one number
bound    what rounding allows it, model.ecology.rounding_bound
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
from derived.lab.plot import BLUE, DASHED, RED, THEORY, beside, panel_label
from derived.lab.rng import stream

from .data.ecologies import random_ecology, revealing, two_covers
from .model.ecology import FREE, FiniteEcology, rounding_bound
from .model.partitions import set_partitions


def routes(ecology: FiniteEcology, labels: np.ndarray) -> dict[str, float]:
    """The loss of a code by the joint table, by its decoder, and as floor plus excess."""
    by_table, floor = ecology.bayes_loss(labels), ecology.entropy_floor()
    by_decoder = ecology.loss(labels, ecology.decoder(labels))
    excess = ecology.js_excess(labels)
    three = (by_table, by_decoder, floor + excess)
    return {"loss": by_table, "floor": floor, "excess": excess, "gap": max(three) - min(three)}


def naive_excess(ecology: FiniteEcology, labels: np.ndarray) -> float:
    """The excess as it would be if contexts did not know the world: weights pi, and the marginal law of contexts."""
    blind = FiniteEcology(ecology.prior, ecology.joint.sum(axis=0), ecology.laws)
    return blind.js_excess(labels)


@dataclass(frozen=True, kw_only=True)
class Informed(Experiment):
    """TE-6: contexts that know the world. Conditions: "random" (all partitions of random ecologies), "revealing" (the
    constant code of two coins whose context gives the world away with probability t), "covers" (all partitions of three
    worlds of which the outer two meet and differ, and each may be merged with the middle one).

    Rows: kind, replicate, t, cells, loss, floor, excess, complexity, gap, bound, naive (the excess by the formula for
    contexts that do not know the world), predicted ((1 - t) JS, "revealing" alone), allowed (whether all worlds of each
    cell agree wherever two of them meet), mismatch (whether that fails to say which code is free), code.
    """

    n: int = 5
    contexts: int = 4
    tokens: int = 3
    replicas: int = 10
    reveal: tuple[float, ...] = (0.0, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)

    tiny: ClassVar = {"replicas": 3}
    deterministic: ClassVar = {"loss": 1e-12, "floor": 1e-12, "predicted": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"kind": kind} for kind in ("random", "revealing", "covers")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kind = condition["kind"]
        if kind == "revealing":
            found = [self.row(revealing(t), np.zeros(2, dtype=int), t=t) for t in self.reveal]
            whole = found[self.reveal.index(0.0)]["excess"]
            return pd.DataFrame(found).assign(predicted=[(1 - t) * whole for t in self.reveal])
        if kind == "covers":
            return pd.DataFrame([self.row(two_covers(), labels) for labels in set_partitions(3)])
        found = []
        for replicate in range(self.replicas):
            generator = stream(seed, "informed", replicate)
            ecology = random_ecology(
                self.n, self.contexts, self.tokens, generator, classes=(0, 0, 1, 1, 2), informed=True, sparse=0.2
            )
            found += [self.row(ecology, labels, replicate) for labels in set_partitions(self.n)]
        return pd.DataFrame(found)

    def row(self, ecology: FiniteEcology, labels: np.ndarray, replicate: int = 0, t: float = math.nan) -> dict:
        """One code of one ecology."""
        row = {"replicate": replicate, "t": t, "cells": labels.max() + 1, **routes(ecology, labels)}
        row |= {"complexity": ecology.complexity(labels), "bound": rounding_bound(ecology)}
        row |= {"naive": naive_excess(ecology, labels), "predicted": math.nan, "allowed": agree(ecology, labels)}
        return row | {"mismatch": (row["excess"] < FREE) != row["allowed"], "code": "".join(map(str, labels))}


def agree(ecology: FiniteEcology, labels: np.ndarray) -> bool:
    """Whether any two worlds of a cell have equal laws in each context that both can meet."""
    pairs = [(u, w) for u in range(len(labels)) for w in range(u) if labels[u] == labels[w]]
    met = [(ecology.joint[[u, w]] > 0).all(axis=0) for u, w in pairs]
    apart = [np.abs(ecology.laws[u] - ecology.laws[w])[both] for (u, w), both in zip(pairs, met, strict=True)]
    return all(each.max(initial=0.0) < FREE for each in apart)


# Claims: TE-1, 2, 6 and 9: the loss of a code. Each is decided by the check cell of its statement on the page.

CLAIMS = (
    on_page(
        "TE-1",
        source="paper",
        where="Theorem 8 (a), (b)",
        paper_value="gap 3.8e-16",
        plain="The best loss of a code is an entropy floor plus the Jensen-Shannon divergence inside its cells.",
    ),
    on_page(
        "TE-2",
        source="paper",
        where="Theorem 8 (c)",
        paper_value="0 failures",
        plain="Training forces apart exactly the worlds that some training context tells apart, and is silent about the rest.",
    ),
    on_page("TE-6.a"),
    on_page("TE-6.c"),
    on_page("TE-9.b", source="paper", where="after Definition 9; Proposition 61 and Theorem 63"),
)


# Figures: The loss of a code: rows in, a figure with its alt text as label out.
#
# mark            meaning
# line in INK     the theorem
# blue, orange    excess of the code; what the formula with prior weights would say


def informed(rows: pd.DataFrame) -> Figure:
    """Excess of the constant code as contexts reveal the world, and the two formulas on random ecologies; rows of
    ``Informed``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3))
    told = rows[rows["kind"] == "revealing"].sort_values("t")
    left.plot(told["t"], told["predicted"], **THEORY)
    left.plot(told["t"], told["excess"], "o", color=BLUE)
    left.plot(told["t"], told["naive"], "s", color=RED)
    beside(left, told["t"].iloc[2], told["naive"].iloc[2], "prior weights", RED, (0, -11), ha="center", fontsize=9)
    beside(left, told["t"].iloc[1], told["excess"].iloc[1], "excess", BLUE, (-4, -13), ha="right", fontsize=9)
    left.set(xlabel="$t$, how often the context gives the world away", ylabel="excess of the constant code (nats)")
    left.set_ylim(0, 1.12 * max(told["naive"].max(), told["excess"].max()))
    panel_label(left, "the more the context reveals,\nthe less a code costs")
    random = rows[rows["kind"] == "random"]
    top = max(random["excess"].max(), random["naive"].max())
    right.plot([0, top], [0, top], **DASHED)
    right.plot(random["excess"], random["naive"], "o", color=RED, markersize=3, alpha=0.5)
    right.set(xlabel="excess (nats)", ylabel="by prior weights (nats)")
    over = (random["naive"] - random["excess"])[random["cells"] < random["cells"].max()]
    panel_label(right, f"prior weights overstate it\nfor {100 * (over > 1e-9).mean():.0f} % of codes")
    figure.set_label(
        f"Left: the excess of the constant code falls from {told['excess'].iloc[0]:.3f} to "
        f"{told['excess'].iloc[-1]:.3f} "
        f"nats as contexts give the world away, while the formula with prior weights stays at "
        f"{told['naive'].iloc[0]:.3f}. Right: on random ecologies that formula is off by {over.mean():.3f} nats on "
        f"average, at most {over.abs().max():.3f}."
    )
    return figure
