"""Two tokens: a closed one-dimensional diffusion of their overlap, and its distribution by finite volumes.

symbol      name        meaning                                                        axes
R           R           overlap of the two tokens, R = tanh y
f, g        f, g        E(p^2 + (1-p)^2) and E(p_1 p_2 + (1-p_1)(1-p_2)), p_i = logistic(Delta_i)
Delta_i     (inside)    beta <W^T x_i, W'^T (x_1 - x_2)>, the difference of the two logits of token i
p(y, tau)   density     of y = artanh R                                                (T, cells)

dR = D dtau + sqrt(2/d (1 - R^2)(P - R S)) dB,  P = R + (1-R) f,  S = R + (1-R) g;  in y:
drift D / (1 - R^2) + R a,  variance rate a = 2 (R + f - R g) / (d (1 + R)).   [ours]
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import interpolate, linalg, special

from derived.lab.checks import check_at_least, check_within

from .checks import check_dimension, check_times
from .overlaps import equiangular_drift

CHEBYSHEV = 48  # nodes in R of the moment curves
REACH = 7.0  # of y = artanh R
LAGUERRE = 32  # nodes for the chi-squared length of a key; those of weight under 1e-14 are left out


def two_token_attention_moments(R: ArrayLike, d: int, beta: float, sigma_a: float) -> tuple[np.ndarray, np.ndarray]:
    """f and g of two tokens of overlap R, exact at every width: quadrature over chi^2 and two normals. [ours]

    Given the length r = sigma_A |x_1 - x_2| chi_d of W'^T(x_1 - x_2), the differences are s (a + b), s (a - b) with
    s = beta sigma_A r and independent a ~ N(0, (1+R)/2), b ~ N(0, (1-R)/2); then
    f = 1/2 + E tanh^2(Delta_1 / 2) / 2 and g = E cosh(s a) / (cosh(s a) + cosh(s b)).
    Shapes: any of R. ValueError for |R| > 1, negative beta or sigma_a, d < 2.

    >>> f, g = two_token_attention_moments([-1.0, 1.0], 4, 2.0, 1.0)
    >>> (f + g).round(9)  # antipodal tokens choose opposite keys
    array([1., 1.])
    """
    check_dimension(d)
    check_at_least("beta", beta, 0)
    check_at_least("sigma_a", sigma_a, 0)
    R = np.asarray(R, dtype=float)
    check_within("R", R, -1, 1)
    chi2, mix = gamma_nodes(d / 2, LAGUERRE)
    chi2, mix = chi2[mix > 1e-14], mix[mix > 1e-14]
    length = np.sqrt(2 * (1 - R[..., None]) * 2 * chi2)  # |x_1 - x_2| chi
    s = beta * sigma_a**2 * length[..., None, None]
    step = min(0.5, 2.4 / max(float(s.max(initial=0.0)), 1e-9))  # exp(-pi^2 / (s step)) and exp(-2 pi^2 / step^2)
    z = np.arange(math.ceil(8 / step) + 1) * step  # all functions are even
    w = np.exp(-z * z / 2) * np.where(z > 0, 2, 1)
    w /= w.sum()
    near = _log_cosh(s * np.sqrt((1 + R) / 2)[..., None, None, None] * z[:, None])
    far = _log_cosh(s * np.sqrt((1 - R) / 2)[..., None, None, None] * z)
    g = np.einsum("...lab,l,a,b->...", special.expit(near - far), mix, w, w)
    f = 0.5 + 0.5 * np.einsum("...la,l,a->...", np.tanh(s[..., 0] * z / 2) ** 2, mix, w)
    return f, g


def gamma_nodes(shape: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss nodes and weights for E h(x), x ~ Gamma(shape), from the eigenvectors of Laguerre's Jacobi matrix."""
    k = np.arange(count)
    off = np.sqrt(k[1:] * (k[1:] + shape - 1))
    nodes, vectors = linalg.eigh_tridiagonal(2 * k + shape, off)
    return nodes, vectors[0] ** 2


def _log_cosh(x: np.ndarray) -> np.ndarray:
    x = np.abs(x)
    return x + np.log1p(np.exp(-2 * x)) - math.log(2)


class TwoTokenMoments(NamedTuple):
    """Means of the overlap of two tokens and of its square, at each time."""

    first: np.ndarray
    second: np.ndarray


