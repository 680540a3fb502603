"""R11: softmax attention from least squares to look-up."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression

from derived.lab.rng import stream
from derived.papers.ols_attention.data.problems import random_regression
from derived.papers.ols_attention.model.mechanism import (
    softmax_read_out,
    softmax_regression,
    whitening,
)
from derived.papers.ols_attention.model.theory import (
    ols_with_intercept,
    rounding_bound,
    softmax_dial_error,
)


def affine_problem(seed: int = 8, n: int = 40, p: int = 3):
    g = stream(seed, "affine", n, p)
    problem = random_regression(n, p, 2, kappa=4.0, generator=g)
    return problem.X + 2.0, problem.Y + problem.X.square()[:, :1], torch.randn(5, p, generator=g, dtype=torch.float64)


def test_r11_softmax_at_small_beta_is_least_squares_with_intercept():
    """R11: error O(beta) with the predicted coefficient and slope 1; sklearn fits the intercept independently.

    Bears `ols-dial`.
    """
    X, Y, Xq = affine_problem()
    limit = ols_with_intercept(Xq, X, Y)
    sklearn = LinearRegression().fit(X.numpy(), Y.numpy()).predict(Xq.numpy())
    assert (limit - torch.from_numpy(sklearn)).norm() <= 4 * rounding_bound(X - X.mean(0), Xq) * Y.norm()
    betas = np.array([1e-4, 1e-3, 1e-2])
    errors = np.array([float((softmax_read_out(Xq, X, Y, beta) - limit).norm()) for beta in betas])
    slope = np.polyfit(np.log(betas), np.log(errors), 1)[0]
    assert abs(slope - 1) < 0.05
    first_order = softmax_dial_error(Xq, X, Y)
    residuals = np.array(
        [float((softmax_read_out(Xq, X, Y, beta) - limit - beta * first_order).norm()) for beta in betas]
    )
    assert abs(np.polyfit(np.log(betas), np.log(residuals), 1)[0] - 2) < 0.05


@pytest.mark.parametrize("n", [1, 2, 40])
def test_r11_softmax_regression_is_scaled_dot_product_attention(n):
    """R11: against torch's own attention with scale = beta, keys not centred: softmax centres them by itself."""
    X, Y, Xq = affine_problem(n=n)
    L = whitening(X - X.mean(0))
    if L.shape[1] == 0:
        assert torch.equal(softmax_regression(Xq, X, Y, 1.0), Y.expand(5, 2))
        return
    for beta in (0.0, 0.3, 5.0):
        peer = torch.nn.functional.scaled_dot_product_attention((Xq - X.mean(0)) @ L, X @ L, Y, scale=beta)
        scores = ((Xq - X.mean(0)) @ L) @ (X @ L).T
        tolerance = 4 * float(rounding_bound(X - X.mean(0), Xq)) * (1 + beta * float(scores.abs().max())) * Y.norm()
        assert (softmax_regression(Xq, X, Y, beta) - peer).norm() <= tolerance
        if beta > 0:
            direct = Y.mean(0) + (peer - Y.mean(0)) / beta
            assert (softmax_read_out(Xq, X, Y, beta) - direct).norm() <= tolerance / beta
