"""Finite vocabularies: quantisers of a number, and what K values must lose.

symbol   name         meaning                                                           axes
K        K            codes                                                             scalar
d        d            dimension of what is encoded                                      scalar
x        x            numbers                                                           (N,)
c        codes        the values that codes stand for, in order                         (K,)
Delta    distortion   E (x - c_q(x))^2; summed over the d coordinates in the bound      scalar
calH     entropy      differential entropy of x, in nats                                scalar

    Shannon   Delta >= d / (2 pi e) e^(2 calH / d) K^(-2 / d)
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from jaxtyping import Float, Int
from torch import Tensor

from derived.lab.checks import check_count, check_finite, check_positive


@dataclass(frozen=True)
class LloydMax:
    """The best quantiser of numbers: edges half-way between codes, codes the means of their cells [prior: Lloyd, Max].
    ValueError for codes that are not in order.

    >>> LloydMax.fit(torch.tensor([0.0, 0.2, 1.0, 1.2]), 2).codes
    tensor([0.1000, 1.1000], dtype=torch.float64)
    """

    codes: Float[Tensor, "K"]

    def __post_init__(self) -> None:
        if bool((self.codes.diff() < 0).any()):
            raise ValueError("the codes are not in order; give codes.sort().values")

    def encode(self, x: Tensor) -> Int[Tensor, "*b"]:
        """Number of the nearest code, the lower one at equal distance. ValueError where x is not finite."""
        check_finite("x", x)
        edges = (self.codes[1:] + self.codes[:-1]) / 2
        return torch.searchsorted(edges, x.to(edges).contiguous())

    def decode(self, k: Tensor) -> Tensor:
        """The values that these codes stand for."""
        return self.codes[k]

    def distortion(self, x: Tensor) -> Float[Tensor, ""]:
        """Mean square distance to the nearest code."""
        return (x - self.decode(self.encode(x))).square().mean()

    @classmethod
    def fit(cls, x: Float[Tensor, "N"], K: int, sweeps: int = 500) -> Self:
        """Sorted once, then each sweep is K look-ups in the running sum. ValueError for fewer distinct numbers
        than K."""
        check_count("K", K)
        check_finite("x", x)
        ordered = x.detach().double().sort().values
        total = torch.cat([ordered.new_zeros(1), ordered.cumsum(dim=0)])
        if len(distinct := torch.unique(ordered)) < K:
            raise ValueError(f"K = {K} codes for {len(distinct)} distinct points; give at most one code per point")
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


def shannon_lower_bound(entropy: float, d: float, K: int) -> float:
    """d / (2 pi e) e^(2 calH / d) K^(-2 / d): no codebook of K points loses less [prior: Shannon 1959].

    >>> round(shannon_lower_bound(0.0, 2, 1), 3)  # the unit square; hexagons lose 0.160
    0.117
    """
    check_positive("d", d)
    check_count("K", K)
    return d / (2 * math.pi * math.e) * math.exp(2 * entropy / d) * K ** (-2 / d)
