"""Races of In-Place TTT: ``python bench/in_place_ttt.py [--quick] [--threads 1] [--output FILE]``.

1. A gated MLP with its memory, forward and backward, from the input of the layer to the gradients of all its weights,
   against the form in which it was released: all increments by einsum, all states by one cumsum, autograd for the rest.
   Once as we rewrote it, and once as the authors' own ``Qwen3MLP``, run unmodified where $AUTHORS/In-Place-TTT is a
   clone of github.com/ByteDance-Seed/In-Place-TTT (commit be23248), and einops, opt_einsum and transformers 4.57, which
   it asks for, are installed; left out elsewhere.
2. The same on a short text against the same layer as chunked attention in plain PyTorch: each chunk attends to all
   earlier ones.

3. The relatives as plain recurrences, for correctness, against the reference recurrences of flash-linear-attention
   (``pip install flash-linear-attention``; its modules import Triton, which PyTorch's CUDA builds bring and its CPU
   builds do not: there, ``pip install triton`` as well, and plain PyTorch runs). Left out, and said why, where they
   cannot be imported.

Outputs and all gradients are compared before anything is timed, against what float32 rounding leaves; a layer that
updates before it reads is refused by the same check.
"""

import functools
import importlib
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import harness
import torch
from torch.func import functional_call
from torch.nn.functional import conv1d, pad

from derived.lab.rng import stream
from derived.papers.in_place_ttt.model.baselines import delta_rule, gated_linear_attention, linear_attention
from derived.papers.in_place_ttt.model.forms import depthwise_target, gated_mlp_keys, in_place_ttt

LR = 0.01


def build(n: int, d: int, h: int, chunk: int) -> tuple:
    """x, source, w_gate, w_up, kernel, projection, w_down, all with gradients; the upstream gradient; the chunk."""
    g = stream(0, "bench in place")
    tokens, weights = [((1, n, d), 1.0)] * 2, [((h, d), d**-0.5)] * 2
    scales = [*tokens, *weights, ((d, 5), 5**-0.5), ((d, d), d**-0.5), ((d, h), h**-0.5)]
    inputs = [(scale * torch.randn(*shape, generator=g)).requires_grad_() for shape, scale in scales]
    return (*inputs, torch.randn(1, n, d, generator=g), chunk)


def _with_gradients(layer, inputs: tuple) -> list[torch.Tensor]:
    *weights, upstream, chunk = inputs
    outputs = layer(*weights, chunk)
    return [outputs.detach(), *torch.autograd.grad(outputs, weights, upstream)]


def one_state(inputs: tuple) -> list[torch.Tensor]:
    """in_place_ttt, one running state"""

    def layer(x, source, w_gate, w_up, kernel, projection, w_down, chunk):
        keys, values = gated_mlp_keys(x, w_gate, w_up), depthwise_target(source, kernel, projection, chunk=chunk)
        return in_place_ttt(keys, values, w_down, LR, chunk)

    return _with_gradients(layer, inputs)


def einsum_and_cumsum(inputs: tuple) -> list[torch.Tensor]:
    """all states at once: our rewriting of the released form"""

    def layer(x, source, w_gate, w_up, kernel, projection, w_down, chunk):
        n, keys = x.shape[1], gated_mlp_keys(x, w_gate, w_up)
        Z, X = (pad(each, (0, 0, 0, -n % chunk)).unflatten(1, (-1, chunk)) for each in (keys, source))
        taps = conv1d(X.flatten(0, 1).mT, kernel.unsqueeze(1), padding=2, groups=len(kernel)).mT.view_as(X)
        written = torch.einsum("btch,btcd->btdh", Z[:, :-1], taps[:, :-1] @ projection)
        states = torch.cat([w_down[None, None], LR * written], dim=1).cumsum(dim=1)
        return torch.einsum("btdh,btch->btcd", states, Z).flatten(1, 2)[:, :n]

    return _with_gradients(layer, inputs)


def have_released() -> bool:
    """Whether the authors' file can be imported; what is missing is said."""
    if not harness.authors_code("In-Place-TTT", "hf_models", "hf_qwen3"):
        return False
    for name, needed in (("einops", ""), ("opt_einsum", ""), ("transformers", "4.57")):
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "nothing"
        if found == "nothing" or not found.startswith(needed):
            print(f"the authors' code needs {' '.join((name, needed)).strip()}, and has {found}: it is left out")
            return False
    return True


@functools.cache
def released_mlp(d: int, h: int, chunk: int) -> torch.nn.Module:
    """The authors' MLP, from their model's file; their package, which sets up a training, is not imported."""
    package = sys.modules.setdefault("released", types.ModuleType("released"))
    package.__path__ = [str(harness.authors_code("In-Place-TTT", "hf_models", "hf_qwen3"))]
    theirs = importlib.import_module("released.modeling_qwen3")
    config = theirs.Qwen3Config(hidden_size=d, intermediate_size=h, ttt_layers=[0], ttt_chunk=chunk, ttt_lr=LR)
    with torch.device("meta"):  # the weights are ours
        return theirs.Qwen3MLP(config, layer_idx=0)


