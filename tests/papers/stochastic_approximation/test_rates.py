"""Topic rates: covariances, exact second moments and the laws of errors; each closed form against a slower road."""

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from derived.lab.rng import stream
from derived.papers.stochastic_approximation import (
    InfiniteOrderLinear,
    StepSize,
    linear_chain_moments,
    lyapunov_covariance,
    polyak_ruppert,
    rates,
    robbins_monro,
)
from derived.papers.stochastic_approximation.measures import law_distance
from derived.papers.stochastic_approximation.model.theory import (
    filtered_variance,
    long_run_covariance,
    rate_exponent,
    sa_weights,
)

EXPERIMENTS = (rates.Exponents, rates.Averaged, rates.Central, rates.Covariance, rates.InfiniteOrder)
examples = settings(derandomize=True, max_examples=30, deadline=None, database=None)


@examples
@given(st.integers(1, 4), st.integers(0, 2**31))
def test_the_covariance_solves_its_equation_and_kronecker_agrees(d, seed):
    g = stream(seed, "lyapunov")
    A = 2 * np.eye(d) + 0.3 * torch.randn(d, d, generator=g, dtype=torch.float64).numpy()
    root = torch.randn(d, d, generator=g, dtype=torch.float64).numpy()
    Gamma, a = root @ root.T, 1.7
    try:
        Sigma = lyapunov_covariance(A, Gamma, a)
    except ValueError:
        assert (a * np.linalg.eigvals(A).real).min() <= 0.5
        return
    pull = a * A - np.eye(d) / 2
    system = np.kron(pull, np.eye(d)) + np.kron(np.eye(d), pull)
    slow = np.linalg.solve(system, a**2 * Gamma.flatten()).reshape(d, d)
    allowed = 1e-13 * np.linalg.cond(system) * max(1.0, np.abs(slow).max())
    assert np.abs(Sigma - slow).max() <= allowed
    assert np.abs(Sigma - Sigma.T).max() <= allowed


@pytest.mark.parametrize(("A", "a"), [(0.5, 1.0), (1.0, 0.5), (-1.0, 1.0), (0.0, 1.0), ([[1.0, 0.0], [0.0, 0.4]], 1.0)])
def test_a_pull_too_weak_has_no_covariance(A, a):
    with pytest.raises(ValueError, match="a Re"):
        lyapunov_covariance(A, np.eye(2) if isinstance(A, list) else 1.0, a)


def test_the_gain_that_an_error_names_is_the_border():
    with pytest.raises(ValueError, match=r"give a gain a above 1\.25"):
        lyapunov_covariance(0.4, 1.0)
    assert lyapunov_covariance(0.4, 1.0, 1.3) > 0
    with pytest.raises(ValueError, match="not finite"):
        lyapunov_covariance(np.nan, 1.0)


@examples
@given(st.floats(0.1, 3), st.floats(0.2, 2), st.floats(0.5, 1), st.integers(1, 30))
def test_weights_are_those_of_the_loop(lam, a, alpha, steps):
    """Each sample alone, fed through the loop, leaves its weight."""
    step = StepSize(a, alpha)
    eye = torch.eye(steps, dtype=torch.float64)
    found = robbins_monro(lambda x, y: y - lam * x, eye, step, torch.zeros(steps, dtype=torch.float64)).x[-1]
    weights = sa_weights(step, steps, lam)
    assert np.abs(found.numpy() - weights).max() <= 1e-13 * max(1.0, np.abs(weights).max())


@examples
@given(st.integers(1, 40), st.integers(0, 2**31))
def test_a_filtered_variance_is_the_double_sum(steps, seed):
    g = stream(seed, "filter")
    weights, gamma = torch.randn(2, steps, generator=g, dtype=torch.float64).numpy()
    slow = sum(weights[i] * weights[j] * gamma[abs(i - j)] for i in range(steps) for j in range(steps))
    assert abs(filtered_variance(weights, gamma) - slow) <= 1e-13 * steps**2
    with pytest.raises(ValueError, match="lags"):
        filtered_variance(np.ones(steps + 1), gamma)


@pytest.mark.parametrize("lam", [0.3, 2.0])
def test_second_moments_are_those_of_the_weights(lam):
    step, steps, start = StepSize.power(1.0, 0.7), 60, 1.5
    last, average = rates.second_moments(lam, step, steps, start)
    kept = np.prod(1 - lam * step.values(steps).numpy())
    assert abs(last[-1] - (np.square(sa_weights(step, steps, lam)).sum() + (kept * start) ** 2)) <= 1e-12
    impulses = torch.cat([torch.eye(steps, dtype=torch.float64), torch.zeros(steps, 1, dtype=torch.float64)], dim=1)
    begin = torch.zeros(steps + 1, dtype=torch.float64)
    begin[-1] = start
    mean = polyak_ruppert(lambda x, y: y - lam * x, impulses, step, begin).x[-1]
    assert abs(average[-1] - mean.square().sum()) <= 1e-12


def test_exponents_and_long_run_sums():
    assert rate_exponent(2.0, [0.1, 1.0]).tolist() == [0.2, 0.5]
    with pytest.raises(ValueError, match="a lambda"):
        rate_exponent(1.0, [0.5, -1.0])
    gamma = 0.7 ** np.arange(200)
    assert abs(long_run_covariance(gamma) - 1.7 / 0.3) <= 1e-12
    steps = 100_000  # the variance of the mean, times n, tends to it at the rate 1/n
    padded = np.append(gamma, np.zeros(steps - 200))
    assert abs(steps * filtered_variance(np.full(steps, 1 / steps), padded) - 1.7 / 0.3) <= 40 / steps
    with pytest.raises(ValueError, match="lags"):
        long_run_covariance(np.ones((2, 2)))


