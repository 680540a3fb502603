"""Vision transformers of our own: the embedding of ViT-Base at initialisation, and a small one that trains.

symbol          name           meaning                                                     axes
R               num_networks   independent networks, one batch                              leading axis of every weight
h^b             states         residual stream, tokens in reading order (class token first) (R, images, n, d)
alpha, g, b     Norm           learnable normaliser: g Norm(x) + b; alpha learnable for tanh (DyT) and erf (Derf)
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from derived.lab.checks import check_choice, check_count, check_dtype
from derived.lab.nets import linear, normal

from .checks import check_states
from .transformer import (
    NORMS,
    BlockWeights,
    NormKind,
    Sigmas,
    attend,
    checked_alpha,
    checked_sigmas,
    draw_block,
    feed_forward,
    normalise,
)


def patches(images: Float[Tensor, "num channel size size"], patch: int) -> Float[Tensor, "num tokens features"]:
    """Non-overlapping patches in reading order, each flattened channel first: (num, (size/patch)^2, channel patch^2).

    Raises ValueError unless ``patch`` divides both sides.
    """
    check_count("patch", patch)
    if images.ndim != 4 or images.shape[-1] % patch or images.shape[-2] % patch:
        raise ValueError(
            f"images {tuple(images.shape)}, patch = {patch}; give (num, channel, size, size), patch | size"
        )
    rows = images.unfold(2, patch, patch).unfold(3, patch, patch)  # (num, channel, i, j, patch, patch)
    return rows.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def embed(
    images: Float[Tensor, "num channel size size"],
    *,
    width: int = 768,
    patch: int = 16,
    num_networks: int = 1,
    class_token: bool = True,
    generator: torch.Generator,
) -> Float[Tensor, "R num n width"]:
    """h^0 of R freshly initialised vision transformers: patch embedding, class token, positional embedding.

    As timm draws them: patch weights and biases uniform in +-1/sqrt(fan in), positions N(0, 0.02^2), class token
    N(0, 1e-12). Drawn on the generator's device, returned on the images'. [repo: timm through the author's code]
    """
    for name, count in (("width", width), ("num_networks", num_networks)):
        check_count(name, count)
    check_states("images", images)
    flat = patches(images, patch)
    tokens, fan_in = flat.shape[1:]
    where = {"generator": generator, "device": generator.device, "dtype": images.dtype}
    reach = 1 / math.sqrt(fan_in)
    W = (torch.rand(num_networks, fan_in, width, **where) * 2 - 1) * reach
    bias = (torch.rand(num_networks, 1, 1, width, **where) * 2 - 1) * reach
    positions = 0.02 * torch.randn(num_networks, 1, tokens + class_token, width, **where)
    first = 1e-6 * torch.randn(num_networks, 1, 1, width, **where)
    W, bias, positions, first = (t.to(images.device) for t in (W, bias, positions, first))
    h = torch.einsum("ntf,rfd->rntd", flat, W) + bias
    if class_token:
        h = torch.cat([first.expand(-1, h.shape[1], -1, -1), h], dim=2)
    return h + positions


class Norm(nn.Module):
    """g Norm(x) + b for R networks: LayerNorm, or tanh(alpha x), erf(alpha x) with a learnable alpha. [prior]"""

    def __init__(self, norm: NormKind, alpha: Tensor, width: int, num_networks: int):
        super().__init__()
        self.norm = norm
        self.gain = nn.Parameter(torch.ones(num_networks, width, dtype=alpha.dtype, device=alpha.device))
        self.bias = nn.Parameter(torch.zeros(num_networks, width, dtype=alpha.dtype, device=alpha.device))
        self.alpha = nn.Parameter(alpha.expand(num_networks).clone()) if norm != "layernorm" else None

    def forward(self, x: Float[Tensor, "R *batch d"]) -> Float[Tensor, "R *batch d"]:
        """The normalised stream."""
        ones = [1] * (x.ndim - 2)
        alpha = 1.0 if self.alpha is None else self.alpha.view(-1, *ones, 1)
        return self.gain.view(len(x), *ones, -1) * normalise(x, self.norm, alpha) + self.bias.view(len(x), *ones, -1)


class Block(nn.Module):
    """One trainable block: attention, then the MLP, each after its own normaliser."""

    def __init__(self, weights: BlockWeights, norms: tuple[Norm, Norm], num_heads: int):
        super().__init__()
        self.weights = nn.ParameterList(weights)
        self.norms = nn.ModuleList(norms)
        self.num_heads = num_heads

    def forward(self, x: Float[Tensor, "R images n d"]) -> Float[Tensor, "R images n d"]:
        """The stream after the block."""
        weights = BlockWeights(*self.weights)
        x = x + attend(self.norms[0](x), weights, self.num_heads)
        return x + feed_forward(self.norms[1](x), weights)


class VisionTransformer(nn.Module):
    """R small vision transformers that train side by side: global average pooling, a normaliser, a linear head.

    Initialised as ``RandomTransformer`` (sigmas; the head and the patch embedding of variance 1/fan in, positions
    0.02). ``alpha`` is a number or one per network; ``last_norm`` is ``norm`` if not given. No bias but the normalisers' and the head's. [repo; no class token,
    ReLU]
    """

    def __init__(
        self,
        *,
        image_size: int = 64,
        patch: int = 8,
        channels: int = 3,
        width: int = 192,
        depth: int = 12,
        num_heads: int = 3,
        num_classes: int = 100,
        norm: NormKind = "erf",
        alpha: float | Sequence[float] | Tensor = 0.5,
        last_norm: NormKind | None = None,
        sigmas: Sigmas | None = None,
        num_networks: int = 1,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ):
        super().__init__()
        for kind in (norm, last_norm or norm):
            check_choice("norm", kind, NORMS)
        check_dtype(dtype)
        for name, count in (("width", width), ("depth", depth), ("num_heads", num_heads), ("patch", patch)):
            check_count(name, count)
        check_count("num_networks", num_networks)
        check_count("num_classes", num_classes, 2)
        if image_size % patch or width % num_heads:
            raise ValueError(
                f"patch = {patch} must divide image_size = {image_size}, num_heads = {num_heads} width = {width}"
            )
        alpha = checked_alpha(alpha, num_networks, dtype, device)
        sigmas = checked_sigmas(sigmas)
        self.patch, self.tokens, features = patch, (image_size // patch) ** 2, channels * patch**2

        where = {"generator": generator, "dtype": dtype, "device": device}
        self.embedding = nn.Parameter(normal(num_networks, width, features, std=features**-0.5, **where))
        self.positions = nn.Parameter(normal(num_networks, self.tokens, width, std=0.02, **where))
        self.head = nn.Parameter(normal(num_networks, num_classes, width, std=width**-0.5, **where))
        self.head_bias = nn.Parameter(torch.zeros(num_networks, 1, num_classes, dtype=dtype, device=device))
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            weights = draw_block(width, 4, sigmas, num_networks, generator, dtype, device)
            norms = tuple(Norm(norm, alpha, width, num_networks) for _ in range(2))
            self.blocks.append(Block(weights, norms, num_heads))
        self.last_norm = Norm(last_norm or norm, alpha, width, num_networks)

    def states(self, images: Float[Tensor, "*R num channel size size"]) -> list[Tensor]:
        """[h^0, ..., h^depth], each (R, num, n, d); every network sees the same images, or its own, (R, num, ...)."""
        check_states("images", images, self.embedding.dtype)
        flat = patches(images.flatten(0, -4), self.patch).unflatten(0, images.shape[:-3])
        flat = flat.expand(len(self.embedding), *flat.shape[-3:])
        x = linear(flat, self.embedding) + self.positions.unsqueeze(1)
        states = [x]
        for block in self.blocks:
            states.append(block(states[-1]))
        return states

    def read_out(self, h: Float[Tensor, "R num n d"]) -> Float[Tensor, "R num classes"]:
        """Logits from h^depth: the mean over tokens, the last normaliser, the head."""
        return self.last_norm(h.mean(dim=-2)) @ self.head.mT + self.head_bias

    def forward(self, images: Float[Tensor, "*R num channel size size"]) -> Float[Tensor, "R num classes"]:
        """Logits of every network."""
        return self.read_out(self.states(images)[-1])