def released(inputs: tuple) -> list[torch.Tensor]:
    """the authors' Qwen3MLP, commit be23248"""

    def layer(x, source, w_gate, w_up, kernel, projection, w_down, chunk):
        weights = {"gate_proj": w_gate, "up_proj": w_up, "down_proj": w_down, "ttt_proj": projection}
        weights = {f"{name}.weight": each for name, each in weights.items()}
        weights["ttt_conv.weight"] = kernel.unsqueeze(1)
        return functional_call(released_mlp(x.shape[-1], len(w_gate), chunk), weights, (x, source))

    return _with_gradients(layer, inputs)


def chunked_attention(inputs: tuple) -> list[torch.Tensor]:
    """each chunk attends to all earlier ones, plain PyTorch"""

    def layer(x, source, w_gate, w_up, kernel, projection, w_down, chunk):
        keys, values = gated_mlp_keys(x, w_gate, w_up), depthwise_target(source, kernel, projection, chunk=chunk)
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
    A key s(g) u is off by s'(g) u dg + s(g) du, and its derivatives s'(g) u and s(g) likewise, s being SiLU.
    """
    *weights, upstream, chunk = inputs
    x, source, w_gate, w_up, kernel, projection, w_down = (each.detach() for each in weights)
    g, u, terms = x @ w_gate.mT, x @ w_up.mT, [each.square() for each in (x, w_gate, w_up)]
    off_g, off_u = (terms[0] @ each.mT for each in terms[1:])
    sigmoid = g.sigmoid()
    once = sigmoid * (1 + g * (1 - sigmoid))
    twice = sigmoid * (1 - sigmoid) * (2 + g * (1 - 2 * sigmoid))
    parts = [(once * u).square() * off_g + (g * sigmoid).square() * off_u]
    parts = [each.requires_grad_() for each in (*parts, *(a.square() for a in (source, kernel, projection, w_down)))]
    values = depthwise_target(*parts[1:4], chunk=chunk)
    outputs = in_place_ttt(parts[0], values, parts[4], LR**2, chunk)
    by_keys, by_source, *by_rest = torch.autograd.grad(outputs, parts, upstream.square())
    by_g = by_keys * ((once * u).square() + once.square() * off_u + (twice * u).square() * off_g)
    by_u = by_keys * ((g * sigmoid).square() + once.square() * off_g)
    by_weights = [(each.mT @ terms[0]).squeeze(0) for each in (by_g, by_u)]
    squares = [outputs.detach(), by_g @ terms[1] + by_u @ terms[2], by_source, *by_weights, *by_rest]
    (_, n, d), h = x.shape, len(w_gate)
    eps = 8 * torch.finfo(upstream.dtype).eps * (n + h + 4 * d + 5) ** 0.5
    return [eps * float(each.max()) ** 0.5 for each in squares]


def same(inputs: tuple, ours: list[torch.Tensor], peer: list[torch.Tensor]) -> float:
    """The largest difference of outputs or gradients over what rounding leaves; a mutant must be refused."""
    allowed = _allowed(inputs)
    ratios = [float((a - b).abs().max()) / c for a, b, c in zip(ours, peer, allowed, strict=True)]
    if not max(ratios) <= 1:
        raise SystemExit(f"outputs or gradients differ by {max(ratios):.3g} times what rounding leaves")
    x, source, w_gate, w_up, kernel, projection = (each.detach() for each in inputs[:6])
    values = depthwise_target(source, kernel, projection, chunk=inputs[-1])
    Z, V = (each.unflatten(1, (-1, inputs[-1])) for each in (gated_mlp_keys(x, w_gate, w_up), values))
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
    as_released = [harness.Peer(run=einsum_and_cumsum, gap=same, memory=2.0)]
    if have_released():
        as_released.append(harness.Peer(run=released, gap=same, memory=2.0, role="author"))
    attention = [harness.Peer(run=chunked_attention, gap=same)]
    for n, peers, against in ((long, as_released, "as released"), (short, attention, "as attention")):
        yield harness.Race(
            name=f"forward and backward, n = {n}, d = {d}, h = {h}, C = {chunk}, {against}",
            build=build,
            sizes={"n": n, "d": d, "h": h, "chunk": chunk},
            ours=one_state,
            peers=tuple(peers),
        )
    yield from relatives(quick)


if __name__ == "__main__":
    harness.command("in_place_ttt", harness.contests(races), rounds=21, quick_rounds=3, dtype="float32")
