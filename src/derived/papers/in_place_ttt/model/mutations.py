"""The layer with one thing changed, and what is lost: the page's "What breaks it", and what tests must catch.

symbol   name            meaning                                                        axes
s        source          input of the layer; key and value of a token are made of it    (n, d)
         key_weights     z = W_key s: a key of the token alone                          (h, d)
w, P     kernel, projection  taps of the target and its matrix                          (d, K), (d, d)
W_0      w_down          the state with which a document begins                         (d, h)
leak                     largest derivative of an output by a later input; must be 0    scalar
bound                    share of a pair's value that a later query reads; must be 1    scalar
mixed                    largest derivative of an output by another document; must be 0 scalar
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.functional import jacobian

from derived.lab.rng import stream

from .forms import chunk_grid, depthwise_target, in_place_ttt


@dataclass(frozen=True)
class Layer:
    """What a layer is made of, beside its input."""

    key_weights: Float[Tensor, "h d"]
    kernel: Float[Tensor, "d K"]
    projection: Float[Tensor, "d d"]
    w_down: Float[Tensor, "d h"]
    lr: float
    chunk: int
    starts: tuple[int, ...] = (0,)

    def values(self, source: Tensor, **changed) -> Tensor:
        """The targets, as released unless something is changed."""
        facts = {"chunk": self.chunk, "starts": self.starts} | changed
        return depthwise_target(source, self.kernel, self.projection, **facts)

    def read(self, source: Tensor, values: Tensor, **changed) -> Tensor:
        """The outputs, as the paper has them unless something is changed."""
        facts = {"starts": self.starts} | changed
        return in_place_ttt(source @ self.key_weights.mT, values, self.w_down, self.lr, self.chunk, **facts)


Forward = Callable[[Layer, Tensor], Tensor]


def unchanged(layer: Layer, source: Tensor) -> Tensor:
    """The layer of the paper."""
    return layer.read(source, layer.values(source))


def update_first(layer: Layer, source: Tensor) -> Tensor:
    """Update, then apply: a chunk reads what it has just written."""
    values, keys, outputs = layer.values(source), source @ layer.key_weights.mT, []
    for one in chunk_grid(len(source), layer.chunk, layer.starts):
        W = layer.w_down if one.first else W  # that of a text always is
        W = W + layer.lr * values[one.start : one.stop].mT @ keys[one.start : one.stop]
        outputs.append(keys[one.start : one.stop] @ W.mT)
    return torch.cat(outputs)


def taps_across(layer: Layer, source: Tensor) -> Tensor:
    """The five taps read over the edge of a chunk."""
    return layer.read(source, layer.values(source, cross=True))


def past_taps(layer: Layer, source: Tensor) -> Tensor:
    """Causal padding taken at its word: the five taps end at the token itself."""
    K = layer.kernel.shape[-1]
    late = torch.cat([layer.kernel, torch.zeros_like(layer.kernel[:, : K - 1])], dim=-1)  # of 2K - 1 taps, the past
    return layer.read(source, replace(layer, kernel=late).values(source))


def no_reset(layer: Layer, source: Tensor) -> Tensor:
    """The state goes on into the next document."""
    return layer.read(source, layer.values(source), starts=(0,))


def one_grid(layer: Layer, source: Tensor) -> Tensor:
    """The state is reset at the chunk in which a document begins, but the grid of chunks goes on."""
    starts = sorted({start // layer.chunk * layer.chunk for start in layer.starts})
    return layer.read(source, layer.values(source, starts=starts), starts=starts)


def clipped(layer: Layer, source: Tensor, tau: float = 1e-5) -> Tensor:
    """Each write is rescaled to the Frobenius norm 1e-5, as printed with the paper's Table 1."""
    values, keys, kept = layer.values(source), source @ layer.key_weights.mT, []
    for one in chunk_grid(len(source), layer.chunk, layer.starts):
        V, Z = values[one.start : one.stop], keys[one.start : one.stop]
        kept.append(V * (tau / torch.linalg.norm(layer.lr * V.mT @ Z)).clamp(max=1.0))
    return layer.read(source, torch.cat(kept))


MUTATIONS: dict[str, Forward] = {
    "nothing": unchanged,
    "update first, then apply": update_first,
    "taps read across the edge": taps_across,
    "taps end at the token": past_taps,
    "no reset between documents": no_reset,
    "reset on the old grid": one_grid,
    "each write clipped to $10^{-5}$": clipped,
}


class Damage(NamedTuple):
    """What is lost; (0, 1, 0) where nothing is."""

    leak: float
    bound: float
    mixed: float


def damage(forward: Forward, n: int = 12, seed: int = 0) -> Damage:
    """The three properties of a changed layer on n tokens in chunks of four, in float64."""
    g = stream(seed, "damage")
    draw = lambda *shape: torch.randn(*shape, generator=g, dtype=torch.float64)  # noqa: E731
    layer = Layer(draw(3, 4), draw(4, 5), draw(4, 4), draw(4, 3), lr=0.5, chunk=4)
    by = jacobian(lambda source: forward(layer, source), draw(n, 4)).abs().amax(dim=(1, 3))  # (reader, read)
    two = replace(layer, starts=(0, n // 2))  # the second document begins inside a chunk
    across = jacobian(lambda source: forward(two, source), draw(n, 4)).abs().amax(dim=(1, 3))
    return Damage(
        leak=by.triu(1).max().item(), bound=bound_share(forward), mixed=across[n // 2 :, : n // 2].max().item()
    )


def bound_share(forward: Forward) -> float:
    """How much of the next token's embedding comes back: 'a b c d | a b c d', the second a asked, b read out."""
    kernel = torch.zeros(4, 5, dtype=torch.float64)
    kernel[:, 3] = 1.0  # the tap of the next token
    one, none = torch.eye(4, dtype=torch.float64), torch.zeros(4, 4, dtype=torch.float64)
    text = one.repeat(2, 1)
    return forward(Layer(one, kernel, one, none, lr=1.0, chunk=4), text)[4, 1].item()
