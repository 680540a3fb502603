"""A plain random transformer, R independent networks in one batch, and the tokens that the theory is exact for.

symbol         name         meaning                                                      axes
R              num_networks independent weight draws                                     leading axis of everything
h              x, states    residual stream                                              (R, *batch, n, d)
Norm           Norm         LayerNorm without affine part, or x -> tanh(alpha x), erf(alpha x)
W_Q .. W_2     BlockWeights i.i.d. N(0, sigma^2 / d_in), fresh in each block, no biases  (R, out, in)
H              num_heads    heads of width d / H, no mask

h <- h + W_O concat_heads(A Norm(h) W_V^T), A = softmax((Norm(h) W_Q^T)(Norm(h) W_K^T)^T / sqrt(d / H)),
h <- h + W_2 relu(W_1 Norm(h)).
"""

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_choice, check_count, check_dtype
from derived.lab.nets import linear, merge_heads, normal, split_heads

from .checks import check_moments, check_states

NormKind = Literal["layernorm", "tanh", "erf"]
NORMS = ("layernorm", "tanh", "erf")


class BlockWeights(NamedTuple):
    """The weights of one block for R networks."""

    W_Q: Tensor  # (R, d, d)
    W_K: Tensor  # (R, d, d)
    W_V: Tensor  # (R, d, d)
    W_O: Tensor  # (R, d, d)
    W_1: Tensor  # (R, mlp_ratio d, d)
    W_2: Tensor  # (R, d, mlp_ratio d)


class Sigmas(NamedTuple):
    """Standard deviations times sqrt(d_in) of the six weights; the default is timm's 0.02 at d = 768. [repo]

    Only a = (sigma_O sigma_V)^2, s = (sigma_2 sigma_1)^2 and sigma_Q sigma_K enter the theory.

    >>> Sigmas(v=1.0, o=2.0, one=1.0, two=0.5).a, Sigmas(v=1.0, o=2.0, one=1.0, two=0.5).s
    (4.0, 0.25)
    """

    q: float = 0.02 * math.sqrt(768)
    k: float = 0.02 * math.sqrt(768)
    v: float = 0.02 * math.sqrt(768)
    o: float = 0.02 * math.sqrt(768)
    one: float = 0.02 * math.sqrt(768)
    two: float = 0.02 * math.sqrt(4 * 768)

    @property
    def a(self) -> float:
        """(sigma_O sigma_V)^2."""
        return (self.o * self.v) ** 2

    @property
    def s(self) -> float:
        """(sigma_2 sigma_1)^2."""
        return (self.two * self.one) ** 2

    def scaled(self, attn_mult: float) -> "Sigmas":
        """W_V, W_O multiplied by attn_mult, and so a by its fourth power. [repo]"""
        return self._replace(v=self.v * attn_mult, o=self.o * attn_mult)


def normalise(x: Tensor, norm: NormKind, alpha: Tensor | float = 1.0) -> Tensor:
    """LayerNorm over the last axis without affine part, or tanh(alpha x), erf(alpha x).

    Raises ValueError for LayerNorm of a token whose features are all equal up to rounding, or not all finite.
    """
    if norm == "layernorm":
        centred = x - x.mean(dim=-1, keepdim=True)
        square, rounding = centred.square().mean(dim=-1, keepdim=True), 16 * torch.finfo(x.dtype).eps
        if not bool((square > rounding**2 * x.square().mean(dim=-1, keepdim=True)).all()):
            raise ValueError("LayerNorm of a token whose features are all equal, or not finite; give tokens that vary")
        return centred * torch.rsqrt(square)
    return torch.tanh(alpha * x) if norm == "tanh" else torch.erf(alpha * x)


def attention_weights(x: Tensor, weights: BlockWeights, num_heads: int) -> Float[Tensor, "R *batch heads n n"]:
    """A = softmax(Q K^T / sqrt(d / H)) of normalised tokens x (R, *batch, n, d)."""
    q, k = (split_heads(linear(x, W), num_heads) for W in (weights.W_Q, weights.W_K))
    return torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)


def attend(normed: Float[Tensor, "R *batch n d"], weights: BlockWeights, num_heads: int) -> Tensor:
    """W_O concat_heads(A Norm(h) W_V^T), what attention adds to the stream."""
    values = split_heads(linear(normed, weights.W_V), num_heads)
    mixed = attention_weights(normed, weights, num_heads) @ values
    return linear(merge_heads(mixed), weights.W_O)


