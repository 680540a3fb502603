"""Shallow predictors: exact distributions of operators, and the first levels of a tree."""

import itertools
import math

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.data import listops, shallow


def counted(values, num: int) -> np.ndarray:
    return np.bincount(np.asarray(values, dtype=int), minlength=num)


@pytest.mark.parametrize("operator", listops.OPERATORS)
@pytest.mark.parametrize("num", [1, 2, 3, 4])
def test_distributions_of_operators_by_enumeration(operator, num):
    """All 10^num outcomes of independent digits against the closed forms; absent slots are skipped."""
    draws = np.random.default_rng(int(torch.randint(2**31, (), generator=stream(0, operator, num))))
    chances = draws.dirichlet(np.full(10, 0.3), (2, num))
    expected = np.zeros((2, 10))
    for digits in itertools.product(range(10), repeat=num):
        chance = np.prod(chances[:, np.arange(num), digits], axis=1)
        expected[:, listops.apply(operator, list(digits))] += chance
    np.testing.assert_allclose(shallow.combine(operator, chances), expected, atol=1e-14)
    padded = np.insert(chances, [0, num], 0.3, axis=1)
    present = np.ones((2, num + 2), dtype=bool)
    present[:, [0, -1]] = False
    np.testing.assert_allclose(shallow.combine(operator, padded, present), expected, atol=1e-14)


def test_predictors_sharpen_with_depth_and_end_exact():
    """Depth 0 is a table of four guesses; more depth is better; the whole depth is evaluation."""
    lists = listops.ListOps(min_length=20, max_length=200)
    known = [listops.parse(row) for row in lists.sample(2000, stream(0, "train")).tokens.numpy()]
    test = lists.sample(1500, stream(0, "test"))
    p, codes, labels = shallow.operator_chances(known), test.tokens.numpy(), test.labels.numpy()
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert p.argmax(axis=1)[:3].tolist()[:2] == [0, 9]
    shares = [float(np.mean(shallow.ShallowPredictor(depth, p)(codes) == labels)) for depth in (0, 1, 2, 9)]
    assert shares[0] + 0.2 < shares[1] < shares[2] < shares[3] == 1
    table = p.argmax(axis=1)[codes[:, 0] - 11]
    np.testing.assert_array_equal(shallow.ShallowPredictor(0, p)(codes), table)
    found = shallow.ShallowPredictor(1, p).probabilities([listops.parse(row) for row in codes])
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    # calibrated: the mean of the largest probability is the share of right guesses, but for dependence of subtrees
    assert abs(found.max(axis=1).mean() - shares[1]) < 0.05


def test_depth_one_by_simulation():
    """One tree: deeper lists replaced by draws from their operators' distributions, many times over."""
    tree = ("MED", (3, ("MIN", (1, 2)), 8, ("SM", (4, ("MAX", (1, 1))))))
    draws = np.random.default_rng(int(torch.randint(2**31, (), generator=stream(0, "one tree"))))
    p = draws.dirichlet(np.ones(10), 4)
    num = 100_000
    guesses = np.stack([np.full(num, 3), draws.choice(10, num, p=p[0]), np.full(num, 8), draws.choice(10, num, p=p[3])])
    measured = counted(np.floor(np.median(guesses, axis=0)), 10) / num
    exact = shallow.ShallowPredictor(1, p).probabilities([tree, 7])
    assert np.all(np.abs(measured - exact[0]) < 4.5 / (2 * math.sqrt(num)))
    np.testing.assert_array_equal(exact[1], np.eye(10)[7])
    whole = shallow.ShallowPredictor(3, p).probabilities([tree])
    assert whole[0, listops._value(tree)] == 1


def test_operator_chances_counts_lists():
    trees = [("MIN", (3, ("MAX", (1, 2)))), ("SM", (5, ("MED", (4, 4)), 1)), ("MAX", (9,)), 5]
    p = shallow.operator_chances(trees)
    assert p[0, 2] == 1
    assert p[1, 2] == p[1, 9] == 0.5
    assert p[2, 4] == p[3, 0] == 1
    with pytest.raises(ValueError, match="no list with MED"):
        shallow.operator_chances([tree for tree in trees if tree != trees[1]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shallow.ShallowPredictor(-1, np.full((4, 10), 0.1)), "depth = -1"),
        (lambda: shallow.ShallowPredictor(1, np.full((4, 10), 0.2)), "sum 1"),
        (lambda: shallow.operator_chances([1, 2]), "no list with MIN, MAX, MED, SM"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
