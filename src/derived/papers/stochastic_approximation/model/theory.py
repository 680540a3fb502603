"""Closed forms: limits, rates, covariances and thresholds of stochastic approximation in a given environment.

symbol    name       meaning                                                               axes
A, b      A, b       linear field h(x, y) = b(y) - A x; one of each per component          (K,) or (K, d, d), (K, d)
w         weights    probabilities of the components                                       (K,)
Gamma     Gamma      long-run covariance of the noise, sum over lags of gamma              () or (d, d)
gamma(k)  gamma      autocovariance at lags 0, 1, ...                                      (lags,)
beta      beta       tail exponent of sojourns: P(tau > t) = t^-beta, t = 1, 2, ...        scalar in (1, inf)
H         H          Hurst exponent of fractional noise                                    scalar in (0, 1)
epsilon   epsilon    1 - the correlation of a two-state stream at lag one                  scalar in (0, 1]
theta     theta      weights of a chain of infinite order on its past                      (lags,)

All of it in float64. Source, unless another is named: ours, from the mean field of one component.
"""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import fft, linalg, signal, special

from derived.lab.checks import check_at_least, check_count, check_fraction, check_positive, check_within

from .core import StepSize

# Limits ---------------------------------------------------------------------------------------------------------------


def mean_field_root(A: ArrayLike, b: ArrayLike, weights: ArrayLike | None = None) -> np.ndarray:
    """Roots of the mean fields b_k - A_k x = 0, one per component; with ``weights`` the one root of their mixture.

    One stream goes to the root of its own component, A_k^{-1} b_k; many streams, one per step, go to
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
        raise ValueError("a field is not finite, or its slope is singular: it has no root of its own; give others")
    return b / A if A.ndim < 2 else np.linalg.solve(A, b[..., None])[..., 0]


# Rates ----------------------------------------------------------------------------------------------------------------


def rate_exponent(a: float, lam: ArrayLike) -> np.ndarray:
    """min(1/2, a lambda): the root mean square error at a_n = a/n falls as n to minus this (times ln n if they tie).

    >>> rate_exponent(1.0, [2.0, 0.5, 0.25])
    array([0.5 , 0.5 , 0.25])
    """
    check_positive("a lambda", a * np.asarray(lam, dtype=float))
    return np.minimum(0.5, a * np.asarray(lam, dtype=float))


def lyapunov_covariance(A: ArrayLike, Gamma: ArrayLike, a: float = 1.0) -> np.ndarray:
    """Sigma of sqrt(n) (x_n - x*) => N(0, Sigma) at a_n = a/n: (aA - I/2) Sigma + Sigma (aA - I/2)^T = a^2 Gamma.

    A and Gamma (d, d), or numbers, where Sigma = a^2 Gamma / (2 a A - 1). ValueError where a Re(lambda) <= 1/2 for some
    eigenvalue: then the rate is n^(-a lambda) and no covariance of sqrt(n) errors exists. [prior: Kushner and Yin 2003]

    >>> lyapunov_covariance(2.0, 3.0)
    array(1.)
    """
    check_positive("a", a)
    A, Gamma = np.asarray(A, dtype=float), np.asarray(Gamma, dtype=float)
    if not (np.isfinite(A).all() and np.isfinite(Gamma).all()):
        raise ValueError("A or Gamma is not finite; give finite matrices")
    noise = np.atleast_2d(Gamma)
    if not np.allclose(noise, noise.T) or np.linalg.eigvalsh(noise).min() < -1e-8 * np.abs(noise).max():
        raise ValueError("Gamma is no covariance; give a symmetric matrix without a negative eigenvalue")
    pull = a * np.atleast_2d(A) - np.eye(len(np.atleast_2d(A))) / 2
    slowest = float(np.linalg.eigvals(pull).real.min()) + 0.5
    if slowest <= 0.5:
        raise ValueError(
            f"a Re(lambda) is {slowest:.6g} for the slowest direction: at 1/2 or below errors fall slower than "
            f"n^(-1/2) and have no such covariance; give a gain a above {a * 0.5 / slowest:.6g}"
            if slowest > 0
            else f"a Re(lambda) is {slowest:.6g}: the mean field does not pull back; give A with positive eigenvalues"
        )
    return linalg.solve_continuous_lyapunov(pull, a**2 * noise).reshape(A.shape)


def long_run_covariance(gamma: Float[np.ndarray, "lags"]) -> float:
    """gamma(0) + 2 sum_{k >= 1} gamma(k): the limit of n Var(mean of n), where the lags given hold the sum.

    >>> long_run_covariance(0.5 ** np.arange(60))
    3.0
    """
    gamma = np.asarray(gamma, dtype=float)
    if gamma.ndim != 1 or not gamma.size:
        raise ValueError(f"gamma has shape {gamma.shape}; give the autocovariances at lags 0, 1, ... (lags,)")
    return float(gamma[0] + 2 * gamma[1:].sum())


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


class LinearChain(NamedTuple):
    """What is known of a two-valued chain of infinite order with P(Y = 1 | past) = c + sum_j theta_j Y_{n-j}."""

    mean: float
    gamma: np.ndarray  # (lags + 1,), autocovariance at lags 0, 1, ...
    innovation: float  # variance of what the past does not tell
    long_run: float  # Gamma = sum of gamma over all lags


def linear_chain_moments(c: float, theta: Float[np.ndarray, "J"], lags: int = 0) -> LinearChain:
    """Mean c / (1 - sum theta), gamma by the Yule-Walker equations, Gamma = innovation / (1 - sum theta)^2.

    gamma(k) = sum_j theta_j gamma(|k - 1 - j|), k >= 1; gamma(0) = m (1 - m); innovation = gamma(0) - sum_j theta_j
    gamma(j + 1). ValueError unless c > 0, theta >= 0 and c + sum theta < 1.

    >>> chain = linear_chain_moments(0.25, np.array([0.5]))
    >>> chain.mean, chain.gamma, chain.long_run
    (0.5, array([0.25 , 0.125]), 0.75)
    """
    theta = np.asarray(theta, dtype=float)
    check_chain_of_infinite_order(c, theta)
    order, mean = len(theta), c / (1 - theta.sum())
    variance = mean * (1 - mean)
    # gamma(1..J) = M gamma(1..J) + theta gamma(0): row k - 1 holds theta_j at column |k - 1 - j| - 1.
    M = np.zeros((order, order))
    for k in range(1, order + 1):
        lag = np.abs(k - 1 - np.arange(order))
        np.add.at(M[k - 1], lag[lag > 0] - 1, theta[lag > 0])
    gamma = np.append(variance, np.linalg.solve(np.eye(order) - M, theta * variance))
    innovation = float(gamma[0] - theta @ gamma[1 : order + 1])
    for _ in range(max(0, lags - order)):
        gamma = np.append(gamma, theta @ gamma[: -order - 1 : -1])
    return LinearChain(float(mean), gamma, innovation, innovation / (1 - float(theta.sum())) ** 2)


def check_chain_of_infinite_order(c: float, theta: np.ndarray) -> None:
    """ValueError unless c > 0, theta >= 0 and c + sum theta < 1, so that one stationary law has the conditional law."""
    check_fraction("c", c)
    check_at_least("theta", theta, 0.0)
    if theta.ndim != 1 or not theta.size or c + theta.sum() >= 1:
        raise ValueError(
            f"c = {c:g} and theta of shape {theta.shape} with sum {theta.sum():g}; give (lags,) with c + sum < 1"
        )


def renewal_threshold(beta: float) -> float:
    """1/beta: at a_n = n^-alpha, 0-1 data with sojourns of tail t^-beta keep freezing the iterate iff alpha <= 1/beta.

    >>> round(renewal_threshold(1.5), 4)
    0.6667
    """
    _check_tail(beta)
    return 1 / beta


def _check_tail(beta: float) -> None:
    if not 1 < beta < math.inf:
        raise ValueError(f"beta = {beta:g}; give a finite number > 1, so that the mean sojourn is finite")


def renewal_mean(beta: float) -> float:
    """The mean sojourn sum_{t >= 0} P(tau > t) = 1 + zeta(beta).

    >>> round(renewal_mean(1.5), 4)
    3.6124
    """
    _check_tail(beta)
    return 1 + float(special.zeta(beta))


def renewal_autocovariance(beta: float, lags: int) -> Float[np.ndarray, "lags"]:
    """gamma(k), k < lags, of stationary alternating 0-1 data with sojourns P(tau > t) = t^-beta.

    gamma(k) = E (-1)^{switches in k steps} / 4. From a switch on, u(k) = P(tau > k) - sum_j P(tau = j) u(k - j); the
    first sojourn has the stationary residual law P(R = r) = P(tau >= r) / mu. O(lags^2).

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
    """The expected number of sojourns that start at some n in [N, 2N) and last longer than c n^alpha.

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


def telegraph_mean_variance(n: ArrayLike, epsilon: float) -> np.ndarray:
    """Var of the mean of n such data, what a learner at a_n = 1/n has: 1 for n << 1/epsilon, ~ 2 / (epsilon n) after.

    [n (1+rho)/(1-rho) - 2 rho (1 - rho^n) / (1-rho)^2] / n^2, rho = 1 - epsilon.

    >>> telegraph_mean_variance([1, 2], 1.0)
    array([1. , 0.5])
    """
    check_positive("epsilon", epsilon)
    check_within("epsilon", epsilon, 0, 1)
    n, rho = np.asarray(n, dtype=float), 1 - epsilon
    # 1 - rho^n without cancellation at small epsilon n; at epsilon = 1 it is 1.
    forgot = -np.expm1(n * np.log1p(-epsilon)) if epsilon < 1 else np.ones_like(n)
    return (n * (1 + rho) / epsilon - 2 * rho * forgot / epsilon**2) / n**2


def tracking_error(a: ArrayLike, epsilon: float, sigma: float) -> np.ndarray:
    """epsilon / (a + epsilon) + a sigma^2 / 2: E(x - k)^2 at constant step on k_n + sigma xi_n, small a and epsilon.

    >>> float(tracking_error(0.1, 0.1, 0.0))
    0.5
    """
    a = np.asarray(a, dtype=float)
    return epsilon / (a + epsilon) + a * sigma**2 / 2


def tracking_error_exact(a: ArrayLike, epsilon: float, sigma: float) -> np.ndarray:
    """E(x_n - k_n)^2 at any a and epsilon: 1 + Var(x) - 2 a / (1 - (1-a) rho) + a sigma^2 / (2 - a).

    Cov(x_n, k_n) = a sum_i (1-a)^i rho^i; the observation noise adds a^2 sigma^2 / (1 - (1-a)^2).

    >>> float(tracking_error_exact(1.0, 0.3, 2.0))
    4.0
    """
    a = np.asarray(a, dtype=float)
    shared = a / (1 - (1 - a) * (1 - epsilon))
    return 1 + telegraph_variance(a, epsilon) - 2 * shared + a * sigma**2 / (2 - a)


def best_step(epsilon: float, sigma: float) -> float:
    """sqrt(2 epsilon) / sigma - epsilon, the step of least ``tracking_error``.

    ValueError where it is not in (0, 1]: the noise is so large that standing still is best, or hardly there.

    >>> round(best_step(0.02, 2.0), 12)
    0.08
    """
    check_positive("epsilon", epsilon)
    check_positive("sigma", sigma)
    best = math.sqrt(2 * epsilon) / sigma - epsilon
    if best > 1:
        raise ValueError(
            f"the best step is {best:.3g}, no step of at most 1; give sigma > {math.sqrt(2 * epsilon):.3g}"
        )
    if best <= 0:
        raise ValueError(
            f"epsilon = {epsilon:g} and sigma = {sigma:g}: the error falls all the way to step 0; "
            f"give sigma < {math.sqrt(2 / epsilon):g}"
        )
    return best
