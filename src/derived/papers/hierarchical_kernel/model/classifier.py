"""A small causal transformer that classifies sequences, with a choice of attention; R networks side by side.

symbol    name        meaning                                                              axes
s         tokens      symbols 0 .. vocabulary - 1, 0 is padding on the right               (R | 1, batch, T), (batch, T)
n         lengths     symbols before the padding                                           as tokens, without T
h         h           residual stream                                                      (R, batch, T, width)
E, P      E, P        embeddings of symbols and positions, N(0, 1) and N(0, 1/4)           (R, vocabulary | T, width)
W_1, W_2  W_1, W_2    feed-forward of width mlp_ratio width                                (R, out, in)

h = E[s] + P;  h <- h + Attention(LN h);  h <- h + W_2 gelu(W_1 LN h);  logits = W LN(h), of the mean over real tokens
("mean"), of the last one ("last") or at every token ("every"). LN has no affine part, nothing has a bias.
"""

from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import gelu

from derived.lab.checks import check_choice, check_count, check_within
from derived.lab.nets import Draws, layer_norm, linear

from .layers import ConvQKAttention, HKTAttention, Implementation, PlainAttention

AttentionKind = Literal["plain", "wide", "conv-qk", "hkt", "hkt-average", "hkt-block", "hkt-every", "hkt-fixed"]
LEVELS = {"hkt": {}, "hkt-fixed": {}, "hkt-every": {"stride": False}}  # options of the kinds with levels
LEVELS |= {"hkt-average": {"pooling": "average"}, "hkt-block": {"pooling": "block"}}
ATTENTIONS = ("plain", "wide", "conv-qk", *LEVELS)


def make_attention(kind: AttentionKind, width: int, heads: int, levels: int, **options) -> nn.Module:
    """The layer of a variant: all share the weights they have in common and read the same widths.

    "plain"; "wide": query/key width times L; "conv-qk": one causal convolution of length 2^(L-1) before queries and
    keys; "hkt"; "hkt-average": its downsampling frozen at averages; "hkt-block": block pooling, which leaks;
    "hkt-every": a summary at each token, without stride; "hkt-fixed": the weights of the levels stay at their start.
    [ours]
    """
    check_choice("attention", kind, ATTENTIONS)
    if kind in LEVELS:
        layer = HKTAttention(width, heads, levels, **LEVELS[kind], **options)
        layer.scores.a.requires_grad_(kind != "hkt-fixed")
        return layer
    options = {name: value for name, value in options.items() if name not in ("impl", "alpha0")}
    if kind == "conv-qk":
        return ConvQKAttention(width, heads, 2 ** (levels - 1), **options)
    return PlainAttention(width, heads, levels if kind == "wide" else 1, **options)


class Block(nn.Module):
    """h + Attention(LN h), then h + W_2 gelu(W_1 LN h)."""

    def __init__(self, attention: nn.Module, width: int, mlp_ratio: int, draws: Draws) -> None:
        super().__init__()
        self.attention = attention
        self.W_1 = draws.matrix("W_1", mlp_ratio * width, width)
        self.W_2 = draws.matrix("W_2", width, mlp_ratio * width)

    def forward(self, h: Float[Tensor, "R batch T width"]) -> Float[Tensor, "R batch T width"]:
        """The residual stream after this block."""
        h = h + self.attention(layer_norm(h))  # h <- h + Attention(LN h)
        return h + linear(gelu(linear(layer_norm(h), self.W_1)), self.W_2)


