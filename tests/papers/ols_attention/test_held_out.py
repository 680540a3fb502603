"""R8, R9: queries on which the layer was not made."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from least_squares_problems import make_problem, problems, token_loop
from torch import Tensor

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.ols_attention import held_out
from derived.papers.ols_attention.data.problems import random_rotation
from derived.papers.ols_attention.model import mechanism, theory


def batch_errors(p: int, n: int, draws: int, seed: int) -> Tensor:
    """Relative squared errors of self-attention on fresh whitened batches, straight from the layer."""
    b = torch.ones(p, 1, dtype=torch.float64)
    identity = torch.eye(p, dtype=torch.float64)
    layer = mechanism.OLSTransformer(mechanism.Weights(identity, identity, identity, identity, b))
    Xq = torch.randn(draws, n, p, generator=stream(seed, "batches", p, n), dtype=torch.float64)
    return (layer(Xq) - Xq @ b).square().mean(dim=(-2, -1)) / b.square().sum()


@given(problems(max_kappa=100.0), st.integers(1, 9))
def test_r8_held_out_queries(problem, num_queries):
    """R8: (a) X~ Sigma^+ Sigma~ B, (b) and (c) X~ B for any query; against LAPACK's prediction and the token loop.

    Bears `ols-held-out`.
    """
    X, Y = problem.X, problem.Y
    Xq = problem.normal(num_queries, X.shape[1])
    layer = mechanism.OLSTransformer.from_data(X, Y)
    weights = mechanism.Weights(layer.W_Q, layer.W_K, layer.W_V, layer.W_FFN, layer.W_p)
    prediction = Xq @ problem.coefficients
    lapack = Xq @ torch.from_numpy(np.linalg.lstsq(X.numpy(), Y.numpy(), rcond=1e-10)[0])
    tolerance = problem.tolerance(Xq)
    for answer in (layer(Xq, context=X), mechanism.in_context_ols(Xq, X, Y), token_loop(Xq, X, weights), lapack):
        assert (answer - prediction).norm() <= tolerance
    tolerance = problem.tolerance(Xq, self_attention=True)
    inverse = len(X) * (problem.V / problem.s**2) @ problem.V.T
    expected = Xq @ inverse @ theory.second_moment(Xq) @ problem.coefficients
    for answer in (layer(Xq), theory.held_out_self_attention(Xq, X, Y), token_loop(Xq, Xq, weights)):
        assert (answer - expected).norm() <= tolerance
    single = Xq[:1]
    leverage = (single @ inverse @ single.T).squeeze()
    assert (layer(single) - leverage * (single @ problem.coefficients)).norm() <= problem.tolerance(
        single, self_attention=True
    )


def test_r8_self_attention_is_right_only_where_the_moments_agree():
    """R8 (a): the OLS prediction iff Sigma~ B = Sigma B; a scale c multiplies it by c^2 in every direction.

    Bears `ols-held-out`.
    """
    problem = make_problem(30, 3, 1, 3, 3.0, seed=6)
    layer = mechanism.OLSTransformer.from_data(problem.X, problem.Y)
    for c in (0.25, 1.0, 4.0):
        Xq = c * problem.X
        expected = c**2 * (Xq @ problem.coefficients)
        assert (layer(Xq) - expected).norm() <= problem.tolerance(Xq, self_attention=True)
    R = random_rotation(30, generator=stream(6, "rotate"))
    same_moment = R @ problem.X  # other tokens, the same second moment
    assert (layer(same_moment) - same_moment @ problem.coefficients).norm() <= problem.tolerance(
        same_moment, self_attention=True
    )
    # a moment that agrees with Sigma on B alone is enough: stretch the whitened tokens across b = Sigma^{1/2} B
    b = problem.C / problem.C.norm()
    stretched = problem.U @ (torch.eye(3, dtype=torch.float64) + 4 * (torch.eye(3, dtype=torch.float64) - b @ b.T))
    partial = (stretched * problem.s) @ problem.V.T
    assert (theory.second_moment(partial) - theory.second_moment(problem.X)).norm() > 1
    assert (layer(partial) - partial @ problem.coefficients).norm() <= problem.tolerance(partial, self_attention=True)


@pytest.mark.parametrize(("p", "n"), [(1, 1), (1, 20), (4, 7), (6, 50)])
def test_r9_in_distribution_batch_error(p, n):
    """R9: (p+1)/n + (p^2+3p+4)/n^2 within 4 standard errors; the test rejects the formula without its second term.

    Bears `ols-batch-error`.
    """
    errors = batch_errors(p, n, 40_000, seed=7)
    standard_error = errors.std() / len(errors) ** 0.5
    assert abs(errors.mean() - theory.batch_error(p, n)) < 4 * standard_error
    assert abs(errors.mean() - (p + 1) / n) > 4 * standard_error


def test_r9_scalar_moments_are_those_of_chi_square():
    """`ols-wishart`, R9, p = 1: E (chi^2_n / n)^k is n (n+2) ... (n+2k-2) / n^k."""
    for n in (1, 2, 9):
        np.testing.assert_allclose(
            theory.wishart_moments(1, n), (1, (n + 2) / n, (n + 2) * (n + 4) / n**2), rtol=4 * np.finfo(float).eps
        )


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norms_of_a_gaussian_vector(p):
    """`ols-norms` by a product rule of Gauss and Hermite, exact for these polynomials."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(10)
    g = np.stack(np.meshgrid(*[nodes] * p, indexing="ij")).reshape(p, -1)
    w = np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * p, indexing="ij")).reshape(p, -1), axis=0)
    square = (g**2).sum(axis=0)
    for k in (1, 2, 3, 4):
        factors = p + 2 * np.arange(k)
        np.testing.assert_allclose(w @ square**k, np.prod(factors), rtol=1e-12)
        moment = (w * square ** (k - 1) * g) @ g.T
        np.testing.assert_allclose(moment, np.prod(factors[1:]) * np.eye(p), atol=1e-11 * np.prod(factors))


