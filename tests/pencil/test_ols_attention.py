"""Least squares by attention, by the pencil and by the package."""

import math
import random

import pytest
import torch
from pencil import ols_attention as pencil

from derived.papers import ols_attention as package


@pytest.fixture
def data(table):
    X, Y = table(7, 3), table(7, 2)
    return X, Y, torch.tensor(X, dtype=torch.float64), torch.tensor(Y, dtype=torch.float64)


def close(mine, theirs, **tolerance):
    torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs, **tolerance)


def test_the_layer_is_the_fit(data):
    """`OLS-1.a`: one layer of linear attention gives the least-squares fit; L comes from Cholesky here, from singular
    vectors there."""
    X, Y, x, y = data
    fit = pencil.least_squares(X, Y)
    close(pencil.layer(X, *pencil.weights(X, Y)), torch.tensor(fit, dtype=torch.float64))
    close(fit, package.OLSTransformer.from_data(x, y)(x))


def test_doubled_inputs_are_answered_eightfold(data):
    """`OLS-8.a`: the same weights on doubled inputs, where least squares would not move."""
    X, Y, x, y = data
    close(pencil.layer(pencil.scale(X, 2), *pencil.weights(X, Y)), package.OLSTransformer.from_data(x, y)(2 * x))
    close(pencil.layer(pencil.scale(X, 2), *pencil.weights(X, Y)), 8 * package.OLSTransformer.from_data(x, y)(x))


@pytest.mark.parametrize("recompute", [False, True])
def test_descent_on_one_weight(draw, recompute):
    """The course of plain descent, step by step."""
    x = [draw.gauss(0, 1) for _ in range(20)]
    y = [2 * v + draw.gauss(0, 0.1) for v in x]
    course = pencil.train(x, y, 0.5, 0.001, 30, recompute)
    one, other = torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    read_out = "recomputed" if recompute else "frozen"
    start = torch.tensor(0.5, dtype=torch.float64)
    close(course, package.train_scalar(one, other, start, read_out=read_out, optimizer="gd", lr=0.001, epochs=30).l)


@pytest.mark.parametrize(("interaction", "F"), [(2, lambda u: u * u), ("exp", math.exp)])
def test_which_patterns_are_kept(draw, interaction, F):
    """The flip rule, pattern by pattern; the power memory keeps few, the exponential one all."""
    patterns = [[draw.choice((-1.0, 1.0)) for _ in range(9)] for _ in range(5)]
    stored = torch.tensor(patterns, dtype=torch.float64)
    kept = (package.flip_field(stored, stored, interaction) > 0).all(dim=-1)
    assert pencil.keeps(patterns, F) == kept.tolist()


def adam(l, square, slope, recompute, rate=0.01, epochs=1000):
    """Adam with its usual constants, on the one weight."""
    mean = spread = 0.0
    for t in range(1, epochs + 1):
        g = pencil.gradient(l, square, slope, recompute)
        mean, spread = 0.9 * mean + 0.1 * g, 0.999 * spread + 0.001 * g * g
        l -= rate * mean / (1 - 0.9**t) / (math.sqrt(spread / (1 - 0.999**t)) + 1e-8)
    return l


def test_adam_comes_to_the_weight_of_the_theory():
    """`OLS-9`: on a hundred data sets, from three positive starts, with either read-out; the package ends there too."""
    draw, reached = random.Random(0), []
    for _ in range(100):
        x = [draw.gauss(0, 1) for _ in range(500)]
        y = [2 * v + draw.gauss(0, 0.1) for v in x]
        square = sum(v * v for v in x) / 500
        slope = sum(v * w for v, w in zip(x, y, strict=True)) / 500 / square
        ends = [adam(l, square, slope, recompute) for l in (0.1, 0.5, 1.5) for recompute in (False, True)]
        reached.append(max(abs(l - 1 / math.sqrt(square)) for l in ends) < 0.001)
    assert (
        0.0005 ** (1 / 100) > 0.9
    )  # all of a hundred: the interval of 99.9 % begins above the share that is asked for
    assert all(reached)
    one, other = (torch.tensor([each] * 3, dtype=torch.float64) for each in (x, y))
    starts = torch.tensor([0.1, 0.5, 1.5], dtype=torch.float64)
    theirs = [package.train_scalar(one, other, starts, read_out=each).l[-1] for each in ("frozen", "recomputed")]
    close(ends, torch.stack(theirs, dim=1).flatten(), rtol=1e-9, atol=1e-9)
