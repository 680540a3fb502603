"""Cactus with one line changed: what breaks, and what only spends elsewhere.

name            change
WholeGamma      recovery from (q - p)_+, as in exact sampling, in place of (h - p)_+
NoSquareRoot    gamma = q_n + 2 delta q_n (1 - q_n)
FromVerifier    recovery from q itself
RaiseDraft      p_n raised in place of q_n
"""

from types import MappingProxyType
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from .divergences import divergence
from .exact import acceptance_rate, output_law
from .rules import Cactus, SpS
from .theory import gamma_cactus


class WholeGamma(Cactus):
    """Recovers from (q - p)_+, as exact sampling does, in place of (h - p)_+."""

    def scale(self, q_n: Tensor, gamma: Tensor, *summaries: Tensor) -> Tensor:
        return torch.ones_like(gamma)


class NoSquareRoot(Cactus):
    """gamma = q_n + 2 delta q_n (1 - q_n)."""

    def gamma(self, p_n: Tensor, q_n: Tensor, *summaries: Tensor) -> Tensor:
        return (q_n + 2 * self.delta * q_n * (1 - q_n)).clamp(max=1)


class FromVerifier(Cactus):
    """After a rejection draws from q itself: nothing is taken off for what the draft already gave."""

    def recovery(self, p: Tensor, q: Tensor, scale: Tensor) -> Tensor:
        return q.expand(torch.broadcast_shapes(p.shape, q.shape))


class RaiseDraft(Cactus):
    """Raises the draft's probability in place of the verifier's."""

    def gamma(self, p_n: Tensor, q_n: Tensor, *summaries: Tensor) -> Tensor:
        return gamma_cactus(p_n, self.delta)


MUTATIONS = MappingProxyType(
    {
        "none": Cactus,
        "recover from $(q-p)_+$": WholeGamma,
        "no square root": NoSquareRoot,
        "recover from $q$": FromVerifier,
        "raise $p_n$ for $q_n$": RaiseDraft,
    }
)


class Damage(NamedTuple):
    """The worst over the pairs, each of which is 0 up to rounding for Cactus."""

    inexact: float  # |h_alg - q| of a token at delta = 0
    outside: float  # by how much a probability leaves [min(p, q), max(p, q)] at delta = 0.25
    unpaid: float  # |acceptance gained - total variation spent| at delta = 0.25


def damage(rule: type[Cactus], p: Float[Tensor, "pairs V"], q: Float[Tensor, "pairs V"]) -> Damage:
    """What a changed rule does to exactness, sandwich and price. Shapes: p, q (pairs, V). [ours]"""
    inexact = (output_law(p, q, rule(0.0)) - q).abs()
    law, gain = output_law(p, q, rule(0.25)), acceptance_rate(p, q, rule(0.25)) - acceptance_rate(p, q, SpS())
    outside = torch.maximum(law - torch.maximum(p, q), torch.minimum(p, q) - law).clamp(min=0.0)
    unpaid = (gain - divergence(law, q, "tv")).abs()
    return Damage(*(each.max().item() for each in (inexact, outside, unpaid)))
