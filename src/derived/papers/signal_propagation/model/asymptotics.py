"""The three regimes in closed form: power law (LayerNorm), stretched exponential (Derf, DyT), small-alpha window.

symbol      name          meaning                                                     axes
a, s        a, s          (sigma_O sigma_V)^2, (sigma_2 sigma_1)^2                    broadcastable
n           n             number of tokens; math.inf (the default) takes it first     broadcastable
zeta        zeta          J^{B,b} ~ (B/b)^zeta with LayerNorm                         as a, s
c_*, p_*    overlap_fixed_point, sign_overlap   limit of p/q with Derf and DyT, and (2/pi) arcsin c_*
v           growth_rate   q ~ v b with Derf and DyT
C           stretch_constant    q^ ~ C / sqrt(q)
lambda      lambda_stretched    log J^{b,0} ~ sqrt(b / lambda)
mu          relaxation_exponent p/q - c_* ~ b^{-mu}
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import elementwise

from derived.lab.checks import check_at_least, check_count, check_positive

from .checks import check_tokens, checked_correlation
from .kernels import arccos_kernel, arccos_kernel_prime


def vit_variances(attn_mult: ArrayLike = 1.0, width: int = 768) -> tuple:
    """(a, s) of a timm-initialised ViT, every weight of variance 0.02^2, with W_V and W_O multiplied.

    a = attn_mult^4 (0.02^2 d)^2, s = 4 (0.02^2 d)^2, so zeta = 2/3 whatever the width. Returns a of the shape of
    attn_mult, and s. Raises ValueError for width < 1 and a negative factor. [repo]

    >>> a, s = vit_variances()
    >>> round(float(a), 4), round(float(s), 4)
    (0.0944, 0.3775)
    """
    check_count("width", width)
    check_at_least("attn_mult", np.asarray(attn_mult, dtype=float), 0.0)
    square = (0.02**2 * width) ** 2
    return square * np.power(attn_mult, 4.0), 4 * square


def _variances(a: ArrayLike, s: ArrayLike, n: ArrayLike = math.inf) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, s, n = (np.asarray(x, dtype=float) for x in (a, s, n))
    check_at_least("a", a, 0.0)
    check_positive("s", s)
    check_tokens(n)
    return np.broadcast_arrays(a, s, n)


def zeta(a: ArrayLike, s: ArrayLike) -> np.ndarray:
    """zeta = (s/2) / (s/2 + a): with LayerNorm J^{B,b} ~ (B/b)^zeta and 1 - p/q ~ b^{zeta - 1}, n -> infinity first.

    At fixed n the exponent is 1 in the end, J ~ ((n-1)/n) b^zeta + b/n. a and s broadcast. Raises ValueError unless
    a >= 0 and s > 0. [repo; the second law and the order of limits ours]

    >>> zeta([0.0, 0.5, 1.0], 1.0)
    array([1.        , 0.5       , 0.33333333])
    """
    a, s, _ = _variances(a, s)
    return (s / 2) / (s / 2 + a)


def sign_overlap(c: ArrayLike) -> np.ndarray:
    """p(c) = (2/pi) arcsin c, the overlap of sign(u) and sign(v) at correlation c. [prior]

    Raises ValueError unless -1 <= c <= 1.
    """
    return (2 / np.pi) * np.arcsin(checked_correlation("c", c))


def overlap_fixed_point(a: ArrayLike, s: ArrayLike, n: ArrayLike = math.inf) -> np.ndarray:
    """c_* in (0, 1), the root of c (a m + s/2) = a m + s kappa(p(c)), m = p(c) + (1 - p(c))/n.

    With a saturating map p/q -> c_* < 1: no rank collapse. The root is sought in theta = arccos c between 1e-12 and
    pi/2, because the left side is smaller at c = 0, and larger close to c = 1, where p(c) has infinite slope. a, s and
    n broadcast. Raises ValueError unless a >= 0, s > 0, n >= 2. [repo; finite n ours]

    >>> float(overlap_fixed_point(*vit_variances()).round(4))
    0.6598
    """

    def excess(theta, a, s, n):  # right minus left side
        p = 1 - 2 * theta / np.pi
        missing = 2 * np.sin(theta / 2) ** 2  # 1 - c
        return (a * (p + (1 - p) / n) + s / 2) * missing - s * (0.5 - arccos_kernel(p))

    return np.cos(elementwise.find_root(excess, (1e-12, np.pi / 2), args=_variances(a, s, n)).x)


def growth_rate(a: ArrayLike, s: ArrayLike, n: ArrayLike = math.inf) -> np.ndarray:
    """v = a (p_* + (1 - p_*)/n) + s/2: with Derf and DyT q ~ v b. [repo; finite n ours]"""
    a, s, n = _variances(a, s, n)
    p = sign_overlap(overlap_fixed_point(a, s, n))
    return a * (p + (1 - p) / n) + s / 2


def lambda_stretched(a: ArrayLike, s: ArrayLike, C: ArrayLike, n: ArrayLike = math.inf) -> np.ndarray:
    """lambda = v / (C^2 (s + 2 a/n)^2): with Derf and DyT log J^{b,0} ~ sqrt(b / lambda).

    C from ``stretch_constant``; a = 0 switches attention off; all arguments broadcast. Raises ValueError unless a >= 0,
    s > 0, C > 0, n >= 2. [repo; finite n ours]

    >>> float(lambda_stretched(*vit_variances(), stretch_constant("erf")).round(3))
    4.018
    """
    C = np.asarray(C, dtype=float)
    check_positive("C", C)
    a, s, n = _variances(a, s, n)
    return growth_rate(a, s, n) / np.square(C * (s + 2 * a / n))


def stretch_constant(kind: str | Callable, alpha: ArrayLike = 1.0) -> np.ndarray:
    """C = (2 pi)^{-1/2} int phi'^2, so that q^ ~ C / sqrt(q) for large q.

    "erf" 2 alpha/pi [repo]; "tanh" 4 alpha/(3 sqrt(2 pi)); "isru", x/sqrt(1 + x^2), 3 pi alpha/(8 sqrt(2 pi));
    "hard_tanh" 2 alpha/sqrt(2 pi); or a function, the derivative of fn in phi(x) = fn(alpha x), integrated over the
    line by the trapezoidal rule after x = sinh t. Has the shape of alpha. Raises ValueError unless alpha > 0, or for
    another name. [ours]

    >>> [round(float(stretch_constant(kind)), 6) for kind in ("tanh", lambda x: 1 - np.tanh(x) ** 2)]
    [0.531923, 0.531923]
    """
    alpha = np.asarray(alpha, dtype=float)
    check_positive("alpha", alpha)
    root = math.sqrt(2 * math.pi)
    known = {"erf": 2 / math.pi, "tanh": 4 / (3 * root), "isru": 3 * math.pi / (8 * root), "hard_tanh": 2 / root}
    if callable(kind):
        t = np.linspace(-12.0, 12.0, 2401)  # x = sinh t reaches 8e4: phi'^2 has died by then
        return alpha * (np.square(kind(np.sinh(t))) @ np.cosh(t)) * (t[1] - t[0]) / root
    if kind not in known:
        raise ValueError(f"kind = {kind!r}; give one of {', '.join(map(repr, known))} or the derivative as a function")
    return alpha * known[kind]


def relaxation_exponent(a: ArrayLike, s: ArrayLike) -> np.ndarray:
    """mu = 1 - p'(c_*) (a (1 - c_*) + s kappa'(p_*)) / v, p'(c) = 2/(pi sqrt(1 - c^2)): a deviation dies like b^{-mu}.

    p/q - c_* ~ b^{-mu} if mu < 1/2; else the map's own distance from the sign, of order q^{-1/2}, keeps it at b^{-1/2}.
    Many tokens; a and s broadcast. Raises ValueError unless a >= 0, s > 0. [ours]

    >>> float(relaxation_exponent(*vit_variances()).round(4))
    0.4337
    """
    c = overlap_fixed_point(a, s)
    slope = 2 / (np.pi * np.sqrt(1 - c * c))
    pull = np.multiply(a, 1 - c) + s * arccos_kernel_prime(sign_overlap(c))
    return 1 - slope * pull / growth_rate(a, s)


def local_exponent(log_J: ArrayLike, b: ArrayLike) -> np.ndarray:
    """d log J / d log b between consecutive depths ``b`` (points,) of log_J (..., points): (..., points - 1)."""
    return np.diff(log_J, axis=-1) / np.diff(np.log(b), axis=-1)


def stretched_slope(log_J: ArrayLike, b: ArrayLike) -> np.ndarray:
    """d log J / d sqrt(b) between consecutive depths: (..., points - 1); tends to lambda^{-1/2}."""
    return np.diff(log_J, axis=-1) / np.diff(np.sqrt(b), axis=-1)
