"""Closed forms: least squares, the smoothers that a linear-attention layer applies, and the best fixed layer.

symbol    name          meaning                                            axes
X, Y      X, Y          design matrix (tokens as rows) and responses       (..., n, p), (..., n, m)
X~        Xq            query tokens, or an inference batch                (..., nq, p)
Sigma     second_moment X^T X / n, not centred                             (..., p, p)
L         L             whitening map, L L^T = Sigma^+                     (..., p, d)
H, H_L    hat_matrix, smoother   X X^+, and X L L^T X^T / n                (..., n, n)
B         B             least-squares coefficients X^+ Y                   (..., p, m)
lambda    ridge         penalty: n lambda ||B||^2 is added to ||Y - XB||^2  scalar
Lambda    Lambda        covariance of the features of random tasks         (p, p)
Gamma*    optimal_linear_attention   best fixed linear-attention layer     (p, p)

Matrices are torch tensors, float64 where a theorem is checked; scalar formulas take numbers or numpy arrays.
"""

from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor

from derived.lab.checks import check_at_least, check_choice, check_count, check_factored, check_one_dtype

from .checks import check_columns, check_composable, check_matrix, check_rows


class ThinSVD(NamedTuple):
    """X = U diag(s) V^T restricted to s > rcond * max(s); dropped directions have ``kept`` False and s = 1."""

    U: Tensor  # (..., n, r)
    s: Tensor  # (..., r)
    V: Tensor  # (..., p, r)
    kept: Tensor  # (..., r) bool


def thin_svd(X: Float[Tensor, "*batch n p"], rcond: float | None = None) -> ThinSVD:
    """The thin singular value decomposition of X, cut at s > rcond * max(s), so that r = rank X.

    ``rcond`` defaults to max(n, p) * eps, as in numpy.linalg.matrix_rank. Over a batch r is the largest rank, and the
    directions that a member of the batch lacks are flagged in ``kept`` and zero in U and V. X^T X is never formed, so
    the relative error grows like kappa and not like kappa^2.

    Raises ValueError for an empty X, for NaN, for half precision and for rcond < 0. [prior: Golub and Van Loan]
    """
    check_matrix("X", X)
    check_factored(X=X)
    if rcond is None:
        rcond = max(X.shape[-2:]) * torch.finfo(X.dtype).eps
    check_at_least("rcond", rcond, 0.0)
    U, s, Vh = torch.linalg.svd(X, full_matrices=False)
    if X.requires_grad and torch.is_grad_enabled():
        rounding = 8 * max(X.shape[-2:]) * torch.finfo(X.dtype).eps * s[..., :1]
        if bool((-s.diff(dim=-1) <= rounding).any()):
            raise ValueError(
                "X has equal singular values, whose vectors have no derivative; give X without a gradient, or take "
                "ols_coefficients, which has one"
            )
    kept = s > rcond * s[..., :1]  # s descends; an X of zeros keeps nothing
    rank = int(kept.sum(dim=-1).max())
    kept = kept[..., :rank]
    s = torch.where(kept, s[..., :rank], torch.ones((), dtype=s.dtype, device=s.device))
    return ThinSVD(U[..., :rank] * kept.unsqueeze(-2), s, Vh.mT[..., :rank] * kept.unsqueeze(-2), kept)


