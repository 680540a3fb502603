"""Races of In-Place TTT: ``python bench/in_place_ttt.py [--quick] [--threads 1] [--output FILE]``.

1. A layer forward and backward, values included, against the form in which it was released: all increments by einsum,
   all states by one cumsum, autograd for the rest. The peer is our rewriting, since the released file needs packages
   that are not installed here; on small inputs its forward was compared with the released one.
2. The same on a short text against the same layer as chunked attention in plain PyTorch: each chunk attends to all
   earlier ones.

3. The relatives as plain recurrences, for correctness, against the reference recurrences of flash-linear-attention
   (``pip install flash-linear-attention``; its modules import Triton, which PyTorch's CUDA builds bring and its CPU
   builds do not: there, ``pip install triton`` as well, and plain PyTorch runs). Left out, and said why, where they
   cannot be imported.

Outputs and all gradients are compared before anything is timed, against what float32 rounding leaves; a layer that
updates before it reads is refused by the same check.
"""

import importlib
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from typing import NamedTuple

import harness
import torch
from torch.nn.functional import conv1d, pad

from derived.lab.rng import stream
from derived.papers.in_place_ttt.model.baselines import delta_rule, gated_linear_attention, linear_attention
from derived.papers.in_place_ttt.model.forms import depthwise_target, in_place_ttt

LR = 0.01


def build(n: int, d: int, h: int, chunk: int) -> tuple:
    """keys, source, kernel, projection, w_down, all with gradients; the upstream gradient; the chunk."""
    g = stream(0, "bench in place")
    scales = [((1, n, h), h**-0.5), ((1, n, d), 1.0), ((d, 5), 5**-0.5), ((d, d), d**-0.5), ((d, h), h**-0.5)]
    inputs = [(scale * torch.randn(*shape, generator=g)).requires_grad_() for shape, scale in scales]
    return (*inputs, torch.randn(1, n, d, generator=g), chunk)


def _with_gradients(layer, inputs: tuple) -> list[torch.Tensor]:
    *weights, upstream, chunk = inputs
    outputs = layer(*weights, chunk)
    return [outputs.detach(), *torch.autograd.grad(outputs, weights, upstream)]


def running_state(inputs: tuple) -> list[torch.Tensor]:
    """in_place_ttt, one running state"""

    def layer(keys, source, kernel, projection, w_down, chunk):
        return in_place_ttt(keys, depthwise_target(source, kernel, projection, chunk=chunk), w_down, LR, chunk)

    return _with_gradients(layer, inputs)


def einsum_and_cumsum(inputs: tuple) -> list[torch.Tensor]:
    """all states at once: our rewriting of the released form"""

    def layer(keys, source, kernel, projection, w_down, chunk):
        n = keys.shape[1]
        Z, X = (pad(each, (0, 0, 0, -n % chunk)).unflatten(1, (-1, chunk)) for each in (keys, source))
        taps = conv1d(X.flatten(0, 1).mT, kernel.unsqueeze(1), padding=2, groups=len(kernel)).mT.view_as(X)
        written = torch.einsum("btch,btcd->btdh", Z[:, :-1], taps[:, :-1] @ projection)
        states = torch.cat([w_down[None, None], LR * written], dim=1).cumsum(dim=1)
        return torch.einsum("btdh,btch->btcd", states, Z).flatten(1, 2)[:, :n]

    return _with_gradients(layer, inputs)


def chunked_attention(inputs: tuple) -> list[torch.Tensor]:
    """each chunk attends to all earlier ones, plain PyTorch"""

    def layer(keys, source, kernel, projection, w_down, chunk):
        values = depthwise_target(source, kernel, projection, chunk=chunk)
        reads = [
            LR * (keys[:, start : start + chunk] @ keys[:, :start].mT) @ values[:, :start]
            for start in range(0, keys.shape[1], chunk)
        ]
        return keys @ w_down.mT + torch.cat(reads, dim=1)

    return _with_gradients(layer, inputs)


def _allowed(inputs: tuple) -> list[float]:
    """What float32 rounding leaves of outputs and gradients: 8 eps sqrt(terms) times the root of the summed squares.

    Errors of single roundings add up like noise (Higham and Mary, 2019): the worst case, which grows like the number of
    terms, would let a wrong memory pass at this length. The squares come from the same sums with every factor squared.
    """
    *weights, upstream, chunk = inputs
    keys, source, kernel, projection, w_down = (each.detach().square().requires_grad_() for each in weights)
    values = depthwise_target(source, kernel, projection, chunk=chunk)
    outputs = in_place_ttt(keys, values, w_down, LR**2, chunk)
    parts = (keys, source, kernel, projection, w_down)
    squares = [outputs.detach(), *torch.autograd.grad(outputs, parts, upstream.square())]
    (_, n, h), d = keys.shape, source.shape[-1]
    eps = 8 * torch.finfo(upstream.dtype).eps * (n + h + 2 * d + 5) ** 0.5
    return [eps * float(each.max()) ** 0.5 for each in squares]


