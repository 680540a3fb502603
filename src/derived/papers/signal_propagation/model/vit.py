"""How a vision transformer embeds its pictures at initialisation.

symbol          name           meaning                                                     axes
R               num_networks   independent networks, one batch                              leading axis of every weight
h^0             embed          residual stream, tokens in reading order                    (R, images, n, d)
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count

from .checks import check_states


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
