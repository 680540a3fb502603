"""What cross-entropy knows of the order of labels: nothing by itself, and what the confusable neighbours tell it.

symbol   name     meaning                                                                 axes
K        K        bins of the unit interval, of width 1 / K                               scalar
m        m        the value that a token is made of, in [0, 1]                            (M,)
sigma    sigma    width of the noise, or of a blurred label, as a share of the range      scalar
p(k|m)   -        probability of bin k; the outer bins reach to infinity                  (M, K)
l        length   Fisher-Rao length of m -> p(.|m), m from 0 to 1                         scalar

    ds^2 = sum_k dp_k^2 / p_k,    l = int_0^1 sqrt(I(m)) dm,    l <= min(1 / sigma, pi (K - 1))
"""

import math

import numpy as np
from jaxtyping import Float
from scipy.special import log_ndtr, ndtr

from derived.lab.checks import check_at_least, check_count, check_positive, check_within


def _edges(K: int) -> np.ndarray:
    check_count("K", K, 2)
    return np.arange(1, K) / K


def bin_law(m: Float[np.ndarray, "M"], K: int, sigma: float) -> Float[np.ndarray, "M K"]:
    """Distribution of the bin of m + sigma N(0, 1): differences of the normal cdf at the edges [ours].

    >>> bin_law(np.array([0.5]), 2, 0.1)
    array([[0.5, 0.5]])
    """
    m = np.atleast_1d(np.asarray(m, dtype=float))
    check_within("m", m, 0, 1)
    check_positive("sigma", sigma)
    z = (_edges(K) - m[:, None]) / sigma
    below, above = ndtr(z), ndtr(-z)
    far = np.ones((len(m), 1))
    # either side of m the smaller tail is subtracted, so that a small probability keeps its digits
    rising = np.diff(np.concatenate([0 * far, below, far], axis=1), axis=1)
    falling = -np.diff(np.concatenate([far, above, 0 * far], axis=1), axis=1)
    left = np.concatenate([z, np.full_like(far, np.inf)], axis=1) < 0
    return np.maximum(np.where(left, rising, falling), 0.0)


def _outer(edge: np.ndarray, K: int, z: np.ndarray) -> np.ndarray:
    """Edges 0 and K, and those beyond, lie at infinity."""
    return np.where(edge <= 0, -np.inf, np.where(edge >= K, np.inf, z))


def fisher_information(m: Float[np.ndarray, "M"], K: int, sigma: float) -> Float[np.ndarray, "M"]:
    """I(m) = sum_k (dp_k / dm)^2 / p_k of ``bin_law``, in logarithms, so that a bin far away adds its small share."""
    m = np.atleast_1d(np.asarray(m, dtype=float))
    check_positive("sigma", sigma)
    check_count("K", K, 2)
    reach = math.ceil(12 * sigma * K) + 1  # bins farther away add less than exp(-72)
    bins = np.arange(-min(reach, K), min(reach, K) + 1) + np.floor(m * K).astype(int)[:, None]
    low, high = (_outer(each, K, (each / K - m[:, None]) / sigma) for each in (bins, bins + 1))
    inside = (bins >= 0) & (bins < K)
    low, high = np.where(inside, low, -np.inf), np.where(inside, high, np.inf)  # a bin that is none: p = 1, slope 0
    flip = low > 0  # the upper tail: ln p of the mirror image
    low, high = np.where(flip, -high, low), np.where(flip, -low, high)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_p = log_ndtr(high) + np.log1p(-np.exp(log_ndtr(low) - log_ndtr(high)))
        slope = np.where(np.isinf(low), 0.0, np.exp(-(low**2) / 2 - log_p / 2)) - np.where(
            np.isinf(high), 0.0, np.exp(-(high**2) / 2 - log_p / 2)
        )
    slope = np.where(np.isfinite(log_p), slope, 0.0)  # p = 0 in floats: beyond 38 sigma
    return (slope**2).sum(axis=1) / (2 * math.pi * sigma**2)


def _panels(K: int, sigma: float) -> np.ndarray:
    """Ends of intervals on which I(m) is smooth on their own scale."""
    count = max(64, int(4 / sigma)) if sigma * K > 2 else math.ceil(max(2 / sigma, 4 * K))
    return np.linspace(0, 1, 1 + count)


def fisher_rao_length(K: int, sigma: float) -> float:
    """l(K, sigma): Fisher-Rao length of the curve m -> p(.|m), m in [0, 1], by Gauss-Legendre quadrature [ours].

    At most pi (K - 1), which it reaches as sigma K -> 0 (a staircase: each boundary is an arc of length pi), and
    at most 1 / sigma, which it reaches as sigma K -> infinity (the line). A label that is one bin, blurred by
    sigma, has the geometry of noise of that width. ValueError for K < 2 or sigma <= 0.

    >>> round(fisher_rao_length(4, 0.001) / math.pi, 4)
    3.0
    """
    check_at_least("sigma", sigma, 1e-150)  # whose square is a number
    check_count("K", K, 2)
    if sigma < 1e-4 and 24 * sigma * K <= 1:  # edges lie 24 sigma apart: both bounds are this, to all digits
        return math.pi * (K - 1)
    ends = _panels(K, sigma)
    node, weight = np.polynomial.legendre.leggauss(4)
    total = 0.0
    chunk = max(1, 2_000_000 // (4 * K))
    for start in range(0, len(ends) - 1, chunk):
        low, high = ends[start : start + chunk + 1][:-1], ends[start : start + chunk + 1][1:]
        reach = (high - low) / 2
        m = ((low + high) / 2)[:, None] + reach[:, None] * node
        total += float(reach @ (np.sqrt(fisher_information(m.ravel(), K, sigma)).reshape(m.shape) @ weight))
    return total


def path_length(m: Float[np.ndarray, "M"], K: int, sigma: float) -> Float[np.ndarray, "M"]:
    """Length of the curve from the first of the places ``m``, in order, to each of them [ours].

    The trapezoid rule with steps of at most sigma / 8; ``fisher_rao_length`` is exact to more digits.

    >>> path_length(np.array([0.0, 0.5, 1.0]), 2, 0.01).round(2).tolist()  # half of the one boundary, all of it
    [0.0, 1.57, 3.14]
    """
    m = np.asarray(m, dtype=float)
    check_positive("sigma", sigma)
    if m.size < 2 or not bool((np.diff(m) > 0).all()):
        raise ValueError("m is no growing list of places; give at least two of [0, 1], in order")
    parts = 1 + int(8 * np.diff(m).max() / sigma)
    fine = np.interp(np.arange(parts * (m.size - 1) + 1) / parts, np.arange(m.size), m)
    speed = np.sqrt(fisher_information(fine, K, sigma))
    steps = np.diff(fine) * (speed[1:] + speed[:-1]) / 2
    return np.concatenate([[0.0], steps.cumsum()[parts - 1 :: parts]])


def staircase_lower_bound(K: int, sigma: float) -> float:
    """(K - 1) (4 arcsin sqrt Phi(1 / (2 K sigma)) - pi): each boundary alone, crossed from mid bin to mid bin [ours].

    >>> round(staircase_lower_bound(2, 0.01), 4)
    3.1416
    """
    check_count("K", K, 2)
    check_positive("sigma", sigma)
    return (K - 1) * (4 * math.asin(math.sqrt(ndtr(1 / (2 * K * sigma)))) - math.pi)
