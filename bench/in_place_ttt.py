"""Race of In-Place TTT: ``python bench/in_place_ttt.py [--quick] [--keep]``.

A gated MLP with its memory, forward and backward, from the input of the layer to the gradients of all its weights,
against the form in which it was released: all increments by einsum, all states by one cumsum, autograd for the rest.
"""

from collections.abc import Callable

import torch
from race import Race, command, require
from torch.nn.functional import conv1d, pad

from derived.lab.rng import stream
from derived.papers.in_place_ttt.model.forms import depthwise_target, gated_mlp_keys, in_place_ttt

LR = 0.01


def build(n: int, d: int, h: int, chunk: int) -> tuple:
    """x, source, w_gate, w_up, kernel, projection, w_down, all with gradients; the upstream gradient; the chunk."""
    g = stream(0, "bench in place")
    tokens, weights = [((1, n, d), 1.0)] * 2, [((h, d), d**-0.5)] * 2
    scales = [*tokens, *weights, ((d, 5), 5**-0.5), ((d, d), d**-0.5), ((d, h), h**-0.5)]
    inputs = [(scale * torch.randn(*shape, generator=g)).requires_grad_() for shape, scale in scales]
    return (*inputs, torch.randn(1, n, d, generator=g), chunk)


def with_gradients(layer: Callable, inputs: tuple) -> list[torch.Tensor]:
    """The outputs of a layer and the gradients of all that it reads."""
    *weights, upstream, chunk = inputs
    outputs = layer(*weights, chunk)
    return [outputs.detach(), *torch.autograd.grad(outputs, weights, upstream)]


def ours(inputs: tuple) -> list[torch.Tensor]:
    """in_place_ttt, one running state"""

    def layer(x, source, w_gate, w_up, kernel, projection, w_down, chunk):
        keys, values = gated_mlp_keys(x, w_gate, w_up), depthwise_target(source, kernel, projection, chunk=chunk)
        return in_place_ttt(keys, values, w_down, LR, chunk)

    return with_gradients(layer, inputs)


def peer(inputs: tuple) -> list[torch.Tensor]:
    """all states at once: our rewriting of the released form"""

    def layer(x, source, w_gate, w_up, kernel, projection, w_down, chunk):
        n, keys = x.shape[1], gated_mlp_keys(x, w_gate, w_up)
        Z, X = (pad(each, (0, 0, 0, -n % chunk)).unflatten(1, (-1, chunk)) for each in (keys, source))
        taps = conv1d(X.flatten(0, 1).mT, kernel.unsqueeze(1), padding=2, groups=len(kernel)).mT.view_as(X)
        written = torch.einsum("btch,btcd->btdh", Z[:, :-1], taps[:, :-1] @ projection)
        states = torch.cat([w_down[None, None], LR * written], dim=1).cumsum(dim=1)
        return torch.einsum("btdh,btch->btcd", states, Z).flatten(1, 2)[:, :n]

    return with_gradients(layer, inputs)


def check(inputs: tuple, mine: list[torch.Tensor], theirs: list[torch.Tensor]) -> None:
    """Outputs and gradients agree to eps sqrt(terms) of their largest entry: single roundings add up like noise."""
    (_, n, d), h = inputs[0].shape, len(inputs[2])
    bound = torch.finfo(torch.float32).eps * (n + h + 4 * d + 5) ** 0.5
    for place, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        gap = float((a - b).abs().max() / b.abs().max())
        require(gap <= bound, f"result {place} differs by {gap:.3g} of its largest entry, more than {bound:.3g}")


NAME = "forward and backward, n = 16384, d = 256, h = 768, C = 512, as released"
SIZES, TOY = {"n": 16_384, "d": 256, "h": 768, "chunk": 512}, {"n": 512, "d": 32, "h": 96, "chunk": 64}
RACE = Race(NAME, build, ours, peer, check, SIZES, TOY, "float32")

if __name__ == "__main__":
    command("in_place_ttt", RACE)