def rounding_bound(
    X: Float[Tensor, "*batch n p"], Xq: Float[Tensor, "*batch nq p"] | None = None, *, self_attention: bool = False
) -> Float[Tensor, "*batch"]:
    r"""A first-order bound on ||computed - exact||_F / ||Y||_F for every product of X, L and P in this chapter.

    The one tolerance of the chapter: bound = 12 max(n, p) r kappa eps, with kappa = s_1 / s_r and r = rank X.

    Derivation. A product of inner dimension k errs by at most k eps ||A||_F ||B||_F. Write Z = XL, so that
    ||Z||_2 = sqrt(n), ||Z||_F = sqrt(nr) and ||P||_F <= ||Y||_F / sqrt(n). The singular value decomposition is exact
    for X + E with ||E||_F <= p(n, p) eps ||X||_F, where the LAPACK Users' Guide calls p "a modestly growing function";
    we take max(n, p) for it, the one step that is assumed and not proved. X times L adds p eps ||X||_F ||L||_F. Since
    ||X||_F ||L||_F <= r kappa sqrt(n), Z is within 2 max(n, p) r kappa eps sqrt(n) of Z R with some orthogonal R
    (singular vectors may turn within a cluster), and Z Z^T Z P does not see R. There Z enters three times and P once
    more: 8 max(n, p) r kappa eps ||Y||_F. The products themselves add at most (2 n + 2 r) r eps ||Y||_F, which is below
    4 max(n, p) r kappa eps ||Y||_F.

    With queries Xq the same steps carry the factor h = ||Xq||_2 / s_r for one whitened query factor (cross-attention,
    coefficients) and (n / nq) h^3 for three (``self_attention=True``), and max(n, p) becomes max(n, nq, p). Two
    algorithms that are compared with each other may differ by the sum of their bounds.

    Shapes: X (..., n, p), Xq (..., nq, p); returns (...). [ours]
    """
    check_matrix("X", X)
    check_factored(X=X)
    s = torch.linalg.svdvals(X)
    n, p = X.shape[-2:]
    eps = torch.finfo(X.dtype).eps
    kept = s > max(n, p) * eps * s[..., :1]
    rank = kept.sum(dim=-1).clamp(min=1)
    smallest = s.gather(-1, (rank - 1).unsqueeze(-1)).squeeze(-1)
    smallest = torch.where(smallest > 0, smallest, torch.ones_like(smallest))
    kappa = torch.clamp(s[..., 0] / smallest, min=1.0)
    size, gain = max(n, p), torch.ones_like(kappa)
    if Xq is not None:
        check_matrix("Xq", Xq)
        check_factored(Xq=Xq)
        check_columns("Xq", Xq, "X", X)
        size = max(size, Xq.shape[-2])
        gain = torch.linalg.matrix_norm(Xq, ord=2) / smallest
        if self_attention:
            gain = n / Xq.shape[-2] * gain**3
    return 12 * size * rank * kappa * eps * gain


def second_moment(X: Float[Tensor, "*batch n p"]) -> Float[Tensor, "*batch p p"]:
    """Sigma = X^T X / n, the empirical second moment, not centred. [paper]"""
    check_matrix("X", X)
    return X.mT @ X / X.shape[-2]


def hat_matrix(X: Float[Tensor, "*batch n p"], rcond: float | None = None) -> Float[Tensor, "*batch n n"]:
    """H = X X^+ = U U^T, the orthogonal projector on the column space of X; its trace is rank X. [prior]"""
    svd = thin_svd(X, rcond)
    return svd.U @ svd.U.mT


def smoother(X: Float[Tensor, "*batch n p"], L: Float[Tensor, "*batch p d"]) -> Float[Tensor, "*batch n n"]:
    """H_L = X L L^T X^T / n, so that the tied layer outputs H_L^2 Y for every L (`ols-master`). [ours]"""
    check_matrix("X", X)
    check_one_dtype(X=X, L=L)
    check_composable("X", X, "L", L)
    Z = X @ L
    return Z @ Z.mT / X.shape[-2]


def spectral_filter(
    eigenvalues: ArrayLike, ridge: float, weights: Literal["ols", "ridge", "regularised", "repaired"]
) -> np.ndarray:
    """The factor by which a layer multiplies the fitted value along an eigenvector of Sigma (`ols-ridge`).

    With lambda_i > 0 and f = lambda_i / (lambda_i + lambda): "ols" 1, "ridge" f, "regularised" (L_lambda in all three
    places) f^2: ridge applied twice, "repaired" (L_lambda in query and key only) f. At lambda_i = 0 every factor is 0.
    [ours]
    """
    check_at_least("ridge", ridge, 0.0)
    eigenvalues = np.asarray(eigenvalues, dtype=np.float64)
    check_at_least("eigenvalues", eigenvalues, 0.0)
    total = eigenvalues + ridge
    once = np.divide(eigenvalues, total, out=np.zeros_like(total), where=total > 0)
    factors = {"ols": (eigenvalues > 0).astype(float), "ridge": once, "regularised": once**2, "repaired": once}
    check_choice("weights", weights, factors)
    return factors[weights]