def same(inputs: tuple, ours: list[torch.Tensor], peer: list[torch.Tensor]) -> float:
    """The largest difference of outputs or gradients over what rounding leaves; a mutant must be refused."""
    allowed = _allowed(inputs)
    ratios = [float((a - b).abs().max()) / c for a, b, c in zip(ours, peer, allowed, strict=True)]
    if not max(ratios) <= 1:
        raise SystemExit(f"outputs or gradients differ by {max(ratios):.3g} times what rounding leaves")
    *weights, _, chunk = inputs
    keys, source, kernel, projection, _ = (each.detach() for each in weights)
    values = depthwise_target(source, kernel, projection, chunk=chunk)
    Z, V = (each.unflatten(1, (-1, chunk)) for each in (keys, values))
    early = (LR * Z @ (Z.mT @ V)).flatten(1, 2)  # what a layer adds that updates before it reads
    if not float(early.abs().max()) > 10 * allowed[0]:
        raise SystemExit("the comparison would not notice a layer that updates before it reads")
    return max(ratios)


class Heads(NamedTuple):
    """What a recurrence reads, (1, heads, n, width): unit queries and keys, values; and (1, heads, n): strengths."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    decay: torch.Tensor
    beta: torch.Tensor


def heads(n: int, width: int) -> Heads:
    g = stream(0, "bench relatives")
    q, k, v, decay = (torch.randn(1, 2, n, width, generator=g) for _ in range(4))
    unit = (torch.nn.functional.normalize(each, dim=-1) for each in (q, k))
    return Heads(*unit, v, (decay / 4).sigmoid(), torch.rand(1, 2, n, generator=g))


def linear(inputs: Heads) -> torch.Tensor:
    """linear_attention"""
    return linear_attention(inputs.q, inputs.k, inputs.v)


def gated(inputs: Heads) -> torch.Tensor:
    """gated_linear_attention"""
    return gated_linear_attention(*inputs[:4])


def delta(inputs: Heads) -> torch.Tensor:
    """delta_rule"""
    return delta_rule(*inputs[:3], inputs.beta)


def _naive(module: str) -> Callable:
    """A reference recurrence of flash-linear-attention; ImportError where it cannot be had."""
    names = {"linear_attn": "naive_recurrent_linear_attn", "gla": "naive_recurrent_gla"}
    return getattr(importlib.import_module(f"fla.ops.{module}.naive"), names.get(module, "delta_rule_recurrence"))


def reference(module: str, inputs: Heads) -> torch.Tensor:
    """The same by flash-linear-attention, which divides queries by the root of their width."""
    q, k, v, decay, beta = inputs._replace(q=inputs.q * inputs.q.shape[-1] ** 0.5)
    if module == "delta_rule":
        return _naive(module)(q, k, v, beta)[0]
    swapped = [each.transpose(1, 2) for each in (q, k, v, *([decay.log()] if module == "gla" else []))]
    return _naive(module)(*swapped)[0].transpose(1, 2)


def agree(inputs: Heads, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The largest difference over what rounding leaves: 8 eps sqrt(n width) times the largest sum of the sizes of the
    terms <k_s, q_t> v_s. A recurrence that reads before it writes must be refused."""
    n, width = inputs.k.shape[-2:]
    eps = 8 * torch.finfo(ours.dtype).eps * (n * width) ** 0.5
    sizes = ((inputs.q @ inputs.k.mT).abs().tril() @ inputs.v.abs()).max()
    late = torch.cat([torch.zeros_like(ours[..., :1, :]), ours[..., :-1, :]], dim=-2)
    harness.require(bool((late - ours).abs().max() > 10 * eps * sizes), "a token's delay would not be noticed")
    return harness.within(float((ours - peer).abs().max() / (eps * sizes)))


RELATIVES = {"linear attention": (linear, "linear_attn"), "gated": (gated, "gla"), "delta rule": (delta, "delta_rule")}


def relatives(quick: bool) -> Iterator[harness.Race]:
    """Our recurrences against flash-linear-attention's, where it can be imported."""
    for name, (ours, module) in RELATIVES.items():
        try:
            _naive(module)
        except ImportError as error:
            print(f"flash-linear-attention's {module} is left out: {type(error).__name__}: {error}")
            continue
        theirs = partial(reference, module)
        theirs.__doc__ = f"naive recurrence of flash-linear-attention {version('flash-linear-attention')}"
        sizes = {"n": 64 if quick else 1024, "width": 8 if quick else 64}
        yield harness.Race(
            name=f"recurrence of {name}, n = {sizes['n']}, two heads of {sizes['width']}",
            build=heads,
            sizes=sizes,
            ours=ours,
            peers=(harness.Peer(run=theirs, gap=agree, role="plain"),),
        )


def races(quick: bool) -> Iterator[harness.Race]:
    d, h, long, short, chunk = (32, 96, 512, 256, 64) if quick else (256, 768, 16_384, 2048, 512)
    released = harness.Peer(run=einsum_and_cumsum, gap=same, memory=2.0)
    attention = harness.Peer(run=chunked_attention, gap=same)
    for n, peer, against in ((long, released, "as released"), (short, attention, "as attention")):
        yield harness.Race(
            name=f"forward and backward, n = {n}, d = {d}, h = {h}, C = {chunk}, {against}",
            build=build,
            sizes={"n": n, "d": d, "h": h, "chunk": chunk},
            ours=running_state,
            peers=(peer,),
        )
    yield from relatives(quick)


if __name__ == "__main__":
    harness.command("in_place_ttt", harness.contests(races), rounds=7, quick_rounds=3, dtype="float32")
