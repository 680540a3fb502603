"""Random arrays for a page: named, so that a cell's numbers do not depend on the cells before it."""

from collections.abc import Callable

import torch
from torch import Tensor

from derived.lab.rng import stream


def normals(seed: int) -> Callable[..., Tensor]:
    """The page's seed bound once: ``drawn = normals(seed)``, then ``drawn(3, 4, name="keys")`` has independent standard
    normal entries in float64. Another name, shape or seed gives independent numbers, the same ones equal numbers.

    >>> drawn = normals(0)
    >>> drawn(3, 4, name="keys").shape, bool((drawn(2, name="a") == drawn(2, name="a")).all())
    (torch.Size([3, 4]), True)
    """

    def drawn(*shape: int, name: str = "") -> Tensor:
        return torch.randn(*shape, generator=stream(seed, name, *shape), dtype=torch.float64)

    return drawn
