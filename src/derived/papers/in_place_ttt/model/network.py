"""Small language models, R side by side: window attention or a recurrence, and gated MLPs that may write.

symbol   name       meaning                                                               axes
R        R          independent networks, in front of every weight                        leading axis
x        x          residual stream                                                       (R, B, n, d)
X_0      source     embeddings over their root mean square: what targets are made of      (R, B, n, d)
w, P     kernel, projection   the target's taps and matrix, of a layer that writes        (R, d, K), (R, d, d)

Blocks: x + mixer(norm(x)), then x + MLP(norm(x)); root-mean-square norms without gains, tied read-out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, normalize, pad, rms_norm, scaled_dot_product_attention, silu

from derived.lab.nets import Draws, linear, merge_heads, split_heads

from .baselines import delta_rule_chunked, gated_linear_attention_closed, lact_swiglu
from .forms import depthwise_target, in_place_ttt

Change = Callable[[Tensor], Tensor]  # of the values (R, B, n, d) before they are written: a control
TAPS = {"conv": range(5), "past": range(3), "none": range(2, 3)}  # of the kernel's five, centred; "none" is not trained


@dataclass(frozen=True)
class Memory:
    """How a layer writes: its taps ("conv": -2 to 2, "past": -2 to 0, "none": the token alone), projection, start."""

    taps: str = "conv"
    projection: bool = True
    chunk: int = 8
    start: str = "zero"  # kernel 0 and a diagonal projection, or "random": both dense


def moved(chunk: int) -> Change:
    """A control: each value under the key of the token one chunk later, the last ones under the first keys."""
    return lambda values: values.roll(chunk, dims=-2)


def of_another_text(values: Tensor) -> Tensor:
    """A placebo: what the text before it in the batch would have written, as much of it and at the same cost."""
    return values.roll(1, dims=1)


@dataclass(frozen=True)
class Size:
    """The shape of a network; ``memories`` says which layers write, and how."""

    vocabulary: int
    width: int = 32
    inner: int = 96
    depth: int = 2
    heads: int = 2
    window: int = 8
    mixer: str = "window"  # or "gla", "delta", "lact"
    memories: Mapping[int, Memory] = field(default_factory=dict)
    long: bool = False  # no table of n x n numbers is made


class SmallLM(nn.Module):
    """R language models of one size, next-token logits (R, B, n, V); weights of one name and seed are shared by all
    sizes that have them.

    >>> model = SmallLM(Size(10, width=8, inner=12, heads=1, memories={1: Memory(chunk=2)}), Draws(num_networks=3))
    >>> model(torch.zeros(2, 5, dtype=torch.long)).shape
    torch.Size([3, 2, 5, 10])
    """

    def __init__(self, size: Size, draws: Draws) -> None:
        super().__init__()
        self.size, d = size, size.width
        layer = lambda i: Draws(**{**vars(draws), "layer": f"{draws.layer} {i}"})  # noqa: E731
        self.embedding = nn.Parameter(draws.normal("embedding", size.vocabulary, d, std=d**-0.5))
        self.mixers = nn.ModuleList(_mixer(size, layer(i)) for i in range(size.depth))
        self.mlps = nn.ModuleList(_mlp(size, size.memories.get(i), layer(i)) for i in range(size.depth))

    def forward(self, ids: Int[Tensor, "*R B n"], change: Change | None = None) -> Float[Tensor, "R B n V"]:
        """Logits after each token of the same texts for all networks, (B, n), or of each network's own, (R, B, n)."""
        x, _ = self._read(ids, change)
        return linear(rms_norm(x, x.shape[-1:]), self.embedding)

    def last_keys(self, ids: Int[Tensor, "*R B n"]) -> Float[Tensor, "R B n h"]:
        """The keys of the last block: what its down-projection multiplies."""
        return self._read(ids)[1]

    def _read(self, ids: Tensor, change: Change | None = None) -> tuple[Tensor, Tensor]:
        own = torch.arange(len(self.embedding), device=ids.device)[:, None, None]
        x = self.embedding[own, ids] * self.size.width**0.5
        source = rms_norm(x, x.shape[-1:])
        for i, (mixer, mlp) in enumerate(zip(self.mixers, self.mlps, strict=True)):
            x = x + self._mix(mixer, rms_norm(x, x.shape[-1:]))
            inputs = rms_norm(x, x.shape[-1:])
            keys = silu(linear(inputs, mlp["gate"])) * linear(inputs, mlp["up"])
            x = x + self._write(mlp, self.size.memories.get(i), keys, source, change)
        return x, keys

    @property
    def parameters_each(self) -> int:
        """Trained numbers of one network."""
        return sum(weight[0].numel() for weight in self.parameters())

    def _write(self, mlp, memory: Memory | None, keys, source, change):
        if memory is None:
            return linear(keys, mlp["down"])
        values = source
        if memory.taps != "none":
            taps = mlp["kernel"].unsqueeze(1)
            values = depthwise_target(values, pad(taps, (0, 5 - taps.shape[-1])), chunk=memory.chunk)
        values = linear(values, mlp["projection"].mT) if memory.projection else values
        values = values if change is None else change(values)
        impl = "lean" if self.size.long else "attention"
        return in_place_ttt(keys, values, mlp["down"].unsqueeze(1), 1.0, memory.chunk, impl=impl)

    def _mix(self, mixer, x):
        heads = self.size.heads
        if self.size.mixer == "delta":
            q, k, v = (silu(_short(linear(x, mixer[name]), mixer[f"short_{name}"])) for name in "qkv")
        else:
            q, k, v = (linear(x, mixer[name]) for name in "qkv")
        q, k, v = (split_heads(each, heads) for each in (q, k, v))
        if self.size.mixer == "gla":
            log_decay = logsigmoid(split_heads(linear(x, mixer["decay"]) + mixer["bias"][:, None, None], heads)) / 16
            mixed = rms_norm(gated_linear_attention_closed(q, k, v, log_decay), v.shape[-1:])
            mixed = mixed * silu(split_heads(linear(x, mixer["out gate"]), heads))
        elif self.size.mixer == "delta":
            beta = linear(x, mixer["beta"]).sigmoid().transpose(-1, -2)
            mixed = rms_norm(delta_rule_chunked(normalize(q, dim=-1), normalize(k, dim=-1), v, beta), v.shape[-1:])
        else:
            mixed = self._window(q, k, v)
        mixed = merge_heads(mixed)
        if self.size.mixer == "lact":
            q, k, v = (silu(linear(x, mixer[name])) for name in "qkv")
            weights = [mixer[f"fast {name}"].unsqueeze(1) for name in ("gate", "up", "down")]
            rates = 0.1 * linear(x, mixer["rate"]).squeeze(-1).sigmoid()
            fast = lact_swiglu(normalize(q, dim=-1), normalize(k, dim=-1), v, weights, rates, 2 * self.size.window)
            mixed = mixed + rms_norm(fast, fast.shape[-1:]) * mixer["scale"][:, None, None]
        return linear(mixed, mixer["out"])

    def _window(self, q, k, v):
        n, turn = q.shape[-2], _rotation(q.shape[-2], q)
        if self.size.long:
            return in_blocks(_turned(q, turn), _turned(k, turn), v, self.size.window)
        back = torch.arange(n, device=q.device).unsqueeze(-1) - torch.arange(n, device=q.device)
        mask = (back >= 0) & (back < self.size.window)
        return scaled_dot_product_attention(_turned(q, turn), _turned(k, turn), v, attn_mask=mask)


