"""Labelled sequences: one set of them, and one set for each of several networks.

symbol    name       meaning                                                     axes
s         tokens     codes; 0 after the end of a sequence                       (num, T) or (R, items, T)
n         lengths    real symbols                                                (num,) or (R, items)
y         labels     classes 0, 1, ...; or a symbol per token                    (num,) or (R, items), (R, items, T)
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Data(NamedTuple):
    """Labelled sequences of codes, 0 after their ends: one set, or one per network with the axis R in front."""

    tokens: Tensor  # (num, T), or (R, items, T)
    lengths: Tensor  # (num,), or (R, items)
    labels: Tensor  # as lengths, or as tokens for a target at every token

    def to(self, device: torch.device | str) -> "Data":
        """The same on a device."""
        return Data(*(each.to(device) for each in self))

    def first(self, num: int) -> "Data":
        """The first ``num`` items of each network."""
        return Data(*(each[:, :num] for each in self))

    def take(self, index: Tensor) -> "Data":
        """The items ``index`` (R, batch) of each network."""
        network = torch.arange(len(index), device=index.device).unsqueeze(-1)
        return Data(*(each[network, index].long() for each in self))


def stack(sets: Sequence[Data]) -> Data:
    """One set per network, of equal sizes, with the axis of networks in front."""
    return Data(*(torch.stack(each) for each in zip(*sets, strict=True)))
