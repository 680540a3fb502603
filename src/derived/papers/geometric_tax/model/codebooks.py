"""Finite vocabularies: quantisers, and what a codebook of K points must lose.

symbol   name         meaning                                                           axes
K        K            codes                                                             scalar
d        d            dimension of what is encoded; fractal for an attractor            scalar
x        x            points                                                            (N,) or (N, d)
c        codes        the codebook                                                      (K,) or (K, d)
Delta    distortion   E ||x - c_q(x)||^2, summed over the d coordinates                 scalar
calH     entropy      differential entropy of x, in nats                                scalar

    Shannon   Delta >= d / (2 pi e) e^(2 calH / d) K^(-2 / d)
    Zador     Delta ~ G_d ||p||_{d / (d + 2)} K^(-2 / d)
"""

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy import stats
from scipy.linalg import solve_banded
from torch import Tensor

from derived.lab.checks import check_choice, check_count, check_finite, check_positive, check_within


def _points(x: Tensor, K: int) -> Tensor:
    check_count("K", K)
    check_finite("x", x)
    if (distinct := len(torch.unique(x, dim=0))) < K:
        raise ValueError(f"K = {K} codes for {distinct} distinct points; give at most one code per point")
    return x.unsqueeze(-1) if x.ndim == 1 else x


@dataclass(frozen=True)
class UniformQuantizer:
    """K bins of equal width from ``low`` to ``high``; values beyond go to the outer bins.

    ``rule="middle"`` answers the middle of a bin. ``"left"`` is the author's rule: bin floor(u (K - 1)),
    answered by its left edge, whose mean square error is four times as large. ValueError for K < 2 or low >= high.
    [code]

    >>> UniformQuantizer(4, 0.0, 1.0).encode(torch.tensor([-1.0, 0.3, 0.99, 2.0]))
    tensor([0, 1, 3, 3])
    """

    K: int
    low: float
    high: float
    rule: str = "middle"

    def __post_init__(self) -> None:
        check_count("K", self.K, 2)
        check_choice("rule", self.rule, ("middle", "left"))
        check_positive("high - low", self.high - self.low)

    @property
    def width(self) -> float:
        """Width of a bin."""
        return (self.high - self.low) / (self.K if self.rule == "middle" else self.K - 1)

    def encode(self, x: Tensor) -> Int[Tensor, "*b"]:
        """Number of the bin; ValueError where x is not finite."""
        check_finite("x", x)
        return ((x - self.low) / self.width).floor().long().clamp(0, self.K - 1)

    def decode(self, k: Tensor) -> Tensor:
        """The value that a bin stands for, in float64. ValueError for a bin that is not there."""
        check_within("k", k, 0, self.K - 1)
        return self.low + self.width * (k.double() + (0.5 if self.rule == "middle" else 0.0))


@dataclass(frozen=True)
class Codebook:
    """Codes of K points; ``encode`` is the nearest, ``decode`` the code. What the fits below return. ValueError
    for numbers that are not in order."""

    codes: Tensor  # (K,) or (K, d)

    def __post_init__(self) -> None:
        if self.codes.ndim == 1 and bool((self.codes.diff() < 0).any()):
            raise ValueError("the codes are not in order; give codes.sort().values")

    @property
    def K(self) -> int:
        """Number of codes."""
        return len(self.codes)

    def encode(self, x: Tensor) -> Int[Tensor, "*b"]:
        """Number of the nearest code, the lower one at equal distance in one dimension. ValueError where x is not
        finite."""
        check_finite("x", x)
        if self.codes.ndim == 1:
            edges = (self.codes[1:] + self.codes[:-1]) / 2
            return torch.searchsorted(edges, x.contiguous())
        flat = x.reshape(-1, x.shape[-1])
        found = [
            (self.codes.square().sum(dim=-1) - 2 * part @ self.codes.mT).argmin(dim=-1) for part in flat.split(2048)
        ]
        return torch.cat(found).view(x.shape[:-1])

    def decode(self, k: Tensor) -> Tensor:
        """The codes of these numbers."""
        return self.codes[k]

    def distortion(self, x: Tensor) -> Float[Tensor, ""]:
        """Mean square distance to the nearest code."""
        gap = (x - self.decode(self.encode(x))).square()
        return gap.mean() if self.codes.ndim == 1 else gap.sum(dim=-1).mean()


