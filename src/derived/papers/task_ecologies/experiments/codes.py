"""Codes under a price: equidistant worlds, the path of optima, and all codes of one ecology (TE-5).

symbol    name         meaning
beta_min  threshold    first price at which merging two cells of the quotient pays
beta_glob first        first price at which the quotient is no longer the best of all partitions
"""

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pandas as pd

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..data.ecologies import equidistant, family, random_ecology
from ..model.codes import (
    local_threshold,
    optimal_partition,
    partition_path,
    split_cost,
    split_gain,
)
from ..model.partitions import is_refinement, merged, merges, set_partitions


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
