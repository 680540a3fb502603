"""Generated pictures read pixel by pixel, a stand-in for sequential CIFAR-10.

symbol    name       meaning                                                     axes
s         tokens     grey values 0 .. 255 in raster order                        (num, size^2)
y         labels     shape + 5 texture                                           (num,)

The pixel below another is ``size`` tokens away.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count

from .sequences import Sequences

SHAPES = ("disc", "square", "triangle", "cross", "ring")
TEXTURES = ("smooth", "striped")
GREYS = 256
NOISE = 0.15  # standard deviation of a pixel, contrast being .3 to 1


def shapes_sequence(
    num: int, size: int = 32, *, generator: torch.Generator, device: torch.device | str = "cpu"
) -> Sequences:
    """Grey pictures of one shape each, class = shape + 5 texture, as T = size^2 pixels in raster order, codes 0 .. 255.

    Random centre, rotation, half-width 4/32 to 7/32 of the side, contrast .3 to 1 of either sign, a linear gradient
    behind, noise of deviation .15. Drawn on the generator's device. A stand-in for sequential CIFAR-10. ValueError for
    num < 1 and size < 8. [ours]

    >>> drawn = shapes_sequence(3, size=8, generator=torch.Generator())
    >>> drawn.tokens.shape, int(drawn.tokens.min()) >= 0, int(drawn.tokens.max()) < GREYS
    (torch.Size([3, 64]), True, True)
    """
    check_count("num", num)
    check_count("size", size, 8)
    here = {"generator": generator, "device": generator.device}
    labels = torch.randint(len(SHAPES) * len(TEXTURES), (num,), **here)
    images = draw_shapes(labels, size, generator)
    codes = (images.clamp(0, 1) * (GREYS - 1)).round().long().flatten(1)
    return Sequences(codes, torch.full_like(labels, size**2), labels).to(device)


def draw_shapes(labels: Tensor, size: int, generator: torch.Generator) -> Float[Tensor, "num size size"]:
    """The pictures of given classes, not clipped."""

    def uniform(low: float, high: float) -> Tensor:
        draw = torch.rand(len(labels), 1, 1, generator=generator, device=generator.device)
        return low + (high - low) * draw

    half, angle = size * uniform(4 / 32, 7 / 32), uniform(0, 2 * math.pi)
    axis = torch.arange(size, device=generator.device) + 0.5
    row, column = axis.view(-1, 1) - size * uniform(0.3, 0.7), axis - size * uniform(0.3, 0.7)
    u = (torch.cos(angle) * column + torch.sin(angle) * row) / half
    v = (torch.cos(angle) * row - torch.sin(angle) * column) / half
    inside = torch.stack(inside_shapes(u, v))[labels % len(SHAPES), torch.arange(len(labels), device=labels.device)]
    stripes = torch.where(torch.sin(2 * math.pi * u) > 0, 1.0, 0.0)  # two periods across a shape
    texture = torch.where((labels >= len(SHAPES)).view(-1, 1, 1), stripes, 1.0)
    contrast = uniform(0.3, 1.0) * torch.where(uniform(0, 1) < 0.5, -1.0, 1.0)
    slope = (uniform(-0.2, 0.2) * row + uniform(-0.2, 0.2) * column) / size
    noise = torch.randn(len(labels), size, size, generator=generator, device=generator.device)
    return 0.5 + slope + 0.5 * contrast * inside.float() * texture + NOISE * noise


def inside_shapes(u: Tensor, v: Tensor) -> list[Tensor]:
    """Where (u, v), in units of the half-width, lies inside each of ``SHAPES``."""
    radius = torch.hypot(u, v)
    square = torch.maximum(u.abs(), v.abs()) <= 0.9
    triangle = (v >= -0.6) & (v + math.sqrt(3) * u.abs() <= 1.2)
    cross = (torch.minimum(u.abs(), v.abs()) <= 0.3) & (torch.maximum(u.abs(), v.abs()) <= 1)
    return [radius <= 1, square, triangle, cross, (radius <= 1) & (radius >= 0.55)]
