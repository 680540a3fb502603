"""Gaussian moments of the normaliser: closed forms for LayerNorm, Derf and DyT, quadrature for any other map.

symbol       name        meaning                                                      axes
q, p         q, p        E u^2 = E v^2 and E u v of the Gaussian pair (u, v)           broadcastable
phi          fn          x -> fn(alpha x): tanh for DyT, erf for Derf                  elementwise
q~, p~       q_tilde, p_tilde   E phi(u)^2, E phi(u) phi(v)                            as q, p
q^, p^       q_hat, p_hat       E phi'(u)^2, E phi'(u) phi'(v)                         as q, p
kappa        arccos_kernel      E relu(z) relu(z') for unit variances, correlation rho  as rho
beta_i, w_i  tanh_mixture       tanh(x) = sum_i w_i erf(beta_i x)                       (nodes,)

All functions take and return numpy arrays (or numbers) of any broadcastable shapes.
"""

import math
import warnings
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from derived.lab.checks import check_count, check_positive

from .checks import checked_correlation

REACH = 9.0  # the trapezoidal rule covers |z| <= 9: the Gaussian beyond has mass 2e-19
TOLERABLE = 1e-6  # quadrature whose error bound is larger warns


class Moments(NamedTuple):
    """q~, p~ (the map) and q^, p^ (its derivative)."""

    q_tilde: np.ndarray
    p_tilde: np.ndarray
    q_hat: np.ndarray
    p_hat: np.ndarray


@runtime_checkable
class NormKernel(Protocol):
    """What ``propagate`` asks of a normaliser: its four Gaussian moments at the covariance (q, p).

    Where it has an array ``alpha``, one per curve, that broadcasts against the curves.
    """

    def moments(self, q: ArrayLike, p: ArrayLike) -> Moments:
        """q~, p~, q^, p^ at (q, p), broadcast."""
        ...


def arccos_kernel(rho: ArrayLike) -> np.ndarray:
    """kappa(rho) = (sqrt(1 - rho^2) + rho (pi - arccos rho)) / (2 pi) = E relu(z) relu(z'), kappa(1) = 1/2. [prior]

    Raises ValueError unless -1 <= rho <= 1.
    """
    rho = checked_correlation("rho", rho)
    return (np.sqrt(1 - rho * rho) + rho * (np.pi - np.arccos(rho))) / (2 * np.pi)


def arccos_kernel_prime(rho: ArrayLike) -> np.ndarray:
    """kappa'(rho) = (pi - arccos rho) / (2 pi) = P(z > 0, z' > 0), kappa'(1) = 1/2. [prior: Sheppard]

    Raises ValueError unless -1 <= rho <= 1.
    """
    return (np.pi - np.arccos(checked_correlation("rho", rho))) / (2 * np.pi)


class LayerNormKernel:
    """LayerNorm without affine part at infinite width: q~ = 1, p~ = rho = p/q, q^ = p^ = 1/q. [repo]

    q > 0 and p broadcast; the moments have their shape.

    >>> LayerNormKernel().moments(np.array([1.0, 2.0]), 1.0).p_tilde
    array([1. , 0.5])
    """

    def moments(self, q: ArrayLike, p: ArrayLike) -> Moments:
        """The four moments at (q, p)."""
        inverse = 1 / q
        return Moments(np.ones_like(inverse), p * inverse, inverse, inverse)


class ErfKernel:
    """Derf, phi(x) = erf(alpha x): the Gaussian moments in closed form, by the arcsine law. [repo]

    p~ = (2/pi) arcsin(2 alpha^2 p / (1 + 2 alpha^2 q)), p^ = (4 alpha^2/pi) ((1 + 2 alpha^2 q)^2 - 4 alpha^4
    p^2)^{-1/2}, and p = q gives q~, q^. ``alpha``, a number or one per curve, broadcasts against q and p. Raises
    ValueError unless alpha is finite and > 0.

    >>> ErfKernel([0.5, 1.0]).moments(1.0, 0.5).q_tilde.round(4)
    array([0.2163, 0.4646])
    """

    def __init__(self, alpha: ArrayLike):
        check_positive("alpha", np.asarray(alpha, dtype=float))
        self.alpha = np.asarray(alpha, dtype=float)
        self._square = 2 * np.square(self.alpha)
        self._scale = (2 / np.pi) * self._square

    def moments(self, q: ArrayLike, p: ArrayLike) -> Moments:
        """The four moments at (q, p)."""
        x, y = self._square * q, self._square * p
        total = 1 + x
        return Moments(
            (2 / np.pi) * np.arcsin(x / total),
            (2 / np.pi) * np.arcsin(y / total),
            self._scale / np.sqrt(total + x),
            self._scale / np.sqrt((total - y) * (total + y)),
        )


