"""Closed forms of associative memory: signal to noise, capacities, retrieval bounds.

symbol    name          meaning                                              axes
N         N             number of spins                                      scalar
K         K             number of stored patterns                            number or array
F         interaction   E = -sum_mu F(xi_mu . sigma): an integer degree      int, "exp" or a function of a tensor
                        n >= 2 for u^n, "exp" for e^u, or any function
d         d             dimension of continuous patterns                     scalar
beta      beta          inverse temperature of softmax                       scalar
rho       rho           fraction of flipped bits                             scalar or array
alpha     alpha         exponential rate of a capacity, K = e^(alpha N)      scalar or array
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_fraction, check_positive, check_within

from .checks import check_matrix

Interaction = int | Literal["exp"] | Callable[[Tensor], Tensor]


def check_interaction(interaction: Interaction) -> None:
    """Raise ValueError unless ``interaction`` is an integer degree >= 2, "exp" or a function."""
    is_degree = isinstance(interaction, int) and not isinstance(interaction, bool) and interaction >= 2
    if not (is_degree or interaction == "exp" or callable(interaction)):
        raise ValueError(f"interaction = {interaction!r}; give an integer degree >= 2, 'exp' or a function of a tensor")


def bridge(degree: int) -> Callable[[Tensor], Tensor]:
    """F(u) = (1 + u / n)^n, between polynomial and exponential: e^u (1 - u^2 / 2n + O(n^-2)). [ours]"""
    check_count("degree", degree, least=2)
    return lambda u: (1 + u / degree) ** degree


def evaluate(interaction: Interaction, u: Tensor, top: Tensor | float) -> Tensor:
    """F(u), as e^{u - top} for "exp": decisions and ratios do not see the positive factor, and nothing overflows."""
    if interaction == "exp":
        return torch.exp(u - top)
    return interaction(u) if callable(interaction) else u**interaction


def binomial_signs(n: int) -> tuple[Tensor, Tensor]:
    """Values (n + 1,) and probabilities of a sum of n fair signs: s = n - 2j with probability C(n, j) / 2^n."""
    j = np.arange(n + 1)
    log_pmf = special.gammaln(n + 1) - special.gammaln(j + 1) - special.gammaln(n - j + 1) - n * np.log(2)
    return torch.from_numpy(n - 2.0 * j), torch.from_numpy(np.exp(log_pmf))


class SignalNoise(NamedTuple):
    """Signal F(N) - F(N - 2) and the variance v of one pattern's noise, for F divided by a common factor."""

    signal: float
    variance: float


def signal_and_noise(N: int, interaction: Interaction) -> SignalNoise:
    """Signal F(N) - F(N-2) and v = E[(F(s+1) - F(s-1))^2], s a sum of N - 1 fair signs, exactly (5.12).

    F is divided by N^n or e^N where it is u^n or e^u. [prior: Krotov and Hopfield 2016; exact sum ours]
    """
    check_count("N", N)
    check_interaction(interaction)
    scale = float(N) if isinstance(interaction, int) else 1.0

    def F(u: Tensor) -> Tensor:
        return evaluate(interaction, u / scale, float(N))

    s, probability = binomial_signs(N - 1)
    top = torch.tensor(float(N), dtype=torch.float64)
    return SignalNoise(float(F(top) - F(top - 2)), float(probability @ (F(s + 1) - F(s - 1)) ** 2))


def bit_error_theory(N: int, K: ArrayLike, interaction: Interaction) -> np.ndarray:
    """P_err = Phi(-(F(N) - F(N-2)) / sqrt((K - 1) v)): one-step error of a bit of a stored pattern (5.12).

    Gaussian in the noise, exact in its variance; without noise (K = 1) it is 0. Not for "exp", whose noise is
    dominated by rare near-duplicates: see ``typical_bit_error``. Raises ValueError for K < 1, N < 1, degree < 2.
    [prior: Krotov and Hopfield 2016]

    >>> bit_error_theory(100, [1, 14, 20], 2).round(4)
    array([0.    , 0.0029, 0.0112])
    """
    check_at_least("K", np.asarray(K), 1)
    signal, variance = signal_and_noise(N, interaction)
    noise = np.sqrt((np.asarray(K, dtype=np.float64) - 1) * variance)
    ratio = np.divide(signal, noise, out=np.full_like(noise, np.inf), where=noise > 0)
    return special.ndtr(-ratio)


def capacity_theory(N: int, interaction: Interaction, error: float = 0.01) -> float:
    """The K at which ``bit_error_theory`` equals ``error``: 1 + signal^2 / (v z^2), Phi(-z) = error. [prior; ours]"""
    check_fraction("error", error, below=0.5)
    signal, variance = signal_and_noise(N, interaction)
    return 1 + signal**2 / (variance * special.ndtri(error) ** 2) if variance > 0 else np.inf


