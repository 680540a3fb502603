"""A gated MLP whose down-projection is written while it reads: a drop-in for those of Hugging Face transformers.

symbol     name         meaning                                                                axes
W_0        down_proj    the static part, called as the module that it is                       (d, h)
W_i - W_0  -            the fast part, which starts at 0, in float32 whatever the model's dtype  (B, d, h)
w, P       ttt_kernel, ttt_projection   taps and projection of the target                      (d, K), (d, d)

Output: down_proj(z) + (W_i - W_0) z. So a memory at its zero start changes no bit of a model, a bias, an adapter or a
quantised down_proj stay what they are, and no write is lost in rounding to the format of the weights.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from derived.lab.checks import check_at_least, check_choice, check_count, check_positive
from derived.lab.rng import stream

from .forms import depthwise_target, in_place_ttt
from .stream import InPlaceTTTState

PARTS = ("gate_proj", "up_proj", "down_proj", "act_fn")
TARGETS = ("hidden_states", "input_embed")
eager = torch.compiler.disable(
    reason="In-Place TTT looks at padding, packed documents and the cache as it runs: compile without fullgraph=True, "
    "or call with use_cache=False and neither attention_mask nor position_ids"
)


class Context(NamedTuple):
    """What a layer must know beside its input: which tokens are real and which begin a document, and what is kept.

    A layer of a model has it for the length of a call; see ``convert._telling``.
    """

    real: Bool[Tensor, "B n"] | None = None  # None: all
    starts: Bool[Tensor, "B n"] | None = None  # None: none but the first
    embeddings: Float[Tensor, "B n d"] | None = None
    kept: object = None  # has ``states``: one for each text, or None before the first token


class Settings(NamedTuple):
    """How a memory writes, by default as in the released code. [repo]"""

    chunk: int = 512  # tokens that are read before they are written
    lr: float = 0.3  # the inner step
    taps: int = 5  # of the target, centred on the token
    projection: bool = True  # whether the target ends in a matrix
    target: str = "hidden_states"  # what it is made of: these, the input of the MLP, or "input_embed"
    tau: float | None = None  # the largest Frobenius norm of a write

    def check(self) -> None:
        """ValueError for what cannot be meant."""
        check_count("chunk", self.chunk)
        check_choice("target", self.target, TARGETS)
        if isinstance(self.lr, Tensor):
            raise ValueError("lr is a tensor; give a number: the kernel is learned, and a learned rate is its scale")
        check_at_least("lr", self.lr, 0)
        if self.tau is not None:
            check_positive("tau", self.tau)
        check_count("taps", self.taps)
        if self.taps % 2 == 0:
            raise ValueError(f"taps = {self.taps}; give an odd number, the middle one for the token itself")


class InPlaceTTTMLP(nn.Module):
    """A gated MLP with a memory, made of an existing one by ``from_mlp``; its three projections keep their names.

    Alone it reads every row of a batch as one text. In a model, ``convert_model`` tells it of padding, documents and
    the cache. ``memory_off``, an argument and an attribute, is the control that every result wants: all is written as
    before, and the outputs are those of the static MLP. The other arguments are those of ``Settings``: chunk, lr, taps,
    projection, target, tau. ValueError for a module without the four parts of a gated MLP.

    >>> mlp = nn.Module()
    >>> mlp.gate_proj, mlp.up_proj, mlp.down_proj = nn.Linear(4, 6), nn.Linear(4, 6), nn.Linear(6, 4)
    >>> mlp.act_fn = nn.SiLU()
    >>> written, x = InPlaceTTTMLP.from_mlp(mlp, chunk=2), torch.randn(1, 7, 4)
    >>> torch.equal(written(x), mlp.down_proj(mlp.act_fn(mlp.gate_proj(x)) * mlp.up_proj(x)))  # until it is trained
    True
    """

    def __init__(self, mlp: nn.Module, *, memory_off: bool = False, **settings: Any) -> None:
        super().__init__()
        if lacking := [name for name in PARTS if not hasattr(mlp, name)]:
            found = type(mlp).__name__
            raise ValueError(f"{found} has no {', '.join(lacking)}; give a gated MLP with {', '.join(PARTS)}")
        given = Settings(**settings)
        given.check()
        for name in PARTS:
            setattr(self, name, getattr(mlp, name))
        self.chunk, self.lr, taps, projection, self.target, self.tau = given
        self.memory_off = memory_off
        like = mlp.down_proj.weight
        d = like.shape[0]
        floating = {"dtype": like.dtype if like.is_floating_point() else torch.float32, "device": like.device}
        self.ttt_kernel = nn.Parameter(torch.zeros(d, taps, **floating))
        self.ttt_projection = nn.Parameter(torch.zeros(d, d, **floating)) if projection else None
        self.context = Context()

    @classmethod
    def from_mlp(cls, mlp: nn.Module, *, std: float = 0.02, seed: int = 0, **settings: Any) -> "InPlaceTTTMLP":
        """A gated MLP with a memory at its zero start; the four parts are those of ``mlp``, not copies.

        ``settings``: ``memory_off`` and those of ``Settings``.
        """
        made = cls(mlp, **settings)
        made.start(std, seed)
        return made.train(mlp.training)

    @torch.no_grad()
    def start(self, std: float = 0.02, seed: int = 0) -> None:
        """Kernel 0, projection diagonal with entries N(0, std^2): nothing is written, the kernel can learn. [repo]"""
        self.ttt_kernel.zero_()
        if self.ttt_projection is not None:
            diagonal = std * torch.randn(len(self.ttt_kernel), generator=stream(seed, "projection"))
            self.ttt_projection.copy_(torch.diag(diagonal))

    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        keys = self.act_fn(self.gate_proj(x)) * self.up_proj(x)
        context, static = self.context, self.down_proj(keys)
        source = x if self.target == "hidden_states" or context.embeddings is None else context.embeddings
        if self.memory_off and context.kept is None:
            return static
        wide = torch.promote_types(torch.float32, keys.dtype)
        device = keys.device.type if torch.amp.is_autocast_available(keys.device.type) else "cpu"
        with torch.autocast(device, enabled=False):  # or products of the fast part would be rounded
            fast = self._fast(keys.to(wide), source.to(wide), context).to(static.dtype)
        return static if self.memory_off else static + fast

    def _fast(self, keys: Tensor, source: Tensor, context: Context) -> Tensor:
        """(W_i - W_0) z for every token; what must be kept goes into ``context.kept``."""
        target = (self.ttt_kernel, self.ttt_projection)
        kernel, projection = (each if each is None else each.to(keys.dtype) for each in target)
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


def memories(model: nn.Module) -> list[InPlaceTTTMLP]:
    """The MLPs of a model that write, in the order of its layers.

    >>> memories(nn.Linear(2, 2))
    []
    """
    return [module for module in model.modules() if isinstance(module, InPlaceTTTMLP)]


@contextmanager
def memory_off(model: nn.Module) -> Iterator[None]:
    """Switch the memories of a model off as they are read: ``with memory_off(model): model(ids)``.

    All is written as before, a cache included. What is lost is what was read from the text: the control to report
    beside every result. ValueError for a model without memories.

    >>> mlp = nn.Module()
    >>> mlp.gate_proj, mlp.up_proj, mlp.down_proj = nn.Linear(4, 6), nn.Linear(4, 6), nn.Linear(6, 4)
    >>> mlp.act_fn = nn.SiLU()
    >>> written = InPlaceTTTMLP.from_mlp(mlp, chunk=2)
    >>> with memory_off(written):
    ...     written.memory_off
    True
    """
    if not (found := memories(model)):
        raise ValueError(f"{type(model).__name__} has no memory to switch off; give a model after convert_model")
    before = [memory.memory_off for memory in found]
    for memory in found:
        memory.memory_off = True
    try:
        yield
    finally:
        for memory, each in zip(found, before, strict=True):
            memory.memory_off = each
