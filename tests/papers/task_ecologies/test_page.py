"""What the page alone states: graphs of compatible worlds, equal fitness, and its example of three coins."""

from itertools import combinations

import numpy as np
import pytest

from derived.papers.task_ecologies import FiniteEcology, partition_path, set_partitions


def of_graph(n: int, joined: set[tuple[int, int]]) -> FiniteEcology:
    """Equally likely worlds of which just these pairs are compatible: a context for each other pair, in which one says
    0 and the other 1, and a private one for each world."""
    others = [pair for pair in combinations(range(n), 2) if pair not in joined]
    possible = np.eye(n, len(others) + n, len(others))
    laws = np.full((n, len(others) + n, 2), 0.5)
    for c, (u, w) in enumerate(others):
        possible[[u, w], c] = 1
        laws[u, c], laws[w, c] = (1, 0), (0, 1)
    return FiniteEcology(np.full(n, 1 / n), possible / possible.sum(axis=1, keepdims=True), laws)


def free_codes(ecology: FiniteEcology) -> set[tuple[int, ...]]:
    return {
        tuple(labels.tolist()) for labels in set_partitions(ecology.num_worlds) if ecology.js_excess(labels) < 1e-12
    }


def cliques(n: int, joined: set[tuple[int, int]]) -> set[tuple[int, ...]]:
    """Partitions in which any two worlds of a cell are joined."""
    return {
        tuple(labels.tolist())
        for labels in set_partitions(n)
        if all((u, w) in joined for u, w in combinations(range(n), 2) if labels[u] == labels[w])
    }


@pytest.mark.parametrize("place", range(12))
def test_free_codes_are_partitions_into_cliques_of_any_graph(place):
    """`te-informed`: the free codes of the ecology of a random graph."""
    dice = np.random.default_rng(place)
    pairs = list(combinations(range(5), 2))
    joined = {pair for pair in pairs if dice.random() < place / 11}
    assert free_codes(of_graph(5, joined)) == cliques(5, joined)


def test_the_coins_of_the_page():
    coins = FiniteEcology([1 / 3] * 3, [1.0], [[[1, 0]], [[0.5, 0.5]], [[0, 1]]])
    assert coins.entropy_floor() == pytest.approx(np.log(2) / 3)
    assert [round(coins.js_excess(code), 3) for code in ([0, 0, 1], [0, 0, 0])] == [0.144, 0.462]
    path = partition_path(coins)
    assert [each.labels.max() + 1 for each in path] == [3, 2, 1]
    assert [round(each.beta, 3) for each in path] == [0.0, 0.311, 0.5]


def test_the_perturbation_of_equal_fitness_is_that_of_the_free_codes_alone():
    """`te-blind`: the first order in the rate of mutation, against the exact vector at two rates."""
    dice = np.random.default_rng(1)
    rates = dice.dirichlet(np.ones(6), 6) - np.eye(6)
    fitness = np.array([1, 1, 1, 0.7, 0.5, 0.4])
    values, vectors = np.linalg.eig(rates[:3, :3].T)
    limit = np.abs(vectors[:, values.real.argmax()].real)
    off = []
    for epsilon in (1e-3, 1e-4):
        values, vectors = np.linalg.eig((np.eye(6) + epsilon * rates).T * fitness)
        shares = np.abs(vectors[:3, values.real.argmax()].real)
        off.append(np.abs(shares / shares.sum() - limit / limit.sum()).max())
    assert off[0] / off[1] == pytest.approx(10, rel=0.05)  # first order in epsilon
    assert off[1] < 1e-3 < np.abs(limit / limit.sum() - 1 / 3).max()
