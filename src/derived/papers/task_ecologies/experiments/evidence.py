"""What evidence establishes: how many samples single out a free code, and whether printed tables agree (TE-12, 14)."""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.ecologies import random_ecology
from ..data.published import DISTANCES, PAIRS, PATHS
from ..model.certification import sample_losses, sample_size
from ..model.ecology import FREE
from ..model.partitions import set_partitions


@dataclass(frozen=True, kw_only=True)
class Certification(Experiment):
    """TE-12: the code of least empirical loss among all partitions of three worlds, each with its cell mixtures.

    The sample sizes are those of a grid and the one that the theorem asks for. A row is one data set: n, asked (whether
    n is the theorem's), replicate, failed (its winner has an excess), needed (the theorem's n), gamma (the least
    positive excess), ceiling.
    """

    sizes: tuple[int, ...] = (30, 60, 100, 200, 300, 400, 600, 1000)
    data_sets: int = 2000
    alpha: float = 0.05

    tiny: ClassVar = {"sizes": (30, 300, 1000), "data_sets": 300}
    deterministic: ClassVar = {"needed": 1e-9, "gamma": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        ecology = random_ecology(3, 2, 3, stream(0, "certification"), classes=(0, 1, 1))
        codes = set_partitions(3)
        losses, weights = sample_losses(ecology, codes)
        excess = np.array([ecology.js_excess(labels) for labels in codes])
        ceiling = float(losses.max())
        needed = sample_size(excess, ceiling, self.alpha)
        rng = np.random.default_rng(stream(seed, "data sets").initial_seed())
        found = []
        for n in (*self.sizes, math.ceil(needed)):
            counts = rng.multinomial(n, weights / weights.sum(), size=self.data_sets)
            winner = (counts @ losses.T).argmin(axis=1)
            table = {"n": n, "asked": n >= needed, "replicate": range(self.data_sets), "failed": excess[winner] > FREE}
            found.append(pd.DataFrame(table | {"needed": needed, "gamma": excess[excess > FREE].min()}))
        return pd.concat(found, ignore_index=True).assign(ceiling=ceiling)


@dataclass(frozen=True, kw_only=True)
class Published(Experiment):
    """TE-14: the paper's printed numbers against each other. Conditions: "pairs" (beta* of a pair of equally likely
    languages against its gain / ln 2), "paths" (the excess after a step against the one before, plus beta* times the
    entropy that the step saves), "counts" (s and k from the printed distances and tau).

    Rows: table, case, printed, derived, gap (of the two), separated (pairs of a matrix farther apart than tau), cells.
    """

    deterministic: ClassVar = {"printed": 1e-12, "derived": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"table": table} for table in ("pairs", "paths", "counts")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        rows = {"pairs": self.pairs, "paths": self.paths, "counts": self.counts}[condition["table"]]()
        table = pd.DataFrame(rows, columns=["case", "printed", "derived", "separated", "cells"])
        return table.assign(gap=(table["printed"] - table["derived"]).abs())

    def pairs(self) -> list[tuple]:
        """beta* = G / h(1/2)."""
        named = [(corpus, pair) for corpus, pairs in PAIRS.items() for pair in pairs]
        return [(f"{c}, {p.first} and {p.second}", p.beta, p.gain / math.log(2), -1, -1) for c, p in named]

    def paths(self) -> list[tuple]:
        """J of two neighbours of the path is equal at the price of the step."""
        found = []
        for corpus, steps in PATHS.items():
            excess = 0.0
            for number, (here, after) in enumerate(pairwise(steps), 1):
                excess = here.excess + after.beta * (entropy(here.labels) - entropy(after.labels))
                found.append((f"{corpus}, step {number}", after.excess, excess, -1, len(set(after.labels))))
        return found

    def counts(self) -> list[tuple]:
        """s pairs are farther apart than tau; k components are joined by the others."""
        found = []
        for each in DISTANCES:
            matrix = squareform(np.array(each.upper))[: each.trained_on, : each.trained_on]
            separated = int((matrix > each.tau).sum()) // 2
            k, _ = connected_components(matrix <= each.tau, directed=False)
            case = f"{each.corpus}, {each.trained_on} languages"
            found.append((f"{case}, cells", each.cells, k, separated, k))
            found.append((f"{case}, pairs apart", each.separated, separated, separated, k))
        return found


def entropy(labels: tuple[int, ...]) -> float:
    """H of a partition of equally likely worlds."""
    share = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(share * np.log(share)).sum())
