"""Codes under a price: the least complex free code, splits and merges, local and global optima, the recursion."""

import itertools
import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.special import rel_entr

from derived.lab.rng import stream
from derived.papers import task_ecologies
from derived.papers.task_ecologies import codes
from derived.papers.task_ecologies.data.ecologies import equidistant, random_ecology
from derived.papers.task_ecologies.model.codes import (
    BLOCK,
    best_partition,
    minimum_convolution,
    split_cost,
)
from derived.papers.task_ecologies.model.partitions import cells, merges, normal_form, separated, splits

EXPERIMENTS = (codes.Equidistant, codes.Picture)


def masks(labels) -> np.ndarray:
    return np.array([(1 << cell).sum() for cell in cells(labels)])


def ecology(seed: int = 0, n: int = 5, **facts) -> task_ecologies.FiniteEcology:
    return random_ecology(n, 2, 4, stream(seed, "test codes"), **facts)


def listed(e: task_ecologies.FiniteEcology) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All partitions with loss and entropy, by the joint table of each."""
    partitions = task_ecologies.set_partitions(e.num_worlds)
    return (
        partitions,
        np.array([e.bayes_loss(labels) for labels in partitions]),
        np.array([e.complexity(labels) for labels in partitions]),
    )


@pytest.mark.parametrize("informed", [False, True])
def test_what_a_split_gains(informed):
    """`te-split`: J before less J after is pi_S (G - beta h), for every way to cut every cell."""
    e, beta = ecology(1, informed=informed), 0.07
    for labels in task_ecologies.set_partitions(5):
        for A, B in splits(labels):
            fall = e.objective(labels, beta) - e.objective(separated(labels, B), beta)
            mass = e.prior[A].sum() + e.prior[B].sum()
            assert abs(fall - mass * (task_ecologies.split_gain(e, A, B) - beta * split_cost(e, A, B))) <= 1e-14
    assert abs(task_ecologies.split_gain(e, [0], [1, 2]) - task_ecologies.split_gain(e, [2, 1], [0])) <= 1e-15


def merged(labels, A, B):
    return normal_form(np.where(np.isin(np.arange(labels.size), B), labels[A[0]], labels))


def test_splits_and_merges_are_all_of_them():
    """Seven ways to cut a cell of four; merging undoes a split."""
    labels = np.array([0, 0, 1, 0, 0])
    assert len(list(splits(labels))) == 7
    for A, B in splits(labels):
        assert np.array_equal(merged(separated(labels, B), A, B), labels)
        assert task_ecologies.is_refinement(separated(labels, B), labels)
    assert len(list(merges(np.array([0, 1, 2, 0])))) == 3


def test_the_local_threshold():
    """`te-split`: below beta_min no merge of the quotient pays, above one does; no split of it ever does."""
    for seed in range(5):
        e = ecology(seed, classes=(0, 0, 1, 2, 3))
        quotient, threshold = e.quotient(), task_ecologies.local_threshold(e)
        for factor, pays in ((0.999, False), (1.001, True)):
            here = e.objective(quotient, factor * threshold)
            after = [e.objective(merged(quotient, A, B), factor * threshold) for A, B in merges(quotient)]
            assert (min(after) < here) == pays
            finer = [e.objective(separated(quotient, B), factor * threshold) for _, B in splits(quotient)]
            assert min(finer) > here
    assert task_ecologies.local_threshold(e, np.zeros(5, dtype=int)) == math.inf
    assert task_ecologies.local_threshold(ecology(classes=[0] * 5)) == math.inf


def test_the_minimum_convolution_beyond_one_block(monkeypatch):
    g = np.random.default_rng(0)
    f, h = g.random(2**7), g.random(2**7)
    whole = minimum_convolution(f, h)
    monkeypatch.setattr("derived.papers.task_ecologies.model.codes.BLOCK", 3)
    assert BLOCK > 7
    assert np.array_equal(minimum_convolution(f, h), whole)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_the_recursion_finds_the_least(n):
    """`te-additive`: against the list of all partitions, at random costs as well, and at prices between the limits."""
    e = ecology(4, n=n)
    partitions, loss, H = listed(e)
    for beta in (0.0, 0.02, 0.1, 0.3, 10.0):
        best = task_ecologies.optimal_partition(e, beta)
        assert abs(best.value - (loss + beta * H).min()) <= 1e-13
        assert abs(best.loss + beta * best.complexity - best.value) <= 1e-14
        assert abs(e.objective(best.labels, beta) - best.value) <= 1e-13
    costs = np.random.default_rng(n).random(2**n)
    expected = min(costs[masks(labels)].sum() for labels in partitions)
    assert abs(costs[best_partition(costs)].sum() - expected) <= 1e-14


@pytest.mark.parametrize("seed", range(4))
def test_the_path_is_the_lower_hull(seed):
    """`te-additive`: the points of the path are the vertices of SciPy's hull that look down and left, in order."""
    e = ecology(seed, n=6, classes=(0, 1, 2, 3, 4, 4))
    _, loss, H = listed(e)
    path = task_ecologies.partition_path(e)
    points = np.column_stack([H, loss])
    hull = ConvexHull(points)
    down = {v for face, normal in zip(hull.simplices, hull.equations, strict=True) if normal[1] < -1e-9 for v in face}
    down = sorted((v for v in down if H[v] <= e.complexity(e.quotient()) + 1e-9), key=lambda v: -H[v])
    assert len(down) == len(path)
    for vertex, each in zip(down, path, strict=True):
        assert abs(H[vertex] - each.complexity) + abs(loss[vertex] - each.loss) <= 1e-12
    assert np.array_equal(path[0].labels, e.quotient())
    for here, after in pairwise(path):
        assert abs(here.loss + after.beta * here.complexity - after.loss - after.beta * after.complexity) <= 1e-13
        assert here.beta < after.beta
    middle = [(here.beta + after.beta) / 2 for here, after in pairwise(path)]
    for beta, each in zip(middle, path, strict=False):
        assert np.array_equal(task_ecologies.optimal_partition(e, beta).labels, each.labels)


