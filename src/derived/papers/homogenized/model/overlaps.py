"""What the overlaps do on the clock tau = eta^2 layer / H: drift, bracket, and the ordinary differential equations.

symbol         name          meaning                                                        axes
R              gram          overlaps of the tokens, R_ii = 1                               (..., n, n)
s              s             s_ij = E_A <m(x_i), m(x_j)>                                     (..., n, n)
D              overlap_drift drift of R                                                     (..., n, n)
gamma          gamma         common overlap of equiangular tokens                           arrays
S, P           S, P          s_ij (i != j) and s_ii on the equiangular line
u              u             logistic mean overlap, u' = u (1 - u)

Throughout sigma_V^2 = 1/d.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import integrate, interpolate, special
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_positive, check_within

from .checks import check_gram, check_overlap, check_times, check_width
from .gram import attention_probabilities, psd_factor
from .heads import HeadLaw
from .moments import attention_moments

NODES = 40  # Chebyshev nodes of the curves f(gamma), g(gamma)


class Correlation(NamedTuple):
    """The barycentre correlation s (R, n, n) and its standard errors."""

    s: Tensor
    error: Tensor


def barycenter_correlation(
    gram: Float[Tensor, "R n n"],
    beta: float,
    sigma_a: float,
    d: int,
    *,
    samples: int = 1024,
    generator: torch.Generator,
) -> Correlation:
    """s_ij = E_A <m(x_i), m(x_j)>, from heads drawn exactly in law at the width d, each with both signs of A. [digest]

    Shapes: gram (R, n, n) gives s and its standard errors, (R, n, n) each. ValueError for d < 2, samples < 2,
    beta < 0, and what is no Gram matrix of unit vectors of R^d.

    >>> from derived.lab.rng import stream
    >>> G = torch.eye(4).double()[None]
    >>> s, error = barycenter_correlation(G, 0.0, 1.0, 8, samples=2, generator=stream(0, "heads"))
    >>> s[0, 0]  # even attention: all s are the mean overlap
    tensor([0.2500, 0.2500, 0.2500, 0.2500], dtype=torch.float64)
    """
    check_gram(gram, d)
    check_count("samples", samples, 2, "a standard error needs two heads")
    check_at_least("beta", beta, 0)
    law = HeadLaw(d=d, sigma_a=sigma_a)
    C = psd_factor(gram, min(gram.shape[-1], d))  # m = Pi C in a basis of the tokens' span
    Pi = attention_probabilities(C, law, beta, samples, generator=generator, mean=None)
    weights = torch.stack([Pi, _mirror(Pi)], dim=2)  # A -> -A: logits change sign
    m = weights @ C[:, None, None]
    draws = (m @ m.mT).mean(dim=2)
    return Correlation(draws.mean(dim=1), draws.std(dim=1) / math.sqrt(samples))


def _mirror(Pi: Tensor) -> Tensor:
    """The softmax of the negative logits."""
    return torch.softmax(-torch.log(Pi.clamp_min(torch.finfo(Pi.dtype).tiny)), dim=-1)


def overlap_drift(
    gram: Float[Tensor, "*batch n n"], s: Float[Tensor, "*batch n n"], d: int
) -> Float[Tensor, "*batch n n"]:
    """The drift of an overlap per unit of tau, with sigma_V^2 = 1/d; zero on the diagonal. [digest]

    Equation: D_ij = (d - 2 + R_ij^2) s_ij / d - (d - 1) R_ij (s_ii + s_jj) / (2 d). Shapes: gram and s (*batch, n, n).
    Nothing is checked.

    >>> R = torch.eye(2)
    >>> overlap_drift(R, torch.full((2, 2), 0.5), d=10)
    tensor([[0.0000, 0.4000],
            [0.4000, 0.0000]])
    """
    own = torch.diagonal(s, dim1=-2, dim2=-1)
    pair = own.unsqueeze(-1) + own.unsqueeze(-2)
    return (d - 2 + gram.square()) / d * s - (d - 1) / (2 * d) * gram * pair


def overlap_bracket(
    gram: Float[Tensor, "*batch n n"], s: Float[Tensor, "*batch n n"], d: int
) -> Float[Tensor, "*batch n n"]:
    """The variance rate of an overlap per unit of tau, with sigma_V^2 = 1/d; at most 64 / (27 d). [ours]

    Equation: d<M_ij> / dtau = (1 - R_ij^2)(s_ii + s_jj - 2 R_ij s_ij) / d. Shapes: gram and s (*batch, n, n). Nothing
    is checked.

    >>> overlap_bracket(torch.eye(2), torch.full((2, 2), 0.5), d=10)
    tensor([[0.0000, 0.1000],
            [0.1000, 0.0000]])
    """
    own = torch.diagonal(s, dim1=-2, dim2=-1)
    pair = own.unsqueeze(-1) + own.unsqueeze(-2)
    return (1 - gram.square()) * (pair - 2 * gram * s) / d


def simplex_drift(gamma: ArrayLike, f: ArrayLike, g: ArrayLike, d: float = math.inf) -> np.ndarray:
    """The drift of the common overlap gamma of equiangular tokens, per unit of tau. [ours]

    Equation: D(gamma) = (d - 2 + gamma^2) S / d - (d - 1) gamma P / d, S = gamma + (1 - gamma) g, P = gamma +
    (1 - gamma) f. At d = math.inf this is b(gamma) = (1 - gamma)(gamma (1 - f) + g) [digest], which version 1, as
    retold, has for every d. Shapes: gamma, f and g broadcast. ValueError for d < 2, |gamma| > 1, f or g outside [0, 1].

    >>> [float(simplex_drift(0.5, f=0.25, g=0.25, d=d)) for d in (math.inf, 4)]
    [0.3125, 0.1171875]
    """
    check_width(d)
    gamma, f, g = (np.asarray(x, dtype=float) for x in (gamma, f, g))
    check_within("gamma", gamma, -1, 1)
    for name, value in (("f", f), ("g", g)):
        check_within(name, value, 0, 1)
    return equiangular_drift(gamma, f, g, d)


def equiangular_drift(gamma: np.ndarray, f: np.ndarray, g: np.ndarray, d: float) -> np.ndarray:
    """``simplex_drift`` without its checks, for solvers that try points beyond the ends."""
    b = (1 - gamma) * (gamma * (1 - f) + g)
    if math.isinf(d):
        return b
    S, P = gamma + (1 - gamma) * g, gamma + (1 - gamma) * f
    return b + (gamma * P - (2 - gamma**2) * S) / d


def logistic_overlap(t: ArrayLike, u0: ArrayLike) -> np.ndarray:
    """The solution of u' = u (1 - u), the mean overlap of hot tokens on the clock t = tau. [digest]

    Equation: u(t) = u0 / (u0 + (1 - u0) e^{-t}). Shapes: t and u0 broadcast. ValueError unless 0 <= u0 <= 1.

    >>> logistic_overlap([0.0, np.log(4.0)], 0.2).round(12)
    array([0.2, 0.5])
    """
    t, u0 = np.asarray(t, dtype=float), np.asarray(u0, dtype=float)
    check_within("u0", u0, 0, 1)
    return u0 / (u0 + (1 - u0) * np.exp(-t))


@lru_cache(maxsize=64)
def moment_curves(n: int, logit_std: float) -> Callable[[ArrayLike], tuple[np.ndarray, np.ndarray]]:
    """gamma -> (f, g) at d = infinity, interpolated through Chebyshev nodes in gamma. [ours]"""
    low, high = _range(n, logit_std)
    nodes = low + (high - low) * (1 - np.cos(np.pi * (np.arange(NODES) + 0.5) / NODES)) / 2
    values = np.array([attention_moments(float(x), n, logit_std)[:2] for x in nodes])
    curve = interpolate.BarycentricInterpolator(nodes, np.log(values))
    return lambda gamma: tuple(np.exp(np.moveaxis(curve(np.clip(gamma, low, high)), -1, 0)))


def _range(n: int, logit_std: float) -> tuple[float, float]:
    """Overlaps over which the curves are made; hardmax is not smooth at gamma = 1."""
    return (-1 / (n - 1) if n > 1 else -1.0), (0.999 if math.isinf(logit_std) else 1.0)


def simplex_flow(gamma0: float, times: ArrayLike, n: int, logit_std: float, d: float = math.inf) -> np.ndarray:
    """gamma(tau) at ``times``: gamma' = D(gamma) with the attention moments of d = infinity. [ours]

    Shapes: times (T,) gives (T,). ValueError for an overlap that n tokens cannot share, times that decrease or are
    negative, d < 2.

    >>> simplex_flow(0.0, [0.0, np.log(9.0)], 8, logit_std=0.0).round(6)  # hot: 1/2 at ln(n + 1)
    array([0. , 0.5])
    """
    check_overlap(gamma0, n)
    check_width(d)
    times = check_times(times)
    curves = moment_curves(n, float(logit_std))
    end = max(times[-1], 1e-12)
    path = integrate.solve_ivp(
        lambda _, y: equiangular_drift(y, *curves(y), d), (0, end), [gamma0], t_eval=times, rtol=1e-9, atol=1e-12
    )
    return path.y[0]


def time_to_overlap(n: int, logit_std: float, d: float = math.inf, *, start: float = 0.0, target: float = 0.5) -> float:
    """The tau at which the equiangular flow from ``start`` reaches ``target``. [ours]

    Equation: int dgamma / D(gamma) from start to target; at logit_std = 0, d = infinity, start = 0 it is ln(n + 1) for
    target = 1/2. In layers multiply by H / eta^2. ValueError where the drift vanishes or points away on the way.

    >>> round(time_to_overlap(8, 0.0), 6), round(time_to_overlap(8, math.inf), 2)  # cold attention takes longer
    (2.197225, 3.29)
    """
    check_count("n", n)
    check_width(d)
    if not start <= target < 1:
        raise ValueError(f"start = {start:g}, target = {target:g}: overlaps grow, need start <= target < 1")
    check_overlap(start, n)
    # gamma + 1/n = e^v spreads the slow departure, where D is about (gamma + 1/n).
    shift = 1 / n
    low, high = math.log(max(start + shift, 1e-12)), math.log(target + shift)
    x, weights = special.roots_legendre(32)
    v = (low + high) / 2 + (high - low) / 2 * x
    gamma = np.exp(v) - shift
    moments = np.array([attention_moments(float(np.clip(y, start, target)), n, logit_std)[:2] for y in gamma])
    drift = simplex_drift(gamma, moments[:, 0], moments[:, 1], d)
    if (drift <= 0).any():
        raise ValueError(f"the drift is not positive between {start:g} and {target:g} at d = {d:g}: never reached")
    return float((high - low) / 2 * weights @ (np.exp(v) / drift))


def uniform_correlation(gram: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
    """s_ij = m = (1/n^2) sum R: every token attends evenly (beta = 0). [digest]"""
    return gram.mean(dim=(-2, -1), keepdim=True).expand_as(gram)


def gram_flow(
    gram0: Float[Tensor, "*batch n n"],
    times: ArrayLike,
    d: int,
    *,
    correlation: Callable[[Tensor], Tensor] = uniform_correlation,
    step: float = 0.01,
) -> Float[Tensor, "T *batch n n"]:
    """R(tau) with R' = D(R, s(R)), the noiseless Gram matrix, by Runge and Kutta's fourth-order steps. [ours]

    ``correlation`` maps overlaps (..., n, n) to s; the default is uniform attention. Errors: step <= 0, bad times.
    """
    check_positive("step", step)
    times = check_times(times)
    G, now, kept = gram0, 0.0, []
    for time in times:
        count = math.ceil((time - now) / step - 1e-9)
        for _ in range(count):
            G = runge_kutta(G, (time - now) / count, lambda R: overlap_drift(R, correlation(R), d))
        now = float(time)
        kept.append(G)
    return torch.stack(kept)


def hot_block(
    gram: Float[Tensor, "*batch n n"], attention: float, mlp: float, variance: float
) -> Float[Tensor, "*batch n n"]:
    """Overlaps after a block of post-LayerNorm attention and MLP with fresh weights, at infinite width and hot. [ours]

    Equation: R <- N(R + a m), then R <- N(R + b K(R)), where m is the mean of R, K(R) = E[gelu(z) gelu(z')] for
    Gaussian z, z' of this variance and of correlation R, and N divides by the diagonal. For entries of variance s^2,
    width d and inner width k: a = (s^2 d)^2, b = s^2 k and variance s^2 d.
    """
    attended = _normalised(gram + attention * gram.mean(dim=(-2, -1), keepdim=True))
    return _normalised(attended + mlp * _gelu_kernel(attended, variance))


def _normalised(gram: Tensor) -> Tensor:
    length = gram.diagonal(dim1=-2, dim2=-1).sqrt()
    return gram / length[..., :, None] / length[..., None, :]


def _gelu_kernel(R: Tensor, variance: float, nodes: int = 24) -> Tensor:
    """E[gelu(z) gelu(z')] by Gauss and Hermite's rule in two dimensions."""
    points, weights = (torch.as_tensor(each).to(R) for each in np.polynomial.hermite_e.hermegauss(nodes))
    weights, deviation = weights / weights.sum(), math.sqrt(variance)
    first, total = torch.nn.functional.gelu(deviation * points), torch.zeros_like(R)
    for point, weight in zip(points, weights, strict=True):  # the part of z' across z
        across = (1 - R.square()).clamp(min=0).sqrt() * point
        second = torch.nn.functional.gelu(deviation * (R[..., None] * points + across[..., None]))
        total = total + weight * (second @ (weights * first))
    return total


def kernel_distance(points: torch.Tensor, clouds: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """E|G_mu(x) - G_nu(y)|^2 at beta = 0, exactly, and the lemma's 2|x - y|^2 + (2/n) sum_k |x_k - y_k|^2.

    Shapes: points (..., 2, d) holds x and y, clouds (..., 2, n, d) their clouds.
    """
    d, m = points.shape[-1], clouds.mean(dim=-2)
    R, cross = ((z[..., 0, :] * z[..., 1, :]).sum(dim=-1) for z in (points, m))
    square = ((d - 1) * m.square().sum(dim=(-2, -1)) - 2 * (d - 2 + R.square()) * cross) / d
    moved = (clouds[..., 0, :, :] - clouds[..., 1, :, :]).square().sum(dim=-1).mean(dim=-1)
    return square, 2 * (points[..., 0, :] - points[..., 1, :]).square().sum(dim=-1) + 2 * moved


def runge_kutta(y: Tensor, h: float, rate: Callable[[Tensor], Tensor]) -> Tensor:
    """One of Runge and Kutta's fourth-order steps of y' = rate(y)."""
    a = rate(y)
    b = rate(y + h / 2 * a)
    c = rate(y + h / 2 * b)
    return y + h / 6 * (a + 2 * b + 2 * c + rate(y + h * c))
