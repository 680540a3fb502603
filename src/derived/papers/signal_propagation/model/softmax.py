r"""Softmax attention that is not uniform: four weights of the backward recurrence, two of the forward one.

symbol    name       meaning                                                                axes
q~, p~    q, p       second moment and overlap of the tokens after the normaliser            ()
Delta     D          q~ - p~                                                                ()
G         G          Delta I + p~ 11^T, inner products of the tokens over the width          (n, n)
sigma     sigma      sigma_Q sigma_K, the sharpness of attention                             ()
z, A      z, A       logits, E z_ik z_jl = sigma^2 G_ij G_kl, and their softmax by rows       (draws, n, n)
T         T          the transpose of A, from sources to targets                            (draws, n, n)
Gamma     Gamma      gradient covariance of the targets: J on the diagonal, K beside it      (n, n)
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike

from derived.lab.checks import check_at_least, check_count


class AttentionWeights(NamedTuple):
    """What attention adds: q += a (p~ + Delta f), p += a (p~ + Delta g), J += a q^ (JJ J + JK K), K += a p^ (KJ J + KK K)."""

    f: ArrayLike
    g: ArrayLike
    JJ: ArrayLike
    JK: ArrayLike
    KJ: ArrayLike
    KK: ArrayLike


def first_order(q: ArrayLike, p: ArrayLike, n: ArrayLike, sigma: ArrayLike) -> AttentionWeights:
    """The weights to first order in sigma^2; sigma = 0 is uniform attention. All arguments broadcast, n may be infinite.

    With c = 1 - 1/n and e = sigma^2 (q~ - p~): f = (1 + e c q~)/n, g = (1 + e c p~)/n, and the four factors of
    `sp-softmax`. [ours]
    """
    own = 1 / np.asarray(n, dtype=float)
    c = 1 - own
    if not np.any(sigma):
        return AttentionWeights(own, own, own, c, own, c)
    spread = np.subtract(q, p)
    e = np.square(sigma) * spread
    return AttentionWeights(
        own * (1 + e * c * q),
        own * (1 + e * c * p),
        own * (1 + e * c * (2 * np.asarray(q) + spread)),
        c * (1 + 2 * e * c * p),
        own * (1 - 2 * e * own * q),
        c * (1 + e * own * (spread - 2 * np.asarray(p))),
    )


def softmax_terms(
    q: float, p: float, n: int, sigma: float, *, draws: int = 400, generator: torch.Generator
) -> AttentionWeights:
    """The same weights for any sigma: means over ``draws`` tables of logits, by the sums of `sp-softmax` (a). [ours]

    Raises ValueError for n < 2, draws < 1, sigma < 0 or a (q, p) that is no covariance.

    >>> uniform = softmax_terms(1.0, 0.2, 4, 0.0, draws=1, generator=torch.Generator())
    >>> [round(float(weight), 6) for weight in uniform]
    [0.25, 0.25, 0.25, 0.75, 0.25, 0.75]
    """
    check_count("n", n, 2)
    check_count("draws", draws)
    check_at_least("sigma", sigma, 0.0)
    D, I = q - p, np.eye(n)
    if not (D >= 0 and D + n * p >= -1e-12):
        raise ValueError(f"q = {q}, p = {p} is no covariance of {n} tokens; need -q / (n - 1) <= p <= q")
    G, r = D * I + p, math.sqrt(D)
    root = r * I + (math.sqrt(max(D + n * p, 0.0)) - r) / n  # a square root of G
    drawn = torch.randn(draws, n, n, generator=generator, dtype=torch.float64).numpy()
    z = sigma * root @ drawn @ root
    A = np.exp(z - z.max(-1, keepdims=True))
    A /= A.sum(-1, keepdims=True)
    T = A.transpose(0, 2, 1)
    AA, AG = A @ T, A @ G
    second = A @ (A * AG).transpose(0, 2, 1)
    query = q * AA - second - second.transpose(0, 2, 1) + AA * (AG @ T)  # sum_jm A_kj A_lm G_jm C^kl_jm / Delta
    weights = []
    for Gamma in (I, 1 - I):  # what J, then what K, of the targets adds to J and to K of the sources
        H = sigma**2 * G * Gamma
        TH = T @ H
        cross = (TH * T) @ A
        key = I * (TH @ A) - cross - cross.transpose(0, 2, 1) + T @ (H * AA) @ A
        weights.append(_split(T @ Gamma @ A + D * key + D * sigma**2 * Gamma * query))
    (JJ, KJ), (JK, KK) = weights
    return AttentionWeights(*_split(AA), JJ, JK, KJ, KK)


def _split(table: np.ndarray) -> tuple[float, float]:
    """The means of the diagonal and of the rest, over all draws."""
    n, mean = table.shape[-1], table.mean(axis=0)
    trace = float(np.trace(mean))
    return trace / n, (float(mean.sum()) - trace) / (n * (n - 1))