def test_wishart_moments_by_simulation():
    """`ols-wishart` at p = 3, n = 5: all entries of E S^k within 5 standard errors, 5 % more is rejected."""
    p, n = 3, 5
    g = torch.randn(200_000, n, p, generator=stream(41, "wishart"), dtype=torch.float64)
    S = g.mT @ g / n
    power = S
    for value in theory.wishart_moments(p, n):
        error = power.std(dim=0) / len(S) ** 0.5
        assert ((power.mean(dim=0) - float(value) * torch.eye(p)).abs() < 5 * error).all()
        assert (power.mean(dim=0) - 1.05 * float(value) * torch.eye(p)).diagonal().abs().max() > 5 * error.max()
        power = power @ S


def test_a_quarter_turn_swaps_the_widest_axis_with_the_narrowest():
    """OLS-8: in two dimensions of condition number kappa, self-attention then multiplies the coefficients by kappa and
    1/kappa. Half of all B have |b_1| > |b_2|, so that the median error is that of equal ones; kappa^2 is rejected."""
    kappa = 4.0
    turned = held_out.Shift(amounts=(1.0,), angles=(1.0,), n=4000, p=2, kappa=kappa, replicates=400)
    rows = run_experiment(turned, seed=0, device="cpu").query("shift == 'rotation' and method == 'self'")

    def median(k: float) -> float:
        return ((k * (k - 1) ** 2 + (1 / k - 1) ** 2) / (k + 1)) ** 0.5

    found = rows["error"].median()
    assert found == pytest.approx(median(kappa), rel=0.05)
    assert found != pytest.approx(median(kappa**2), rel=0.5)
    assert rows["error"].between(0.95 * (1 - 1 / kappa), 1.05 * 1.1 * (kappa - 1)).all()
