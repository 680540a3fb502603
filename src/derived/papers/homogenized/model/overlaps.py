"""What the overlaps do on the clock tau = eta^2 layer / H: drift, bracket, and the ordinary differential equations.

symbol         name          meaning                                                        axes
R              gram          overlaps of the tokens, R_ii = 1                               (..., n, n)
s              s             s_ij = E_A <m(x_i), m(x_j)>                                     (..., n, n)
D              overlap_drift drift of R                                                     (..., n, n)
gamma          gamma         common overlap of equiangular tokens                           arrays
S, P           S, P          s_ij (i != j) and s_ii on the equiangular line
Q              mixed         Q_ij = <m_i, m_j>, the overlaps of what the tokens read              (..., n, n)
u              u             mean of all R_ij, the diagonal included; u' = u (1 - u) is its limit of small steps

Throughout sigma_V^2 = 1/d.
"""

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import integrate, interpolate, special
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_positive, check_within

from .checks import check_overlap, check_times, check_width
from .moments import attention_moments

NODES = 40  # Chebyshev nodes of the curves f(gamma), g(gamma)


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
    (1 - gamma) f. At d = math.inf this is b(gamma) = (1 - gamma)(gamma (1 - f) + g) [digest], which the transcription
    has for every d. Shapes: gamma, f and g broadcast. ValueError for d < 2, |gamma| > 1, f or g outside [0, 1].

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


def wide_layer(gram: Float[Tensor, "*batch n n"], mixed: Float[Tensor, "*batch n n"], h: float) -> Tensor:
    """The overlaps after one layer of infinite width, whatever the step. [ours]

    Equation: R_ij <- (R_ij + h Q_ij) / sqrt((1 + h Q_ii)(1 + h Q_jj)), where Q_ij = <m_i, m_j>, averaged over heads, are
    the overlaps of what the tokens read: ``P @ gram @ P.mT`` for attention P. Shapes: (*batch, n, n) each.
    ValueError for a negative h.

    >>> R = torch.eye(2, dtype=torch.float64)
    >>> wide_layer(R, torch.full_like(R, 0.5), h=0.5)[0, 1]  # the shared push of 1/2
    tensor(0.2000, dtype=torch.float64)
    """
    check_at_least("h", h, 0)
    return _normalised(gram + h * mixed)


def odds_after(u: ArrayLike, h: ArrayLike, layers: ArrayLike) -> np.ndarray:
    """The mean overlap after ``layers`` wide layers with uniform attention, each of which multiplies its odds by 1 + h.
    [ours]

    Equation: u' / (1 - u') = (1 + h)^layers u / (1 - u), where u = (1/n^2) sum_ij R_ij counts every token with itself.
    Shapes: u, h and layers broadcast. ValueError unless 0 <= u <= 1, h >= 0 and layers >= 0.

    >>> odds_after(0.5, 0.5, 1).round(12)  # odds 1 become 3/2
    np.float64(0.6)
    """
    u, h, layers = (np.asarray(each, dtype=float) for each in (u, h, layers))
    check_within("u", u, 0, 1)
    check_at_least("h", h, 0)
    check_at_least("layers", layers, 0)
    with np.errstate(divide="ignore"):  # u = 0 and u = 1 stay
        return special.expit(special.logit(u) + layers * np.log1p(h))


def layers_for(tau: float, eta: float, H: int) -> int:
    """The number of layers after which the clock eta^2 L / H shows tau, to the nearest whole layer. [ours]

    ValueError for tau < 0, eta <= 0, H < 1.

    >>> layers_for(1.0, eta=0.1, H=4)
    400
    """
    check_at_least("tau", tau, 0)
    check_positive("eta", eta)
    check_count("H", H)
    return math.floor(tau * H / eta**2 + 0.5)


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
    drift = simplex_drift(gamma, *_moments_at(tuple(np.clip(gamma, start, target)), n, float(logit_std)), d)
    if (drift <= 0).any():
        raise ValueError(f"the drift is not positive between {start:g} and {target:g} at d = {d:g}: never reached")
    return float((high - low) / 2 * weights @ (np.exp(v) / drift))


@lru_cache(maxsize=64)
def _moments_at(gamma: tuple[float, ...], n: int, logit_std: float) -> np.ndarray:
    """f and g at these overlaps, (2, overlaps); the widths that are compared share them."""
    return np.array([attention_moments(float(each), n, logit_std)[:2] for each in gamma]).T


def _normalised(gram: Tensor) -> Tensor:
    length = gram.diagonal(dim1=-2, dim2=-1).sqrt()
    return gram / length[..., :, None] / length[..., None, :]
