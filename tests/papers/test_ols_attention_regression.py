"""R1-R9 and R11: every problem comes with its exact answer, and each quantity meets three independent witnesses."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.ols_attention.data import random_regression, random_rotation
from derived.papers.ols_attention.mechanism import (
    OLSTransformer,
    Weights,
    in_context_ols,
    linear_attention,
    ridge_weights,
    softmax_read_out,
    softmax_regression,
    tied_weights,
    whitening,
)
from derived.papers.ols_attention.theory import (
    batch_error,
    hat_matrix,
    held_out_self_attention,
    ols_coefficients,
    ols_with_intercept,
    ridge_smoother,
    rounding_bound,
    second_moment,
    smoother,
    softmax_dial_error,
    spectral_filter,
    wishart_moments,
)

examples = settings(derandomize=True, max_examples=30, deadline=None, database=None)


@dataclass(frozen=True)
class Problem:
    """X = U diag(s) V^T of rank r and Y = U C + residual, so that fit, coefficients and hat matrix are known."""

    X: Tensor  # (n, p)
    Y: Tensor  # (n, m)
    U: Tensor  # (n, r)
    s: Tensor  # (r,)
    V: Tensor  # (p, r)
    C: Tensor  # (r, m)
    seed: int

    @property
    def fit(self) -> Tensor:
        return self.U @ self.C

    @property
    def coefficients(self) -> Tensor:
        return self.V @ (self.C / self.s[:, None])

    def ridge_fit(self, ridge: float, times: int = 1) -> Tensor:
        f = self.s**2 / (self.s**2 + len(self.X) * ridge)
        return self.U @ (f[:, None] ** times * self.C)

    def tolerance(self, Xq: Tensor | None = None, *, self_attention: bool = False) -> float:
        """Two computations, or one of them and the rounding of X itself: twice the bound."""
        return float(2 * rounding_bound(self.X, Xq, self_attention=self_attention) * self.Y.norm())

    def normal(self, *shape: int, name: str = "extra") -> Tensor:
        return torch.randn(*shape, generator=stream(self.seed, name), dtype=torch.float64)


def make_problem(n: int, p: int, m: int, rank: int, kappa: float, seed: int) -> Problem:
    g = stream(seed, "problem", n, p, m, rank)
    frame = random_rotation(n, generator=g)
    U, V = frame[:, :rank], random_rotation(p, generator=g)[:, :rank]
    s = torch.from_numpy(np.geomspace(kappa, 1.0, rank)) * n**0.5
    C = torch.randn(rank, m, generator=g, dtype=torch.float64)
    residual = frame[:, rank:] @ torch.randn(n - rank, m, generator=g, dtype=torch.float64)
    return Problem((U * s) @ V.T, U @ C + residual, U, s, V, C, seed)


@st.composite
def problems(draw, *, full_rank: bool = False, max_kappa: float = 1e4) -> Problem:
    n, p, m = draw(st.integers(1, 12)), draw(st.integers(1, 8)), draw(st.integers(1, 3))
    if full_rank:
        n, p = max(n, p), min(n, p)
    rank = p if full_rank else draw(st.integers(1, min(n, p)))
    kappa = 10 ** draw(st.floats(0, np.log10(max_kappa)))
    return make_problem(n, p, m, rank, kappa if rank > 1 else 1.0, draw(st.integers(0, 2**31)))


def token_loop(x: Tensor, context: Tensor, weights: Weights) -> Tensor:
    """The layer spelt out token by token: slow and obvious."""
    W_Q, W_K, W_V, W_FFN, W_p = weights
    rows = []
    for query in x:
        attended = torch.zeros(W_V.shape[1], dtype=x.dtype)
        for token in context:
            score = (W_Q.T @ query) @ (W_K.T @ token)
            attended = attended + score * (W_V.T @ token) / len(context)
        rows.append(W_p.T @ (W_FFN.T @ attended))
    return torch.stack(rows)


@examples
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


def test_r1_in_single_precision():
    """R1 in float32: the same bound with the eps of float32, and it is small enough to mean something."""
    problem = make_problem(50, 4, 2, 4, 3.0, seed=1)
    X, Y = problem.X.float(), problem.Y.float()
    gap = (OLSTransformer.from_data(X, Y)(X) - problem.fit).norm() / Y.norm()
    assert gap <= 2 * rounding_bound(X) < 0.01
    assert gap < 1e-5


@examples
@given(problems(), st.integers(1, 6))
def test_r2_master_identity_holds_for_every_L(problem, d):
    """R2: LA(X) P = H_L^2 Y for any L, here with singular values of order one so that no whitening hides in it.

    Bears `ols-master`.
    """
    X, Y = problem.X, problem.Y
    L = problem.normal(X.shape[1], d) / X.norm() * len(X) ** 0.5
    H = smoother(X, L)
    weights = tied_weights(X, Y, L)
    tolerance = problem.tolerance() * max(1.0, float(torch.linalg.matrix_norm(X @ L, 2)) ** 4 / len(X) ** 2)
    assert (OLSTransformer(weights)(X) - H @ H @ Y).norm() <= tolerance
    assert (token_loop(X, X, weights) - H @ H @ Y).norm() <= tolerance


@examples
@given(problems())
def test_r2_the_attention_matrix_is_the_hat_matrix(problem):
    """`ols-hat`, R2, 5.4: A = H = U U^T, symmetric and idempotent with trace r; leverages lie in [0, 1]."""
    X = problem.X
    A = OLSTransformer.from_data(X, problem.Y).attention_matrix(X)
    tolerance = float(2 * rounding_bound(X)) * len(problem.s) ** 0.5
    assert (A - problem.U @ problem.U.T).norm() <= tolerance
    assert (A - hat_matrix(X)).norm() <= tolerance
    assert (A @ A - A).norm() <= 2 * tolerance
    assert torch.equal(A, A.T) or (A - A.T).norm() <= tolerance
    assert abs(A.trace() - len(problem.s)) <= tolerance * len(X) ** 0.5
    assert A.diagonal().min() >= -tolerance
    assert A.diagonal().max() <= 1 + tolerance
    if X.shape[1] == len(problem.s):
        Q = torch.linalg.qr(X).Q
        assert (A - Q @ Q.T).norm() <= tolerance


@examples
@given(problems())
def test_r3_attention_is_inert_in_sample(problem):
    """`ols-inert`, R3: LA(X) = XL on the training tokens, so that X -> XLP alone is the least-squares fit."""
    X = problem.X
    L = whitening(X)
    values = X @ L
    tolerance = float(2 * rounding_bound(X)) * values.norm()
    assert (linear_attention(values, values, values) - values).norm() <= tolerance
    assert (values @ tied_weights(X, problem.Y, L).W_p - problem.fit).norm() <= problem.tolerance()


@examples
@given(problems(), st.floats(0.25, 4.0))
def test_r4_fixed_weights_are_homogeneous_of_degree_three(problem, c):
    """`ols-quantifiers`, R4: f_W(cX) = c^3 f_W(X), while the least-squares fit of (cX, Y) does not move."""
    layer = OLSTransformer.from_data(problem.X, problem.Y)
    tolerance = problem.tolerance(c * problem.X, self_attention=True)
    assert (layer(c * problem.X) - c**3 * problem.fit).norm() <= tolerance
    refit = OLSTransformer.from_data(c * problem.X, problem.Y)(c * problem.X)
    assert (refit - problem.fit).norm() <= problem.tolerance()
    if abs(c - 1) > 0.01 and problem.fit.norm() > 0.1:
        assert (layer(c * problem.X) - problem.fit).norm() > 0.9 * abs(c**3 - 1) * problem.fit.norm()


@examples
@given(problems())
def test_r5_minimum_norm_coefficients(problem):
    """`ols-whitening`, `ols-factored`, `ols-rank`, R5: L P = X^+ Y and L L^T = Sigma^+, whatever the rank."""
    X, Y = problem.X, problem.Y
    L = whitening(X)
    assert L.shape == (X.shape[1], len(problem.s))
    scale = float(problem.s[-1])
    tolerance = problem.tolerance() / scale
    coefficients = L @ tied_weights(X, Y, L).W_p
    for witness in (problem.coefficients, torch.linalg.pinv(X, rtol=1e-10) @ Y, ols_coefficients(X, Y)):
        assert (coefficients - witness).norm() <= tolerance
    inverse = len(X) * (problem.V / problem.s**2) @ problem.V.T
    assert (L @ L.T - inverse).norm() <= 2 * rounding_bound(X) * len(X) / scale**2
    assert (L.T @ second_moment(X) @ L - torch.eye(len(problem.s))).norm() <= 4 * rounding_bound(X) * X.shape[1]


@pytest.mark.parametrize(("n", "p"), [(1, 1), (1, 3), (4, 4), (4, 9)])
def test_r5_interpolates_when_the_rank_is_n(n, p):
    """`ols-rank`, R5, limit n -> p and beyond: rank X = n gives output Y."""
    problem = make_problem(n, p, 2, n, 10.0 if n > 1 else 1.0, seed=n + 10 * p)
    assert (OLSTransformer.from_data(problem.X, problem.Y)(problem.X) - problem.Y).norm() <= problem.tolerance()


def test_r5_inputs_that_are_zero_predict_zero():
    """R5 at rank 0: X = 0 has X^+ = 0."""
    X, Y = torch.zeros(3, 2, dtype=torch.float64), torch.ones(3, 1, dtype=torch.float64)
    assert torch.equal(OLSTransformer.from_data(X, Y)(X), torch.zeros_like(Y))
    assert torch.equal(in_context_ols(X, X, Y), torch.zeros_like(Y))


@examples
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
        ridge_smoother(X, ridge) @ Y,
        X @ ols_coefficients(X, Y, ridge),
        in_context_ols(X, X, Y, ridge),
        X @ torch.from_numpy(augmented),
        torch.from_numpy(sklearn).reshape(Y.shape),
        token_loop(X, X, ridge_weights(X, Y, ridge)),
    )
    for witness in witnesses:
        assert (once - witness).norm() <= problem.tolerance()


def test_r6_the_trap_is_visible():
    """R6: at a penalty of the order of the smallest eigenvalue the two fits differ by more than 1 %."""
    problem = make_problem(40, 5, 1, 5, 10.0, seed=3)
    twice = OLSTransformer(tied_weights(problem.X, problem.Y, whitening(problem.X, 1.0)))(problem.X)
    once = OLSTransformer.from_data(problem.X, problem.Y, 1.0)(problem.X)
    assert (once - twice).norm() > 0.01 * once.norm()


def test_r6_limits_of_the_penalty():
    """R6: lambda -> 0 gives least squares with an error proportional to lambda, lambda -> infinity gives zero."""
    problem = make_problem(20, 4, 2, 4, 5.0, seed=4)
    gaps = [
        float((OLSTransformer.from_data(problem.X, problem.Y, ridge)(problem.X) - problem.fit).norm())
        for ridge in (1e-4, 1e-5)
    ]
    assert abs(gaps[0] / gaps[1] - 10) < 0.01  # (1 - f) = lambda / (lambda_i + lambda), and lambda_i >= 1
    assert OLSTransformer.from_data(problem.X, problem.Y, 1e12)(problem.X).norm() < 1e-9 * problem.Y.norm()


def test_r6_spectral_filters():
    """R6: the factors along each eigenvector, and zero where the eigenvalue is zero."""
    eigenvalues = np.array([0.0, 0.5, 2.0])
    f = np.array([0.0, 0.5, 0.8])
    np.testing.assert_allclose(spectral_filter(eigenvalues, 0.5, "ridge"), f, rtol=4e-16)
    np.testing.assert_allclose(spectral_filter(eigenvalues, 0.5, "regularised"), f**2, rtol=4e-16)
    np.testing.assert_allclose(spectral_filter(eigenvalues, 0.5, "repaired"), f, rtol=4e-16)
    np.testing.assert_array_equal(spectral_filter(eigenvalues, 0.0, "ols"), [0, 1, 1])
    problem = make_problem(9, 3, 1, 3, 4.0, seed=5)
    factors = torch.from_numpy(spectral_filter((problem.s**2 / 9).numpy(), 0.7, "repaired"))
    fit = OLSTransformer.from_data(problem.X, problem.Y, 0.7)(problem.X)
    assert (problem.U.T @ fit - factors[:, None] * problem.C).norm() <= problem.tolerance()


@examples
@given(problems(full_rank=True, max_kappa=100.0))
def test_r7_many_weights_give_the_same_fit(problem):
    """R7: L -> LR with R orthogonal, and untied weights with W_Q W_K^T Sigma W_V W_p = B."""
    X, Y = problem.X, problem.Y
    p = X.shape[1]
    L, R = whitening(X), random_rotation(p, generator=stream(problem.seed, "R"))
    assert (OLSTransformer(tied_weights(X, Y, L @ R))(X) - problem.fit).norm() <= problem.tolerance()
    G = random_rotation(p, generator=stream(problem.seed, "G")) * (1 + torch.arange(p, dtype=X.dtype))
    identity = torch.eye(p, dtype=X.dtype)
    untied = Weights(L @ L.T @ G, torch.linalg.inv(G).T, identity, identity, ols_coefficients(X, Y))
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


@examples
@given(problems(max_kappa=100.0), st.integers(1, 9))
def test_r8_held_out_queries(problem, num_queries):
    """R8: (a) X~ Sigma^+ Sigma~ B, (b) and (c) X~ B for any query; against LAPACK's prediction and the token loop.

    Bears `ols-held-out`.
    """
    X, Y = problem.X, problem.Y
    Xq = problem.normal(num_queries, X.shape[1])
    layer = OLSTransformer.from_data(X, Y)
    weights = Weights(layer.W_Q, layer.W_K, layer.W_V, layer.W_FFN, layer.W_p)
    prediction = Xq @ problem.coefficients
    lapack = Xq @ torch.from_numpy(np.linalg.lstsq(X.numpy(), Y.numpy(), rcond=1e-10)[0])
    tolerance = problem.tolerance(Xq)
    for answer in (layer(Xq, context=X), in_context_ols(Xq, X, Y), token_loop(Xq, X, weights), lapack):
        assert (answer - prediction).norm() <= tolerance
    tolerance = problem.tolerance(Xq, self_attention=True)
    inverse = len(X) * (problem.V / problem.s**2) @ problem.V.T
    expected = Xq @ inverse @ second_moment(Xq) @ problem.coefficients
    for answer in (layer(Xq), held_out_self_attention(Xq, X, Y), token_loop(Xq, Xq, weights)):
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
    layer = OLSTransformer.from_data(problem.X, problem.Y)
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
    assert (second_moment(partial) - second_moment(problem.X)).norm() > 1
    assert (layer(partial) - partial @ problem.coefficients).norm() <= problem.tolerance(partial, self_attention=True)


def batch_errors(p: int, n: int, draws: int, seed: int) -> Tensor:
    """Relative squared errors of self-attention on fresh whitened batches, straight from the layer."""
    b = torch.ones(p, 1, dtype=torch.float64)
    identity = torch.eye(p, dtype=torch.float64)
    layer = OLSTransformer(Weights(identity, identity, identity, identity, b))
    Xq = torch.randn(draws, n, p, generator=stream(seed, "batches", p, n), dtype=torch.float64)
    return (layer(Xq) - Xq @ b).square().mean(dim=(-2, -1)) / b.square().sum()


@pytest.mark.parametrize(("p", "n"), [(1, 1), (1, 20), (4, 7), (6, 50)])
def test_r9_in_distribution_batch_error(p, n):
    """R9: (p+1)/n + (p^2+3p+4)/n^2 within 4 standard errors; the test rejects the formula without its second term.

    Bears `ols-batch-error`.
    """
    errors = batch_errors(p, n, 40_000, seed=7)
    standard_error = errors.std() / len(errors) ** 0.5
    assert abs(errors.mean() - batch_error(p, n)) < 4 * standard_error
    assert abs(errors.mean() - (p + 1) / n) > 4 * standard_error


def test_r9_scalar_moments_are_those_of_chi_square():
    """`ols-wishart`, R9, p = 1: E (chi^2_n / n)^k is n (n+2) ... (n+2k-2) / n^k."""
    for n in (1, 2, 9):
        np.testing.assert_allclose(
            wishart_moments(1, n), (1, (n + 2) / n, (n + 2) * (n + 4) / n**2), rtol=4 * np.finfo(float).eps
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


def test_r11_limits_of_the_dial():
    """R11: beta = 0 returns the mean, beta -> infinity the response of the key with the largest inner product."""
    X, Y, Xq = affine_problem()
    assert (softmax_regression(Xq, X, Y, 0.0) - Y.mean(0)).norm() <= 40 * torch.finfo(torch.float64).eps * Y.norm()
    L = whitening(X - X.mean(0))
    nearest = (((Xq - X.mean(0)) @ L) @ (X @ L).T).argmax(dim=1)
    assert torch.equal(softmax_regression(Xq, X, Y, 1e9), Y[nearest])


def test_r11_gaussian_keys_read_out_linearly_at_every_beta():
    """R11: E[x e^{beta q x}] / E[e^{beta q x}] = beta Sigma q, by Gauss-Hermite quadrature in one dimension.

    Bears `ols-gaussian-keys`.
    """
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    sigma, q = 1.7, 0.6
    for beta in (0.01, 1.0, 3.0):
        tilted = weights * np.exp(beta * q * sigma * nodes)
        np.testing.assert_allclose(tilted @ (sigma * nodes) / tilted.sum(), beta * sigma**2 * q, rtol=1e-12)


@examples
@given(problems())
def test_permuting_tokens_permutes_the_output(problem):
    """Equivariance: no positional code, so the layer of (pi X, pi Y) on pi X is pi times the output."""
    order = torch.randperm(len(problem.X), generator=stream(problem.seed, "order"))
    layer = OLSTransformer.from_data(problem.X, problem.Y)
    assert (layer(problem.X[order]) - layer(problem.X)[order]).norm() <= problem.tolerance()
    shuffled = OLSTransformer.from_data(problem.X[order], problem.Y[order])(problem.X[order])
    assert (shuffled - problem.fit[order]).norm() <= problem.tolerance()


@examples
@given(problems(full_rank=True, max_kappa=100.0))
def test_an_invertible_change_of_features_keeps_the_fit(problem):
    """Invariance: X -> XG leaves the column space, hence the fit and the attention matrix, where they are."""
    p = problem.X.shape[1]
    XG = problem.X @ (random_rotation(p, generator=stream(problem.seed, "G")) * (1 + torch.arange(p)))
    layer = OLSTransformer.from_data(XG, problem.Y)
    tolerance = float(2 * (rounding_bound(XG) + rounding_bound(problem.X)))
    assert (layer(XG) - problem.fit).norm() <= tolerance * problem.Y.norm()
    assert (layer.attention_matrix(XG) - problem.U @ problem.U.T).norm() <= tolerance * p**0.5


def test_whitened_inputs_need_no_whitening():
    """Special case X^T X = n I: L L^T = I."""
    problem = make_problem(12, 4, 1, 4, 1.0, seed=9)
    L = whitening(problem.X)
    assert (L @ L.T - torch.eye(4)).norm() <= 2 * rounding_bound(problem.X)


def test_a_batch_is_its_members():
    """Batch axes: two data sets of different rank at once agree with one at a time."""
    pair = [make_problem(6, 4, 2, rank, 3.0, seed=rank) for rank in (2, 4)]
    X, Y = torch.stack([q.X for q in pair]), torch.stack([q.Y for q in pair])
    layer = OLSTransformer.from_data(X, Y)
    predicted = in_context_ols(X, X, Y)
    for i, problem in enumerate(pair):
        assert (layer(X)[i] - problem.fit).norm() <= problem.tolerance()
        assert (predicted[i] - problem.fit).norm() <= problem.tolerance()
        assert (ols_coefficients(X, Y)[i] - problem.coefficients).norm() <= problem.tolerance() / problem.s[-1]


@examples
@given(problems(full_rank=True))
def test_triangular_least_squares_agrees_with_the_singular_value_route(problem):
    """The QR route returns R^{-1} Q^T Y, the same coefficients."""
    gap = ols_coefficients(problem.X, problem.Y, method="qr") - problem.coefficients
    assert gap.norm() <= problem.tolerance() / problem.s[-1]


def test_whitening_never_squares_the_condition_number():
    """5.1 at kappa = 1e6 with pure noise as response: the error stays near eps kappa, eigh(X^T X) loses eps kappa^2."""
    problem = make_problem(60, 3, 1, 3, 1e6, seed=10)
    Y = problem.U.sum(dim=1, keepdim=True)

    def gap(L: Tensor) -> float:
        return float((OLSTransformer(tied_weights(problem.X, Y, L))(problem.X) - Y).norm() / Y.norm())

    eigenvalues, V = torch.linalg.eigh(second_moment(problem.X))
    assert gap(whitening(problem.X)) <= 2 * rounding_bound(problem.X)
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


@examples
@given(problems(max_kappa=100.0))
def test_the_one_tolerance_in_single_precision(problem):
    """`ols-tolerance`: the float32 layer is within 12 max(n, p) r kappa eps of the float64 one on the same numbers."""
    X, Y = problem.X.float(), problem.Y.float()
    L = whitening(problem.X.float().double(), rcond=1e-5)
    exact = OLSTransformer(tied_weights(X.double(), Y.double(), L))(X.double())
    low = whitening(X, rcond=1e-5)
    gap = (OLSTransformer(tied_weights(X, Y, low))(X) - exact).norm()
    rank = len(problem.s)
    bound = 12 * max(X.shape) * rank * float(problem.s[0] / problem.s[-1]) * torch.finfo(torch.float32).eps
    assert L.shape[1] == low.shape[1] == rank
    assert gap <= bound * Y.norm()


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
    for value in wishart_moments(p, n):
        error = power.std(dim=0) / len(S) ** 0.5
        assert ((power.mean(dim=0) - float(value) * torch.eye(p)).abs() < 5 * error).all()
        assert (power.mean(dim=0) - 1.05 * float(value) * torch.eye(p)).diagonal().abs().max() > 5 * error.max()
        power = power @ S