def feed_forward(normed: Float[Tensor, "R *batch n d"], weights: BlockWeights) -> Tensor:
    """W_2 relu(W_1 Norm(h)), what the MLP adds to the stream."""
    return linear(torch.relu(linear(normed, weights.W_1)), weights.W_2)


def checked_alpha(alpha: float | Sequence[float] | Tensor, num_networks: int, dtype, device) -> Tensor:
    """``alpha`` as a tensor, () or (R,); raises ValueError unless it is finite, positive and one number or R."""
    alpha = torch.as_tensor(alpha, dtype=dtype, device=device)
    of_shape = alpha.ndim == 0 or tuple(alpha.shape) == (num_networks,)
    if not (of_shape and bool((alpha > 0).all()) and bool(alpha.isfinite().all())):
        raise ValueError(f"alpha = {alpha}; give one finite number > 0, or one per network ({num_networks})")
    return alpha


def checked_sigmas(sigmas: Sigmas | None) -> Sigmas:
    """``sigmas``, or timm's; raises ValueError unless all are finite and not negative."""
    sigmas = Sigmas() if sigmas is None else sigmas
    if not all(0 <= sigma < math.inf for sigma in sigmas):
        raise ValueError(f"{sigmas}; give standard deviations that are finite and not negative")
    return sigmas


def draw_block(
    width: int,
    mlp_ratio: int,
    sigmas: Sigmas,
    num_networks: int,
    generator: torch.Generator,
    dtype: torch.dtype,
    device: torch.device | str,
) -> BlockWeights:
    """Fresh weights of one block, N(0, sigma^2 / d_in), drawn on the generator's device, then moved."""
    wide = mlp_ratio * width
    shapes = [(width, width)] * 4 + [(wide, width), (width, wide)]
    where = {"generator": generator, "dtype": dtype, "device": device}
    return BlockWeights(
        *(
            normal(num_networks, *shape, std=sigma / math.sqrt(shape[1]), **where)
            for shape, sigma in zip(shapes, sigmas, strict=True)
        )
    )


