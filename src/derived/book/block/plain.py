"""A plain language model of one block, R of them side by side: what the papers change, one method each.

symbol   name       meaning                                              axes
R        -          independent networks                                 leading axis of everything
-        ids        tokens                                               (B, T)
x        x          states of the stream                                 (R, B, T, d)
S, A     scores, weigh   scores and weights of attention                 (R, B, heads, T, T)
v        v          values                                               (R, B, heads, T, d / heads)

x <- x + W_O concat_heads(A Norm(x) W_V^T), then x <- x + W_2 gelu(W_1 Norm(x)); logits = x W_U^T.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from derived.lab.nets import Draws, layer_norm, linear, merge_heads, split_heads

VOCABULARY, WIDTH, HEADS = 7, 12, 2
SHAPES = {
    "W_E": (WIDTH, VOCABULARY),
    **{name: (WIDTH, WIDTH) for name in ("W_Q", "W_K", "W_V", "W_O")},
    "W_1": (4 * WIDTH, WIDTH),
    "W_2": (WIDTH, 4 * WIDTH),
    "W_U": (VOCABULARY, WIDTH),
}


class Plain(nn.Module):
    """Embedding, one block, logits; how it is trained, how it writes, and what becomes of R networks of it."""

    def __init__(self, draws: Draws) -> None:
        super().__init__()
        for name, shape in SHAPES.items():
            setattr(self, name, draws.matrix(name, *shape))
        self.more_weights(draws)

    def more_weights(self, draws: Draws) -> None:
        """Weights beside those of SHAPES: none."""

    def embed(self, ids: Int[Tensor, "B T"]) -> Tensor:
        """A vector for each token."""
        one_hot = functional.one_hot(ids, VOCABULARY).to(self.W_E)
        return linear(one_hot.expand(len(self.W_E), *one_hot.shape), self.W_E)

    def norm(self, x: Tensor) -> Tensor:
        """In front of attention and MLP."""
        return layer_norm(x)

    def scores(self, x: Tensor) -> Tensor:
        """How much a token asks of each."""
        q, k = (split_heads(linear(x, W), HEADS) for W in (self.W_Q, self.W_K))
        return q @ k.mT / math.sqrt(q.shape[-1])

    def rows(self, scores: Tensor) -> Tensor:
        """Scores as weights that sum to one, of tokens that are already there."""
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        return scores.masked_fill(future, -math.inf).softmax(dim=-1)

    def weigh(self, x: Tensor) -> Tensor:
        """The weights of attention."""
        return self.rows(self.scores(x))

    def mix(self, x: Tensor, v: Tensor) -> Tensor:
        """What each token reads of the values."""
        return self.weigh(x) @ v

    def attention(self, x: Tensor) -> Tensor:
        """What attention adds to the stream."""
        v = split_heads(linear(x, self.W_V), HEADS)
        return linear(merge_heads(self.mix(x, v)), self.W_O)

    def mlp(self, x: Tensor) -> Tensor:
        """What the MLP adds to the stream."""
        keys = functional.gelu(linear(x, self.W_1))
        return linear(keys, self.W_2)

    def add(self, x: Tensor, change: Tensor) -> Tensor:
        """The stream after a change."""
        return x + change

    def block(self, x: Tensor) -> Tensor:
        """Attention, then the MLP."""
        x = self.add(x, self.attention(self.norm(x)))
        return self.add(x, self.mlp(self.norm(x)))

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "R B T V"]:
        """Logits of the next token."""
        return linear(self.block(self.embed(ids)), self.W_U)

    def loss(self, logits: Float[Tensor, "R B T V"], following: Int[Tensor, "B T"]) -> Tensor:
        """What training lowers, one number a network, (R,)."""
        chosen = functional.one_hot(following, VOCABULARY)
        return -(chosen * logits.log_softmax(dim=-1)).sum(dim=-1).flatten(1).mean(dim=-1)

    def emit(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "R B V"]:
        """The law of the token that is written next."""
        return self(ids)[..., -1, :].softmax(dim=-1)

    def breed(self, losses: Tensor, generator: torch.Generator) -> Tensor:
        """The parent of each network of the next generation, (R,): itself."""
        return torch.arange(len(losses))
