"""Generated data: coupling problems with their answer, and pairs to be matched.

symbol   name      meaning                                                         axes
x, y     x, y      positions of the tokens of two texts on [0, 1]                  (num, n)
a, b     a, b      their weights                                                   (num, n)
Gamma    target    the coupling to be learned                                      (num, n, n)
"""

from typing import NamedTuple

import torch
from torch import Tensor

from derived.lab.checks import check_choice, check_count

from ..model.couplings import comonotone, crossed
from ..model.plan import sinkhorn

TARGETS = ("comonotone", "crossed", "hidden", "shuffled")


class Problem(NamedTuple):
    """Two weighted texts on the line and the relation between them."""

    x: Tensor
    y: Tensor
    a: Tensor
    b: Tensor
    target: Tensor


def random_weights(shape: tuple[int, ...], generator: torch.Generator, least: float = 0.0) -> Tensor:
    """Weights from the flat Dirichlet distribution, mixed with a share ``least`` of the uniform, float64.

    >>> random_weights((2, 3), torch.Generator().manual_seed(0)).sum(dim=-1)
    tensor([1., 1.], dtype=torch.float64)
    """
    drawn = -torch.rand(*shape, generator=generator, dtype=torch.float64).clamp(min=1e-12).log()
    return (1 - least) * drawn / drawn.sum(dim=-1, keepdim=True) + least / shape[-1]


def coupling_problems(relation: str, num: int, n: int, generator: torch.Generator) -> Problem:
    """``num`` pairs of texts of n tokens with flat Dirichlet weights, and one of four relations, float64.

    comonotone and crossed are exact; hidden is the entropic plan of the cost (1 - x - y)^2 at temperature 1/10, which a
    learner does not see; shuffled is comonotone with the tokens of the second text in another order, so that
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