def ols_coefficients(
    X: Float[Tensor, "*batch n p"],
    Y: Float[Tensor, "*batch n m"],
    ridge: float = 0.0,
    *,
    method: Literal["svd", "full rank"] = "svd",
) -> Float[Tensor, "*batch p m"]:
    """The minimum-norm minimiser of ||Y - XB||_F^2 + n lambda ||B||_F^2: B = V diag(s / (s^2 + n lambda)) U^T Y.

    For n >= p the triangular factor ((R, Q^T Y), (0, .)) of [X Y] replaces X by R and Y by Q^T Y, Q never being formed
    [prior: Bjorck]. "svd" then serves every X. "full rank" is for X of full column rank without ridge, and several
    times as fast: Cholesky of X^T X and one step of refinement, whose error is about the square of that step; where
    the step is more than sqrt(eps) of B (kappa above some thousands), R^{-1} Q^T Y [prior: Bjorck].

    Raises ValueError for ridge < 0, rows that do not match, and for "full rank" with n < p, a ridge or a singular R.

    >>> X, Y = torch.tensor([[1.0], [1.0], [5.0]]), torch.tensor([[1.0], [2.0], [3.0]])
    >>> ols_coefficients(X, Y), ols_coefficients(X, Y, ridge=9.0)
    (tensor([[0.6667]]), tensor([[0.3333]]))
    """
    check_matrix("X", X)
    check_factored(X=X)
    check_matrix("Y", Y)
    check_one_dtype(Y=Y, X=X)
    check_rows("X", X, "Y", Y)
    check_at_least("ridge", ridge, 0.0)
    n, p = X.shape[-2:]
    check_choice("method", method, ("svd", "full rank"))
    if method == "full rank" and (ridge > 0 or n < p):
        raise ValueError(f"method 'full rank' was given ridge = {ridge} and X of shape {n} x {p}; use method='svd'")
    if method == "full rank" and (refined := _refined(X, Y)) is not None:
        return refined
    rcond = max(n, p) * torch.finfo(X.dtype).eps
    if torch.is_grad_enabled() and (X.requires_grad or Y.requires_grad):
        check_factored(X=X)
        if ridge > 0:
            return torch.linalg.solve(X.mT @ X + n * ridge * torch.eye(p, dtype=X.dtype, device=X.device), X.mT @ Y)
        return torch.linalg.pinv(X, rtol=rcond) @ Y  # its derivative needs no singular vectors
    if n >= p:
        triangular = torch.linalg.qr(torch.cat([X, Y], dim=-1), mode="r").R[..., :p, :]
        X, Y = triangular[..., :p], triangular[..., p:]
    if method == "svd":
        svd = thin_svd(X, rcond)
        return (svd.V * (svd.s / (svd.s**2 + n * ridge)).unsqueeze(-2)) @ (svd.U.mT @ Y)
    diagonal = X.diagonal(dim1=-2, dim2=-1).abs()
    if bool((diagonal.amin(dim=-1) <= rcond * diagonal.amax(dim=-1)).any()):
        raise ValueError("X does not have full column rank to working precision; use method='svd'")
    return torch.linalg.solve_triangular(X, Y, upper=True)


def _refined(X: Tensor, Y: Tensor) -> Tensor | None:
    """Least squares by Cholesky and one step of refinement; None where the step is too large to be the last."""
    L, failed = torch.linalg.cholesky_ex(X.mT @ X)
    first = torch.cholesky_solve(X.mT @ Y, L)
    step = torch.cholesky_solve(X.mT @ torch.sub(Y, X @ first), L)
    size, whole = (torch.linalg.matrix_norm(each) for each in (step, first))
    small = size <= torch.finfo(X.dtype).eps ** 0.5 * whole
    return first + step if bool((small & (failed == 0)).all()) else None


def ols_with_intercept(
    Xq: Float[Tensor, "*batch nq p"], X: Float[Tensor, "*batch n p"], Y: Float[Tensor, "*batch n m"]
) -> Float[Tensor, "*batch nq m"]:
    """ybar + (X~ - xbar) Sigma_c^+ Sigma_xy: affine least squares, the softmax limit beta -> 0. [prior]"""
    check_columns("Xq", Xq, "X", X)
    x_mean, y_mean = X.mean(dim=-2, keepdim=True), Y.mean(dim=-2, keepdim=True)
    return y_mean + (Xq - x_mean) @ ols_coefficients(X - x_mean, Y - y_mean)


