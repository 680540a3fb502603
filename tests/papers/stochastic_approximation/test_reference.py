"""Iterates, stays, urns and variances, by the reference program and by the package."""

import itertools
import random

import pytest
import torch

from derived.papers import stochastic_approximation as package
from derived.papers.stochastic_approximation import reference


@pytest.fixture
def draw():
    return random.Random(0)


def test_iterates(draw):
    """The same course on the same data."""
    data = [draw.gauss(0, 1) for _ in range(50)]
    course = reference.iterate(lambda x, y: y - x, data, lambda n: n**-0.7, x=0.5)
    y, start = torch.tensor(data, dtype=torch.float64), torch.tensor(0.5, dtype=torch.float64)
    path = package.robbins_monro(lambda x, y: y - x, y, package.StepSize(alpha=0.7), start)
    assert course[-1] == pytest.approx(float(path.x[-1]), abs=1e-13)


def test_one_stream_or_many(draw):
    """`sa-many`, `sa-random`: the root of each world, and the one of their mean field, no mean of the others."""
    worlds, w = [(draw.gauss(0, 1), 0.5 + draw.random()) for _ in range(3)], [0.2, 0.3, 0.5]
    b, A = zip(*worlds, strict=True)
    assert reference.roots(worlds) == pytest.approx(list(package.mean_field_root(list(A), list(b))))
    mixed = float(package.mean_field_root(list(A), list(b), weights=w))
    assert reference.root_of_many(worlds, w) == pytest.approx(mixed)
    lives = [reference.iterate(reference.linear(worlds), [k] * 4000, lambda n: 4 / n)[-1] for k in range(3)]
    assert lives == pytest.approx(reference.roots(worlds), abs=0.01)


@pytest.mark.parametrize("a", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0])
def test_the_variance_at_a_constant_step(a, epsilon):
    """`sa-tracking`: the exact variance, and how near 1 / (1 + epsilon / a) it is."""
    variance = reference.constant_step_variance(1 - epsilon, a)
    assert variance == pytest.approx(float(package.telegraph_variance(a, epsilon)))
    assert 1 - epsilon / 2 - 1e-12 <= variance * (1 + epsilon / a) <= 1 + epsilon + 1e-12


def test_a_stream_in_turns(draw):
    """Each value is kept for a time longer than t with probability t^-beta, here within five standard errors."""
    beta, data = 1.5, reference.alternating(1.5, 20_000, draw)
    assert len(data) == 20_000
    times = [len([*run]) for _, run in itertools.groupby(data)][:-1]
    for t in (2, 4, 16):
        share, error = sum(time > t for time in times) / len(times), (t**-beta / len(times)) ** 0.5
        assert abs(share - t**-beta) < 5 * error
    assert min(times) == 2


def test_heads_that_feed_on_themselves(draw):
    """`sa-urn`: the ends have mean 2/5 and the variance 1/25 of Beta(2, 3), within five standard errors."""
    ends = [reference.fed_with_itself(2, 3, 400, draw) for _ in range(2000)]
    mean = sum(ends) / 2000
    variance = sum((end - mean) ** 2 for end in ends) / 2000
    assert abs(mean - 0.4) < 5 * (0.04 / 2000) ** 0.5
    assert abs(variance - 0.04) < 5 * 0.04 * (2 / 2000) ** 0.5
