"""A gated MLP whose down-projection is written while it reads: a drop-in for those of Hugging Face transformers.

symbol     name         meaning                                                                axes
W_0        down_proj    the static part, called as the module that it is                       (d, h)
W_i - W_0  -            the fast part, which starts at 0, in float32 whatever the model's dtype  (B, d, h)
w, P       ttt_kernel, ttt_projection   taps and projection of the target                      (d, K), (d, d)

Output: down_proj(z) + (W_i - W_0) z. So a memory at its zero start changes no bit of a model, a bias, an adapter or a
quantised down_proj stay what they are, and no write is lost in rounding to the format of the weights.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import silu

from derived.lab.checks import check_at_least, check_choice, check_count, check_positive
from derived.lab.rng import stream

from .forms import chunk_grid, depthwise_target, in_place_ttt
from .stream import InPlaceTTTState

PARTS = ("gate_proj", "up_proj", "down_proj", "act_fn")
TARGETS = ("hidden_states", "input_embed")
eager = torch.compiler.disable(
    reason="In-Place TTT looks at padding, packed documents and the cache as it runs: compile without fullgraph=True, "
    "or call with use_cache=False and neither attention_mask nor position_ids"
)


def in_place_ttt_layer(
    x: Float[Tensor, "B n d"],
    source: Float[Tensor, "B n d"],
    w_gate: Float[Tensor, "h d"],
    w_up: Float[Tensor, "h d"],
    kernel: Float[Tensor, "d K"],
    projection: Float[Tensor, "d d"],
    w_down: Float[Tensor, "d h"],
    lr: float | Float[Tensor, ""],
    chunk: int,
) -> Float[Tensor, "B n d"]:
    """A gated MLP and its memory in one: ``in_place_ttt`` of ``gated_mlp_keys`` and ``depthwise_target``.

    For training in less memory: what is kept for the backward pass are the arguments, the two products x W_gate^T and
    x W_up^T, and some sqrt(T) states; keys, values and the other states are recomputed, about sqrt(T) chunks at a time.

    >>> x, W, centre = torch.ones(1, 4, 1), torch.ones(1, 1), torch.tensor([[0.0, 1.0, 0.0]])
    >>> outputs = in_place_ttt_layer(x, x, W, W, centre, W, 0 * W, 1.0, 2).flatten()
    >>> (outputs / torch.nn.functional.silu(W).square()).round(decimals=4)  # two keys of silu(1) wrote the value 1
    tensor([[0., 0., 2., 2.]])
    """
    check_count("chunk", chunk)
    if isinstance(lr, Tensor):  # the values are linear in the kernel, and the writes in the values
        kernel, lr = lr.to(kernel.dtype) * kernel, 1.0
    return _Layer.apply(x, source, w_gate, w_up, kernel, projection, w_down, lr, chunk)


class _Layer(torch.autograd.Function):
    """Keys, values and states of one chunk at a time, and the states before every ceil(sqrt(T))-th chunk kept.

    Backwards from one kept state to the one before: the states between are made again, then the adjoint A_i (see
    ``forms._Lean``) walks over them. Of a chunk's own keys and values autograd takes the derivative.
    """

    @staticmethod
    def forward(ctx, x, source, w_gate, w_up, kernel, projection, w_down, lr, chunk):
        gates, ups = x @ w_gate.mT, x @ w_up.mT
        W, outputs, kept = w_down.repeat(len(x), 1, 1), torch.empty_like(x), []
        ctx.lr, ctx.chunk, ctx.grid = lr, chunk, chunk_grid(x.shape[1], chunk)
        ctx.stride = math.isqrt(len(ctx.grid) - 1) + 1 if ctx.grid else 1
        for i, (start, stop, _) in enumerate(ctx.grid):
            if i % ctx.stride == 0:
                kept.append(W.clone())
            Z, V = _keys_and_values(gates, ups, source, kernel, projection, slice(start, stop), chunk)
            outputs[:, start:stop] = torch.bmm(Z, W.mT)
            W.baddbmm_(V.mT, Z, alpha=lr)
        ctx.save_for_backward(x, source, w_gate, w_up, kernel, projection, gates, ups, *kept)
        return outputs

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, grad):
        x, source, w_gate, w_up, kernel, projection, gates, ups, *kept = ctx.saved_tensors
        weights = [torch.zeros_like(each) for each in (w_gate, w_up, kernel, projection)]
        grad_x, grad_source = torch.empty_like(x), torch.empty_like(source)
        A = x.new_zeros(len(x), x.shape[-1], len(w_gate))
        for first in reversed(range(0, len(ctx.grid), ctx.stride)):
            spans = [slice(start, stop) for start, stop, _ in ctx.grid[first : first + ctx.stride]]
            states, reads = [kept.pop()], []
            for span in spans:
                parts = (gates[:, span], ups[:, span], source[:, span], kernel, projection)
                leaves = [each.detach().requires_grad_() for each in parts]
                with torch.enable_grad():
                    reads.append((leaves, *_keys_and_values(*leaves, slice(None), ctx.chunk)))
            for _, Z, V in reads[:-1]:
                states.append(torch.baddbmm(states[-1], V.detach().mT, Z.detach(), alpha=ctx.lr))
            for span in reversed(spans):
                leaves, Z, V = reads.pop()
                upstream = torch.bmm(grad[:, span], states.pop()).baddbmm_(V.detach(), A, alpha=ctx.lr)
                found = torch.autograd.grad((Z, V), leaves, (upstream, ctx.lr * torch.bmm(Z.detach(), A.mT)))
                A.baddbmm_(grad[:, span].mT, Z.detach())
                grad_x[:, span], grad_source[:, span] = found[0] @ w_gate + found[1] @ w_up, found[2]
                rows = x[:, span].flatten(0, 1)
                by_weights = (found[0].flatten(0, 1).mT @ rows, found[1].flatten(0, 1).mT @ rows, *found[3:])
                for total, each in zip(weights, by_weights, strict=True):
                    total += each
        return grad_x, grad_source, *weights, A.sum(dim=0), None, None


def _keys_and_values(gates, ups, source, kernel, projection, span, chunk) -> tuple[Tensor, Tensor]:
    return silu(gates[:, span]) * ups[:, span], depthwise_target(source[:, span], kernel, projection, chunk=chunk)


class Context(NamedTuple):
    """What a layer must know beside its input: which tokens are real and which begin a document, and what is kept.

    A layer of a model has it for the length of a call; see ``convert._telling``.
    """

    real: Bool[Tensor, "B n"] | None = None  # None: all
    starts: Bool[Tensor, "B n"] | None = None  # None: none but the first
    embeddings: Float[Tensor, "B n d"] | None = None
    kept: object = None  # has ``states``: one for each text, or None before the first token


class InPlaceTTTMLP(nn.Module):
    """A gated MLP with a memory, made of an existing one by ``from_mlp``; its three projections keep their names.

    Alone it reads every row of a batch as one text. In a model, ``convert_model`` tells it of padding, documents and
    the cache. ValueError for a module without the four parts of a gated MLP.

    >>> mlp = nn.Module()
    >>> mlp.gate_proj, mlp.up_proj, mlp.down_proj = nn.Linear(4, 6), nn.Linear(4, 6), nn.Linear(6, 4)
    >>> mlp.act_fn = nn.SiLU()
    >>> written, x = InPlaceTTTMLP.from_mlp(mlp, chunk=2), torch.randn(1, 7, 4)
    >>> torch.equal(written(x), mlp.down_proj(mlp.act_fn(mlp.gate_proj(x)) * mlp.up_proj(x)))  # until it is trained
    True
    """

    def __init__(
        self,
        mlp: nn.Module,
        *,
        chunk: int,
        lr: float,
        taps: int,
        projection: bool,
        target: str,
        tau: float | None = None,
    ) -> None:
        super().__init__()
        if lacking := [name for name in PARTS if not hasattr(mlp, name)]:
            found = type(mlp).__name__
            raise ValueError(f"{found} has no {', '.join(lacking)}; give a gated MLP with {', '.join(PARTS)}")
        check_count("chunk", chunk)
        check_choice("target", target, TARGETS)
        if isinstance(lr, Tensor):
            raise ValueError("lr is a tensor; give a number: the kernel is learned, and a learned rate is its scale")
        check_at_least("lr", lr, 0)
        if tau is not None:
            check_positive("tau", tau)
        check_count("taps", taps)
        if taps % 2 == 0:
            raise ValueError(f"taps = {taps}; give an odd number, the middle one for the token itself")
        for name in PARTS:
            setattr(self, name, getattr(mlp, name))
        self.chunk, self.lr, self.target, self.tau = chunk, lr, target, tau
        like = mlp.down_proj.weight
        d = like.shape[0]
        floating = {"dtype": like.dtype if like.is_floating_point() else torch.float32, "device": like.device}
        self.ttt_kernel = nn.Parameter(torch.zeros(d, taps, **floating))
        self.ttt_projection = nn.Parameter(torch.zeros(d, d, **floating)) if projection else None
        self.context = Context()

    @classmethod
    def from_mlp(
        cls,
        mlp: nn.Module,
        *,
        chunk: int = 512,
        lr: float = 0.3,
        taps: int = 5,
        projection: bool = True,
        target: str = "hidden_states",
        tau: float | None = None,
        std: float = 0.02,
        seed: int = 0,
    ) -> "InPlaceTTTMLP":
        """A gated MLP with a memory at its zero start; the four parts are those of ``mlp``, not copies."""
        made = cls(mlp, chunk=chunk, lr=lr, taps=taps, projection=projection, target=target, tau=tau)
        made.start(std, seed)
        return made.train(mlp.training)

    @torch.no_grad()
    def start(self, std: float = 0.02, seed: int = 0) -> None:
        """Kernel 0, projection diagonal with entries N(0, std^2): nothing is written, the kernel can learn. [repo]"""
        if not getattr(self.ttt_kernel, "_is_hf_initialized", False):  # transformers marks what it has loaded
            self.ttt_kernel.zero_()
        if self.ttt_projection is not None and not getattr(self.ttt_projection, "_is_hf_initialized", False):
            diagonal = std * torch.randn(len(self.ttt_kernel), generator=stream(seed, "projection"))
            self.ttt_projection.copy_(torch.diag(diagonal))

    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        keys = self.act_fn(self.gate_proj(x)) * self.up_proj(x)
        context, static = self.context, self.down_proj(keys)
        source = x if self.target == "hidden_states" or context.embeddings is None else context.embeddings
        wide = torch.promote_types(torch.float32, keys.dtype)
        with torch.autocast(keys.device.type, enabled=False):  # or products of the fast part would be rounded
            return static + self._fast(keys.to(wide), source.to(wide), context).to(static.dtype)

    def _fast(self, keys: Tensor, source: Tensor, context: Context) -> Tensor:
        """(W_i - W_0) z for every token; what must be kept goes into ``context.kept``."""
        kernel, projection = (each if each is None else each.to(keys.dtype) for each in self._target())
        if context.kept is None and context.real is None and context.starts is None:
            values = depthwise_target(source, kernel, projection, chunk=self.chunk)
            zero = keys.new_zeros(source.shape[-1], keys.shape[-1])
            return in_place_ttt(keys, values, zero, self.lr, self.chunk, tau=self.tau)
        return self._by_text(keys, source, context, kernel, projection)

    @eager
    def _by_text(self, keys, source, context: Context, kernel, projection) -> Tensor:
        """Every text from its own state, or from W_0 where it has none yet."""
        states = getattr(context.kept, "states", None)
        if states is None and context.real is None and context.starts is None:
            state = self._begin(keys, source, (len(keys),))
            fast = state.step(keys, source, kernel, projection)
            context.kept.states = state.rows()
            return fast
        states = [self._begin(keys, source) for _ in keys] if states is None else states
        if (held := (states[0].chunk, states[0].lr, states[0].tau)) != (own := (self.chunk, self.lr, self.tau)):
            raise ValueError(f"a state with (chunk, lr, tau) = {held} for a memory with {own}; begin a new cache")
        fast = torch.zeros_like(source)
        for b in range(len(keys)):
            real = slice(None) if context.real is None else context.real[b]
            starts = [] if context.starts is None else context.starts[b][real].nonzero().flatten().tolist()
            states[b], out = self._text(states[b], keys[b][real], source[b][real], starts, kernel, projection)
            fast = fast.index_put((torch.tensor(b), *([] if context.real is None else [real.nonzero().flatten()])), out)
        if context.kept is not None:
            context.kept.states = states
        return fast

    def _text(self, state, keys, source, starts, kernel, projection) -> tuple[InPlaceTTTState, Tensor]:
        """The tokens of one text, with a new state where a document begins."""
        edges, outputs = [0, *(each for each in starts if each), len(keys)], []
        for begin, end in pairwise(edges):
            state = self._begin(keys, source) if begin in starts else state
            outputs.append(state.step(keys[begin:end], source[begin:end], kernel, projection))
        return state, torch.cat(outputs)

    def _begin(self, keys: Tensor, source: Tensor, batch: tuple[int, ...] = ()) -> InPlaceTTTState:
        zero = keys.new_zeros(source.shape[-1], keys.shape[-1])
        return InPlaceTTTState.begin(zero, chunk=self.chunk, lr=self.lr, tau=self.tau, batch=batch)

    def _target(self) -> tuple[Tensor, Tensor | None]:
        return self.ttt_kernel, self.ttt_projection

    def extra_repr(self) -> str:
        return f"chunk={self.chunk}, lr={self.lr}, target={self.target!r}, tau={self.tau}"