def errorless_capacity(N: int, degree: int) -> float:
    """N^{n-1} / (2 (2n-3)!! ln N): leading order of the K without any error, n = 2 giving N / (2 ln N). [prior]"""
    check_count("N", N, least=2)
    check_count("degree", degree, least=2)
    return N ** (degree - 1) / (2 * special.factorial2(2 * degree - 3) * np.log(N))


def typical_bit_error(N: int, K: ArrayLike) -> np.ndarray:
    """K / 2^{N+1}: bit error for F = e^u, small K / 2^N; a pattern one bit away ties and wins half the time. [ours]"""
    check_count("N", N)
    check_at_least("K", np.asarray(K), 1)
    return np.exp2(np.log2(np.asarray(K, dtype=np.float64)) - N - 1)


def all_fixed_probability(N: int, K: ArrayLike) -> np.ndarray:
    """exp(-K (K-1) N / 2^{N+1}): all K random patterns fixed for F = e^u, see `ols-two-notions`. [ours]

    Of two patterns one bit apart exactly one moves: their fields at that bit are equal, and all other patterns decide
    the sign. The number of such pairs is Poisson with mean K (K-1) N / 2^{N+1} to leading order.
    """
    check_count("N", N)
    K = np.asarray(K, dtype=np.float64)
    check_at_least("K", K, 1)
    return np.exp(-K * (K - 1) * N * np.exp2(-N - 1.0))


def all_fixed_capacity(N: int, probability: float = 0.5) -> float:
    """The K at which all patterns are fixed with the given probability: about sqrt(ln(1/prob) 2^{N+1} / N). [ours]"""
    check_count("N", N)
    check_fraction("probability", probability)
    return 0.5 + np.sqrt(0.25 - np.log(probability) * np.exp2(N + 1.0) / N)


def cramer_rate(x: ArrayLike) -> np.ndarray:
    """I(x) = ((1 + x) ln(1 + x) + (1 - x) ln(1 - x)) / 2, the rate function of fair signs; I(1) = ln 2. [prior]"""
    x = np.asarray(x, dtype=np.float64)
    check_within("x", x, -1, 1)
    return 0.5 * (special.xlogy(1 + x, 1 + x) + special.xlogy(1 - x, 1 - x))


def demircigil_exponent(rho: ArrayLike) -> np.ndarray:
    """I(1 - 2 rho) / 2: K = e^{alpha N} with alpha below it is retrieved in one step from rho N flips, F = e^u.

    Raises ValueError unless 0 <= rho < 1/2. [prior: Demircigil et al. 2017]
    """
    rho = np.asarray(rho, dtype=np.float64)
    if np.any(rho < 0) or np.any(rho >= 0.5) or not np.all(np.isfinite(rho)):
        raise ValueError(f"rho = {rho}; give a fraction of flipped bits with 0 <= rho < 1/2")
    return 0.5 * cramer_rate(1 - 2 * rho)


class RamsauerCapacity(NamedTuple):
    """The constants of Theorem 3 of Ramsauer et al. and the number of patterns that it promises."""

    a: float
    b: float
    c: float
    num_patterns: float  # sqrt(p) c^{(d-1)/4}
    valid: bool  # c >= (2 / sqrt(p))^{4 / (d-1)}


def ramsauer_capacity(beta: float, K: float, d: int, p: float) -> RamsauerCapacity:
    """Patterns of radius K sqrt(d-1) that softmax attention stores with probability 1 - p: sqrt(p) c^{(d-1)/4}.

    a = 2 (1 + ln(2 beta K^2 p (d-1))) / (d-1), b = 2 K^2 beta / 5, c = b / W_0(e^{a + ln b}), valid if
    c >= (2 / sqrt(p))^{4/(d-1)}. W_0(e^x) is evaluated as the Wright omega function, which does not overflow.
    Raises ValueError for beta <= 0, K <= 0, d < 2 and p outside (0, 1). [prior: Ramsauer et al. 2021, Theorem 3]

    >>> capacity = ramsauer_capacity(beta=1.0, K=3.0, d=20, p=0.001)
    >>> round(capacity.c, 4), capacity.valid
    (3.1546, True)
    """
    check_positive("beta", beta)
    check_positive("K", K)
    check_count("d", d, least=2)
    check_fraction("p", p)
    a = 2 / (d - 1) * (1 + np.log(2 * beta * K**2 * p * (d - 1)))
    b = 2 * K**2 * beta / 5
    c = b / special.wrightomega(a + np.log(b))
    valid = c >= (2 / np.sqrt(p)) ** (4 / (d - 1))
    return RamsauerCapacity(float(a), float(b), float(c), float(np.sqrt(p) * c ** ((d - 1) / 4)), bool(valid))