class RandomTransformer:
    """R random transformers of the paper's architecture, evaluated in one batch; weights carry no gradient. [repo]

    In each block h <- h + W_O concat_heads(A Norm(h) W_V^T), then h <- h + W_2 relu(W_1 Norm(h)). ``alpha`` is a
    number or one per network, (R,). ``weights[b]`` are the ``BlockWeights`` of block b, drawn on the generator's
    device, then moved. Takes and returns the stream (R, *batch, n, d). Raises ValueError for sizes < 1, an unknown
    norm, heads that do not divide the width, an alpha or deviations out of range, and tokens that LayerNorm cannot scale.

    >>> model = RandomTransformer(width=8, depth=2, norm="erf", num_networks=3, generator=torch.Generator())
    >>> model(torch.zeros(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    def __init__(
        self,
        *,
        width: int,
        depth: int,
        norm: NormKind,
        alpha: float | Sequence[float] | Tensor = 1.0,
        sigmas: Sigmas | None = None,
        num_heads: int = 1,
        mlp_ratio: int = 4,
        num_networks: int = 1,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ):
        check_choice("norm", norm, NORMS)
        check_dtype(dtype)
        for name, count in (("width", width), ("depth", depth), ("num_heads", num_heads), ("mlp_ratio", mlp_ratio)):
            check_count(name, count)
        check_count("num_networks", num_networks)
        if width % num_heads:
            raise ValueError(f"num_heads = {num_heads} does not divide width = {width}; give a divisor")
        alpha = checked_alpha(alpha, num_networks, dtype, device)
        self.sigmas = checked_sigmas(sigmas)
        self.width, self.depth, self.num_heads, self.num_networks = width, depth, num_heads, num_networks
        self.norm, self.alpha, self.dtype, self.device = norm, alpha, dtype, torch.device(device)
        self.weights = [
            draw_block(width, mlp_ratio, self.sigmas, num_networks, generator, dtype, device) for _ in range(depth)
        ]

    def normalise(self, x: Float[Tensor, "R *batch n d"]) -> Float[Tensor, "R *batch n d"]:
        """The normaliser in front of each sublayer."""
        alpha = self.alpha.view(-1, *[1] * (x.ndim - 1)) if self.alpha.ndim else self.alpha
        return normalise(x, self.norm, alpha)

    def attend(self, x: Float[Tensor, "R *batch n d"], b: int) -> Float[Tensor, "R *batch n d"]:
        """The attention sublayer of block b with its residual."""
        return x + attend(self.normalise(x), self.weights[b], self.num_heads)

    def block(self, x: Float[Tensor, "R *batch n d"], b: int) -> Float[Tensor, "R *batch n d"]:
        """Block b: attention, then the MLP."""
        x = self.attend(x, b)
        return x + feed_forward(self.normalise(x), self.weights[b])

    def states(self, x: Float[Tensor, "R *batch n d"]) -> list[Tensor]:
        """[h^0, ..., h^depth] from h^0 = x; the list that the estimators of ``jacobian`` take.

        Raises ValueError unless x is (R, *batch, n, d) with this model's R, d and dtype.
        """
        check_states("x", x, self.dtype)
        if x.ndim < 3 or x.shape[0] != self.num_networks or x.shape[-1] != self.width:
            raise ValueError(
                f"x has shape {tuple(x.shape)}; give (R, *batch, n, d) with R = {self.num_networks}, d = {self.width}"
            )
        states = [x]
        for b in range(self.depth):
            states.append(self.block(states[-1], b))
        return states

    def __call__(self, x: Float[Tensor, "R *batch n d"]) -> Float[Tensor, "R *batch n d"]:
        """h^depth."""
        return self.states(x)[-1]


def equiangular_tokens(
    n: int,
    d: int,
    q: float,
    p: float,
    *,
    batch: tuple[int, ...] = (),
    generator: torch.Generator,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> Float[Tensor, "*batch n d"]:
    """n tokens with |h_a|^2 / d = q and h_a . h_c / d = p exactly, in a Haar-random frame: (*batch, n, d).

    h = sqrt(d) G^{1/2} Q, G = (q - p) I + p 11^T, the rows of Q orthonormal and uniform, so that every coordinate looks
    like N(0, G); without the rotation an elementwise map would see a few huge coordinates. p from -q/(n-1) to q.
    Raises ValueError for n < 2, d < n or a G that is no covariance. [repo]

    >>> h = equiangular_tokens(3, 8, 1.0, 0.2, generator=torch.Generator(), dtype=torch.float64)
    >>> (h @ h.mT / 8).round(decimals=6)[0]
    tensor([1.0000, 0.2000, 0.2000], dtype=torch.float64)
    """
    check_count("n", n, 2)
    check_count("d", d)
    if d < n:
        raise ValueError(f"d = {d} < n = {n}: n tokens with a given Gram matrix need d >= n")
    check_moments(q, p, n)
    check_dtype(dtype)
    normal = torch.randn(*batch, d, n, generator=generator, dtype=torch.float64, device=generator.device)
    frame, upper = torch.linalg.qr(normal)
    frame = (frame * upper.diagonal(dim1=-2, dim2=-1).sign().unsqueeze(-2)).mT  # the signs make it Haar
    # G^{1/2} has the eigenvalue sqrt(q - p) across the common direction 1/sqrt(n), and sqrt(q + (n-1) p) along it.
    across, along = math.sqrt(max(d * (q - p), 0.0)), math.sqrt(max(d * (q + (n - 1) * p), 0.0))
    centre = frame.mean(dim=-2, keepdim=True)
    return (across * (frame - centre) + along * centre).to(device, dtype)


def token_moments(h: Float[Tensor, "*batch n d"]) -> tuple[Tensor, Tensor, Tensor]:
    """q = mean_a |h_a|^2 / d, p = mean_{a != c} h_a . h_c / d, and the standard deviation of p over pairs: (*batch).

    Summed in float64. Raises ValueError for n < 2. [repo: statistics on data; the spread ours]

    >>> [moment.item() for moment in token_moments(torch.tensor([[2.0, 0.0], [1.0, 1.0]]))]
    [1.5, 1.0, 0.0]
    """
    n, d = h.shape[-2:]
    check_count("n", n, 2)
    gram = h.double() @ h.double().mT / d
    off = ~torch.eye(n, dtype=torch.bool, device=h.device)
    pairs = gram[..., off]
    return gram.diagonal(dim1=-2, dim2=-1).mean(dim=-1), pairs.mean(dim=-1), pairs.std(dim=-1, correction=0)
