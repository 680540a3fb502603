"""Iterates, chains and urns, by the pencil and by the package."""

import pytest
import torch
from pencil import stochastic_approximation as pencil

from derived.papers import stochastic_approximation as package


def test_iterates(draw):
    """The same course on the same data."""
    data = [draw.gauss(0, 1) for _ in range(50)]
    course = pencil.iterate(lambda x, y: y - x, data, lambda n: n**-0.7, x=0.5)
    y = torch.tensor(data, dtype=torch.float64)
    start = torch.tensor(0.5, dtype=torch.float64)
    path = package.robbins_monro(lambda x, y: y - x, y, package.StepSize(alpha=0.7), start)
    assert course[-1] == pytest.approx(float(path.x[-1]), abs=1e-13)


def test_one_stream_or_many(draw):
    """`SA-2.a`: the root of each world, and the one of their mean field, which is no mean of the others."""
    worlds, w = [(draw.gauss(0, 1), 0.5 + draw.random()) for _ in range(3)], [0.2, 0.3, 0.5]
    b, A = zip(*worlds, strict=True)
    assert pencil.roots(worlds) == pytest.approx(list(package.mean_field_root(list(A), list(b))))
    assert pencil.root_of_many(worlds, w) == pytest.approx(float(package.mean_field_root(list(A), list(b), weights=w)))
    lives = [pencil.iterate(pencil.linear(worlds), [k] * 4000, lambda n: 4 / n)[-1] for k in range(3)]
    assert lives == pytest.approx(pencil.roots(worlds), abs=0.01)


def chain(draw, size):
    """A random chain in which many arrows are missing."""
    P = []
    for i in range(size):
        row = [draw.randrange(1, 5) * (draw.random() < 0.3) for _ in range(size)]
        row = row if any(row) else [int(i == j) for j in range(size)]
        P.append([x / sum(row) for x in row])
    return P


def test_components_are_closed_classes(draw):
    """`SA-1.a`: the kernel of I - P is as large as the number of closed classes."""
    for size in (1, 3, 6):
        P = chain(draw, size)
        mine = [tuple(sorted(each)) for each in pencil.closed_classes(P)]
        assert mine == package.closed_classes(torch.tensor(P, dtype=torch.float64).numpy())
        exact = [[pencil.Fraction(x).limit_denominator(100) for x in row] for row in P]
        assert pencil.nullity([[(i == j) - x for j, x in enumerate(row)] for i, row in enumerate(exact)]) == len(mine)


@pytest.mark.parametrize("a", [0.01, 0.1, 1.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0])
def test_the_variance_at_a_constant_step(a, epsilon):
    """`SA-11.b`: the exact variance, and how near 1 / (1 + epsilon / a) it is."""
    variance = pencil.constant_step_variance(1 - epsilon, a)
    assert variance == pytest.approx(float(package.telegraph_variance(a, epsilon)))
    assert 1 - epsilon / 2 - 1e-12 <= variance * (1 + epsilon / a) <= 1 + epsilon + 1e-12