def separation(patterns: Float[Tensor, "*batch K d"]) -> Float[Tensor, "*batch K"]:
    """Delta_i = x_i . x_i - max_{j != i} x_i . x_j, infinite for a single pattern. [prior: Ramsauer et al. 2021]"""
    check_matrix("patterns", patterns)
    gram = patterns @ patterns.mT
    own = torch.eye(patterns.shape[-2], dtype=torch.bool, device=patterns.device)
    return gram.diagonal(dim1=-2, dim2=-1) - gram.masked_fill(own, -torch.inf).amax(dim=-1)


def retrieval_bound(
    state: Float[Tensor, "*batch K d"],
    patterns: Float[Tensor, "*batch K d"],
    beta: float,
    fixed_points: Float[Tensor, "*batch K d"] | None = None,
) -> Float[Tensor, "*batch K"]:
    """2 (K-1) e^{-beta (Delta_i - 2 r_i M)} M, a bound on ||f(xi_i) - x_i|| for the probe xi_i = state[..., i, :].

    M = max ||x_j||; with ``fixed_points`` r_i = max(||xi_i - x_i||, ||x_i^* - x_i||), which is Theorem 5 as printed;
    without, r_i = ||xi_i - x_i||, which the proof already gives: the weight off x_i is at most
    (K-1) e^{-beta (Delta_i - 2 r_i M)}, and every other pattern is within 2M of x_i.
    [prior: Ramsauer et al. 2021, Theorem 5; sharper radius ours]
    """
    check_positive("beta", beta)
    if state.shape != patterns.shape:
        raise ValueError(f"state {tuple(state.shape)} must hold one probe per pattern, shape {tuple(patterns.shape)}")
    radius = torch.linalg.vector_norm(state - patterns, dim=-1)
    if fixed_points is not None:
        radius = torch.maximum(radius, torch.linalg.vector_norm(fixed_points - patterns, dim=-1))
    M = torch.linalg.vector_norm(patterns, dim=-1).amax(dim=-1, keepdim=True)
    return 2 * (patterns.shape[-2] - 1) * torch.exp(-beta * (separation(patterns) - 2 * radius * M)) * M


def sphere_exponent(lam: ArrayLike) -> np.ndarray:
    """alpha_1: below it softmax with scores lambda x.y stores a typical one of e^{alpha N} patterns with ||x||^2 = N.

    m = (sqrt(1 + 4 lambda^2) - 1) / (2 lambda) maximises lambda m + ln(1 - m^2) / 2 and
    alpha_1 = lambda (1 - m) - ln(1 - m^2) / 2. Since alpha_1 + ln(1 - m^2) / 2 = lambda (1 - m) > 0, e^{alpha_1 N}
    patterns do populate the overlap m, so the formula holds at every lambda > 0.
    Raises ValueError for lam <= 0. [prior: Lucibello and Mezard 2024; derivation ours]

    >>> sphere_exponent([0.1, 1.0, 10.0]).round(4)
    array([0.095 , 0.6226, 1.6638])
    """
    lam = np.asarray(lam, dtype=np.float64)
    check_positive("lambda", lam)
    m = 2 * lam / (1 + np.sqrt(1 + 4 * lam**2))
    return lam * (1 - m) - 0.5 * np.log1p(-(m**2))


def kernel_noise(num_patterns: int, d: int, kernel: Callable[[Tensor], Tensor]) -> float:
    """E ||sum_{mu >= 2} kappa(x_mu . x_1) x_mu||^2 over random patterns +-1/sqrt(d), exactly. [ours]

    (N - 1) (E kappa(u)^2 + (N - 2) (E u kappa(u))^2) with u the overlap of two patterns. The second term is the
    coherent part: all noise vectors lean along x_1, by E u kappa(u) each. The signal is kappa(1).
    """
    check_count("num_patterns", num_patterns)
    check_count("d", d)
    overlap, probability = binomial_signs(d)
    u = overlap / d
    values = kernel(u)
    square, lean = float(probability @ values**2), float(probability @ (u * values))
    return (num_patterns - 1) * (square + max(num_patterns - 2, 0) * lean**2)


def hebb_noise(num_patterns: int, d: int) -> float:
    """(N-1)/d (1 + (N-2)/d): noise energy of the Hebb read-out of one of N unit patterns, ``kernel_noise`` of u."""
    check_count("num_patterns", num_patterns)
    check_count("d", d)
    return (num_patterns - 1) / d * (1 + max(num_patterns - 2, 0) / d)


def projection_noise(rank: int, d: int) -> float:
    """rank / d: the share of isotropic noise energy that the projection on the patterns' span keeps. [ours]"""
    check_count("rank", rank)
    check_count("d", d)
    if rank > d:
        raise ValueError(f"rank = {rank} exceeds d = {d}; patterns in d dimensions span at most d")
    return rank / d