class LloydMax(Codebook):
    """The best quantiser of numbers: edges half-way between codes, codes the means of their cells [prior: Lloyd, Max].

    >>> LloydMax.fit(torch.tensor([0.0, 0.2, 1.0, 1.2]), 2).codes
    tensor([0.1000, 1.1000], dtype=torch.float64)
    """

    @classmethod
    def fit(cls, x: Float[Tensor, "N"], K: int, sweeps: int = 500) -> Self:
        """Sorted once, then each sweep is K look-ups in the running sum. ValueError for fewer distinct numbers
        than K."""
        ordered = _points(x, K).squeeze(dim=-1).double().sort().values
        total = torch.cat([ordered.new_zeros(1), ordered.cumsum(dim=0)])
        distinct = torch.unique(ordered)
        codes = distinct[((torch.arange(K) + 0.5) * len(distinct) / K).long()]
        for _ in range(sweeps):
            edges = torch.searchsorted(ordered, (codes[1:] + codes[:-1]) / 2)
            ends = torch.cat([edges.new_zeros(1), edges, edges.new_tensor([len(ordered)])])
            count = ends.diff()
            means = (total[ends[1:]] - total[ends[:-1]]) / count.clamp(min=1)
            new = torch.where(count > 0, means, codes)
            if bool((new == codes).all()):
                break
            codes = new
        return cls(codes)


class KMeansCodebook(Codebook):
    """Lloyd's algorithm from a sample of the points, chosen one by one in proportion to their square distance (++).

    >>> KMeansCodebook.fit(torch.tensor([0.0, 1.0, 9.0]), 2, torch.Generator().manual_seed(0)).codes
    tensor([0.5000, 9.0000])
    """

    @classmethod
    def fit(
        cls, x: Float[Tensor, "N"] | Float[Tensor, "N d"], K: int, generator: torch.Generator, sweeps: int = 40
    ) -> Self:
        """``sweeps`` sweeps at most; ValueError for fewer distinct points than codes."""
        points = _points(x, K)
        codes = _spread(points, K, generator)
        for _ in range(sweeps):
            near = Codebook(codes).encode(points)
            count = torch.bincount(near, minlength=K)
            total = torch.zeros_like(codes).index_add_(0, near, points)
            new = torch.where(count[:, None] > 0, total / count.clamp(min=1)[:, None], codes)
            if bool((new == codes).all()):
                break
            codes = new
        return cls(codes.squeeze(dim=-1).sort().values if x.ndim == 1 else codes)


def _spread(points: Tensor, K: int, generator: torch.Generator) -> Tensor:
    """k-means++: each further code is a point drawn in proportion to its square distance from those before it."""
    uniforms = torch.rand(K, generator=generator, dtype=torch.float64)
    chosen, far = [int(uniforms[0] * len(points))], torch.full_like(points[:, 0], math.inf)
    for u in uniforms[1:]:
        far = torch.minimum(far, (points - points[chosen[-1]]).square().sum(dim=-1))
        mass = far.double().cumsum(dim=0)
        chosen.append(min(int(torch.searchsorted(mass, u.to(mass.device) * mass[-1], right=True)), len(points) - 1))
    return points[chosen].clone()


class LearnedCodebook(Codebook):
    """Codes that are running means of what they are chosen for, as a VQ-VAE updates them [prior: van den Oord et
    al.]."""

    @classmethod
    def fit(
        cls, x: Float[Tensor, "N d"], K: int, generator: torch.Generator, steps: int = 300, decay: float = 0.9
    ) -> Self:
        """``steps`` batches of 1,024 points; a code that nothing chose is put on a point. ValueError as k-means."""
        points = _points(x, K)
        start = torch.randperm(len(points), generator=generator)[:K].to(points.device)
        codes, mass = points[start].clone(), torch.ones(K, dtype=points.dtype, device=points.device)
        total = codes.clone()
        for _ in range(steps):
            batch = points[torch.randint(len(points), (1024,), generator=generator).to(points.device)]
            near = Codebook(codes).encode(batch)
            count = torch.bincount(near, minlength=K).to(points.dtype)
            mass = decay * mass + (1 - decay) * count
            total = decay * total + (1 - decay) * torch.zeros_like(codes).index_add_(0, near, batch)
            dead = mass < 1e-3
            fresh = batch[torch.randint(len(batch), (K,), generator=generator).to(points.device)]
            mass = torch.where(dead, 1.0, mass)
            total = torch.where(dead[:, None], fresh, total)
            codes = total / mass[:, None]
        return cls(codes.squeeze(dim=-1).sort().values if x.ndim == 1 else codes)


