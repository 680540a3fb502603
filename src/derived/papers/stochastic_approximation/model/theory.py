"""Closed forms: limits, thresholds and variances of stochastic approximation on a given stream.

symbol    name       meaning                                                               axes
A, b      A, b       linear field h(x, y) = b(y) - A x; one of each per world              (K,) or (K, d, d), (K, d)
w         weights    probabilities of the worlds                                           (K,)
gamma(j)  gamma      autocovariance at lags 0, 1, ...                                      (lags,)
beta      beta       tail exponent of stays: P(tau > t) = t^-beta, t = 1, 2, ...           scalar in (1, inf)
epsilon   epsilon    probability per step that the world is redrawn                       scalar in (0, 1]

All of it in float64. Source, unless another is named: ours, from the mean field of one world.
"""

import math

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import fft, signal, special

from derived.lab.checks import check_at_least, check_count, check_fraction, check_positive, check_within

from .core import StepSize

# Limits ---------------------------------------------------------------------------------------------------------------


def mean_field_root(A: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """Roots of the mean fields b_k - A_k x = 0, one per world; with ``weights`` the one root of their mixture.

    One stream goes to the root of its own world, A_k^{-1} b_k; many streams, one per step, go to
    (sum_k w_k A_k)^{-1} sum_k w_k b_k, which is no mean of those. A (K,) and b (K,), or A (K, d, d) and b (K, d);
    returns (K,) or (K, d), without the first axis where weights are given. ValueError for other shapes and weights
    that are no probabilities.

    >>> mean_field_root([2.0, 0.5], [1.0, 2.0])
    array([0.5, 4. ])
    >>> round(float(mean_field_root([2.0, 0.5], [1.0, 2.0], weights=[0.3, 0.7])), 3)
    1.789
    """
    A, b = np.asarray(A, dtype=float), np.asarray(b, dtype=float)
    if A.ndim not in (1, 3) or (A.shape if A.ndim == 1 else A.shape[:-1]) != b.shape or A.shape[-1] != b.shape[-1]:
        raise ValueError(f"A {A.shape} and b {b.shape}; give (K,) and (K,), or (K, d, d) and (K, d)")
    if weights is not None:
        weights = np.asarray(weights, dtype=float)
        check_within("weights", weights, 0.0, 1.0)
        if weights.shape != (len(A),) or abs(weights.sum() - 1) > 1e-12:
            raise ValueError(f"weights {weights.tolist()}; give {len(A)} probabilities that sum to one")
        A, b = np.tensordot(weights, A, axes=1), np.tensordot(weights, b, axes=1)
    slopes = np.abs(A if A.ndim < 2 else np.linalg.det(A))
    if not (np.isfinite(A).all() and np.isfinite(b).all() and np.all(slopes > 0)):
        raise ValueError("a field is not finite, or its slope is singular: it has no root; give others")
    return b / A if A.ndim < 2 else np.linalg.solve(A, b[..., None])[..., 0]


def coupled_worlds(c: float) -> Float[torch.Tensor, "2 2 2"]:
    """A_1 = [[1, -c], [0, 1]] and its transpose: both have the eigenvalue 1 alone, their mean 1 - c/2 and 1 + c/2.

    >>> torch.linalg.eigvalsh(coupled_worlds(4.0).mean(dim=0)).tolist()
    [-1.0, 3.0]
    """
    first = torch.tensor([[1.0, -c], [0.0, 1.0]], dtype=torch.float64)
    return torch.stack([first, first.mT])


def agreement(early: int, gap: int, late: int, epsilon: float, bias: float = 0.8) -> float:
    """P(most of ``late`` tosses agree with most of ``early`` tosses, ``gap`` steps before), of two coins of bias p and
    1 - p, redrawn with probability epsilon per step: by the exact distribution of the coin and the number of heads.

    Odd numbers of tosses, so that there is no tie; ValueError for even ones.

    >>> round(agreement(1, 0, 1, 1e-9), 6), agreement(3, 5, 3, 1.0)
    (0.68, 0.5)
    """
    check_within("epsilon", epsilon, 0, 1)
    check_within("bias", bias, 0, 1)
    for name, count in (("early", early), ("late", late)):
        check_count(name, count)
        if count % 2 == 0:
            raise ValueError(f"{name} = {count}; give an odd number, so that there is no tie")
    check_count("gap", gap, 0)
    kernel = (1 - epsilon) * np.eye(2) + epsilon / 2
    heads = np.array([[bias], [1 - bias]])

    def tossed(coin: np.ndarray, steps: int) -> np.ndarray:
        """P(coin, number of heads) after some steps, (2, steps + 1), from the distribution of the coin."""
        found = np.outer(coin, np.eye(steps + 1)[0])
        for _ in range(steps):
            found = kernel @ found
            found = (1 - heads) * found + heads * np.roll(found, 1, axis=1)
        return found

    total, after = 0.0, np.linalg.matrix_power(kernel, gap)
    for most in (False, True):
        named = tossed(np.full(2, 0.5), early)[:, (np.arange(early + 1) > early / 2) == most].sum(axis=1)
        total += tossed(after @ named, late)[:, (np.arange(late + 1) > late / 2) == most].sum()
    return float(total)


def sa_weights(step: StepSize, steps: int, lam: float = 1.0) -> Float[np.ndarray, "N"]:
    """w_i = a_i prod_{i < j <= N} (1 - a_j lambda): how much of y_i is in x_N, for h = y - lambda x and x_0 = 0.

    >>> sa_weights(StepSize.power(), 4)
    array([0.25, 0.25, 0.25, 0.25])
    """
    a = step.values(steps).numpy()
    kept = np.cumprod(np.append(1 - lam * a[1:], 1.0)[::-1])[::-1]
    return a * kept


def filtered_variance(weights: Float[np.ndarray, "N"], gamma: Float[np.ndarray, "lags"]) -> float:
    """sum_ij w_i w_j gamma(|i - j|), the variance of a weighted sum of stationary data; needs gamma at N lags.

    >>> filtered_variance(np.full(4, 0.25), np.array([1.0, 0.0, 0.0, 0.0]))
    0.25
    """
    steps = len(weights)
    if len(gamma) < steps:
        raise ValueError(f"{len(gamma)} lags for {steps} weights; give gamma at lags 0 to {steps - 1}")
    length = fft.next_fast_len(2 * steps)
    pairs = fft.irfft(np.abs(fft.rfft(weights, length)) ** 2, length)[:steps]
    return float(pairs[0] * gamma[0] + 2 * pairs[1:] @ gamma[1:steps])


# Memory ---------------------------------------------------------------------------------------------------------------


def _check_tail(beta: float) -> None:
    if not 1 < beta < math.inf:
        raise ValueError(f"beta = {beta:g}; give a finite number > 1, so that the mean stay is finite")


def renewal_mean(beta: float) -> float:
    """The mean stay sum_{t >= 0} P(tau > t) = 1 + zeta(beta).

    >>> round(renewal_mean(1.5), 4)
    3.6124
    """
    _check_tail(beta)
    return 1 + float(special.zeta(beta))


def renewal_autocovariance(beta: float, lags: int) -> Float[np.ndarray, "lags"]:
    """gamma(k), k < lags, of stationary alternating 0-1 data with stays P(tau > t) = t^-beta.

    gamma(k) = E (-1)^{switches in k steps} / 4. From a switch on, u(k) = P(tau > k) - sum_j P(tau = j) u(k - j); the
    first stay has the stationary residual distribution P(R = r) = P(tau >= r) / mu. O(lags^2).

    >>> float(renewal_autocovariance(1.5, 2)[0])
    0.25
    """
    _check_tail(beta)
    check_count("lags", lags)
    longer = np.append(1.0, np.arange(1.0, lags + 1) ** -beta)  # P(tau > t), t = 0..lags
    ends = np.append(1.0, longer[:-1] - longer[1:])[:lags]  # the series 1 + sum_j P(tau = j) z^j
    u = signal.lfilter([1.0], ends, longer[:lags])
    residual = longer[: lags - 1] / renewal_mean(beta)  # P(R = r), r = 1..lags - 1
    still = 1 - np.append(0.0, np.cumsum(residual))
    switched = np.append(0.0, signal.fftconvolve(residual, u)[: lags - 1]) if lags > 1 else np.zeros(1)
    return (still - switched) / 4


def expected_freezes(beta: float, alpha: float, c: float, N: int) -> float:
    """The expected number of stays that start at some n in [N, 2N) and last longer than c n^alpha.

    sum_n P(tau > c n^alpha) / mu, of order N^{1 - alpha beta}: by Borel and Cantelli they never end iff
    alpha beta <= 1.

    >>> round(expected_freezes(1.5, 1.0, 2.0, 1000), 3)
    0.002
    """
    check_count("N", N)
    check_positive("c", c)
    check_at_least("alpha", alpha, 0)
    length = np.floor(c * np.arange(N, 2 * N, dtype=float) ** alpha)
    return float((np.maximum(length, 1.0) ** -beta).sum() / renewal_mean(beta))


def fractional_autocovariance(H: float, lags: int) -> Float[np.ndarray, "lags"]:
    """(|k+1|^{2H} - 2|k|^{2H} + |k-1|^{2H}) / 2 at k < lags: fractional Gaussian noise, ~ H(2H-1) k^{2H-2}.

    >>> fractional_autocovariance(0.5, 3)
    array([1., 0., 0.])
    """
    check_fraction("H", H)
    k = np.arange(lags, dtype=float)
    return (np.abs(k + 1) ** (2 * H) - 2 * k ** (2 * H) + np.abs(k - 1) ** (2 * H)) / 2


# Continual learning ---------------------------------------------------------------------------------------------------


def telegraph_variance(a: ArrayLike, epsilon: ArrayLike) -> np.ndarray:
    """Stationary Var(x) at constant step a on data +-1 of correlation (1 - epsilon)^j; near 1 / (1 + epsilon/a).

    a (1 + (1-a) rho) / ((2-a) (1 - (1-a) rho)), rho = 1 - epsilon. ValueError outside 0 < a <= 1, 0 < epsilon <= 1.

    >>> float(telegraph_variance(1.0, 0.1))
    1.0
    """
    a, epsilon = np.asarray(a, dtype=float), np.asarray(epsilon, dtype=float)
    for name, value in (("a", a), ("epsilon", epsilon)):
        check_positive(name, value)
        check_within(name, value, 0, 1)
    stays = (1 - a) * (1 - epsilon)
    return np.asarray(a * (1 + stays) / ((2 - a) * (1 - stays)))


def tracking_error(a: ArrayLike, epsilon: float, sigma: float) -> np.ndarray:
    """E(x_n - k_n)^2 at any a and epsilon: 1 + Var(x) - 2 a / (1 - (1-a) rho) + a sigma^2 / (2 - a).

    Cov(x_n, k_n) = a sum_i (1-a)^i rho^i; the observation noise adds a^2 sigma^2 / (1 - (1-a)^2).

    >>> float(tracking_error(1.0, 0.3, 2.0))
    4.0
    """
    a = np.asarray(a, dtype=float)
    shared = a / (1 - (1 - a) * (1 - epsilon))
    return 1 + telegraph_variance(a, epsilon) - 2 * shared + a * sigma**2 / (2 - a)
