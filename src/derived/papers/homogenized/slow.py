"""The slow overlap at low temperature: cosines under random matrices, and the diffusion on the clock tau / d.

symbol      name      meaning
r           r         cosine of the angle of two vectors
kappa       kappa     E cos(Ax, Ay) = r - kappa r (1 - r^2) / d + O(1/d^2): 1/2 for each Gaussian factor of A, 0 for a
                      Haar-orthogonal A, so 1 for A = W W'^T
u           u         overlap at time t = tau / d, du = -(1 + kappa) u (1 - u^2) dt + sqrt(2) (1 - u^2) dB
y           y         artanh u, dy = (1 - kappa) tanh y dt + sqrt(2) dB

Version 1, as retold, has kappa = 0 in the equation of u and 1/2 in the lemma; kappa = 1 is [ours].
"""

import math

import numpy as np
import torch
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike
from scipy import special

from .checks import check_nonnegative, check_sizes
from .two_token import gamma_nodes


def mean_cosine(r: ArrayLike, d: int, factors: int = 2) -> np.ndarray:
    """E cos(Ax, Ay) for A a product of ``factors`` independent (d, d) Gaussian matrices and <x, y> = r. [ours]

    One factor: (2/d) (Gamma((d+1)/2) / Gamma(d/2))^2 r F(1/2, 1/2; d/2 + 1; r^2), the mean of a sample correlation
    [prior]; more factors by quadrature over the cosine that one factor leaves, to 1e-5 for d >= 6.
    Errors: |r| > 1, d < 2, factors < 1.
    """
    check_sizes(d=d, factors=factors)
    r = np.asarray(r, dtype=float)
    if not (np.abs(r) <= 1).all():
        raise ValueError("a cosine lies in [-1, 1]")
    if factors == 1:
        scale = 2 / d * math.exp(2 * (math.lgamma((d + 1) / 2) - math.lgamma(d / 2)))
        return scale * r * _half_half(d / 2 + 1, r**2)
    inner = chebyshev.chebinterpolate(lambda x: mean_cosine(x, d, factors - 1), 31)
    first, w_first = gamma_nodes(d / 2, 20)
    second, w_second = gamma_nodes((d - 1) / 2, 20)
    z, w = np.polynomial.hermite_e.hermegauss(32)
    along = r[..., None, None] * np.sqrt(2 * first)[:, None] + np.sqrt(1 - r**2)[..., None, None] * z
    across = np.sqrt(1 - r**2)[..., None, None, None] * np.sqrt(2 * second)
    size = np.hypot(along[..., None], across)
    image = np.where(size > 0, along[..., None] / np.where(size > 0, size, 1), 0.0)
    return np.einsum("...abc,a,b,c->...", chebyshev.chebval(image, inner), w_first, w / w.sum(), w_second)


def _half_half(c: float, x: np.ndarray) -> np.ndarray:
    """F(1/2, 1/2; c; x) on [0, 1]; its series for c >= 20, where 80 terms reach rounding and scipy overflows near 1."""
    if c < 20:
        return special.hyp2f1(0.5, 0.5, c, x)
    k = np.arange(80)
    terms = np.cumprod(np.concatenate([[1.0], (k + 0.5) ** 2 / ((c + k) * (k + 1))]))
    return np.polynomial.polynomial.polyval(x, terms)


def slow_drift(u: ArrayLike, kappa: float = 1.0) -> np.ndarray:
    """-(1 + kappa) u (1 - u^2), the drift of the slow overlap on the clock tau / d. [ours]"""
    u = np.asarray(u, dtype=float)
    return -(1 + kappa) * u * (1 - u**2)


def slow_bracket(u: ArrayLike) -> np.ndarray:
    """2 (1 - u^2)^2, the variance rate of the slow overlap on the clock tau / d. [digest]"""
    return 2 * (1 - np.asarray(u, dtype=float) ** 2) ** 2


def slow_overlap_sde(
    kappa: float,
    times: ArrayLike,
    *,
    y0: float = 0.0,
    paths: int,
    generator: torch.Generator,
    step: float = 0.02,
    dtype=torch.float64,
) -> torch.Tensor:
    """Paths (T, paths) of y = artanh u, dy = (1 - kappa) tanh y dt + sqrt(2) dB, at ``times``. [ours]

    Heun's step, weak order 2 for additive noise; exact at kappa = 1, where y = y0 + sqrt(2) B. u = torch.tanh(y).
    Errors: bad times, step <= 0.
    """
    check_sizes(paths=paths)
    check_nonnegative(step=step)
    times = np.asarray(times, dtype=float)
    if step == 0 or times.ndim != 1 or not times.size or times[0] < 0 or (np.diff(times) < 0).any():
        raise ValueError(f"step = {step}, times = {times}: need step > 0 and times from 0 upwards")
    y = torch.full((paths,), float(y0), device=generator.device, dtype=dtype)
    now, kept = 0.0, []
    for time in times:
        count = math.ceil((time - now) / step - 1e-9) if kappa != 1 else int(time > now)
        h = (time - now) / max(count, 1)
        for _ in range(count):
            noise = math.sqrt(2 * h) * torch.randn(paths, generator=generator, device=generator.device, dtype=dtype)
            push = (1 - kappa) * torch.tanh(y)
            guess = y + h * push + noise
            y = y + h / 2 * (push + (1 - kappa) * torch.tanh(guess)) + noise
        now = float(time)
        kept.append(y)
    return torch.stack(kept)


def return_probability(y0: float, kappa: float = 1.0, time: float = math.inf) -> float:
    """The probability that y comes back to 0 from y0 by ``time``. [ours]

    kappa = 1: erfc(|y0| / (2 sqrt(time))), so 1 in the end. For ever, kappa < 1: 1 - s(|y0|) / s(inf) with the scale
    function s(y) = int_0^y cosh^{kappa - 1}; kappa > 1: 1. Errors: a finite time with kappa != 1 (use the paths).
    """
    if math.isfinite(time):
        if kappa != 1:
            raise ValueError(f"kappa = {kappa:g}, time = {time:g}: a finite time has a closed form at kappa = 1 only")
        return math.erfc(abs(y0) / (2 * math.sqrt(time))) if time > 0 else float(y0 == 0)
    if kappa >= 1:
        return 1.0
    # With x = tanh^2 y: s(y) / s(inf) is the incomplete beta function I_x(1/2, (1 - kappa)/2).
    return float(special.betaincc(0.5, (1 - kappa) / 2, math.tanh(abs(y0)) ** 2))
