"""What breaks it: each changed line loses the property that its legend names, and only the right one keeps all."""

import numpy as np
import pytest

from derived.lab.rng import stream
from derived.papers.task_ecologies import FiniteEcology, set_partitions
from derived.papers.task_ecologies.data.ecologies import equidistant, random_ecology
from derived.papers.task_ecologies.model.mutations import EXCESSES, GENERATIONS, OPTIMA
from derived.papers.task_ecologies.model.selection import quasispecies


def test_only_the_right_excess_is_loss_less_floor():
    ecology = random_ecology(4, 3, 3, stream(1, "ecology"))
    worst = {}
    for name, excess in EXCESSES.items():
        gaps = [
            excess(ecology, each) + ecology.entropy_floor() - ecology.bayes_loss(each) for each in set_partitions(4)
        ]
        worst[name] = np.abs(gaps).max()
    assert worst.pop("none") < 1e-14
    assert min(worst.values()) > 1e-3


def test_equal_weights_are_never_better():
    ecology = random_ecology(4, 3, 3, stream(2, "ecology"))
    off = [EXCESSES["equal weights in a cell"](ecology, each) - ecology.js_excess(each) for each in set_partitions(4)]
    assert min(off) > -1e-14
    assert max(off) > 1e-3


def test_averaging_contexts_first_merges_what_contexts_tell_apart():
    laws = [[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]]  # opposite in both contexts, equal on average
    ecology = FiniteEcology([0.5, 0.5], [0.5, 0.5], laws)
    assert EXCESSES["contexts averaged first"](ecology, [0, 0]) == pytest.approx(0, abs=1e-15)
    assert ecology.js_excess([0, 0]) > 0.3


def test_only_the_recursion_is_optimal():
    worst = dict.fromkeys(OPTIMA, 0.0)
    cases = [(random_ecology(4, 1, 3, stream(3, "cases", place)), 0.05) for place in range(20)]
    for ecology, beta in [*cases, (equidistant(4, 0.1), 0.0125)]:
        best = min(ecology.objective(each, beta) for each in set_partitions(4))
        for name, optimum in OPTIMA.items():
            worst[name] = max(worst[name], ecology.objective(optimum(ecology, beta), beta) - best)
    assert worst.pop("none") < 1e-14
    assert min(worst.values()) > 1e-5


def test_only_the_right_generation_leads_to_the_quasispecies():
    dice = np.random.default_rng(4)
    fitness, kernel = dice.uniform(0.5, 1, 5), dice.dirichlet(np.ones(5), 5)
    limit = quasispecies(fitness, kernel)
    x = dict.fromkeys(GENERATIONS, np.full(5, 0.2))
    for _ in range(60):
        x = {name: step(x[name], fitness, kernel) for name, step in GENERATIONS.items()}
    off = {name: np.abs(each - limit).max() for name, each in x.items()}
    assert off.pop("none") < 1e-12
    assert min(off.values()) > 1e-3
    assert abs(x["mutation first"].sum() - 1) < 1e-12  # a frequency vector all the same
    assert all(abs(x[name].sum() - 1) > 1e-3 for name in ("kernel transposed", "no mean fitness"))