def _mixer(size: Size, draws: Draws) -> nn.ParameterDict:
    d, heads = size.width, size.heads
    weights = {name: draws.matrix(name, d, d) for name in ("q", "k", "v")}
    weights["out"] = nn.Parameter(draws.normal("out", d, d, std=(2 * size.depth * d) ** -0.5))
    if size.mixer == "gla":
        weights |= {"decay": draws.matrix("decay", d, d), "out gate": draws.matrix("out gate", d, d)}
        weights["bias"] = draws.full(torch.zeros(d))
    elif size.mixer == "delta":
        taps = torch.eye(4)[:1].repeat(d, 1)  # the token alone at the start
        weights |= {f"short_{name}": draws.full(taps) for name in "qkv"} | {"beta": draws.matrix("beta", heads, d)}
    elif size.mixer == "lact":
        weights |= {"fast gate": draws.matrix("fast gate", d, d), "fast up": draws.matrix("fast up", d, d)}
        weights |= {"fast down": draws.matrix("fast down", d, d), "rate": draws.matrix("rate", 1, d)}
        weights["scale"] = draws.full(torch.zeros(d))
    return nn.ParameterDict(weights)


def _mlp(size: Size, memory: Memory | None, draws: Draws) -> nn.ParameterDict:
    d, h = size.width, size.inner
    weights = {"gate": draws.matrix("gate", h, d), "up": draws.matrix("up", h, d)}
    weights["down"] = nn.Parameter(draws.normal("down", d, h, std=(2 * size.depth * h) ** -0.5))
    if memory is not None and memory.taps != "none":
        std = len(TAPS[memory.taps]) ** -0.5 if memory.start == "random" else 0.0
        weights["kernel"] = nn.Parameter(draws.normal("kernel", d, len(TAPS[memory.taps]), std=std))
    if memory is not None and memory.projection:
        diagonal = torch.diag_embed(draws.normal("projection", d, std=0.02))  # as released
        weights["projection"] = draws.matrix("dense", d, d) if memory.start == "random" else nn.Parameter(diagonal)
    return nn.ParameterDict(weights)


