"""Generated data: coupling problems with their answer, pairs to be matched, and clouds of points on six surfaces.

symbol   name      meaning                                                         axes
x, y     x, y      positions of the tokens of two texts on [0, 1]                  (num, n)
a, b     a, b      their weights                                                   (num, n)
Gamma    target    the coupling to be learned                                      (num, n, n)
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from derived.lab.checks import check_choice, check_count

from ..model.couplings import comonotone, crossed
from ..model.plan import sinkhorn

SURFACES = ("sphere", "torus", "cube", "cylinder", "cone", "helix")
TARGETS = ("comonotone", "crossed", "hidden", "shuffled")


class Problem(NamedTuple):
    """Two weighted texts on the line and the relation between them."""

    x: Tensor
    y: Tensor
    a: Tensor
    b: Tensor
    target: Tensor


def random_weights(shape: tuple[int, ...], generator: torch.Generator, least: float = 0.0) -> Tensor:
    """Weights from the flat Dirichlet law, mixed with a share ``least`` of the uniform, float64.

    >>> random_weights((2, 3), torch.Generator().manual_seed(0)).sum(dim=-1)
    tensor([1., 1.], dtype=torch.float64)
    """
    drawn = -torch.rand(*shape, generator=generator, dtype=torch.float64).clamp(min=1e-12).log()
    return (1 - least) * drawn / drawn.sum(dim=-1, keepdim=True) + least / shape[-1]


def coupling_problems(relation: str, num: int, n: int, generator: torch.Generator) -> Problem:
    """``num`` pairs of texts of n tokens with flat Dirichlet weights, and one of four relations, float64.

    comonotone and crossed are exact; hidden is the entropic plan of the cost (1 - x - y)^2 at temperature 1/10, which a
    learner is not told; shuffled is comonotone with the tokens of the second text in an order of their own, so that
    nothing can be learned but the weights. ValueError for another name.

    >>> coupling_problems("crossed", 2, 5, torch.Generator().manual_seed(0)).target.sum(dim=(-2, -1))
    tensor([1., 1.], dtype=torch.float64)
    """
    check_choice("relation", relation, TARGETS)
    check_count("n", n)
    x, y = torch.rand(2, num, n, generator=generator, dtype=torch.float64)
    a, b = random_weights((2, num, n), generator)
    if relation == "hidden":
        cost = (1 - x.unsqueeze(-1) - y.unsqueeze(-2)) ** 2
        return Problem(x, y, a, b, sinkhorn(-10 * cost, a, b, tol=1e-7, omega=1.3).plan)
    if relation == "shuffled":
        places = torch.rand(num, n, generator=generator, dtype=torch.float64)
        return Problem(x, y, a, b, comonotone(x, places, a, b))
    return Problem(x, y, a, b, (crossed if relation == "crossed" else comonotone)(x, y, a, b))


def matching(
    num: int, pairs: int, generator: torch.Generator, classes: int = 4, noise: float = 0.2
) -> tuple[Tensor, Tensor]:
    """Texts of 2 * pairs tokens, and the class of each query's partner.

    A key stands in the plane, N(0, I), and carries a class; its query stands nearby, at N(key, noise^2 I), and carries
    none. Features: position (2), class (``classes``), whether it is a query. Returns features
    (num, 2 pairs, classes + 3) and labels (num, pairs) of the queries, which stand last.

    >>> features, labels = matching(3, 16, torch.Generator().manual_seed(0))
    >>> features.shape, labels.shape
    (torch.Size([3, 32, 7]), torch.Size([3, 16]))
    """
    keys = torch.randn(num, pairs, 2, generator=generator)
    queries = keys + noise * torch.randn(num, pairs, 2, generator=generator)
    labels = torch.randint(classes, (num, pairs), generator=generator)
    known = torch.nn.functional.one_hot(labels, classes).to(keys)
    first = torch.cat([keys, known, torch.zeros(num, pairs, 1)], dim=-1)
    second = torch.cat([queries, torch.zeros_like(known), torch.ones(num, pairs, 1)], dim=-1)
    return torch.cat([first, second], dim=1), labels


def clouds(num: int, points: int, generator: torch.Generator, noise: float = 0.02) -> tuple[Tensor, Tensor]:
    """Clouds of points on six surfaces, stretched, turned and noised: (num, points, 3), and which surface: (num, 1).

    >>> positions, labels = clouds(4, 10, torch.Generator().manual_seed(0))
    >>> positions.shape, labels.shape
    (torch.Size([4, 10, 3]), torch.Size([4, 1]))
    """
    u, w = torch.rand(2, num, points, generator=generator)
    side = torch.randint(6, (num, points), generator=generator)
    each = torch.stack([surface(name, u, w, side) for name in SURFACES], dim=1)
    labels = torch.randint(len(SURFACES), (num, 1), generator=generator)
    chosen = each[torch.arange(num), labels[:, 0]]
    stretch = 0.7 + 0.6 * torch.rand(num, 1, 3, generator=generator)
    turn, _ = torch.linalg.qr(torch.randn(num, 3, 3, generator=generator))
    turned = (chosen * stretch) @ turn.mT
    return turned + noise * torch.randn(num, points, 3, generator=generator), labels


def surface(name: str, u: Tensor, w: Tensor, side: Tensor) -> Tensor:
    """Points (..., 3) of a surface at the uniform parameters u, w in [0, 1]; ``side`` in 0..5 is read by the cube.

    >>> surface("sphere", torch.tensor([0.25]), torch.tensor([0.5]), torch.tensor([0])).norm(dim=-1)
    tensor([1.])
    """
    check_choice("name", name, SURFACES)
    angle, height = 2 * math.pi * u, 2 * w - 1
    circle = torch.stack([angle.cos(), angle.sin()], dim=-1)
    if name == "sphere":
        return torch.cat([circle * (1 - height**2).sqrt().unsqueeze(-1), height.unsqueeze(-1)], dim=-1)
    if name == "torus":
        tube = 2 * math.pi * w
        return torch.cat([circle * (0.7 + 0.3 * tube.cos()).unsqueeze(-1), 0.3 * tube.sin().unsqueeze(-1)], dim=-1)
    if name == "cube":
        face = torch.stack([2 * u - 1, height, torch.ones_like(u)], dim=-1)
        turns = torch.stack([face.roll(int(axis), dims=-1) for axis in range(3)])
        axis = (side % 3).unsqueeze(0).unsqueeze(-1).expand(1, *face.shape)
        return 0.7 * turns.gather(0, axis).squeeze(0) * (1 - 2 * (side // 3)).unsqueeze(-1)
    if name == "cylinder":
        return torch.cat([0.7 * circle, height.unsqueeze(-1)], dim=-1)
    if name == "cone":
        return torch.cat([circle * w.sqrt().unsqueeze(-1), (1 - 2 * w.sqrt()).unsqueeze(-1)], dim=-1)
    return torch.cat([0.7 * torch.stack([(2 * angle).cos(), (2 * angle).sin()], dim=-1), (2 * u - 1).unsqueeze(-1)], -1)
