"""A pair of tokens in a uniform cloud: the coldest attention, one layer of it, and the slow overlap.

symbol      name      meaning                                                                   axes
R           R         overlap of the two tokens                                                 (paths,)
k           factors   Gaussian d x d factors of A: 2 for W W'^T, 1 for W, 0 orthogonal
rho         cosine    cosine of A x and A y                                                     (paths,)
h           h         eta^2 / H
r           r         cosine of the angle of two vectors
kappa       kappa     E cos(Ax, Ay) = r - kappa r (1 - r^2) / d + O(1/d^2): 1/2 for each Gaussian factor of A, 0 for a
                      Haar-orthogonal A, so 1 for A = W W'^T
u           u         overlap at time t = tau / d, du = -(1 + kappa) u (1 - u^2) dt + sqrt(2) (1 - u^2) dB
y           y         artanh u, dy = (1 - kappa) tanh y dt + sqrt(2) dB

At beta = infinity a head sends x to V A x / |A x|. The pair enters a layer by R alone, so a layer costs a few numbers
for each path, whatever the width d. [ours] The transcription has kappa = 0 in the equation of u and 1/2 in the lemma;
kappa = 1 is [ours].
"""

import math
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from numpy.polynomial import chebyshev
from numpy.typing import ArrayLike
from scipy import special
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_one_dtype, check_within

from .checks import check_dimension
from .two_token import gamma_nodes


def _chi(paths: int, freedoms: tuple[int, int], factory: dict) -> Tensor:
    """Lengths of normal vectors of these numbers of dimensions, (2, paths)."""
    halves = _halves(paths, freedoms, factory["device"], factory["dtype"])
    return torch._standard_gamma(halves, generator=factory["generator"]).mul_(2).sqrt_().view(2, paths)


@lru_cache(maxsize=8)
def _halves(paths: int, freedoms: tuple[int, int], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Half of each number, ``paths`` times, one number after the other."""
    return (torch.tensor(freedoms, device=device, dtype=dtype) / 2).repeat_interleave(paths)


def image_cosine(
    R: Float[Tensor, " paths"], d: int, factors: int, *, generator: torch.Generator
) -> Float[Tensor, " paths"]:
    """The cosine of A x and A y for unit vectors of overlap R, A a product of Gaussian d x d matrices."""
    check_dimension(d)
    check_count("factors", factors, 0)
    check_one_dtype(R=R)
    factory, cosine = {"generator": generator, "device": R.device, "dtype": R.dtype}, R
    for _ in range(factors):
        # sqrt(d) A sends x = e_1 to chi_d e_1, y = cosine e_1 + c e_2 to cosine chi_d e_1 + c (q e_1 + chi_{d-1} e_2).
        c = (1 - cosine.square()).clamp_min(0).sqrt()
        p, across = _chi(len(R), (d, d - 1), factory) / d**0.5
        q = torch.randn(R.shape, **factory) / d**0.5
        along = cosine * p + c * q
        cosine = along / torch.hypot(along, c * across)
    return cosine


def cloud_layer(
    R: Float[Tensor, " paths"], h: float, d: int, factors: int, *, generator: torch.Generator
) -> Float[Tensor, " paths"]:
    """The overlap after one layer at beta = infinity: x <- N(x + sqrt(h) V A x / |A x|).

    In the basis x, (y - R x)/sqrt(1 - R^2), rest: a = sqrt(h) V m_x has normal entries of variance h/d, and
    b = rho a + sqrt(1 - rho^2) g; of the rest only lengths and one inner product are needed. Needs d >= 4.
    """
    check_count("d", d, 4, "the rest beside the two tokens needs at least two dimensions")
    factory = {"generator": generator, "device": R.device, "dtype": R.dtype}
    rho = image_cosine(R, d, factors, generator=generator)
    a1, a2, g1, g2, along = ((h / d) ** 0.5 * torch.randn(R.shape, **factory) for _ in range(5))
    rest, across = (h / d) ** 0.5 * _chi(len(R), (d - 2, d - 3), factory)
    spread = (1 - rho.square()).clamp_min(0).sqrt()
    b1, b2, along = rho * a1 + spread * g1, rho * a2 + spread * g2, rho * rest + spread * along
    # <a, a>, <a, b>, <b, b> over all d coordinates; then |x + a|^2, |y + b|^2 and <x + a, y + b>.
    aa, ab = a1**2 + a2**2 + rest**2, a1 * b1 + a2 * b2 + rest * along
    bb = b1**2 + b2**2 + along**2 + (spread * across) ** 2
    c = (1 - R.square()).clamp_min(0).sqrt()
    ya, yb = R * a1 + c * a2, R * b1 + c * b2
    return (R + (b1 + ya) + ab) / ((1 + 2 * a1 + aa) * (1 + 2 * yb + bb)).sqrt()


def mean_cosine(r: ArrayLike, d: int, factors: int = 2) -> np.ndarray:
    """E cos(Ax, Ay) for A a product of ``factors`` independent (d, d) Gaussian matrices and <x, y> = r. [ours]

    One factor: (2/d) (Gamma((d+1)/2) / Gamma(d/2))^2 r F(1/2, 1/2; d/2 + 1; r^2), the mean of a sample correlation
    [prior]; more factors by quadrature over the cosine that one factor leaves, to 1e-5 for d >= 6.
    Errors: |r| > 1, d < 2, factors < 1.
    """
    check_dimension(d)
    check_count("factors", factors)
    r = np.asarray(r, dtype=float)
    check_within("r", r, -1, 1)
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
    check_within("u", u, -1, 1)
    return -(1 + kappa) * u * (1 - u**2)


def slow_bracket(u: ArrayLike) -> np.ndarray:
    """2 (1 - u^2)^2, the variance rate of the slow overlap on the clock tau / d. [digest]"""
    return 2 * (1 - np.asarray(u, dtype=float) ** 2) ** 2


def return_probability(y0: float, kappa: float = 1.0, time: float = math.inf) -> float:
    """The probability that y comes back to 0 from y0 by ``time``. [ours]

    kappa = 1: erfc(|y0| / (2 sqrt(time))), so 1 in the end. For ever, kappa < 1: 1 - s(|y0|) / s(inf) with the scale
    function s(y) = int_0^y cosh^{kappa - 1}; kappa > 1: 1. Errors: NaN, kappa < 0, a finite time with kappa != 1 (use
    the paths).
    """
    check_at_least("|y0|", abs(y0), 0)
    check_at_least("kappa", kappa, 0)
    if not time >= 0:
        raise ValueError(f"time = {time!r}; give a number >= 0, or math.inf")
    if math.isfinite(time):
        if kappa != 1:
            raise ValueError(f"kappa = {kappa:g}, time = {time:g}: a finite time has a closed form at kappa = 1 only")
        return math.erfc(abs(y0) / (2 * math.sqrt(time))) if time > 0 else float(y0 == 0)
    if kappa >= 1:
        return 1.0
    # With x = tanh^2 y: s(y) / s(inf) is the incomplete beta function I_x(1/2, (1 - kappa)/2).
    return float(special.betaincc(0.5, (1 - kappa) / 2, math.tanh(abs(y0)) ** 2))