class SequenceClassifier(nn.Module):
    """A causal transformer over symbols; see the module's legend for its equations. [ours: the paper's was not visible]

    ``read_out``: "mean" gives (R, batch, classes) from the mean over the real tokens, "last" from the last of them,
    "every" (R, batch, T, classes).
    Weights of network r come from stream(seed, "weights", ..., r): two kinds of attention with one seed differ only in
    what one of them lacks. Tokens are (batch, T), the same for all networks, or (R, batch, T). ValueError for sizes <
    1, unknown choices, heads that do not divide the width, symbols outside the vocabulary, and sequences without a token
    or longer than max_length.

    >>> model = SequenceClassifier(vocabulary=16, classes=10, max_length=8, width=8, attention="hkt", num_networks=2)
    >>> model(torch.tensor([[11, 3, 4, 15, 0, 0, 0, 0]]), torch.tensor([4])).shape
    torch.Size([2, 1, 10])
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        classes: int,
        max_length: int,
        width: int = 48,
        depth: int = 2,
        heads: int = 1,
        attention: AttentionKind = "hkt",
        levels: int = 3,
        mlp_ratio: int = 2,
        read_out: Literal["mean", "last", "every"] = "mean",
        impl: Implementation = "fused",
        alpha0: float | None = None,
        num_networks: int = 1,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        sizes = {"vocabulary": vocabulary, "classes": classes, "max_length": max_length, "mlp_ratio": mlp_ratio}
        for name, count in {**sizes, "depth": depth, "width": width}.items():
            check_count(name, count)
        check_choice("read_out", read_out, ("mean", "last", "every"))
        self.num_networks, self.max_length, self.read_out = num_networks, max_length, read_out
        networks = {"num_networks": num_networks, "dtype": dtype, "device": device}
        ends = Draws(seed=seed, layer="ends", **networks)
        self.E = nn.Parameter(ends.normal("E", vocabulary, width, std=1.0))
        self.P = nn.Parameter(ends.normal("P", max_length, width, std=0.5))
        self.W = ends.matrix("W", classes, width)
        blocks = []
        for b in range(depth):
            layer = make_attention(
                attention, width, heads, levels, seed=seed, layer=f"attention {b}", impl=impl, alpha0=alpha0, **networks
            )
            draws = Draws(seed=seed, layer=f"feed-forward {b}", **networks)
            blocks.append(Block(layer, width, mlp_ratio, draws))
        self.blocks = nn.ModuleList(blocks)

    def embed(self, tokens: Int[Tensor, "*networks batch T"]) -> Float[Tensor, "R batch T width"]:
        """E[s] + P, the stream before the first block."""
        if tokens.ndim not in (2, 3) or (tokens.ndim == 3 and tokens.shape[0] not in (1, self.num_networks)):
            raise ValueError(f"tokens {tuple(tokens.shape)}; give (batch, T) or (R, batch, T), R = {self.num_networks}")
        if tokens.shape[-1] > self.max_length:
            raise ValueError(f"T = {tokens.shape[-1]} exceeds max_length = {self.max_length}; give a longer one")
        check_within("tokens", tokens, 0, self.E.shape[1] - 1)  # an index below zero would count from the end
        tokens = tokens.expand(self.num_networks, *tokens.shape[-2:])
        network = torch.arange(self.num_networks, device=tokens.device).view(-1, 1, 1)
        # E[s] + P, from the tables of each network
        return self.E[network, tokens] + self.P[:, None, : tokens.shape[-1]]

    def stream(self, h: Float[Tensor, "R batch T width"]) -> Float[Tensor, "R batch T width"]:
        """The normalised stream after the last block."""
        for block in self.blocks:
            h = block(h)
        return layer_norm(h)

    def forward(self, tokens: Int[Tensor, "*networks batch T"], lengths: Int[Tensor, "*networks batch"]) -> Tensor:
        """Logits: (R, batch, classes), or (R, batch, T, classes) with read_out = "every"."""
        check_within("lengths", lengths, 1, tokens.shape[-1])
        h = self.stream(self.embed(tokens))
        lengths = lengths.expand(self.num_networks, lengths.shape[-1]).unsqueeze(-1)
        if self.read_out == "mean":
            real = (torch.arange(h.shape[-2], device=h.device) < lengths).to(h.dtype).unsqueeze(-1)
            h = (h * real).sum(dim=-2) / lengths  # mean over the n real tokens
        elif self.read_out == "last":
            h = h.take_along_dim(lengths.unsqueeze(-1) - 1, dim=-2).squeeze(dim=-2)
        return linear(h, self.W)

    def alphas(self) -> Float[Tensor, "R depth heads L"]:
        """The weights of the levels in each block, detached; one level of weight 1 where there is no pyramid."""
        rows = [
            a.scores.alpha() if isinstance(a, HKTAttention) else a.W_V.new_ones(self.num_networks, a.heads, 1)
            for a in (block.attention for block in self.blocks)
        ]
        return torch.stack(rows, dim=1).detach()

    def num_parameters(self) -> int:
        """Trained numbers of one network."""
        return sum(parameter[0].numel() for parameter in self.parameters())
