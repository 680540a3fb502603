"""Recall beyond the window: pairs early in a text, their keys asked again when no window reaches back.

symbol   name       meaning                                                     axes
P        pairs      pairs (k, v) in the first half of a text                    scalar
Q        queries    keys asked in its last quarter                              scalar
n        length     tokens of a text                                            scalar
-        ids        keys 0..K-1, values K..2K-1, fillers 2K..                   (*B, n)
-        labels     the value at a query's place, elsewhere NONE                (*B, n)
"""

import math
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from derived.lab.checks import check_count

NONE = -100  # what cross_entropy ignores


class Texts(NamedTuple):
    """Tokens, what is to be answered, and how many different tokens there are."""

    ids: Int[Tensor, "*B n"]
    labels: Int[Tensor, "*B n"]
    vocabulary: int


def _places(batch: int, count: int, of: int, generator: torch.Generator) -> Int[Tensor, "B count"]:
    return torch.rand(batch, of, generator=generator).argsort(dim=-1)[:, :count]


def blind_guess(pairs: int, keys: int) -> float:
    """How often the commonest value of a text is the right answer: E max count / pairs of independent values.

    What a model reaches that knows the text's values and no pair. P(max count <= m) is pairs! / keys^pairs times the
    coefficient of x^pairs in (1 + x + ... + x^m / m!)^keys. ValueError unless both are 1 or more.

    >>> blind_guess(2, 2)  # equal values with probability 1/2
    0.75
    """
    check_count("pairs", pairs)
    check_count("keys", keys)
    at_most = [0.0]
    for m in range(1, pairs + 1):
        power, one = np.array([1.0]), np.array([1 / math.factorial(j) for j in range(m + 1)])
        for _ in range(keys):
            power = np.convolve(power, one)[: pairs + 1]
        whole = power[pairs] if len(power) > pairs else 0.0
        at_most.append(whole * math.factorial(pairs) / keys**pairs)
    return float(sum(m * (at_most[m] - at_most[m - 1]) for m in range(1, pairs + 1)) / pairs)


def mqar(
    batch: int,
    length: int,
    *,
    pairs: int,
    queries: int,
    keys: int = 32,
    fillers: int = 8,
    generator: torch.Generator,
) -> Texts:
    """Texts of multi-query associative recall: ``pairs`` at random even places of the first half, different keys with
    independent values; ``queries`` of them at random places of the last quarter; fillers elsewhere.

    A guess is right with probability 1/keys, the commonest value of the text with ``blind_guess``. ValueError where
    they do not fit. Source: Arora et al. (2023), with a gap.

    >>> texts = mqar(2, 32, pairs=4, queries=3, generator=torch.Generator().manual_seed(0))
    >>> texts.ids.shape, int((texts.labels != NONE).sum()), texts.vocabulary
    (torch.Size([2, 32]), 6, 72)
    """
    check_count("pairs", pairs)
    check_count("queries", queries)
    room = {"pairs": (pairs, min(length // 4, keys)), "queries": (queries, min(length // 4, pairs))}
    for name, (given, most) in room.items():
        if given > most:
            raise ValueError(f"{name} = {given} in a text of {length} tokens with {keys} keys; give at most {most}")
    ids = 2 * keys + torch.randint(fillers, (batch, length), generator=generator)
    labels = torch.full_like(ids, NONE)
    key = _places(batch, pairs, keys, generator)
    value = keys + torch.randint(keys, (batch, pairs), generator=generator)
    place = 2 * _places(batch, pairs, length // 4, generator)
    ids.scatter_(1, place, key).scatter_(1, place + 1, value)
    asked = _places(batch, queries, pairs, generator)
    where = length - length // 4 + _places(batch, queries, length // 4, generator)
    ids.scatter_(1, where, key.gather(1, asked))
    labels.scatter_(1, where, value.gather(1, asked))
    return Texts(ids, labels, 2 * keys + fillers)