def softmax_dial_error(
    Xq: Float[Tensor, "*batch nq p"], X: Float[Tensor, "*batch n p"], Y: Float[Tensor, "*batch n m"]
) -> Float[Tensor, "*batch nq m"]:
    """E_1 with softmax read-out = affine least squares + beta E_1 + O(beta^2): the next term of `ols-dial`. [ours]

    E_1 = (1/2) Cov((t - tbar)^2, y) over the tokens, with t_j = (x~ - xbar)^T Sigma_c^+ x_j: half of a third cumulant,
    so the error of the dial has slope 1 in beta unless the scores and responses are jointly symmetric.
    """
    check_columns("Xq", Xq, "X", X)
    x_mean = X.mean(dim=-2, keepdim=True)
    pinv = torch.linalg.pinv(X - x_mean)
    scores = X.shape[-2] * ((Xq - x_mean) @ pinv) @ (pinv.mT @ (X - x_mean).mT)
    return scores.square() @ (Y - Y.mean(dim=-2, keepdim=True)) / (2 * X.shape[-2])


class OptimalLinearAttention(NamedTuple):
    """The best fixed linear-attention layer on random tasks and its risk."""

    Gamma: Tensor  # (p, p)
    risk: Tensor  # scalar


def optimal_linear_attention(Lambda: Float[Tensor, "p p"], N: int, noise: float = 0.0) -> OptimalLinearAttention:
    """Gamma* = ((1 + 1/N) Lambda + ((tr Lambda + noise^2) / N) I)^{-1} and tr Lambda - tr(Lambda Gamma* Lambda).

    The predictor is x~^T Gamma (1/N) sum_i x_i y_i with x ~ N(0, Lambda), y = w^T x + noise, w ~ N(0, I), N context
    points. Its risk is convex and quadratic in Gamma, and Gamma* is its stationary point (`ols-gamma`), because
    E[(1/N sum x_i y_i)(...)^T] = Lambda Gamma*^{-1}. Without noise least squares has risk 0 as soon as N >= p; this
    layer reaches it only as N -> infinity. Shapes: Lambda and Gamma* (p, p), the risk a scalar.

    Raises ValueError unless Lambda is symmetric positive definite, N >= 1 and noise >= 0.
    [prior: Ahn et al. 2023; Zhang, Frei and Bartlett 2024]

    >>> best = optimal_linear_attention(torch.eye(2), N=3)  # ((1 + 1/3) + 2/3)^{-1} I, and 2 - 2 / 2
    >>> best.Gamma, best.risk
    (tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]]), tensor(1.))
    """
    check_covariance(Lambda)
    check_count("N", N)
    check_at_least("noise", noise, 0.0)
    identity = torch.eye(len(Lambda), dtype=Lambda.dtype, device=Lambda.device)
    Gamma = torch.linalg.inv((1 + 1 / N) * Lambda + (Lambda.trace() + noise**2) / N * identity)
    return OptimalLinearAttention(Gamma, linear_attention_risk(Gamma, Lambda, N, noise))


def linear_attention_risk(
    Gamma: Float[Tensor, "*batch p p"], Lambda: Float[Tensor, "p p"], N: int, noise: float = 0.0
) -> Float[Tensor, "*batch"]:
    """E (x~^T Gamma (1/N) sum_i x_i y_i - w^T x~)^2 for any fixed Gamma, in the model of Gamma*. [ours]

    tr(Lambda Gamma M Gamma^T) - 2 tr(Lambda Gamma Lambda) + tr Lambda, with
    M = (1 + 1/N) Lambda^2 + ((tr Lambda + noise^2) / N) Lambda.
    """
    check_covariance(Lambda)
    check_one_dtype(Gamma=Gamma, Lambda=Lambda)
    check_composable("Lambda", Lambda, "Gamma", Gamma)
    M = (1 + 1 / N) * Lambda @ Lambda + (Lambda.trace() + noise**2) / N * Lambda
    weighted = Lambda @ Gamma
    quadratic = ((weighted @ M) * Gamma).sum(dim=(-2, -1))
    return quadratic - 2 * (weighted * Lambda).sum(dim=(-2, -1)) + Lambda.trace()


def check_covariance(Lambda: Tensor) -> None:
    """Raise ValueError unless ``Lambda`` is one symmetric positive definite matrix."""
    check_matrix("Lambda", Lambda)
    check_factored(Lambda=Lambda)
    if Lambda.ndim != 2 or Lambda.shape[0] != Lambda.shape[1] or not torch.equal(Lambda, Lambda.mT):
        raise ValueError(
            f"Lambda {tuple(Lambda.shape)} is not one symmetric matrix; give (A + A^T) / 2 of shape (p, p)"
        )
    if int(torch.linalg.cholesky_ex(Lambda).info) != 0:
        raise ValueError("Lambda is not positive definite; give a covariance whose eigenvalues are all positive")
