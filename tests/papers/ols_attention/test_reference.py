"""Least squares by attention, by the reference program and by the package."""

import math

import pytest
import torch

from derived.papers import ols_attention as package
from derived.papers.ols_attention import reference


@pytest.fixture
def data(table):
    X, Y = table(7, 3), table(7, 2)
    return X, Y, torch.tensor(X, dtype=torch.float64), torch.tensor(Y, dtype=torch.float64)


def close(mine, theirs, **tolerance):
    torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs, **tolerance)


def test_the_layer_is_the_fit(data):
    """one layer of linear attention gives the least-squares fit; L comes from Cholesky here, from singular
    vectors there."""
    X, Y, x, y = data
    fit = reference.least_squares(X, Y)
    close(reference.layer(X, *reference.weights(X, Y)), torch.tensor(fit, dtype=torch.float64))
    close(fit, package.OLSTransformer.from_data(x, y)(x))


def test_doubled_inputs_are_answered_eightfold(data):
    """the same weights on doubled inputs, where least squares would not move."""
    X, Y, x, y = data
    close(
        reference.layer(reference.scale(X, 2), *reference.weights(X, Y)), package.OLSTransformer.from_data(x, y)(2 * x)
    )
    close(
        reference.layer(reference.scale(X, 2), *reference.weights(X, Y)), 8 * package.OLSTransformer.from_data(x, y)(x)
    )


@pytest.mark.parametrize("recompute", [False, True])
def test_descent_on_one_weight(draw, recompute):
    """The course of plain descent, step by step."""
    x = [draw.gauss(0, 1) for _ in range(20)]
    y = [2 * v + draw.gauss(0, 0.1) for v in x]
    course = reference.train(x, y, 0.5, 0.001, 30, recompute)
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
    assert reference.keeps(patterns, F) == kept.tolist()
