"""Tables of letter pairs in the place of networks: how far apart are readers that can do no more than count?

symbol   name      meaning                                                     axes
-        texts     how many texts of each language are read                    (*batch, n)
N(a, b)  counts    how often letter b followed a, the last a opens a text      (*batch, A + 1, A)
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ..model.gpt import mean_divergence
from .languages import LanguageFamily


def pair_counts(
    family: LanguageFamily, texts: Float[Tensor, "*batch n"], length: int, generator: torch.Generator
) -> Float[Tensor, "*batch V A"]:
    """What counting the pairs of so many texts of each language gives, without writing them.

    Of the texts that show a after t letters, a multinomial number by P(. | a) shows b after t + 1: here one binomial a
    letter, each out of what the letters before have left."""
    opened = torch.cat([family.transitions, family.first.unsqueeze(1)], dim=1)  # the last row opens a text
    shown = torch.nn.functional.pad(texts.double().unsqueeze(-1), (family.letters, 0))
    counts = shown.new_zeros(*shown.shape, family.letters)
    beyond = opened.flip(-1).cumsum(dim=-1).flip(-1)  # of this letter and those behind it
    for _ in range(length):
        left, drawn = shown, []
        for law, rest in zip(opened.unbind(-1), beyond.unbind(-1), strict=True):
            share = (law / rest).nan_to_num(1.0).clamp(max=1.0)  # one for the last letter
            drawn.append(torch.binomial(left, share.expand_as(left), generator=generator))
            left = left - drawn[-1]
        counts += (pairs := torch.stack(drawn, dim=-1))
        shown = torch.nn.functional.pad(pairs.sum(dim=-2), (0, 1))
    return counts.sum(dim=-3)


def tables_apart(
    family: LanguageFamily, generator: torch.Generator, *, tables: int, read: int, texts: int, length: int
) -> Float[Tensor, "n"]:
    """The mean divergence of two tables' laws of the next letter over the texts of each language of the family.

    Each table counts ``texts`` of its own, of the first ``read`` languages by chance; its law after a letter is
    (N(a, b) + p(b)) / (N(a) + 1), with p(b) the share of b in all."""
    own = torch.randint(read, (tables, texts), generator=generator)
    number = torch.nn.functional.one_hot(own, len(family.first)).sum(dim=1)
    counts = pair_counts(family, number.double(), length, generator)
    share = counts.sum(dim=-2, keepdim=True) / counts.sum(dim=(-2, -1), keepdim=True)
    laws = (counts + share) / (counts.sum(dim=-1, keepdim=True) + 1)
    apart = mean_divergence(laws.transpose(0, 1)).sum(dim=(-2, -1)) / (tables * (tables - 1))  # after each letter
    return (apart[-1] + (length - 1) * family.first @ apart[:-1]) / length
