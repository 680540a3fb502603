"""Moments of attention among equiangular tokens, from quadrature at d = infinity and from samples at any width.

symbol         name           meaning
gamma          gamma          common overlap of the n tokens, in [-1/(n-1), 1]
lambda         logit_std      standard deviation of a logit; math.inf is hardmax
pi_ik          (inside)       probability that token i attends to token k
f              f              E sum_k pi_ik^2, the participation ratio
g              g              E sum_k pi_ik pi_jk for i != j, the agreement of two tokens
sigma          spread         lambda sqrt(1 - gamma), what a row's softmax feels of its logits

At d = infinity the logits are a Gaussian field of covariance lambda^2 R_ij R_kl; up to what is common to a row,
ell_ik = sigma z_ik with cor(z_ik, z_jk) = gamma. With 1 / Z^2 = int_0^inf t e^{-t Z} dt and psi(t, u) =
E exp(-t e^{ell_1} - u e^{ell_2}), phi(t) = psi(t, 0):

f = n int t E[e^{2 ell} exp(-t e^ell)] phi(t)^{n-1} dt,   g = n iint (d_t d_u psi) psi^{n-1} dt du.   [ours]
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from derived.lab.checks import check_count

from .checks import check_overlap

STEP = 0.4  # in log t; the trapezoidal error, exp(-pi^2 / STEP) times a power, is 5e-9
FINE = STEP / 2  # the private part is tabulated on this grid of log t
REACH = 6.5  # of a standard normal: 8e-11 is left out
COARSE = 0.6  # step of a standard normal: exp(-2 pi^2 / COARSE^2) = 2e-24
TOP = 300.0  # e^TOP and its square are numbers, and exp(-e^TOP) is 0: beyond, a logit adds nothing


class AttentionMoments(NamedTuple):
    """f and g with their errors: standard errors of samples, or a bound of the quadrature."""

    f: float
    g: float
    f_error: float
    g_error: float


def attention_moments(gamma: float, n: int, logit_std: float) -> AttentionMoments:
    """f and g of n tokens of overlap gamma at d = infinity, by quadrature, relative error below 1e-8. [ours]

    Equation: f = E sum_k pi_ik^2, g = E sum_k pi_ik pi_jk for i != j, with logits of standard deviation ``logit_std``.
    math.inf is hardmax, where f = 1 and g = P(two tokens choose the same key). ValueError for an overlap that n tokens
    cannot share, n < 1, a logit_std that is negative or finite above 50 (the grid grows with it).

    >>> hot, cold = attention_moments(0.0, 8, 0.0), attention_moments(0.0, 8, 8.0)
    >>> hot.f, round(cold.f, 3), round(cold.g, 6)  # g stays 1/n at gamma = 0
    (0.125, 0.825, 0.125)
    """
    check_count("n", n)
    check_overlap(gamma, n)
    if not (0 <= logit_std <= 50 or logit_std == math.inf):
        raise ValueError(f"logit_std = {logit_std!r}: need a number from 0 to 50, or math.inf for hardmax")
    if n == 1 or logit_std == 0 or gamma == 1:
        value = 1.0 if math.isinf(logit_std) else 1 / n
        return AttentionMoments(value, value, 0.0, 0.0)
    if math.isinf(logit_std):
        g = _argmax_agreement(gamma, n)
        return AttentionMoments(1.0, g, 0.0, 1e-8 * g)
    f, g = _laplace_moments(gamma, n, logit_std * math.sqrt(1 - gamma))
    return AttentionMoments(f, g, 1e-8 * f, 1e-8 * g)


def _laplace_moments(gamma: float, n: int, sigma: float) -> tuple[float, float]:
    reach, s = _ranges(n, sigma)
    missed, _, square = _means(s, sigma, reach, STEP)
    f = n * STEP * float(square @ np.exp((n - 1) * np.log1p(-np.minimum(missed, 1 - 1e-16))))
    common, own = sigma * math.sqrt(abs(gamma)), sigma * math.sqrt(1 - abs(gamma))
    weights, (lacking, slope), other = _row_curves(s, common, own, reach)
    other, other_slope = other if gamma < 0 else (lacking, slope)  # opposite common parts: a negative correlation
    # 1 - psi = E[a + b - a b] with a, b = 1 - e^{-x}: no cancellation where t and u are small.
    rest = (lacking @ weights)[:, None] + other @ weights - (lacking * weights) @ other.T
    density = (slope * weights) @ other_slope.T
    return f, float(n * STEP**2 * (density * np.exp((n - 1) * np.log1p(-np.clip(rest, 0, 1 - 1e-16)))).sum())


def _ranges(n: int, sigma: float) -> tuple[float, np.ndarray]:
    """How far the normals matter (to 1e-10 of the result), and the grid of s = log t on multiples of STEP."""
    levels = math.log(n)
    reach = min(REACH + 2 * sigma, math.sqrt(46 + 2 * max(levels, 2 * levels - sigma**2)))
    top = max(-float(special.ndtri(10 ** (-12 / (n - 1)))), -REACH) * sigma + 5  # beyond, phi^{n-1} < 1e-12
    low = -reach * sigma - 24 - levels  # e^-24 = 4e-11
    return reach, STEP * np.arange(math.floor(low / STEP), math.ceil(top / STEP) + 1)


def _normal_grid(width: float, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoidal nodes and weights for E h(z), z standard normal, where h varies on the scale 1 / width."""
    step = min(COARSE, STEP / width if width else COARSE)
    z = np.arange(-math.ceil(REACH / step), math.ceil(reach / step) + 1) * step
    weights = np.exp(-z * z / 2)
    return z, weights / weights.sum()


