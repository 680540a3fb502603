"""The chapter in plain Python against the package, on random instances."""

import random

import pytest
import torch

from derived.papers import ols_attention as package
from derived.papers.ols_attention import reference
from derived.papers.ols_attention.model import theory


def table(draw: random.Random, rows: int, columns: int) -> list[list[float]]:
    return [[draw.gauss(0, 1) for _ in range(columns)] for _ in range(rows)]


def close(mine, theirs):
    torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs)


@pytest.fixture(params=range(5))
def data(request):
    draw = random.Random(request.param)
    X, Y = table(draw, 7, 3), table(draw, 7, 2)
    return X, Y, torch.tensor(X, dtype=torch.float64), torch.tensor(Y, dtype=torch.float64)


def test_the_layer_is_the_fit(data):
    """`ols-forward-pass`: L comes from Cholesky here and from singular vectors there."""
    X, Y, x, y = data
    fit = reference.least_squares(X, Y)
    close(reference.layer(X, *reference.weights(X, Y)), torch.tensor(fit, dtype=torch.float64))
    close(fit, package.OLSTransformer.from_data(x, y)(x))


def test_the_scores_are_the_hat_matrix(data):
    """`ols-hat`."""
    X, Y, x, _ = data
    close(reference.attention(X, reference.weights(X, Y)[0]), theory.hat_matrix(x))


@pytest.mark.parametrize("c", [2.0, -1.5])
def test_scaled_inputs_are_answered_by_the_cube(data, c):
    """`ols-quantifiers`: the same weights, where least squares would not move."""
    X, Y, x, y = data
    answer = reference.layer(reference.scale(X, c), *reference.weights(X, Y))
    close(answer, package.OLSTransformer.from_data(x, y)(c * x))
    close(answer, c**3 * package.OLSTransformer.from_data(x, y)(x))
    close(reference.least_squares(reference.scale(X, c), Y), package.OLSTransformer.from_data(x, y)(x))


@pytest.mark.parametrize("beta", [None, 0.7])
def test_one_step_of_recall(data, beta):
    """`ols-memory`: linear attention up to its factor 1/d, and softmax attention."""
    X, _, x, _ = data
    mine = torch.tensor(reference.recall(X[0], X[1:], beta), dtype=torch.float64)
    torch.testing.assert_close(mine / (3 if beta is None else 1), package.recall(x[0], x[1:], beta))