def in_blocks(q, k, v, window: int) -> Float[Tensor, "*B n d"]:
    """Attention to the last ``window`` tokens, the token itself among them, by blocks of that length: each looks at
    itself and at the block before it.

    >>> in_blocks(torch.zeros(3, 1), torch.zeros(3, 1), torch.tensor([[0.0], [2.0], [6.0]]), 2).flatten()
    tensor([0., 1., 4.])
    """
    n = q.shape[-2]
    q, k, v = (pad(x, (0, 0, 0, -n % window)).unflatten(-2, (-1, window)) for x in (q, k, v))
    k, v = (torch.cat([pad(x, (0, 0, 0, 0, 1, -1)), x], dim=-2) for x in (k, v))
    key = torch.arange(2 * window, device=q.device)
    first = (torch.arange(q.shape[-3], device=q.device) == 0)[:, None, None] & (key < window)  # nothing is before it
    back = window + key[:window].unsqueeze(-1) - key
    return scaled_dot_product_attention(q, k, v, attn_mask=(back >= 0) & (back < window) & ~first).flatten(-3, -2)[
        ..., :n, :
    ]


def _short(x: Float[Tensor, "R B n d"], taps: Float[Tensor, "R d K"]) -> Float[Tensor, "R B n d"]:
    """A causal depthwise convolution: tap k reads k tokens back."""
    K = taps.shape[-1]
    late = pad(x, (0, 0, K - 1, 0))
    n = x.shape[-2]
    return sum(taps[:, None, None, :, k] * late[..., K - 1 - k : K - 1 - k + n, :] for k in range(K))


def _rotation(n: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """Cosines and sines of rotary positions, (n, d_head / 2)."""
    half = like.shape[-1] // 2
    rate = 1000.0 ** (-torch.arange(half, device=like.device, dtype=torch.float64) / half)
    angle = torch.arange(n, device=like.device, dtype=torch.float64).unsqueeze(-1) * rate
    return angle.cos().to(like.dtype), angle.sin().to(like.dtype)


def _turned(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    (cos, sin), (even, odd) = turn, x.chunk(2, dim=-1)
    return torch.cat([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