def _row_curves(s: np.ndarray, common: float, own: float, reach: float) -> tuple:
    """Weights of z, and E_w(1 - e^{-x}), E_w(x e^{-x}) for x = e^{s +- common z + own w}, each (s, z)."""
    if common < 2 * FINE:  # nearly constant in z
        z, weights = np.polynomial.hermite_e.hermegauss(10 if common else 1)
        table = np.stack([_means(s + common * each, own, reach, STEP)[:2] for each in z], axis=-1)
        return weights / weights.sum(), table, table[..., ::-1]
    stride = max(int(min(COARSE * common, STEP) / FINE), 1)  # common * dz is a whole number of FINE
    count = math.ceil(reach * common / FINE / stride)
    steps = stride * np.arange(-count, count + 1)
    weights = np.exp(-((steps * FINE / common) ** 2) / 2)
    first = np.rint(s / FINE).astype(int)
    grid = np.arange(first[0] + steps[0], first[-1] + steps[-1] + 1)
    table = _means(FINE * grid, own, reach, FINE)[:2]
    places = first[:, None] - grid[0] + steps
    return weights / weights.sum(), *([y[where] for y in table] for where in (places, places[:, ::-1]))


def _means(points: np.ndarray, width: float, reach: float, unit: float) -> list[np.ndarray]:
    """E(1 - e^{-x}), E(x e^{-x}) and E(x^2 e^{-x}) for x = e^{point + width z}, z standard normal. The points
    lie ``unit`` apart; where a step of z moves them by STEP they share their exponentials, and a mean is a correlation."""
    z, weights = _normal_grid(width, reach)
    stride = round(STEP / unit) if width * COARSE >= STEP else 0
    if stride:
        spread = np.zeros(stride * (z.size - 1) + 1)
        spread[::stride] = weights
        exponents = points[0] + width * z[0] + unit * np.arange(points.size + spread.size - 1)
    else:
        exponents = points[:, None] + width * z
    x = np.exp(np.minimum(exponents, TOP))
    curves = -np.expm1(-x), x * np.exp(-x), (x * np.exp(-x / 2)) ** 2
    return [np.correlate(each, spread, "valid") if stride else each @ weights for each in curves]


def _argmax_agreement(gamma: float, n: int) -> float:
    """g = n E[Phi_2(z_1, z_2)^{n-1}] for normals of correlation gamma: one key is the largest in both rows."""
    if gamma == -1:
        return 0.0  # two opposite tokens: the largest logit of one is the smallest of the other
    own, common = math.sqrt(1 - abs(gamma)), math.sqrt(abs(gamma))
    levels = math.log(n)  # the largest of n normals varies on the scale 1 / sqrt(2 ln n)
    reach, step = math.sqrt(46 + 4 * levels), STEP * min(own / 2, 1 / math.sqrt(1 + 2 * levels))
    y = np.arange(-REACH, reach + step, step)
    half = np.arange(0.0, reach, min(step, COARSE / 2))
    z = np.concatenate([-half[:0:-1], half])
    weights = np.exp(-z * z / 2)
    weights /= weights.sum()
    standard = (y[:, None] - common * z) / own
    below, density = special.ndtr(standard), np.exp(-standard * standard / 2) / math.sqrt(2 * math.pi) / own
    other = slice(None, None, -1 if gamma < 0 else 1)
    joint = (below * weights) @ below[:, other].T
    return float(n * step**2 * (((density * weights) @ density[:, other].T) * joint ** (n - 1)).sum())
