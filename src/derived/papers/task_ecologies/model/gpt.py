"""The microgpt architecture, K models side by side: every weight has the models in front.

symbol   name       meaning                                                            axes
K        K          independent models                                                 leading axis
x        x          residual stream                                                    (K, B, T, d)
y        ids        tokens: the same for all models, or each model's own               (B, T) or (K, B, T)
theta    weights    token, position and output embeddings; qkv, out, up, down a block  (K, out, in)

x = norm(token + position); then per block x + attention(norm(x)) and x + MLP(norm(x)), the MLP four times as wide and
rectified; logits = x W_out. Root-mean-square norms without gains, no biases, no norm at the end, all weights
N(0, init_std^2) at the start. (Karpathy's microgpt, 2026, as the paper uses it.)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, embedding, rms_norm, scaled_dot_product_attention

from derived.lab.checks import check_count, check_within
from derived.lab.nets import Draws, linear

EPS = 1e-5  # of the norms


@dataclass(frozen=True, kw_only=True)
class GPTSize:
    """The shape of one model; the defaults are the paper's. ValueError where ``heads`` does not divide ``width``.

    >>> MicroGPT(GPTSize(vocabulary=4, width=8, depth=1, heads=2, block=16), Draws(num_networks=3)).size.width
    8
    """

    vocabulary: int = 27
    width: int = 32
    depth: int = 2  # 0: the last token alone is read
    heads: int = 4
    block: int = 32  # the longest text
    init_std: float = 0.08

    def __post_init__(self) -> None:
        for name in ("vocabulary", "width", "heads", "block"):
            check_count(name, getattr(self, name))
        check_count("depth", self.depth, least=0)
        if self.width % self.heads:
            raise ValueError(f"width = {self.width} and heads = {self.heads}; give a width that the heads divide")


class MicroGPT(nn.Module):
    """K microgpt models of one size; next-token logits (K, B, T, V).

    Weight ``name`` of model r depends on the seed, the name and r alone, not on the number of models.

    >>> model = MicroGPT(GPTSize(), Draws(num_networks=3))
    >>> model(torch.zeros(2, 5, dtype=torch.long)).shape
    torch.Size([3, 2, 5, 27])
    >>> sum(weight[0].numel() for weight in model.parameters())  # of one model, as in the paper
    27328
    """

    def __init__(self, size: GPTSize, draws: Draws) -> None:
        super().__init__()
        self.size, self.K, d = size, draws.num_networks, size.width
        shapes = {"token": (size.vocabulary, d), "position": (size.block, d), "output": (size.vocabulary, d)}
        for i in range(size.depth):
            shapes |= {f"qkv{i}": (3 * d, d), f"out{i}": (d, d), f"up{i}": (4 * d, d), f"down{i}": (d, 4 * d)}
        drawn = {name: draws.normal(name, *shape, std=size.init_std) for name, shape in shapes.items()}
        self.weights = nn.ParameterDict({name: nn.Parameter(each) for name, each in drawn.items()})

    def forward(self, ids: Int[Tensor, "*models B T"]) -> Float[Tensor, "K B T V"]:
        """Logits after each token of each text. ValueError for texts longer than the block, of other shapes or letters."""
        return linear(self.states(ids), self.weights["output"])

    def states(self, ids: Int[Tensor, "*models B T"]) -> Float[Tensor, "K B T d"]:
        """The last hidden state at each token, which the output matrix reads."""
        x = _norm(self._embedded(ids))
        for i in range(self.size.depth):
            x = x + self._attention(i, _norm(x))
            x = x + self._mlp(i, _norm(x))
        return x

    def _embedded(self, ids: Tensor) -> Tensor:
        length, most = ids.shape[-1], self.size.block
        if ids.ndim not in (2, 3) or (ids.ndim == 3 and len(ids) != self.K) or length > most:
            raise ValueError(f"ids {tuple(ids.shape)}; give (B, T) or ({self.K}, B, T) with T <= {most}")
        check_within("ids", ids, 0, self.size.vocabulary - 1)  # beyond, they would be rows of another model
        own = ids.expand(self.K, *ids.shape[-2:])
        first = self.size.vocabulary * torch.arange(self.K, device=ids.device)
        token = embedding(own + first[:, None, None], self.weights["token"].flatten(0, 1))
        return token + self.weights["position"][:, None, :length]

    def _attention(self, i: int, x: Tensor) -> Tensor:
        # (K, B, T, 3d) -> three of (K B, heads, T, d / heads): one batch, so that the fused kernel takes it
        parts = linear(x, self.weights[f"qkv{i}"]).flatten(0, 1).unflatten(-1, (3, self.size.heads, -1))
        q, k, v = parts.movedim(2, 0).transpose(-2, -3)
        mixed = scaled_dot_product_attention(q, k, v, is_causal=True)
        return linear(mixed.transpose(1, 2).reshape(x.shape), self.weights[f"out{i}"])

    def _mlp(self, i: int, x: Tensor) -> Tensor:
        return linear(linear(x, self.weights[f"up{i}"]).relu(), self.weights[f"down{i}"])


def _norm(x: Tensor) -> Tensor:
    return rms_norm(x, x.shape[-1:], eps=EPS)


def text_losses(logits: Float[Tensor, "K B T V"], following: Int[Tensor, "*models B T"]) -> Float[Tensor, "K B T"]:
    """-ln softmax(logits)[next token] of each model at each place.

    >>> text_losses(torch.zeros(1, 1, 2, 4), torch.tensor([[0, 3]]))
    tensor([[[1.3863, 1.3863]]])
    """
    labels = following.expand(logits.shape[:-1])
    return cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none").view(labels.shape)


def mean_divergence(laws: Float[Tensor, "*batch n V"]) -> Float[Tensor, "*batch n n"]:
    """Jensen-Shannon divergence of equal weights between every two of n distributions, in nats, as KL to the mean."""
    first, second = laws.unsqueeze(-2), laws.unsqueeze(-3)
    middle = (first + second) / 2
    half = lambda law: (torch.xlogy(law, law) - torch.xlogy(law, middle)).sum(dim=-1)  # noqa: E731
    return (0.5 * (half(first) + half(second))).clamp(min=0)


def behavioural_distance(averages: Float[Tensor, "*batch n lengths V"]) -> Float[Tensor, "*batch n n"]:
    """The mean over prefix lengths of the divergence of a model's average predictions on two languages."""
    return mean_divergence(averages.transpose(-2, -3)).mean(dim=-3)