@pytest.mark.parametrize("n", [3, 4, 7])
def test_equidistant_classes_jump(n):
    """`te-equidistant`: straight to one cell, at the predicted share of beta_min; between, the quotient is stuck."""
    e = equidistant(n, 1e-3)
    path, threshold = task_ecologies.partition_path(e), task_ecologies.local_threshold(e)
    assert [each.labels.max() + 1 for each in path] == [n, 1]
    assert abs(path[1].beta / threshold / (2 * math.log(2) * (n - 1) / (n * math.log(n))) - 1) <= 2e-3
    d2 = 2 * n  # squared chi-square distance of two worlds at epsilon = 1
    assert abs(threshold / (1e-6 * d2 / (8 * math.log(2))) - 1) <= 5e-3
    assert abs(path[1].beta / ((n - 1) * 1e-6 * d2 / (4 * n * math.log(n))) - 1) <= 5e-3
    beta = (path[1].beta + threshold) / 2
    assert min(e.objective(merged(np.arange(n), A, B), beta) for A, B in merges(np.arange(n))) > e.objective(
        np.arange(n), beta
    )
    assert e.objective(np.zeros(n, dtype=int), beta) < e.objective(np.arange(n), beta)


def test_what_codes_refuse():
    e = ecology()
    for worlds, words in (([5], "worlds .5.; give some of 0 to 4"), ([], "give some of"), ([0, 1], "overlap")):
        with pytest.raises(ValueError, match=words):
            task_ecologies.split_gain(e, worlds, [1])
    with pytest.raises(ValueError, match="beta = -1"):
        task_ecologies.optimal_partition(e, -1.0)
    with pytest.raises(ValueError, match="17 worlds have 131,072 sets; give at most 16"):
        task_ecologies.optimal_partition(random_ecology(17, 1, 2, stream(0, "many")), 0.1)


@pytest.mark.parametrize("t", [0.001, 0.01, 0.03])
def test_a_merge_of_nearly_equal_worlds_has_its_price_up_to_an_error_of_known_size(t):
    """`te-equidistant`: every price of a merge is within 3.64 kappa t / d^2 of its limit, by divergences of SciPy, for
    worlds in general position at equal distances; half of that bound is broken nowhere near, a tenth is."""
    n, P0 = 4, np.array([0.1, 0.2, 0.3, 0.4])
    frame = np.linalg.qr(np.column_stack([np.sqrt(P0), np.eye(4)[:, :3]]))[0][:, 1:]  # at right angles to sqrt(P0)
    corners = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, :3]]))[0][:, 1:]  # of a simplex
    v = (corners @ frame.T) * np.sqrt(P0)
    d2 = [((v[i] - v[j]) ** 2 / P0).sum() for i in range(n) for j in range(i)]
    assert np.ptp(d2) < 1e-12
    assert np.abs(v.sum(axis=1)).max() < 1e-12
    assert (t * np.abs(v) <= P0 / 2).all()
    kappa = (np.abs(v) ** 3 / P0**2).sum(axis=1).max()
    for m in (2, 3, 4):
        for worlds in itertools.combinations(range(n), m):
            laws = P0 + t * v[list(worlds)]
            js = rel_entr(laws, laws.mean(axis=0)).sum(axis=1).mean()
            off = abs(js / math.log(m) / (t**2 * (m - 1) * d2[0] / (4 * m * math.log(m))) - 1)
            assert off <= 3.64 * kappa * t / d2[0]


def test_the_constant_of_the_expansion():
    """`te-equidistant`: |(1 + x) ln(1 + x) - x - x^2 / 2| <= 0.2275 |x|^3 for |x| <= 1/2, nearly with equality."""
    x = np.concatenate([np.linspace(-0.5, -0.001, 5000), np.linspace(0.001, 0.5, 5000)])
    ratio = np.abs((1 + x) * np.log1p(x) - x - x**2 / 2) / np.abs(x) ** 3
    assert 0.227 < ratio.max() < 0.2275