# What must be lost ---------------------------------------------------------------------------------------------------


def shannon_lower_bound(entropy: float, d: float, K: int) -> float:
    """d / (2 pi e) e^(2 calH / d) K^(-2 / d): no codebook of K points loses less [prior: Shannon 1959].

    >>> round(shannon_lower_bound(0.0, 2, 1), 3)  # the unit square; hexagons lose 0.160
    0.117
    """
    check_positive("d", d)
    check_count("K", K)
    return d / (2 * math.pi * math.e) * math.exp(2 * entropy / d) * K ** (-2 / d)


#: Mean square of the best known cell of unit volume, summed over the coordinates; d = 3 is the truncated octahedron.
_CELLS = {1: 1 / 12, 2: 5 / (18 * math.sqrt(3)), 3: 3 * 19 / (192 * 2 ** (1 / 3))}


def zador_constant(d: int) -> float:
    """G_d of Zador's law: 1/12, 5/(18 sqrt 3), and for d = 3 the best lattice, not proved to be best [prior: Zador].

    >>> [round(zador_constant(d), 4) for d in (1, 2, 3)]
    [0.0833, 0.1604, 0.2356]
    """
    if d not in _CELLS:
        raise ValueError(f"d = {d!r}; give 1, 2 or 3, for which the cell is known")
    return _CELLS[d]


def zador_law(density_norm: float, d: int, K: int) -> float:
    """G_d ||p||_{d / (d + 2)} K^(-2 / d), the distortion of the best codebook for large K [prior: Zador 1982].

    >>> round(zador_law(1.0, 1, 16) * 12 * 16**2, 12)
    1.0
    """
    check_count("K", K)
    return zador_constant(d) * density_norm * K ** (-2 / d)


class Scalar(NamedTuple):
    """A quantiser of a number and what it loses."""

    codes: np.ndarray
    distortion: float
    iterations: int


def gaussian_lloyd_max(K: int) -> Scalar:
    """The best K codes for N(0, 1) and their distortion, from the law itself: Newton on codes = means of their cells.

    K^2 Delta tends to sqrt(3) pi / 2 (Panter and Dite).

    >>> round(gaussian_lloyd_max(2).distortion, 12) == round(1 - 2 / math.pi, 12)
    True
    """
    check_count("K", K)
    codes = math.sqrt(3) * stats.norm.ppf((np.arange(K) + 0.5) / K)  # the density p^(1/3) is that of N(0, 3)
    for count in range(200):  # noqa: B007
        edges = np.concatenate([[-np.inf], (codes[1:] + codes[:-1]) / 2, [np.inf]])
        mass, pdf = np.diff(stats.norm.cdf(edges)), stats.norm.pdf(edges)
        half = codes >= 0
        mass = np.where(half, -np.diff(stats.norm.sf(edges)), mass)
        mean = -np.diff(pdf) / mass
        gap = codes - mean
        if np.abs(gap).max() < 1e-11:
            break
        # d mean_k / d edge: p(edge) (edge - mean) / mass, with its sign; an edge moves by half of either code
        finite = np.where(np.isfinite(edges), edges, 0.0)
        up, down = pdf[1:] * (finite[1:] - mean) / mass / 2, pdf[:-1] * (mean - finite[:-1]) / mass / 2
        bands = np.zeros((3, K))
        bands[0, 1:], bands[1], bands[2, :-1] = -up[:-1], 1 - up - down, -down[1:]
        codes = codes - solve_banded((1, 1), bands, gap)
    distortion = 1 - float((mass * mean**2).sum())  # E (x - c)^2 = E x^2 - E c^2 at codes that are means
    return Scalar(codes, distortion, count)


def regressogram_risk(A: float, K: int, noise: float, N: int, d: float = 1) -> float:
    """A K^(-2/d) + noise^2 K / N: one free constant per bin, learned from N samples [earlier].

    >>> regressogram_risk(1.0, 10, 1.0, 1000)
    0.02
    """
    check_count("N", N)
    return A * K ** (-2 / d) + noise**2 * K / N


def best_bins(A: float, noise: float, N: int, d: float = 1) -> float:
    """K* = (2 A N / (d noise^2))^(d / (d + 2)), where the risk of a regressogram is least [earlier].

    >>> round(best_bins(1.0, 1.0, 4000), 6)
    20.0
    """
    return (2 * A * N / (d * noise**2)) ** (d / (d + 2))
