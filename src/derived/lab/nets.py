"""Layers of small networks, R of them side by side: every weight and every state has the networks in front.

symbol   name          meaning                                                  axes
R        num_networks  independent networks in one batch                        leading axis
x        x             states                                                   (R, *batch, features)
W        W             a weight; row o is what output o reads                   (R, out, in)
H        heads         heads of width features / H, in front of the tokens      (R, *batch, H, T, features / H)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from derived.lab.checks import check_count
from derived.lab.rng import stream


def linear(x: Float[Tensor, "R *batch i"], W: Float[Tensor, "R o i"]) -> Float[Tensor, "R *batch o"]:
    """x W^T per network: one batched product whatever axes stand between (at least one).

    >>> linear(torch.ones(2, 5, 3), torch.ones(2, 4, 3)).shape
    torch.Size([2, 5, 4])
    """
    return torch.bmm(x.flatten(1, -2), W.mT).unflatten(1, x.shape[1:-1])


def split_heads(x: Float[Tensor, "*batch T features"], heads: int) -> Float[Tensor, "*batch heads T d_head"]:
    """Features as heads, in front of the tokens; RuntimeError where ``heads`` does not divide the features.

    >>> split_heads(torch.arange(8.0).view(1, 2, 4), 2)[0, 1]
    tensor([[2., 3.],
            [6., 7.]])
    """
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


def merge_heads(x: Float[Tensor, "*batch heads T d_head"]) -> Float[Tensor, "*batch T features"]:
    """The inverse of ``split_heads``.

    >>> merge_heads(split_heads(torch.arange(8.0).view(1, 2, 4), 2))[0, 1]
    tensor([4., 5., 6., 7.])
    """
    return x.transpose(-2, -3).flatten(-2)


def layer_norm(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """(x - mean) / sqrt(variance + 1e-5) over the last axis, as torch has it, without an affine part.

    >>> layer_norm(torch.tensor([1.0, 3.0]))
    tensor([-1.0000,  1.0000])
    """
    return functional.layer_norm(x, x.shape[-1:])


def normal(
    *shape: int, std: float, generator: torch.Generator, dtype: torch.dtype, device: torch.device | str = "cpu"
) -> Tensor:
    """i.i.d. N(0, std^2) of this shape, drawn where the generator lives, then moved.

    >>> normal(2, 3, std=0.1, generator=stream(0, "init"), dtype=torch.float64).shape
    torch.Size([2, 3])
    """
    return torch.randn(*shape, generator=generator, dtype=dtype, device=generator.device).mul_(std).to(device)


@dataclass(frozen=True, kw_only=True)
class Draws:
    """Where the initial weights of a layer come from: by name and network, in float64 on the CPU, then moved.

    Weight ``name`` of network r comes from stream(seed, "weights", layer, name, r): layers of different kinds with one
    seed share every weight that they both have, and a network does not depend on how many stand beside it. ValueError
    for num_networks < 1.

    >>> two, three = Draws(num_networks=2).matrix("W", 4, 5), Draws(num_networks=3).matrix("W", 4, 5)
    >>> torch.equal(two, three[:2])
    True
    """

    num_networks: int = 1
    seed: int = 0
    layer: str = "attention"
    dtype: torch.dtype = torch.float32
    device: torch.device | str = "cpu"

    def __post_init__(self):
        check_count("num_networks", self.num_networks)

    def normal(self, name: str, *shape: int, std: float) -> Tensor:
        """i.i.d. N(0, std^2), (R, *shape)."""
        generators = (stream(self.seed, "weights", self.layer, name, r) for r in range(self.num_networks))
        each = [normal(*shape, std=std, generator=generator, dtype=torch.float64) for generator in generators]
        return torch.stack(each).to(self.device, self.dtype)

    def matrix(self, name: str, rows: int, columns: int) -> nn.Parameter:
        """A weight (R, rows, columns) of variance 1 / columns."""
        return nn.Parameter(self.normal(name, rows, columns, std=columns**-0.5))

    def full(self, value: Tensor) -> nn.Parameter:
        """The same start for every network: (R, *value.shape)."""
        return nn.Parameter(value.to(self.device, self.dtype).repeat(self.num_networks, *[1] * value.ndim))
