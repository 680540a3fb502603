"""Three causal encoders of token sequences, R networks side by side: attention, a state-space model, a convolution.

symbol   name      meaning                                                                axes
R        R         independent networks, in front of every weight                         leading axis
q        tokens    what the networks read                                                 (R, B, L) integer
h        h         hidden states after the last norm                                      (R, B, L, p)
u        u         what a mixer is given                                                  (R, B, L, p)
k        kernel    a causal filter per feature: tap j reads j tokens back                 (R, p, L)
a, w     decay, frequency   of the modes of the state-space model, exp((-a + i w) j)      (R, p, S)

Blocks: h + mixer(norm(h)), then h + MLP(norm(h)); layer norms without gains, learned positions.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import embedding, pad, relu, scaled_dot_product_attention, sigmoid, silu, softplus

from derived.lab.checks import check_count, check_within
from derived.lab.nets import Draws, layer_norm, linear, merge_heads, split_heads

STATES = 4  # modes per feature of the state-space model
SHORT = 3  # taps of the convolution's short filters


@dataclass(frozen=True, kw_only=True)
class Size:
    """The shape of an encoder and of the linear head on it. ValueError for counts below one, and for heads that do not
    divide the width.

    >>> Size(codes=64, outputs=1, length=32).width
    32
    """

    codes: int
    outputs: int
    length: int
    width: int = 32
    depth: int = 2
    heads: int = 2  # of attention

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            check_count(name, value)
        if self.width % self.heads:
            raise ValueError(f"heads = {self.heads} do not divide width = {self.width}; give a divisor")


class Encoder(nn.Module, ABC):
    """What the three share: R encoders with a linear head each; a subclass says how tokens are mixed.

    Weights of one name and seed are shared by all sizes and kinds that have them.
    """

    def __init__(self, size: Size, draws: Draws) -> None:
        super().__init__()
        self.size, p = size, size.width
        self.table = nn.Parameter(draws.normal("table", size.codes, p, std=1.0))
        self.positions = nn.Parameter(draws.normal("positions", size.length, p, std=0.1))
        self.readout = draws.matrix("readout", size.outputs, p)
        self.bias = draws.full(torch.zeros(size.outputs))
        layer = lambda i: Draws(**{**vars(draws), "layer": f"{draws.layer} {i}"})  # noqa: E731
        self.mixers = nn.ModuleList(nn.ParameterDict(self.mixer(layer(i))) for i in range(size.depth))
        self.mlps = nn.ModuleList(
            nn.ParameterDict({"up": layer(i).matrix("up", 4 * p, p), "down": layer(i).matrix("down", p, 4 * p)})
            for i in range(size.depth)
        )

    def embed(self, tokens: Int[Tensor, "R B L"]) -> Float[Tensor, "R B L p"]:
        """The tokens' own vectors, without positions: rows of each network's table."""
        R, K, p = self.table.shape
        check_within("tokens", tokens, 0, K - 1)  # beyond, they would be rows of another network
        first = K * torch.arange(R, device=tokens.device).view(R, 1, 1)
        return embedding(tokens + first, self.table.view(R * K, p))

    def forward(self, tokens: Int[Tensor, "R B L"]) -> Float[Tensor, "R B L p"]:
        """The hidden states, which the geometry is measured on."""
        return self.hidden(self.embed(tokens))

    def hidden(self, embedded: Float[Tensor, "R B L p"]) -> Float[Tensor, "R B L p"]:
        """The hidden states for given token vectors, such as those that a test perturbs."""
        h = embedded + self.positions[:, None, : embedded.shape[2]]
        for mixer, mlp in zip(self.mixers, self.mlps, strict=True):
            h = h + self.mix(mixer, layer_norm(h))
            h = h + linear(relu(linear(layer_norm(h), mlp["up"])), mlp["down"])
        return layer_norm(h)

    def head(self, h: Float[Tensor, "R B L p"]) -> Float[Tensor, "R B L outputs"]:
        """What the loss reads."""
        return linear(h, self.readout) + self.bias[:, None, None]

    @property
    def parameters_each(self) -> int:
        """Trained numbers of one network."""
        return sum(weight[0].numel() for weight in self.parameters())

    @abstractmethod
    def mixer(self, draws: Draws) -> dict[str, nn.Parameter]:
        """The weights of one mixer."""

    @abstractmethod
    def mix(self, weights: nn.ParameterDict, u: Float[Tensor, "R B L p"]) -> Float[Tensor, "R B L p"]:
        """What one mixer makes of the tokens."""


class CausalTransformer(Encoder):
    """R transformers whose tokens attend to themselves and to earlier ones.

    >>> model = CausalTransformer(Size(codes=8, outputs=1, length=6, width=4), Draws(num_networks=3))
    >>> h = model(torch.zeros(3, 5, 6, dtype=torch.long))
    >>> h.shape, model.head(h).shape
    (torch.Size([3, 5, 6, 4]), torch.Size([3, 5, 6, 1]))
    """

    def mixer(self, draws: Draws) -> dict[str, nn.Parameter]:
        p = self.size.width
        return {"qkv": draws.matrix("qkv", 3 * p, p), "out": draws.matrix("out", p, p)}

    def mix(self, weights, u):
        q, k, v = (split_heads(each, self.size.heads) for each in linear(u, weights["qkv"]).chunk(3, dim=-1))
        mixed = scaled_dot_product_attention(*(each.flatten(0, 1) for each in (q, k, v)), is_causal=True)
        return linear(merge_heads(mixed.unflatten(0, u.shape[:2])), weights["out"])


class StateSpace(Encoder):
    """R gated state-space models, diagonal and the same at all times, computed as the filters that they are.

    >>> StateSpace(Size(codes=8, outputs=2, length=6, width=4), Draws())(torch.zeros(1, 5, 6, dtype=torch.long)).shape
    torch.Size([1, 5, 6, 4])
    """

    def mixer(self, draws: Draws) -> dict[str, nn.Parameter]:
        p, wave = self.size.width, STATES**-0.5
        timescale = torch.logspace(0, 1, STATES, dtype=torch.float64)  # from one token to ten
        return {
            "in": draws.matrix("in", 2 * p, p),
            "decay": draws.full(timescale.reciprocal().expm1().log().repeat(p, 1)),
            "frequency": nn.Parameter(draws.normal("frequency", p, STATES, std=0.5)),
            "cosine": nn.Parameter(draws.normal("cosine", p, STATES, std=wave)),
            "sine": nn.Parameter(draws.normal("sine", p, STATES, std=wave)),
            "skip": draws.full(torch.ones(p)),
            "out": draws.matrix("out", p, p),
        }

    def mix(self, weights, u):
        value, gate = linear(u, weights["in"]).chunk(2, dim=-1)
        kernel = modes(softplus(weights["decay"]), weights["frequency"], weights["cosine"], weights["sine"], u.shape[2])
        mixed = causal_filter(value, kernel) + weights["skip"][:, None, None] * value
        return linear(mixed * silu(gate), weights["out"])


class CausalConvolution(Encoder):
    """R gated long convolutions of order two, after Hyena, with short filters before them.

    ``leak`` centres the short filters, as the author's code does: position t then reads token t + 1.

    >>> model = CausalConvolution(Size(codes=8, outputs=2, length=6, width=4), Draws(), leak=True)
    >>> model(torch.zeros(1, 5, 6, dtype=torch.long)).shape
    torch.Size([1, 5, 6, 4])
    """

    def __init__(self, size: Size, draws: Draws, leak: bool = False) -> None:
        self.leak = leak
        super().__init__(size, draws)

    def mixer(self, draws: Draws) -> dict[str, nn.Parameter]:
        p, L = self.size.width, self.size.length
        one = torch.eye(SHORT)[int(self.leak)].repeat(3 * p, 1)  # at the start: the token itself, and little else
        fading = torch.exp(-torch.arange(L) / 4)
        short, long = draws.normal("short", 3 * p, SHORT, std=0.2), draws.normal("long", p, L, std=1.0)
        return {
            "qkv": draws.matrix("qkv", 3 * p, p),
            "short": nn.Parameter(short + one.to(short)),
            "long": nn.Parameter(long * fading.to(long)),
            "out": draws.matrix("out", p, p),
        }

    def mix(self, weights, u):
        q, k, v = short_filter(linear(u, weights["qkv"]), weights["short"], self.leak).chunk(3, dim=-1)
        return linear(q * causal_filter(sigmoid(k) * v, weights["long"][..., : u.shape[2]]), weights["out"])


def modes(
    decay: Float[Tensor, "R p S"],
    frequency: Float[Tensor, "R p S"],
    cosine: Float[Tensor, "R p S"],
    sine: Float[Tensor, "R p S"],
    length: int,
) -> Float[Tensor, "R p L"]:
    """The filter of a diagonal state-space model: k_j = sum_s exp(-a_s j) (c_s cos(w_s j) + d_s sin(w_s j)).

    It is what the recurrence s_t = exp(-a + i w) s_{t-1} + u_t, y_t = sum Re((c - i d) s_t) answers to an impulse.
    """
    j = torch.arange(length, device=decay.device, dtype=decay.dtype)
    turn = frequency.unsqueeze(-1) * j
    waves = cosine.unsqueeze(-1) * turn.cos() + sine.unsqueeze(-1) * turn.sin()
    return ((-decay.unsqueeze(-1) * j).exp() * waves).sum(dim=-2)


def causal_filter(u: Float[Tensor, "R B L p"], kernel: Float[Tensor, "R p L"]) -> Float[Tensor, "R B L p"]:
    """y_t = sum_{j=0..t} k_j u_{t-j} per feature, as one product with the lower triangle that the taps fill.

    >>> causal_filter(torch.eye(3)[:1].view(1, 1, 3, 1), torch.tensor([[[3.0, 2.0, 1.0]]])).flatten()
    tensor([3., 2., 1.])
    """
    L = u.shape[2]
    back = torch.arange(L, device=u.device).unsqueeze(-1) - torch.arange(L, device=u.device)
    triangle = torch.where(back >= 0, kernel[..., back.clamp(min=0)], 0.0)  # (R, p, L, L)
    return torch.einsum("rpts,rbsp->rbtp", triangle, u)


def short_filter(
    u: Float[Tensor, "R B L p"], taps: Float[Tensor, "R p K"], leak: bool = False
) -> Float[Tensor, "R B L p"]:
    """A depthwise filter of a few taps, tap j reading j tokens back; with ``leak`` centred, so one token ahead."""
    K, L = taps.shape[-1], u.shape[2]
    ahead = (K - 1) // 2 if leak else 0
    padded = pad(u, (0, 0, K - 1 - ahead, ahead))
    return sum(taps[:, None, None, :, j] * padded[:, :, K - 1 - j : K - 1 - j + L] for j in range(K))
