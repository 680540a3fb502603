"""The loss of a code: floor and excess, free codes, contexts that know the world, Hellinger distances (TE-1, 2, 6, 9).

gap      largest distance of two routes to one number
bound    what rounding allows it, model.ecology.rounding_bound
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.special import rel_entr

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.ecologies import random_ecology, revealing, simplex, two_covers
from ..model.codes import cell_excesses
from ..model.ecology import FREE, FiniteEcology, rounding_bound
from ..model.partitions import bell_number, incidence, is_refinement, set_partitions


def routes(ecology: FiniteEcology, labels: np.ndarray) -> dict[str, float]:
    """The loss of a code by the joint table, by its decoder, and as floor plus excess."""
    by_table, floor = ecology.bayes_loss(labels), ecology.entropy_floor()
    by_decoder = ecology.loss(labels, ecology.decoder(labels))
    excess = ecology.js_excess(labels)
    three = (by_table, by_decoder, floor + excess)
    return {"loss": by_table, "floor": floor, "excess": excess, "gap": max(three) - min(three)}


@dataclass(frozen=True, kw_only=True)
class Decomposition(Experiment):
    """TE-1: the loss of every partition of random ecologies by three routes (experiment 0 of the paper has n = 4).

    A row is one partition: n, replicate, cells, loss, floor, excess, complexity, gap, bound.
    """

    worlds: tuple[int, ...] = (1, 2, 3, 4, 5, 6)
    contexts: int = 3
    tokens: int = 4
    replicas: int = 4

    tiny: ClassVar = {"worlds": (1, 2, 4), "replicas": 2}
    deterministic: ClassVar = {"loss": 1e-12, "floor": 1e-12, "complexity": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"n": n} for n in self.worlds]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, found = condition["n"], []
        for replicate in range(self.replicas):
            generator = stream(seed, "decomposition", n, replicate)
            ecology = random_ecology(n, self.contexts, self.tokens, generator, sparse=0.2)
            for labels in set_partitions(n):
                row = {"replicate": replicate, "cells": labels.max() + 1, **routes(ecology, labels)}
                found.append(row | {"complexity": ecology.complexity(labels), "bound": rounding_bound(ecology)})
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class Planted(Experiment):
    """TE-2: ecologies whose classes are planted, all partitions. Rows: replicate, free (partitions without excess),
    predicted (the product of the Bell numbers of the classes), mismatches (partitions that are free but do not refine
    the planted classes, or the reverse), least (the least positive excess), largest (the largest that counts as none).
    """

    n: int = 6
    contexts: int = 3
    tokens: int = 4
    replicas: int = 30

    tiny: ClassVar = {"replicas": 6, "n": 5}
    deterministic: ClassVar = {"least": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        partitions, found = set_partitions(self.n), []
        sums = incidence(partitions)
        for replicate in range(self.replicas):
            classes = partitions[(replicate * 61 + 7) % len(partitions)]
            generator = stream(seed, "planted", replicate)
            ecology = random_ecology(self.n, self.contexts, self.tokens, generator, classes=classes, sparse=0.2)
            excess = sums @ cell_excesses(ecology)
            finer = np.array([is_refinement(labels, classes) for labels in partitions])
            free = excess < FREE
            row = {"replicate": replicate, "free": free.sum(), "mismatches": (free != finer).sum()}
            row["predicted"] = math.prod(bell_number(int(size)) for size in np.bincount(classes))
            row |= {"least": excess[~free].min(initial=np.inf), "largest": excess[free].max()}
            found.append(row)
        return pd.DataFrame(found)


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


@dataclass(frozen=True, kw_only=True)
class Hellinger(Experiment):
    """TE-9: pairs of laws, and kernels of ecologies with k planted classes. Conditions: "pairs", "kernels".

    Rows of pairs: replicate, first (H^2 over -2 ln(1 - H^2)), second (that over KL); of kernels: replicate, k, gap (of
    the kernel from half the Gram matrix of centred root laws, and its least eigenvalue below zero), bound, rank.
    """

    pairs: int = 2000
    replicas: int = 40
    n: int = 6
    contexts: int = 3
    tokens: int = 5

    tiny: ClassVar = {"pairs": 200, "replicas": 12}

    def conditions(self) -> list[dict]:
        return [{"kind": kind} for kind in ("pairs", "kernels")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        if condition["kind"] == "pairs":
            P, Q = simplex((2, self.pairs, self.tokens), stream(seed, "pairs"))
            H2 = 0.5 * ((np.sqrt(P) - np.sqrt(Q)) ** 2).sum(axis=-1)
            middle, KL = -2 * np.log1p(-H2), rel_entr(P, Q).sum(axis=-1)
            return pd.DataFrame({"replicate": range(self.pairs), "first": H2 / middle, "second": middle / KL})
        return pd.DataFrame([self.kernel(seed, replicate) for replicate in range(self.replicas)])

    def kernel(self, seed: int, replicate: int) -> dict[str, float]:
        """One ecology with 1 to n classes."""
        classes = np.minimum(np.arange(self.n), replicate % self.n)
        ecology = random_ecology(
            self.n, self.contexts, self.tokens, stream(seed, "kernel", replicate), classes=classes, sparse=0.2
        )
        roots = np.sqrt(ecology.contexts[:, None] * ecology.laws).reshape(self.n, -1)
        centred = roots - roots.mean(axis=0)
        K, gram = ecology.kernel(), 0.5 * centred @ centred.T
        values = np.linalg.eigvalsh(K)
        bound = 8 * 2.0**-53 * (ecology.laws[0].size + 4 * self.n)  # sums whose terms' sizes sum to at most 1
        return {
            "replicate": replicate,
            "k": classes.max() + 1,
            "gap": max(np.abs(K - gram).max(), -values.min()),
            "bound": bound,
            "rank": (values > self.n * bound).sum(),
        }