@cache
def tanh_mixture(num_nodes: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of tanh(x) = sum_i w_i erf(beta_i x), an average over Kolmogorov's law.

    A logistic variable is 2 V N with N normal and V distributed as Kolmogorov's statistic (Andrews and Mallows), so
    tanh(x) = E erf(x / (sqrt(2) V)). The trapezoidal rule in log V converges geometrically, since the density of log V
    decays doubly exponentially: 24 nodes reach 3e-13 for every x. Returns (beta, w), each (num_nodes,). [ours]
    """
    check_count("num_nodes", num_nodes, 2)
    t = np.linspace(math.log(0.17), math.log(4.4), num_nodes)
    v = np.exp(t)[:, None]
    odd, k = 2 * np.arange(1, 9) - 1, np.arange(1, 9)
    rate = np.square(odd * np.pi / v) / 8
    # Two series of Kolmogorov's density, the one for small v, the alternating one for large v.
    low = math.sqrt(2 * np.pi) * ((2 * rate - 1) * np.exp(-rate)).sum(axis=-1) / v[:, 0] ** 2
    high = 8 * v[:, 0] * (-((-1.0) ** k) * k**2 * np.exp(-2 * np.square(k * v))).sum(axis=-1)
    weight = np.where(v[:, 0] < 1, low, high) * v[:, 0] * (t[1] - t[0])
    return 1 / (math.sqrt(2) * v[:, 0]), weight


class TanhKernel:
    """DyT, phi(x) = tanh(alpha x), as a double average of arcsine laws: accurate for every alpha sqrt(q). [ours]

    With tanh(x) = sum_i w_i erf(beta_i x) and b_i = alpha beta_i,
    p~ = sum_ij w_i w_j (2/pi) arcsin(2 b_i b_j p / sqrt((1 + 2 b_i^2 q)(1 + 2 b_j^2 q))),
    p^ = sum_ij w_i w_j (4 b_i b_j/pi) ((1 + 2 b_i^2 q)(1 + 2 b_j^2 q) - 4 b_i^2 b_j^2 p^2)^{-1/2}; p = q gives q~, q^.
    ``alpha``, a number or one per curve, broadcasts against q and p. Raises ValueError unless alpha is finite and > 0,
    or for num_nodes < 2.

    >>> float(TanhKernel(1.0).moments(1.0, 0.5).q_tilde.round(6))
    0.394294
    """

    def __init__(self, alpha: ArrayLike, num_nodes: int = 24):
        check_positive("alpha", np.asarray(alpha, dtype=float))
        self.alpha = np.asarray(alpha, dtype=float)
        beta, weight = tanh_mixture(num_nodes)
        i, j = np.triu_indices(num_nodes)
        self._pair = np.where(i == j, 1.0, 2.0) * weight[i] * weight[j]
        self._first, self._second = beta[i] ** 2, beta[j] ** 2

    def moments(self, q: ArrayLike, p: ArrayLike) -> Moments:
        """The four moments at (q, p)."""
        c = 2 * np.square(self.alpha)[..., None]
        x, y = c * self._first, c * self._second
        q, p = np.asarray(q, dtype=float)[..., None], np.asarray(p, dtype=float)[..., None]
        root = np.sqrt(x * y)
        outer = (1 + x * q) * (1 + y * q)
        inner = 1 + (x + y) * q  # outer - (root q)^2, without cancellation
        return Moments(
            (2 / np.pi) * np.arcsin(root * q / np.sqrt(outer)) @ self._pair,
            (2 / np.pi) * np.arcsin(root * p / np.sqrt(outer)) @ self._pair,
            (2 / np.pi) * (root / np.sqrt(inner)) @ self._pair,
            (2 / np.pi) * (root / np.sqrt(inner + x * y * (q - p) * (q + p))) @ self._pair,
        )


def _grid(num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    check_count("num_nodes", num_nodes, 2)
    z = np.linspace(-REACH, REACH, num_nodes)
    return z, np.exp(-z * z / 2) * (z[1] - z[0]) / math.sqrt(2 * np.pi)


def gaussian_moment(fn: Callable, q: ArrayLike, num_nodes: int = 257) -> np.ndarray:
    """E fn(u), u ~ N(0, q), by the trapezoidal rule on |z| <= 9, which converges geometrically for an analytic fn."""
    z, weight = _grid(num_nodes)
    return fn(np.sqrt(np.asarray(q, dtype=float))[..., None] * z) @ weight


def gaussian_cross_moment(fn: Callable, q: ArrayLike, p: ArrayLike, num_nodes: int = 129) -> np.ndarray:
    """E fn(u) fn(v), (u, v) ~ N(0, [[q, p], [p, q]]), by the product of two trapezoidal rules.

    u = sqrt(q) z, v = sqrt(q) (rho z + sqrt(1 - rho^2) z').
    """
    z, weight = _grid(num_nodes)
    q, p = np.broadcast_arrays(np.asarray(q, dtype=float), np.asarray(p, dtype=float))
    rho = np.clip(p / q, -1.0, 1.0)[..., None, None]
    root = np.sqrt(q)[..., None, None]
    first = fn(root[..., 0] * z)
    second = fn(root * (rho * z[:, None] + np.sqrt(1 - rho * rho) * z)) @ weight
    return (first * second) @ weight


class ElementwiseKernel:
    """Any map phi(x) = fn(alpha x) with derivative alpha dfn(alpha x), by quadrature. [ours]

    q~ = E phi(u)^2, p~ = E phi(u) phi(v), and q^, p^ the same of phi', for (u, v) ~ N(0, [[q, p], [p, q]]). ``fn`` and
    ``dfn`` act elementwise on numpy arrays; ``alpha`` broadcasts against q and p. Warns with its ``error_bound`` when
    that is above 1e-6; use TanhKernel or ErfKernel, or more nodes, where alpha sqrt(q) is large. Raises ValueError
    unless alpha is finite and > 0, or for num_nodes < 16.

    >>> by_quadrature = ElementwiseKernel(np.tanh, lambda x: 1 - np.tanh(x) ** 2, 1.0)
    >>> float(by_quadrature.moments(1.0, 0.5).q_tilde.round(6))
    0.394294
    """

    def __init__(self, fn: Callable, dfn: Callable, alpha: ArrayLike, num_nodes: int = 129):
        check_positive("alpha", np.asarray(alpha, dtype=float))
        check_count("num_nodes", num_nodes, 16)
        self.fn, self.dfn, self.num_nodes = fn, dfn, num_nodes
        self.alpha = np.asarray(alpha, dtype=float)

    def error_bound(self, q: ArrayLike) -> float:
        """The quadrature's error at the largest x = alpha sqrt(q), of q^ and p^ in units of alpha^2.

        Leading order for a map with the poles of tanh at distance d = pi/(2 x): a sum with step h misses an integral by
        2 pi i times the residues of f(z) e^{2 pi i z/h}. tanh^2 has a double pole, sech^4 one of order four, so with
        r = 2 pi/(h x): sqrt(2 pi) (2 r + r^3/3) / x exp(d^2/2 - 2 pi d/h). Entire maps (erf) do better, kinks worse.
        """
        x, step = float(np.max(self.alpha * np.sqrt(q))), 2 * REACH / (self.num_nodes - 1)
        rate = 2 * math.pi / step
        d = min(math.pi / (2 * x), rate)  # beyond that distance the Gaussian itself takes over
        poles = 2 * (rate / x) + (rate / x) ** 3 / 3
        return math.sqrt(2 * math.pi) / x * poles * math.exp(d * d / 2 - rate * d)

    def moments(self, q: ArrayLike, p: ArrayLike) -> Moments:
        """The four moments at (q, p)."""
        x, y = np.square(self.alpha) * q, np.square(self.alpha) * p  # the covariance of alpha (u, v)
        bound = self.error_bound(q)
        if bound > TOLERABLE:
            warnings.warn(
                f"alpha sqrt(q) = {float(np.sqrt(np.max(x))):.3g} is large for {self.num_nodes} nodes: "
                f"the quadrature's error bound is {bound:.1e}",
                RuntimeWarning,
                stacklevel=2,
            )
        square, slope = np.square(self.alpha), self.dfn
        return Moments(
            gaussian_moment(lambda u: np.square(self.fn(u)), x, self.num_nodes),
            gaussian_cross_moment(self.fn, x, y, self.num_nodes),
            square * gaussian_moment(lambda u: np.square(slope(u)), x, self.num_nodes),
            square * gaussian_cross_moment(slope, x, y, self.num_nodes),
        )


def kernel_of(norm: str, alpha: float = 1.0) -> NormKernel:
    """The mean-field kernel that belongs to a normaliser of ``RandomTransformer``."""
    if norm == "layernorm":
        return LayerNormKernel()
    return ErfKernel(alpha) if norm == "erf" else TanhKernel(alpha)
