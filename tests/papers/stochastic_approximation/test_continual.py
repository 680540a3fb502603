"""Topic continual: tracking errors against sums and simulation, and what is forgotten."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import StepSize, Telegraph, robbins_monro, telegraph_variance
from derived.papers.stochastic_approximation.continual import Average, BestStep, Tracking, to_data
from derived.papers.stochastic_approximation.model.theory import (
    best_step,
    filtered_variance,
    sa_weights,
    telegraph_mean_variance,
    tracking_error,
    tracking_error_exact,
)

EXPERIMENTS = (Tracking, Average, BestStep)
examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


@examples
@given(st.floats(0.05, 1), st.floats(0.01, 1))
def test_the_variance_is_the_sum_over_weights(a, epsilon):
    """600 samples at a step of 0.05 or more: the rest weighs less than 1e-12."""
    weights = sa_weights(StepSize.constant(a), 600)
    gamma = (1 - epsilon) ** np.arange(600)
    assert abs(telegraph_variance(a, epsilon) - filtered_variance(weights, gamma)) <= 1e-11


@examples
@given(st.integers(1, 300), st.floats(1e-6, 1))
def test_the_variance_of_a_mean_is_the_double_sum(n, epsilon):
    """Its closed form subtracts numbers of size 1/(epsilon n)^2."""
    gamma = (1 - epsilon) ** np.arange(n)
    slow = filtered_variance(np.full(n, 1 / n), gamma)
    allowed = 1e-12 + 64 * 2.0**-52 * (1 + 1 / (epsilon * n) ** 2)
    assert abs(telegraph_mean_variance(n, epsilon) - slow) <= allowed


@pytest.mark.parametrize(("a", "epsilon", "sigma"), [(0.2, 0.05, 0.0), (0.2, 0.05, 1.0), (0.5, 0.5, 0.5)])
def test_the_tracking_error_is_the_simulated_one(a, epsilon, sigma):
    k = Telegraph(epsilon).draw(150, 6000, stream(0, "world")).y
    y = k + sigma * torch.randn(150, 6000, generator=stream(0, "noise"), dtype=torch.float64)
    x = robbins_monro(to_data, y, StepSize.constant(a), torch.zeros(6000, dtype=torch.float64)).x[-1]
    square, exact = (x - k[-1]).square(), float(tracking_error_exact(a, epsilon, sigma))
    assert abs(square.mean() - exact) <= 4 * square.std() / 6000**0.5
    assert abs(square.mean() - 1.2 * exact) > 4 * square.std() / 6000**0.5


def test_the_limit_of_small_steps():
    for scale in (1e-3, 1e-4):
        found = tracking_error_exact(3 * scale, 2 * scale, 0.7 / scale**0.5)
        limit = tracking_error(3 * scale, 2 * scale, 0.7 / scale**0.5)
        assert abs(found / limit - 1) <= 5 * scale


@examples
@given(st.floats(1e-6, 0.05), st.floats(0.3, 4))
def test_the_best_step_is_a_minimum_or_refused(epsilon, sigma):
    a = best_step(epsilon, sigma) if (2 * epsilon) ** 0.5 < sigma < (2 / epsilon) ** 0.5 * 0.999 else 0.0
    if a:
        around = tracking_error([a * 0.99, a, a * 1.01], epsilon, sigma)
        assert around[1] < min(around[0], around[2])


def test_noise_too_large_leaves_no_step():
    with pytest.raises(ValueError, match="give sigma < 2"):
        best_step(0.5, 2.5)
    with pytest.raises(ValueError, match="no step of at most 1"):
        best_step(1e-3, 1e-4)
    for bad in ((0.0, 0.1), (1.1, 0.1), (0.1, 0.0), (0.1, 1.1)):
        with pytest.raises(ValueError, match="give"):
            telegraph_variance(*bad)
    with pytest.raises(ValueError, match="epsilon"):
        telegraph_mean_variance(3, 0.0)


def test_a_telegraph_has_its_correlation():
    y = Telegraph(0.2).draw(40, 5000, stream(0, "telegraph")).y
    assert y.unique().tolist() == [-1.0, 1.0]
    for start in (0, 30):
        assert abs(y[start].mean()) <= 4 / 5000**0.5
        for k in (1, 4):
            assert abs((y[start] * y[start + k]).mean() - 0.8**k) <= 4 / 5000**0.5


def test_rows_are_within_their_bounds(rows):
    assert abs(rows[BestStep]["ratio"] - 1).max() < 0.05
    grid = BestStep(epsilons=(1e-4, 1e-3), sigmas=(1.0, 2.0)).run({}, seed=0, device=None, dtype=None)
    assert [*zip(grid["epsilon"], grid["sigma"], strict=True)] == [(1e-4, 1), (1e-4, 2), (1e-3, 1), (1e-3, 2)]
    assert grid["searched"].is_unique
    assert abs(rows[Average].groupby("n")["ratio"].mean() - 1).max() < 0.6


def test_the_variance_is_that_of_its_own_rate_of_change():
    facts = {"seed": 0, "device": torch.device("cpu"), "dtype": torch.float64}
    table = Tracking(replicas=400, steps=600, burn_in=300).run({"epsilon": 0.1, "a": 0.1}, **facts)
    error = table["ratio"].std() / 20
    assert abs(table["ratio"].mean() - 1) <= 4 * error
    wrong = table["square"] / float(telegraph_variance(0.1, 0.15))
    assert abs(wrong.mean() - 1) > 4 * error


def test_a_missing_number_decides_nothing(rows, undecided_without):
    read = undecided_without(rows)
    assert all(read.values()), read
