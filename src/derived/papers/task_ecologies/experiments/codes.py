"""Codes under a price: the least complex free code, splits and merges, local and global optima (TE-3, 4, 5, 15).

symbol    name         meaning
beta_min  threshold    first price at which merging two cells of the quotient pays
beta_glob first        first price at which the quotient is no longer the best of all partitions
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import entr

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.ecologies import equidistant, family, random_ecology
from ..model.codes import (
    cell_costs,
    cell_excesses,
    local_threshold,
    optimal_partition,
    partition_path,
    split_cost,
    split_gain,
)
from ..model.ecology import FREE, FiniteEcology, rounding_bound
from ..model.partitions import cells, incidence, is_refinement, normal_form, set_partitions


def merged(labels: np.ndarray, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The partition with the cells A and B made one."""
    labels = labels.copy()
    labels[B] = labels[A[0]]
    return normal_form(labels)


def merges(labels: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All pairs of cells."""
    return combinations(cells(labels), 2)


def splits(labels: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """All ways to cut one cell in two."""
    for cell in cells(labels):
        for cut in range(1, 2 ** (cell.size - 1)):
            inside = (cut >> np.arange(cell.size) & 1).astype(bool)
            yield cell[~inside], cell[inside]


def separated(labels: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The partition with the worlds B in a cell of their own."""
    labels = labels.copy()
    labels[B] = labels.max() + 1
    return normal_form(labels)


@dataclass(frozen=True, kw_only=True)
class LeastCode(Experiment):
    """TE-3: free codes and their complexity, all partitions of ecologies with planted classes. Rows: replicate, classes
    (their number), least (H of the quotient), mismatches (of: the quotient alone is the simplest free code; the least
    excess at complexity I is zero if and only if I >= H of the quotient; no free code is costlier than H(W)), next (how
    much more the second simplest free code costs; infinite where there is none).
    """

    n: int = 6
    contexts: int = 3
    tokens: int = 4
    replicas: int = 30

    tiny: ClassVar = {"replicas": 6, "n": 5}
    deterministic: ClassVar = {"least": 1e-12, "next": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        partitions, found = set_partitions(self.n), []
        sums = incidence(partitions)
        for replicate in range(self.replicas):
            classes = partitions[(replicate * 61 + 7) % len(partitions)]
            generator = stream(seed, "least", replicate)
            ecology = random_ecology(self.n, self.contexts, self.tokens, generator, classes=classes)
            excess, H = sums @ cell_excesses(ecology), sums @ cell_costs(ecology).entropies
            free, least = excess < FREE, ecology.complexity(classes)
            simplest = partitions[np.flatnonzero(free)[H[free].argmin()]]
            reach = np.minimum.accumulate(excess[np.argsort(H, kind="stable")])  # R(I) at each complexity there is
            wrong = not np.array_equal(simplest, normal_form(classes))
            wrong += int(((reach < FREE) != (np.sort(H) >= least - FREE)).sum())
            wrong += int((H[free] > entr(ecology.prior).sum() + FREE).sum())
            others = H[free & (np.abs(partitions - classes).max(axis=1) > 0)]
            found.append(
                {
                    "replicate": replicate,
                    "classes": classes.max() + 1,
                    "least": least,
                    "mismatches": wrong,
                    "next": others.min(initial=np.inf) - least,
                }
            )
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class SplitMerge(Experiment):
    """TE-4: every split of every partition, local optima, and the price at which the quotient stops being one.

    Rows: replicate, beta, steps (splits and merges looked at), gap (J before less J after, less pi_S (G - beta h), the
    largest), bound, mismatches (partitions for which "no single split or merge lowers J" and the criterion of gains
    disagree), local (partitions that are local optima), threshold (beta_min by its formula), found (by the sign of the
    best merge), miss (their distance), reach (what rounding allows it).
    """

    n: int = 5
    contexts: int = 3
    tokens: int = 4
    replicas: int = 8
    betas: tuple[float, ...] = (0.0, 0.03, 0.1, 0.3)

    tiny: ClassVar = {"replicas": 2, "n": 4}
    deterministic: ClassVar = {"threshold": 1e-9, "found": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found = []
        for replicate in range(self.replicas):
            ecology = random_ecology(self.n, self.contexts, self.tokens, stream(seed, "split", replicate), sparse=0.1)
            crossing = self.crossing(ecology)
            found += [{"replicate": replicate, **each, **crossing} for each in self.steps(ecology)]
        return pd.DataFrame(found)

    def steps(self, ecology: FiniteEcology) -> list[dict[str, float]]:
        """All partitions and their neighbours, at each price."""
        partitions, beta = set_partitions(ecology.num_worlds), np.array(self.betas)
        values = {tuple(each): ecology.bayes_loss(each) + beta * ecology.complexity(each) for each in partitions}
        gaps, mismatches, local = [], 0, 0
        for labels in partitions:
            moves = [(A, B, separated(labels, B), 1) for A, B in splits(labels)]
            moves += [(A, B, merged(labels, A, B), -1) for A, B in merges(labels)]
            fall = np.array([values[tuple(labels)] - values[tuple(after)] for _, _, after, _ in moves])
            said = np.array([sign * self.gain(ecology, A, B, beta) for A, B, _, sign in moves])
            gaps.append(np.abs(fall - said))
            mismatches = mismatches + ((fall > 0).any(axis=0) != (said > 0).any(axis=0))
            local = local + ~(fall > 0).any(axis=0)
        worst = np.concatenate(gaps).max(axis=0)
        steps = sum(map(len, gaps))
        cases = zip(self.betas, worst, mismatches, local, strict=True)
        return [
            {
                "beta": b,
                "steps": steps,
                "gap": g,
                "bound": rounding_bound(ecology, 4 + math.ceil(b)),
                "mismatches": m,
                "local": o,
            }
            for b, g, m, o in cases
        ]

    def gain(self, ecology: FiniteEcology, A: np.ndarray, B: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """pi_S (G - beta h) of telling A from B, at each price."""
        mass = ecology.prior[np.concatenate([A, B])].sum()
        return mass * (split_gain(ecology, A, B) - beta * split_cost(ecology, A, B))

    def crossing(self, ecology: FiniteEcology) -> dict[str, float]:
        """The price at which the best merge of the quotient begins to pay, by values of J alone, and by the formula."""
        quotient = ecology.quotient()
        after = [merged(quotient, A, B) for A, B in merges(quotient)]

        def best(beta: float) -> float:
            return min(ecology.objective(labels, beta) for labels in after) - ecology.objective(quotient, beta)

        found, threshold = brentq(best, 0.0, 10.0, xtol=1e-15), local_threshold(ecology)
        fall = min(ecology.complexity(quotient) - ecology.complexity(labels) for labels in after)
        return {
            "threshold": threshold,
            "found": found,
            "miss": abs(found - threshold),
            "reach": 2 * rounding_bound(ecology, 5) / fall + 1e-15,
        }


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
            ecology = equidistant(n, epsilon)
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
class Recursion(Experiment):
    """TE-15: the subset recursion and the path against the list of all partitions. Rows: replicate, beta, gap (of the
    least J, and of J along the path, from the least of the list), bound, cells.
    """

    n: int = 7
    contexts: int = 3
    tokens: int = 4
    replicas: int = 5
    betas: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.3)

    tiny: ClassVar = {"replicas": 2, "n": 5}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        partitions, found = set_partitions(self.n), []
        for replicate in range(self.replicas):
            ecology = random_ecology(self.n, self.contexts, self.tokens, stream(seed, "recursion", replicate))
            losses = np.array([ecology.bayes_loss(labels) for labels in partitions])
            H = np.array([ecology.complexity(labels) for labels in partitions])
            path = partition_path(ecology)
            for beta in self.betas:
                least, best = (losses + beta * H).min(), optimal_partition(ecology, beta)
                along = min(each.loss + beta * each.complexity for each in path)
                stated = ecology.objective(best.labels, beta)
                gap = max(abs(each - least) for each in (best.value, stated, along))
                row = {
                    "replicate": replicate,
                    "beta": beta,
                    "gap": gap,
                    "bound": rounding_bound(ecology, 4 + math.ceil(beta)),
                }
                found.append(row | {"cells": best.labels.max() + 1})
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