@pytest.mark.parametrize("order", [1, 2, 7])
def test_a_chain_of_infinite_order_has_the_moments_of_its_equations(order):
    theta = 0.5 * np.ones(order) / order
    chain = linear_chain_moments(0.2, theta, lags=200)
    for k in range(1, 40):
        expected = sum(theta[j] * chain.gamma[abs(k - 1 - j)] for j in range(order))
        assert abs(chain.gamma[k] - expected) <= 1e-14
    assert abs(long_run_covariance(chain.gamma) - chain.long_run) <= 1e-9
    y = InfiniteOrderLinear(0.2, tuple(theta.tolist()), burn_in=200).draw(400, 2000, stream(0, "chain")).y
    error = (chain.long_run / y.numel()) ** 0.5
    assert abs(y.mean() - chain.mean) <= 4 * error
    assert abs(y.mean() - 0.2 / (1 - 0.4)) > 4 * error  # a sum of weights that is off by a fifth


def test_weights_fade_as_a_power():
    weights = np.array(rates.slow_weights(64))
    assert abs(weights.sum() - 0.6) <= 1e-14
    assert np.allclose(np.diff(np.log(weights)) / np.diff(np.log(np.arange(1, 65))), -2.5)


def test_simulated_errors_are_the_exact_ones(rows):
    table = rows[rates.Exponents]
    square = table.assign(square=table["rmse"] ** 2 / table["exact"] ** 2).groupby(["learner", "component"])["square"]
    assert (abs(square.mean() - 1) < 0.5).all()
    assert (table["scaled"] > 0).all()


def test_a_weak_pull_alone_slows_the_last_iterate():
    """Errors go as n^-1/2, the last iterate's at the gain 1/n as n^-lambda where lambda is below one half: then they
    are flat once scaled, up to what the start leaves."""
    size = rates.Exponents(groups=1, size=1, first=5000, steps=40_000)
    for learner, exponents in (("last", [-0.5, -0.5, -0.3]), ("average", [-0.5, -0.5, -0.5])):
        table = size.run({"learner": learner}, seed=0, device="cpu", dtype=torch.float64)
        assert table.groupby("component")["target"].unique().map(list).to_list() == [[each] for each in exponents]
        flat = (table["exact"] * table["n"] ** -table["target"]).groupby(table["component"])
        assert (flat.max() / flat.min() < 1.15).all()


def test_errors_are_of_the_predicted_size(rows):
    """300 squares of normals, at n = 100: within .45 of their mean; a variance off by a factor of two is not."""
    square = (rows[rates.Central]["z"] ** 2).groupby(rows[rates.Central]["component"]).mean()
    assert (abs(square - 1) < 0.45).all()


def test_gaps_and_efficiencies_fall(rows):
    gaps = rows[rates.Covariance].groupby("n")["gap"].max()
    assert gaps.is_monotonic_decreasing
    efficiency = rows[rates.Averaged].pivot_table(index="n", columns="lam", values="efficiency")
    assert (efficiency.diff().dropna() < 0).all(axis=None)
    n, lam, behind, weight = 2000, 0.3, 0.0, 0.0  # backwards over the steps: the squared weight of each one's noise
    for i in range(n, 0, -1):
        behind = 1 + (1 - lam * (i + 1) ** -0.7) * behind if i < n else 1.0
        weight += (i**-0.7 * behind / n) ** 2
    weight += ((1 - lam) * behind / n) ** 2  # of the start, at one
    assert efficiency.loc[n, lam] == pytest.approx(n * lam**2 * weight)


def test_the_distance_of_laws_covers_and_rejects():
    rng = np.random.default_rng(0)
    uniform = pd.DataFrame({"level": rng.uniform(size=4000)})
    found = law_distance("level")(uniform)
    assert abs(found.value - stats.kstest(uniform["level"], "uniform").statistic) <= 1e-12
    assert found.low == 0.0
    assert abs(found.high - found.value - (np.log(2000) / 8000) ** 0.5) <= 1e-12
    tilted = pd.DataFrame({"level": uniform["level"] ** 1.3})
    assert law_distance("level")(tilted).low > 0.03
    with pytest.raises(ValueError, match="no level"):
        law_distance("level")(pd.DataFrame({"level": [0.1, np.nan]}))
    cases = pd.concat([uniform.assign(k=0), tilted.assign(k=1)])
    assert law_distance("level", by=["k"])(cases).value == law_distance("level")(tilted).value


def test_a_missing_number_decides_nothing(rows, undecided_without):
    read = undecided_without(rows)
    assert all(read.values()), read


def test_both_spreads_are_a_variance_over_the_pull(rows):
    """SA-4: at the gain 1/n, s^2 Gamma / (2 lambda - 1), with Gamma of the long run, and of one value alone if the data
    were independent."""
    central, order = rows[rates.Central], rows[rates.InfiniteOrder]
    size = rates.Central.at("tiny")
    for component, (lam, scale) in enumerate(zip(size.lam, size.scale, strict=True)):
        some = central[central["component"] == component]
        for name, Gamma in (("predicted", order["long_run"].iloc[0]), ("naive", order["naive"].iloc[0])):
            np.testing.assert_allclose(some[name], scale**2 * Gamma / (2 * lam - 1), rtol=1e-9)
    assert (central["predicted"] > 1.5 * central["naive"]).all()
