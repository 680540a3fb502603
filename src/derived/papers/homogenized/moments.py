"""Moments of attention among equiangular tokens, from quadrature at d = infinity and from samples at any width.

symbol         name           meaning
gamma          gamma          common overlap of the n tokens, in [-1/(n-1), 1]
tau_l          logit_std      standard deviation of a logit; math.inf is hardmax
pi_ik          (inside)       probability that token i attends to token k
f              f              E sum_k pi_ik^2, the participation ratio
g              g              E sum_k pi_ik pi_jk for i != j, the agreement of two tokens
sigma          spread         tau_l sqrt(1 - gamma), what a row's softmax feels of its logits

At d = infinity the logits are a Gaussian field of covariance tau_l^2 R_ij R_kl; up to what is common to a row,
ell_ik = sigma z_ik with cor(z_ik, z_jk) = gamma. With 1 / Z^2 = int_0^inf t e^{-t Z} dt and psi(t, u) =
E exp(-t e^{ell_1} - u e^{ell_2}), phi(t) = psi(t, 0):

f = n int t E[e^{2 ell} exp(-t e^ell)] phi(t)^{n-1} dt,   g = n iint (d_t d_u psi) psi^{n-1} dt du.   [ours]
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy import interpolate, special, stats

from .checks import check_overlap, check_sizes, check_width
from .gram import bartlett, psd_factor
from .heads import simplex_gram

STEP = 0.35  # in log t: the trapezoidal error is exp(-pi^2 / STEP) = 6e-13 (analytic in a strip of half width pi/2)
REACH = 7.5  # of a standard normal: 6e-14 is left out
COARSE = 0.6  # of a standard normal: exp(-2 pi^2 / COARSE^2) = 2e-24


class AttentionMoments(NamedTuple):
    """f and g with their errors: standard errors of samples, or a bound of the quadrature."""

    f: float
    g: float
    f_error: float
    g_error: float


def attention_moments(gamma: float, n: int, logit_std: float) -> AttentionMoments:
    """f(gamma) and g(gamma) at d = infinity by quadrature, relative error below 1e-8. [ours]

    Errors: an overlap that n tokens cannot share, n < 1, a negative logit_std. ``logit_std`` = math.inf is hardmax,
    where f = 1 and g = P(two tokens choose the same key).
    """
    check_sizes(n=n)
    check_overlap(gamma, n)
    if not logit_std >= 0:
        raise ValueError(f"logit_std = {logit_std!r}: a standard deviation is not negative (math.inf is hardmax)")
    if n == 1 or logit_std == 0 or gamma == 1:
        value = 1.0 if math.isinf(logit_std) else 1 / n
        return AttentionMoments(value, value, 0.0, 0.0)
    if math.isinf(logit_std):
        g = _argmax_agreement(gamma, n)
        return AttentionMoments(1.0, g, 0.0, 1e-8 * g)
    f, g = _laplace_moments(gamma, n, logit_std * math.sqrt(1 - gamma))
    return AttentionMoments(f, g, 1e-8 * f, 1e-8 * g)


def _normal_grid(width: float) -> tuple[np.ndarray, np.ndarray]:
    """Trapezoidal nodes and weights for E h(z), z standard normal, where h varies on the scale 1 / width."""
    step = min(COARSE, STEP / width if width else COARSE)
    z = np.arange(-math.ceil(REACH / step), math.ceil(REACH / step) + 1) * step
    weights = np.exp(-z * z / 2)
    return z, weights / weights.sum()


def _laplace_moments(gamma: float, n: int, sigma: float) -> tuple[float, float]:
    common, own = sigma * math.sqrt(abs(gamma)), sigma * math.sqrt(1 - abs(gamma))
    s = np.arange(-REACH * sigma - 27 - math.log(n), REACH * sigma + 5, STEP)  # log t; e^-27 = 2e-12
    z, weights = _normal_grid(sigma)
    x = np.exp(s[:, None] + sigma * z)
    phi = np.minimum(-np.expm1(-x) @ weights, 1 - 1e-16)
    f = n * STEP * float(((x * x * np.exp(-x)) @ weights) @ np.exp((n - 1) * np.log1p(-phi)))
    z, weights = _normal_grid(common)
    shifted = s[:, None] + common * z
    lacking, slope = (curve(shifted) for curve in _private_curves(own, shifted.min(), shifted.max()))
    other = slice(None, None, -1 if gamma < 0 else 1)  # a negative correlation: the common part with its sign changed
    # 1 - psi = E[a + b - a b] with a, b = 1 - e^{-x}: no cancellation where t and u are small.
    total = lacking @ weights
    rest = total[:, None] + total[None, :] - (lacking * weights) @ lacking[:, other].T
    density = (slope * weights) @ slope[:, other].T
    return f, float(n * STEP**2 * (density * np.exp((n - 1) * np.log1p(-np.clip(rest, 0, 1 - 1e-16)))).sum())


def _private_curves(own: float, low: float, high: float) -> list:
    """s -> E(1 - e^{-x}) and E(x e^{-x}), x = e^{s + own w}, as splines of order 8 on a fine grid."""
    w, weights = _normal_grid(own)
    grid = np.linspace(low, high, max(16, math.ceil((high - low) / 0.125)) + 1)
    x = np.exp(grid[:, None] + own * w)
    # In the far left tail both are E x = e^{s + own^2 / 2} to first order; the spline runs through the logarithm.
    values = (-np.expm1(-x) @ weights, (x * np.exp(-x)) @ weights)
    return [_log_spline(grid, value) for value in values]


def _log_spline(grid: np.ndarray, value: np.ndarray):
    floor = np.finfo(float).tiny
    spline = interpolate.make_interp_spline(grid, np.log(np.maximum(value, floor)), k=7)
    return lambda s: np.exp(spline(s))


def _argmax_agreement(gamma: float, n: int) -> float:
    """g = n E[Phi_2(z_1, z_2)^{n-1}] for normals of correlation gamma: one key is the largest in both rows."""
    own, common = math.sqrt(1 - abs(gamma)), math.sqrt(abs(gamma))
    step = 0.25 * own
    y = np.arange(-REACH, REACH + step, step)
    z = np.arange(-REACH, REACH + step, min(step, 0.25))
    weights = stats.norm.pdf(z)
    weights /= weights.sum()
    standard = (y[:, None] - common * z) / own
    below, density = special.ndtr(standard), np.exp(-standard * standard / 2) / math.sqrt(2 * math.pi) / own
    other = slice(None, None, -1 if gamma < 0 else 1)
    joint = (below * weights) @ below[:, other].T
    return float(n * step**2 * (((density * weights) @ density[:, other].T) * joint ** (n - 1)).sum())


def sampled_moments(
    gamma: float,
    n: int,
    logit_std: float,
    d: float = math.inf,
    *,
    samples: int = 4096,
    rows: int = 8,
    generator: torch.Generator,
) -> AttentionMoments:
    """f and g from independent draws of the logits of ``rows`` tokens, exact in law at any width d, antithetic. [ours]

    At finite d the logits of A = W W'^T are tau_l C_rows (T Z / sqrt(d)) C^T with Bartlett's factor T; at d = infinity
    T / sqrt(d) is the identity. Each draw is used with both signs; the errors are over draws. Errors: as
    ``attention_moments``; n tokens of overlap gamma need d >= n - 1; samples < 2.
    """
    check_sizes(n=n, samples=samples, rows=rows)
    check_overlap(gamma, n)
    check_width(d)
    rows, facts = min(rows, n), {"device": generator.device, "dtype": torch.float64}
    k = min(n, d)
    C = psd_factor(simplex_gram(n, gamma, **facts).unsqueeze(0), n)[0]
    if d < n and gamma < 1 and not (k == n - 1 and abs(gamma * (n - 1) + 1) < 1e-12):
        raise ValueError(f"{n} tokens of overlap {gamma:g} span {n} dimensions: need d >= {n}, but d = {d}")
    left = psd_factor(C[:rows] @ C[:rows].mT, rows)  # tokens 1 .. rows in a basis of their own span
    Z = torch.randn(samples, rows, C.shape[-1], generator=generator, **facts)
    if math.isfinite(d):
        T = bartlett((samples,), rows, int(d), generator=generator) / math.sqrt(d)
        Z = T @ Z[:, : T.shape[-1]]
    logits = logit_std * (left @ Z @ C.mT)
    draws = torch.stack([_row_moments(torch.softmax(sign * logits, dim=-1)) for sign in (1, -1)]).mean(dim=0)
    value, error = draws.mean(dim=1), draws.std(dim=1) / math.sqrt(samples)
    return AttentionMoments(*value.tolist(), *error.tolist())


def _row_moments(Pi: torch.Tensor) -> torch.Tensor:
    """(2, samples): mean over rows of sum_k pi_ik^2, mean over pairs of rows of sum_k pi_ik pi_jk."""
    rows = Pi.shape[-2]
    f = Pi.square().sum(dim=(-2, -1))
    g = (Pi.sum(dim=-2).square().sum(dim=-1) - f) / (rows * (rows - 1)) if rows > 1 else f
    return torch.stack([f / rows, g])


def rem_participation(n: int, logit_std: ArrayLike) -> np.ndarray:
    """The leading order of f for n independent logits of standard deviation sigma: a random energy model. [ours]

    With l = ln n: e^{sigma^2} / n for sigma^2 <= 2 l / 3 (all keys count), exp(-(l - sigma^2 / 2)^2 / (2 sigma^2)) for
    2 l / 3 < sigma^2 < 2 l (one key rarely wins), 1 - a_n / sigma beyond (frozen), where a_n = sqrt(2 l) -
    (ln l + ln 4 pi) / (2 sqrt(2 l)) is the typical largest of n normals. For n tokens of overlap gamma take
    sigma = tau_l sqrt(1 - gamma). Errors: n < 3, negative deviations.
    """
    sigma = np.asarray(logit_std, dtype=float)
    if n < 3 or (sigma < 0).any():
        raise ValueError(f"n = {n}, logit_std = {logit_std}: need n >= 3 keys and deviations of at least 0")
    levels, square = math.log(n), np.maximum(sigma, 1e-150) ** 2
    edge = math.sqrt(2 * levels)
    largest = edge - (math.log(levels) + math.log(4 * math.pi)) / (2 * edge)
    rare = np.exp(-((levels - square / 2) ** 2) / (2 * square))
    warm = np.where(square <= 2 * levels / 3, np.exp(np.minimum(square, 2 * levels / 3)) / n, rare)
    frozen = 1 - largest / np.maximum(sigma, largest)
    return np.where(sigma < edge, np.maximum(warm, frozen) if n > 2 else warm, frozen)


def vmf_mean_ratio(d: int, kappa: ArrayLike) -> np.ndarray:
    """A_d(kappa) = I_{d/2}(kappa) / I_{d/2-1}(kappa), the length of the mean of a von Mises-Fisher law. [prior]

    Equation: 1 / A_d = d / kappa + A_{d+2}, a continued fraction; it contracts by A^2 a step, so 7 sqrt(kappa) + 30
    steps from Amos's bound reach rounding. For uniform tokens m(x) = A_d(beta |A x|) A x / |A x|.
    Errors: d < 2, negative or infinite kappa.
    """
    check_sizes(d=d)
    kappa = np.asarray(kappa, dtype=float)
    if not (np.isfinite(kappa) & (kappa >= 0)).all():
        raise ValueError("kappa must be finite and at least 0: it is the concentration beta |A x|")
    steps = 30 + math.ceil(7 * math.sqrt(kappa.max(initial=0.0)))
    x, nu = np.maximum(kappa, np.finfo(float).tiny ** 0.5), d / 2 + steps
    ratio = x / (nu - 0.5 + np.sqrt(x * x + (nu + 0.5) ** 2))
    for j in range(steps - 1, -1, -1):
        ratio = 1 / ((d + 2 * j) / x + ratio)
    return np.where(kappa > 0, ratio, 0.0)


def vmf_barycentre(Z: torch.Tensor, beta: float) -> torch.Tensor:
    """m = A_d(beta |z|) z / |z| for z = A x (..., d): the softmax barycentre of uniformly spread tokens. [ours]"""
    size = torch.linalg.vector_norm(Z, dim=-1, keepdim=True)
    if math.isinf(beta):
        return Z / size
    ratio = torch.from_numpy(vmf_mean_ratio(Z.shape[-1], (beta * size).cpu().numpy())).to(Z)
    return ratio * Z / size
