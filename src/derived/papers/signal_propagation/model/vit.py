"""How a vision transformer embeds its pictures at initialisation, and small ones that train.

symbol          name           meaning                                                     axes
R               num_networks   independent networks, one batch                              leading axis of every weight
h^0             embed          residual stream, tokens in reading order                    (R, images, n, d)
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from derived.lab.checks import check_count
from derived.lab.nets import layer_norm, linear, normal

from .checks import check_states
from .transformer import BlockWeights, RandomTransformer


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
    generator: torch.Generator,
) -> Float[Tensor, "R num n width"]:
    """h^0 of R freshly initialised vision transformers: patch embedding and positions, no class token.

    As timm draws them: patch weights and biases uniform in +-1/sqrt(fan in), positions N(0, 0.02^2).
    Drawn on the generator's device, returned on the images'. [repo: timm through the author's code]
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
    positions = 0.02 * torch.randn(num_networks, 1, tokens, width, **where)
    W, bias, positions = (t.to(images.device) for t in (W, bias, positions))
    return torch.einsum("ntf,rfd->rntd", flat, W) + bias + positions


class Vision(nn.Module):
    """R small vision transformers of 16 patches and ten classes that train: ``blocks`` between an embedding and a head.

    Whatever normaliser the branches have, the head reads LayerNorm of the mean over tokens. Embedding and head have
    variance 1/fan in, positions 0.02^2. Takes patches (R, num, 16, features), returns logits (R, num, 10). [repo; no
    class token, ReLU, no biases, a fixed alpha and the common last normaliser ours]
    """

    def __init__(self, features: int, blocks: RandomTransformer, generator: torch.Generator):
        super().__init__()
        d, where = blocks.width, {"generator": generator, "dtype": blocks.dtype}
        shapes = {(d, features): features**-0.5, (1, 16, d): 0.02, (10, d): d**-0.5}
        drawn = (normal(blocks.num_networks, *shape, std=std, **where) for shape, std in shapes.items())
        self.blocks = blocks
        self.embedding, self.positions, self.head = map(nn.Parameter, drawn)
        blocks.weights = [BlockWeights(*map(nn.Parameter, block)) for block in blocks.weights]
        self.weights = nn.ParameterList(weight for block in blocks.weights for weight in block)

    def embed(self, patches: Float[Tensor, "R num n features"]) -> Float[Tensor, "R num n d"]:
        """h^0."""
        return linear(patches, self.embedding) + self.positions

    def forward(self, patches: Float[Tensor, "R num n features"]) -> Float[Tensor, "R num classes"]:
        """Logits."""
        return linear(layer_norm(self.blocks(self.embed(patches)).mean(dim=-2)), self.head)
