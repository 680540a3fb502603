"""R1-R7: every problem comes with its exact answer, and each quantity meets three independent witnesses."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from least_squares_problems import make_problem, problems, token_loop
from sklearn.linear_model import LinearRegression, Ridge
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.ols_attention.data.problems import random_regression, random_rotation
from derived.papers.ols_attention.model import theory
from derived.papers.ols_attention.model.mechanism import (
    OLSTransformer,
    Weights,
    in_context_ols,
    linear_attention,
    ridge_weights,
    tied_weights,
    whitening,
)


@given(problems())
def test_r1_one_forward_pass_is_the_least_squares_fit(problem):
    """`ols-forward-pass`, R1 (with R5 for the rank-deficient draws): LA(X) W_FFN W_p = X X^+ Y."""
    X, Y = problem.X, problem.Y
    layer = OLSTransformer.from_data(X, Y)
    weights = Weights(layer.W_Q, layer.W_K, layer.W_V, layer.W_FFN, layer.W_p)
    lapack = X.numpy() @ np.linalg.lstsq(X.numpy(), Y.numpy(), rcond=1e-10)[0]
    sklearn = LinearRegression(fit_intercept=False, tol=1e-10).fit(X.numpy(), Y.numpy()).predict(X.numpy())
    witnesses = (problem.fit, token_loop(X, X, weights), torch.from_numpy(lapack), torch.from_numpy(sklearn))
    for witness in witnesses:
        assert (layer(X) - witness.reshape(Y.shape)).norm() <= problem.tolerance()


@given(problems(), st.integers(1, 6))
def test_r2_master_identity_holds_for_every_L(problem, d):
    """R2: LA(X) P = H_L^2 Y for any L, here with singular values of order one so that no whitening hides in it.

    Bears `ols-master`.
    """
    X, Y = problem.X, problem.Y
    L = problem.normal(X.shape[1], d) / X.norm() * len(X) ** 0.5
    H = theory.smoother(X, L)
    weights = tied_weights(X, Y, L)
    tolerance = problem.tolerance() * max(1.0, float(torch.linalg.matrix_norm(X @ L, 2)) ** 4 / len(X) ** 2)
    assert (OLSTransformer(weights)(X) - H @ H @ Y).norm() <= tolerance
    assert (token_loop(X, X, weights) - H @ H @ Y).norm() <= tolerance


@given(problems())
def test_r2_the_attention_matrix_is_the_hat_matrix(problem):
    """`ols-hat`, R2, 5.4: A = H = U U^T, symmetric and idempotent with trace r; leverages lie in [0, 1]."""
    X = problem.X
    A = OLSTransformer.from_data(X, problem.Y).attention_matrix(X)
    tolerance = float(2 * theory.rounding_bound(X)) * len(problem.s) ** 0.5
    assert (A - problem.U @ problem.U.T).norm() <= tolerance
    assert (A - theory.hat_matrix(X)).norm() <= tolerance
    assert (A @ A - A).norm() <= 2 * tolerance
    assert torch.equal(A, A.T) or (A - A.T).norm() <= tolerance
    assert abs(A.trace() - len(problem.s)) <= tolerance * len(X) ** 0.5
    assert A.diagonal().min() >= -tolerance
    assert A.diagonal().max() <= 1 + tolerance
    if X.shape[1] == len(problem.s):
        Q = torch.linalg.qr(X).Q
        assert (A - Q @ Q.T).norm() <= tolerance


@given(problems())
def test_r3_attention_is_inert_in_sample(problem):
    """`ols-hat`, R3: LA(X) = XL on the training tokens, so that X -> XLP alone is the least-squares fit."""
    X = problem.X
    L = whitening(X)
    values = X @ L
    tolerance = float(2 * theory.rounding_bound(X)) * values.norm()
    assert (linear_attention(values, values, values) - values).norm() <= tolerance
    assert (values @ tied_weights(X, problem.Y, L).W_p - problem.fit).norm() <= problem.tolerance()


@given(problems())
def test_r5_minimum_norm_coefficients(problem):
    """`ols-whitening`, `ols-forward-pass`, R5: L P = X^+ Y and L L^T = Sigma^+, whatever the rank."""
    X, Y = problem.X, problem.Y
    L = whitening(X)
    assert L.shape == (X.shape[1], len(problem.s))
    scale = float(problem.s[-1])
    tolerance = problem.tolerance() / scale
    coefficients = L @ tied_weights(X, Y, L).W_p
    for witness in (problem.coefficients, torch.linalg.pinv(X, rtol=1e-10) @ Y, theory.ols_coefficients(X, Y)):
        assert (coefficients - witness).norm() <= tolerance
    inverse = len(X) * (problem.V / problem.s**2) @ problem.V.T
    assert (L @ L.T - inverse).norm() <= 2 * theory.rounding_bound(X) * len(X) / scale**2
    assert ((X @ L).T @ (X @ L) / len(X) - torch.eye(len(problem.s))).norm() <= 4 * theory.rounding_bound(X) * X.shape[
        1
    ]


@pytest.mark.parametrize(("n", "p"), [(1, 1), (1, 3), (4, 4), (4, 9)])
def test_r5_interpolates_when_the_rank_is_n(n, p):
    """`ols-forward-pass`, R5, limit n -> p and beyond: rank X = n gives output Y."""
    problem = make_problem(n, p, 2, n, 10.0 if n > 1 else 1.0, seed=n + 10 * p)
    assert (OLSTransformer.from_data(problem.X, problem.Y)(problem.X) - problem.Y).norm() <= problem.tolerance()


def test_r5_inputs_that_are_zero_predict_zero():
    """R5 at rank 0: X = 0 has X^+ = 0."""
    X, Y = torch.zeros(3, 2, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64)
    assert torch.equal(OLSTransformer.from_data(X, Y)(X), torch.zeros_like(Y))
    assert torch.equal(in_context_ols(X, X, Y), torch.zeros_like(Y))


@given(problems(), st.floats(1e-3, 10.0))
def test_r6_ridge_once_and_twice(problem, ridge):
    """R6: L_lambda in all three places outputs H_lambda^2 Y; in query and key alone, H_lambda Y: penalty n lambda.

    Bears `ols-ridge`.
    """
    X, Y = problem.X, problem.Y
    twice = OLSTransformer(tied_weights(X, Y, whitening(X, ridge)))(X)
    once = OLSTransformer.from_data(X, Y, ridge)(X)
    assert (twice - problem.ridge_fit(ridge, times=2)).norm() <= problem.tolerance()
    n, p = X.shape
    augmented = np.linalg.lstsq(
        np.vstack([X, (n * ridge) ** 0.5 * np.eye(p)]), np.vstack([Y, np.zeros((p, Y.shape[1]))]), rcond=None
    )[0]
    sklearn = Ridge(alpha=n * ridge, fit_intercept=False, solver="svd").fit(X.numpy(), Y.numpy()).predict(X.numpy())
    witnesses = (
        problem.ridge_fit(ridge),
        X @ theory.ols_coefficients(X, Y, ridge),
        in_context_ols(X, X, Y, ridge),
        X @ torch.from_numpy(augmented),
        torch.from_numpy(sklearn).reshape(Y.shape),
        token_loop(X, X, ridge_weights(X, Y, ridge)),
    )
    for witness in witnesses:
        assert (once - witness).norm() <= problem.tolerance()


def test_r6_spectral_filters():
    """R6: the factors along each eigenvector, and zero where the eigenvalue is zero."""
    eigenvalues = np.array([0.0, 0.5, 2.0])
    f = np.array([0.0, 0.5, 0.8])
    np.testing.assert_allclose(theory.spectral_filter(eigenvalues, 0.5, "ridge"), f, rtol=4e-16)
    np.testing.assert_allclose(theory.spectral_filter(eigenvalues, 0.5, "regularised"), f**2, rtol=4e-16)
    np.testing.assert_allclose(theory.spectral_filter(eigenvalues, 0.5, "repaired"), f, rtol=4e-16)
    np.testing.assert_array_equal(theory.spectral_filter(eigenvalues, 0.0, "ols"), [0, 1, 1])
    problem = make_problem(9, 3, 1, 3, 4.0, seed=5)
    factors = torch.from_numpy(theory.spectral_filter((problem.s**2 / 9).numpy(), 0.7, "repaired"))
    fit = OLSTransformer.from_data(problem.X, problem.Y, 0.7)(problem.X)
    assert (problem.U.T @ fit - factors[:, None] * problem.C).norm() <= problem.tolerance()


@given(problems(full_rank=True, max_kappa=100.0))
def test_r7_many_weights_give_the_same_fit(problem):
    """R7: L -> LR with R orthogonal, and untied weights with W_Q W_K^T Sigma W_V W_p = B."""
    X, Y = problem.X, problem.Y
    p = X.shape[1]
    L, R = whitening(X), random_rotation(p, generator=stream(problem.seed, "R"))
    assert (OLSTransformer(tied_weights(X, Y, L @ R))(X) - problem.fit).norm() <= problem.tolerance()
    G = random_rotation(p, generator=stream(problem.seed, "G")) * (1 + torch.arange(p, dtype=X.dtype))
    identity = torch.eye(p, dtype=X.dtype)
    untied = Weights(L @ L.T @ G, torch.linalg.inv(G).T, identity, identity, theory.ols_coefficients(X, Y))
    amplified = problem.tolerance() * float(problem.s[0] / problem.s[-1]) * p**2  # kappa(X) once more, kappa(G) = p
    assert (OLSTransformer(untied)(X) - problem.fit).norm() <= amplified


@pytest.mark.parametrize(("nq", "n", "p", "d", "e", "m"), [(1, 1, 1, 1, 1, 1), (2, 5, 3, 4, 2, 3), (6, 3, 2, 1, 5, 1)])
def test_r7_untied_layer_is_the_token_loop(nq, n, p, d, e, m):
    """R7: with five unrelated weights queries, keys and values keep their places, in the output and in the scores."""
    g = stream(38, nq, n, p, d, e, m)
    shapes = ((p, d), (p, d), (p, e), (e, e), (e, m), (nq, p), (n, p))
    *matrices, x, context = (torch.randn(*shape, generator=g, dtype=torch.float64) for shape in shapes)
    weights = Weights(*matrices)
    layer = OLSTransformer(weights)
    norms = float(torch.stack([matrix.norm() for matrix in matrices]).prod())
    tolerance = 2 * (n + 2 * p + d + 2 * e) * torch.finfo(torch.float64).eps * norms * x.norm() * context.norm() ** 2
    assert (layer(x, context) - token_loop(x, context, weights)).norm() <= tolerance
    scores = torch.stack([torch.stack([(weights.W_Q.T @ q) @ (weights.W_K.T @ c) for c in context]) for q in x])
    assert (layer.attention_matrix(x, context) - scores / n).norm() <= tolerance
    assert (layer(x) - token_loop(x, x, weights)).norm() <= tolerance * max(
        1, float(x.norm() / context.norm()) ** 2
    ) * n


def test_a_batch_is_its_members():
    """Batch axes: two data sets of different rank at once agree with one at a time."""
    pair = [make_problem(6, 4, 2, rank, 3.0, seed=rank) for rank in (2, 4)]
    X, Y = torch.stack([q.X for q in pair]), torch.stack([q.Y for q in pair])
    layer = OLSTransformer.from_data(X, Y)
    predicted = in_context_ols(X, X, Y)
    for i, problem in enumerate(pair):
        assert (layer(X)[i] - problem.fit).norm() <= problem.tolerance()
        assert (predicted[i] - problem.fit).norm() <= problem.tolerance()
        assert (theory.ols_coefficients(X, Y)[i] - problem.coefficients).norm() <= problem.tolerance() / problem.s[-1]


@pytest.mark.parametrize("kappa", [10.0, 1e3, 1e7])
def test_least_squares_of_full_rank_loses_kappa_and_not_its_square(kappa):
    """Cholesky alone loses eps kappa^2: one step of refinement mends it, and where that is not enough QR takes over."""
    X = random_regression(60, 4, kappa=kappa**2, batch=(8,), generator=stream(0, "full rank")).X
    ones = torch.ones(4, 1, dtype=torch.float64)
    gap = theory.ols_coefficients(X, X @ ones, method="full rank") - ones
    assert float(gap.abs().max()) <= 100 * torch.finfo(torch.float64).eps * kappa


@given(problems(full_rank=True))
def test_least_squares_of_full_rank_agrees_with_the_singular_value_route(problem):
    gap = theory.ols_coefficients(problem.X, problem.Y, method="full rank") - problem.coefficients
    assert gap.norm() <= problem.tolerance() / problem.s[-1]


def test_whitening_never_squares_the_condition_number():
    """5.1 at kappa = 1e6 with pure noise as response: the error stays near eps kappa, eigh(X^T X) loses eps kappa^2."""
    problem = make_problem(60, 3, 1, 3, 1e6, seed=10)
    Y = problem.U.sum(dim=1, keepdim=True)

    def gap(L: Tensor) -> float:
        return float((OLSTransformer(tied_weights(problem.X, Y, L))(problem.X) - Y).norm() / Y.norm())

    eigenvalues, V = torch.linalg.eigh(theory.second_moment(problem.X))
    assert gap(whitening(problem.X)) <= 2 * theory.rounding_bound(problem.X)
    assert gap(whitening(problem.X)) < 1e-3 * gap(V / eigenvalues.sqrt())


@pytest.mark.parametrize(("nq", "n", "d", "e"), [(1, 1, 1, 1), (5, 7, 3, 2), (2, 3, 9, 8)])
def test_linear_attention_in_both_orders_is_the_double_sum(nq, n, d, e):
    """(q k^T) v / n = q (k^T v) / n = the sum over tokens, and "auto" is one of the two."""
    g = stream(11, "qkv", nq, n, d, e)
    q, k, v = (torch.randn(*shape, generator=g, dtype=torch.float64) for shape in ((nq, d), (n, d), (n, e)))
    loop = torch.stack([sum((row @ k[j]) * v[j] for j in range(n)) for row in q])
    tolerance = 2 * (n + d) * torch.finfo(torch.float64).eps * q.norm() * k.norm() * v.norm()
    for order in ("scores", "state", "auto"):
        assert (linear_attention(q, k, v, order=order) - loop / n).norm() <= tolerance
        assert (linear_attention(q, k, v, order=order, normalize=False) - loop).norm() <= tolerance


def test_bfloat16_accumulates_in_single_precision():
    """With half-precision inputs only inputs and output are rounded: 257 - 256 is 1, though bfloat16 has no 257."""
    ones = torch.ones(257, 2, dtype=torch.bfloat16)
    k = ones.clone()
    k[0, 1] = 0  # the state k^T 1 is (257, 256)
    q, v = torch.tensor([[1.0, -1.0]], dtype=torch.bfloat16), ones[:, :1]
    assert float(linear_attention(q, k, v, normalize=False, order="state")) == 1.0
    out = linear_attention(v.T, k.T, q.T, normalize=False, order="scores")  # the scores 1^T k are (257, 256)
    assert float(out) == 1.0
    assert out.dtype == torch.bfloat16


@given(problems(max_kappa=100.0))
def test_the_one_tolerance_in_single_precision(problem):
    """The float32 layer is within 12 max(n, p) r kappa eps of the float64 one on the same numbers."""
    X, Y = problem.X.float(), problem.Y.float()
    L = whitening(problem.X.float().double(), rcond=1e-5)
    exact = OLSTransformer(tied_weights(X.double(), Y.double(), L))(X.double())
    low = whitening(X, rcond=1e-5)
    gap = (OLSTransformer(tied_weights(X, Y, low))(X) - exact).norm()
    rank = len(problem.s)
    bound = 12 * max(X.shape) * rank * float(problem.s[0] / problem.s[-1]) * torch.finfo(torch.float32).eps
    assert L.shape[1] == low.shape[1] == rank
    assert gap <= bound * Y.norm()


def test_the_tolerance_of_queries_is_the_derived_one():
    """Six tokens of singular values 3 and 1, three queries of norm 2: 12 * 6 * 2 * 3 eps, times 2, or (6 / 3) 2^3."""
    X, Xq = torch.zeros(6, 2, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64)
    X[0, 0], X[1, 1], Xq[0, 0] = 3.0, 1.0, 2.0
    alone = theory.rounding_bound(X).item()
    assert alone == pytest.approx(12 * 6 * 2 * 3 * torch.finfo(torch.float64).eps, rel=1e-12, abs=0)
    assert theory.rounding_bound(X, Xq).item() == pytest.approx(2 * alone, rel=1e-12, abs=0)
    assert theory.rounding_bound(X, Xq, self_attention=True).item() == pytest.approx(16 * alone, rel=1e-12, abs=0)
    more = torch.cat([Xq, Xq, Xq])  # nine queries: they are more than the tokens
    gain = torch.linalg.matrix_norm(more, ord=2).item()
    assert theory.rounding_bound(X, more).item() == pytest.approx(gain * 9 / 6 * alone, rel=1e-12, abs=0)


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_equal_singular_values_have_a_derivative_of_the_fit_and_none_of_their_vectors(ridge):
    X, Y = torch.eye(4, 3, dtype=torch.float64).requires_grad_(), torch.arange(4.0, dtype=torch.float64)[:, None]
    assert torch.autograd.gradcheck(lambda X: theory.ols_coefficients(X, Y, ridge), (X,))
    with pytest.raises(ValueError, match="equal singular values, whose vectors have no derivative"):
        whitening(X, ridge)
    graded, plain = (theory.ols_coefficients(each, Y, ridge) for each in (X, X.detach()))
    torch.testing.assert_close(graded.detach(), plain)


@pytest.mark.parametrize("rows", [2, 5])
def test_the_fit_with_a_gradient_is_that_without_one(rows):
    X = torch.randn(rows, 3, generator=stream(0, "with a gradient", rows), dtype=torch.float64)
    Y = torch.randn(rows, 2, generator=stream(0, "its labels", rows), dtype=torch.float64)
    graded, plain = (theory.ols_coefficients(each, Y) for each in (X.clone().requires_grad_(), X))
    torch.testing.assert_close(graded.detach(), plain)
