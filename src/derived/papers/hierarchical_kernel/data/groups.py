"""Strings whose grouping is that of the levels: records of four leaves, in blocks that a level-2 summary covers.

symbol      name      meaning                                                          codes
            start     before the first record, so that record g has positions 4g + 1 .. 4g + 4    0
a, b, c     letters   three different ones, the same in all records of a string        1 .. 8
v           values    the last leaf of a record, different in each                     9 .. 16
?           asked     in place of the value of the last record                         17

The six records of a string have the six orders of its three letters, so that a bag of letters tells none from another:
a guess among the values is right in one of six, the last letter alone in one of two, all three letters always. [ours]
"""

from itertools import permutations

import torch
from torch import Tensor

from .sequences import Data

LETTERS, VALUES, ORDERS = 8, 8, torch.tensor([*permutations(range(3))])
FIRST, ASKED = 1 + LETTERS, 1 + LETTERS + VALUES  # the code of the first value, and of the question
VOCABULARY, LENGTH = ASKED + 1, 1 + 4 * (len(ORDERS) + 1)


def sample_groups(num: int, generator: torch.Generator) -> Data:
    """``num`` strings of six records and a question, tokens (num, 29), labelled by the value that is asked for, 0 .. 7.

    >>> drawn = sample_groups(2, torch.Generator())
    >>> drawn.tokens.shape, (drawn.tokens[:, -1] == ASKED).all().item()
    (torch.Size([2, 29]), True)
    """

    def distinct(among: int, few: int) -> Tensor:
        return torch.rand(num, among, generator=generator).argsort(dim=-1)[:, :few]

    orders = ORDERS[distinct(len(ORDERS), len(ORDERS))]  # (num, 6, 3)
    letters = 1 + distinct(LETTERS, 3).unsqueeze(1).expand_as(orders).gather(-1, orders)
    values = distinct(VALUES, len(ORDERS))
    asked = torch.randint(len(ORDERS), (num, 1), generator=generator)
    key = letters.take_along_dim(asked.unsqueeze(-1), dim=1).squeeze(dim=1)
    records = torch.cat([letters, FIRST + values.unsqueeze(-1)], dim=-1).flatten(1)
    ends = torch.zeros_like(asked), torch.full_like(asked, ASKED)
    tokens = torch.cat([ends[0], records, key, ends[1]], dim=1)
    labels = values.take_along_dim(asked, dim=1).squeeze(dim=1)
    return Data(tokens.to(torch.uint8), torch.full((num,), LENGTH, dtype=torch.int16), labels.to(torch.int16))


def by_last_letter(tokens: Tensor) -> Tensor:
    """The value of the first record that ends in the asked letter, (*items, T) -> (*items,): right in one of two."""
    records = tokens[..., 1:-4].unflatten(-1, (len(ORDERS), 4)).long()
    same = records[..., 2] == tokens[..., -2:-1]
    return records[..., 3].take_along_dim(same.int().argmax(dim=-1, keepdim=True), dim=-1).squeeze(dim=-1) - FIRST