def two_token_coefficients(
    d: int, beta: float, sigma_a: float
) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """Drift and variance rate of y = artanh R as functions of y; at beta = 0 (d - 2 + tanh y)/(2d) and 1/d. [ours]"""
    nodes = np.cos(np.pi * (np.arange(CHEBYSHEV) + 0.5) / CHEBYSHEV)
    f, g = two_token_attention_moments(nodes, d, beta, sigma_a)
    # f + g - 1 vanishes like 1 + R at R = -1; its quotient is smooth, and the variance rate needs just that.
    curve = interpolate.BarycentricInterpolator(nodes, np.stack([f, (f + g - 1) / (1 + nodes)], axis=1))

    def parts(y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        R = np.tanh(y)
        f, quotient = curve(R).T
        g = 1 - f + (1 + R) * quotient
        return R, f, g, 2 * (quotient + 1 - g) / d

    def drift(y: np.ndarray) -> np.ndarray:
        R, f, g, a = parts(np.asarray(y, dtype=float))
        return equiangular_drift(R, f, g, float(d)) / (1 - R**2) + R * a

    return drift, lambda y: parts(np.asarray(y, dtype=float))[3]


def two_token_pde(d: int, beta: float, sigma_a: float, r0: float, times: ArrayLike) -> TwoTokenMoments:
    """E R and E R^2 of two tokens from R(0) = r0: the Fokker-Planck equation in y = artanh R. [ours]

    Equation: p' = -d/dy (drift p - d/dy (variance p) / 2), by Crank and Nicolson's steps on finite volumes in
    [-REACH, REACH], no flux through the ends. Shapes: times (T,). ValueError for an |r0| too close to 1 for the range,
    probability that reaches an end, times that decrease.

    >>> moments = two_token_pde(8, 0.0, 0.0, 0.0, [0.0, 1.0])
    >>> round(float(moments.first[1]), 3)  # E R: two orthogonal tokens come together
    0.333
    """
    check_dimension(d)
    if not abs(r0) < math.tanh(REACH - 1):
        raise ValueError(f"r0 = {r0!r}: need |r0| < tanh({REACH - 1:g}), at +-1 the tokens coincide or stay opposite")
    drift, variance = two_token_coefficients(d, beta, sigma_a)
    y, density, _ = fokker_planck(drift, variance, math.atanh(r0), times)
    width = y[1] - y[0]
    ends = width * density[:, [0, 1, -2, -1]].sum(axis=1)
    if (ends > 1e-6).any():
        raise ValueError(
            f"probability {ends.max():.2g} has reached an end of [-{REACH:g}, {REACH:g}]: give earlier times"
        )
    return TwoTokenMoments(*(width * density @ value for value in (np.tanh(y), np.tanh(y) ** 2)))


def fokker_planck(
    drift: Callable[[np.ndarray], np.ndarray],
    variance: Callable[[np.ndarray], np.ndarray],
    y0: float,
    times: ArrayLike,
    *,
    cells: int = 1400,
    steps: int = 400,
    reach: float = REACH,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Cell centres, densities (T, cells) and masses (T,) of dy = drift dt + sqrt(variance) dB from y0. [ours]

    p' = -d/dy J, J = drift p - d/dy (variance p) / 2, J = 0 at the ends. The start is shared by the two cells around
    y0 so that its mean is y0; four implicit half steps damp it, then Crank and Nicolson: second order in both steps.
    """
    times = check_times(times)
    width = 2 * reach / cells
    y = -reach + width * (np.arange(cells) + 0.5)
    matrix = flux_matrix(drift, variance, y, width)
    p, now, kept = _point_mass(y, y0, width), 0.0, []
    for time in times:
        count = max(4, math.ceil(steps * (time - now) / times[-1])) if time > now else 0
        if count:
            h = (time - now) / count
            half = _banded(matrix, h / 2)
            for _ in range(4 if now == 0 else 0):  # Rannacher's start: two whole steps, damped
                p = linalg.solve_banded((1, 1), half, p)
            for _ in range(count - 2 if now == 0 else count):
                p = linalg.solve_banded((1, 1), half, p + h / 2 * _apply(matrix, p))
        now = float(time)
        kept.append(p)
    density = np.stack(kept)
    return y, density, width * density.sum(axis=1)


def flux_matrix(drift: Callable, variance: Callable, y: np.ndarray, width: float) -> np.ndarray:
    """The generator on cells as three bands (3, cells), columns summing to 0: what leaves a cell enters another."""
    velocity, a = drift((y[:-1] + y[1:]) / 2), variance(y)
    right = velocity / (2 * width) + a[:-1] / (2 * width**2)  # from the left cell of a face to the right one
    left = -velocity / (2 * width) + a[1:] / (2 * width**2)
    bands = np.zeros((3, y.size))
    bands[0, 1:], bands[2, :-1] = left, right
    bands[1, :-1] -= right
    bands[1, 1:] -= left
    return bands


def _banded(matrix: np.ndarray, h: float) -> np.ndarray:
    shifted = -h * matrix
    shifted[1] += 1
    return shifted


def _apply(matrix: np.ndarray, p: np.ndarray) -> np.ndarray:
    out = matrix[1] * p
    out[:-1] += matrix[0, 1:] * p[1:]
    out[1:] += matrix[2, :-1] * p[:-1]
    return out


def _point_mass(y: np.ndarray, y0: float, width: float) -> np.ndarray:
    """A unit mass on two cells with mean y0."""
    place = (y0 - y[0]) / width
    left = min(max(math.floor(place), 0), y.size - 2)
    p = np.zeros(y.size)
    p[left], p[left + 1] = left + 1 - place, place - left
    return p / width
