"""Generated texts, each with what the best reader of it can reach, and the scores that the paper prints.

symbol   name       meaning                                                                   axes
P, Q     pairs, queries   recall: pairs (k, v) in the first half, keys asked in the last quarter   scalar
n        length     tokens of a text                                                          scalar
-        ids        recall: keys 0..K-1, values K..2K-1, fillers 2K..; needles: marks 0..2, words 3..  (*B, n)
-        labels     the value at a query's place, elsewhere NONE                              (*B, n)
V        size       documents: different tokens                                               scalar
pi       -          the document's own permutation of the tokens                              (V,)
p        follow     probability that the next token is pi(x), else uniform                    scalar
-        answers    needles: the value of the key that is asked for                           (B, 1)
-        items, error   published: questions behind a score; standard error of a difference, points
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from jaxtyping import Int
from torch import Tensor

from derived.lab.checks import check_choice, check_count, check_fraction

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
    batch: int, length: int, *, pairs: int, queries: int, keys: int = 32, fillers: int = 8, generator: torch.Generator
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


def bigram_documents(
    batch: int, length: int, *, size: int, follow: float = 0.8, generator: torch.Generator
) -> Int[Tensor, "B n"]:
    """Documents of ``length`` tokens: x_(t+1) = pi(x_t) with probability ``follow``, else uniform; pi drawn for each.

    ValueError unless size >= 2 and 0 < follow < 1.

    >>> bigram_documents(2, 9, size=4, generator=torch.Generator().manual_seed(0)).shape
    torch.Size([2, 9])
    """
    check_count("size", size, 2)
    check_fraction("follow", follow)
    secret = torch.rand(batch, size, generator=generator).argsort(dim=-1)
    kept = torch.rand(batch, length, generator=generator) < follow
    ids = torch.randint(size, (batch, length), generator=generator)
    for t in range(1, length):
        ids[:, t] = torch.where(kept[:, t], secret.gather(1, ids[:, t - 1 : t]).squeeze(-1), ids[:, t])
    return ids


def bigram_floor(size: int, follow: float = 0.8) -> float:
    """The entropy of the next token for a reader who knows pi, in nats: no loss is lower.

    >>> round(bigram_floor(32), 3)
    1.157
    """
    check_count("size", size, 2)
    check_fraction("follow", follow)
    other = (1 - follow) / size
    return -(follow + other) * math.log(follow + other) - (size - 1) * other * math.log(other)


NEEDLE, QUESTION, END, FIRST = range(4)
TASKS = {"needle": 1, "needles": 4}  # how many triples are hidden


class Haystack(NamedTuple):
    """Texts and the answers to the questions with which they end."""

    ids: Int[Tensor, "B n"]
    answers: Int[Tensor, "B 1"]
    vocabulary: int


def ruler_like(task: str, batch: int, length: int, *, words: int = 64, generator: torch.Generator) -> Haystack:
    """Texts with one triple (mark, key, value) somewhere ("needle") or four ("needles"), each text ending in a question
    of three tokens that has one of its keys. ValueError where a text is too short.

    >>> text = ruler_like("needle", 1, 16, generator=torch.Generator().manual_seed(0))
    >>> place = (text.ids[0] == NEEDLE).nonzero()[0, 0]
    >>> text.ids[0, -2] == text.ids[0, place + 1], text.answers[0, 0] == text.ids[0, place + 2]
    (tensor(True), tensor(True))
    """
    check_choice("task", task, TASKS)
    check_count("words", words, 9)
    if length < 15:
        raise ValueError(f"length = {length} for four triples and a question; give at least 15")
    order = torch.rand(batch, words, generator=generator).argsort(dim=-1) + FIRST  # all different, a row each
    ids = order.gather(1, torch.randint(8, words, (batch, length), generator=generator))  # fillers: no key, no value
    keys, values = order[:, : TASKS[task]], order[:, 4 : 4 + TASKS[task]]
    triples = torch.stack([torch.full_like(keys, NEEDLE), keys, values], dim=-1)
    place = 3 * _places(batch, TASKS[task], length // 3 - 1, generator)
    ids.scatter_(1, (place.unsqueeze(-1) + torch.arange(3)).flatten(1), triples.flatten(1))
    which = torch.randint(TASKS[task], (batch, 1), generator=generator)
    ids[:, -3], ids[:, -2], ids[:, -1] = QUESTION, keys.gather(1, which).squeeze(1), END
    return Haystack(ids, values.gather(1, which), words + FIRST)


LENGTHS = ("4k", "8k", "16k", "32k", "64k", "128k", "256k")
# RULER in version 1: Tables 1 and 2, continual training; Table 3, from scratch. [paper; 5.07 from digests]
SCORES = {
    "Qwen3-4B": ((96.6, 94.1, 92.1, 88.7, 74.3, 74.8, 41.7), (96.1, 95.6, 92.7, 89.3, 78.7, 77.0, 43.9)),
    "LLaMA-3.1-8B": ((93.9, 92.1, 92.5, 91.1, 81.6), (94.4, 93.0, 93.3, 91.7, 83.7)),
    "Qwen3-14B": ((96.8, 95.0, 94.6, 90.7, 67.9), (97.2, 95.7, 95.2, 91.2, 70.6)),
    "Qwen3-14B with YaRN": ((81.3,), (82.5,)),  # 64k, the same models read otherwise
    "4B from scratch, full attention": ((45.77, 38.09, 6.58), (49.98, 43.82, 19.99)),
    "4B from scratch, window attention": ((14.77, 9.91, 5.07), (28.33, 26.80, 7.57)),
}


def gains(items: int = 1300) -> pd.DataFrame:
    """Each gain with its standard error if a score is the share of ``items`` right answers: p (1 - p) / items each.

    1,300 is 13 tasks with 100 samples, the sizes in the released configuration [repo]. ValueError for items < 1.

    >>> gains().query("model == 'Qwen3-4B' and length == '64k'")[["gain", "error"]].round(1).values.tolist()
    [[4.4, 1.7]]
    """
    check_count("items", items)
    rows = []
    for model, (before, after) in SCORES.items():
        lengths = ("64k",) if "YaRN" in model else LENGTHS
        for length, one, two in zip(lengths, before, after, strict=False):
            variance = sum(p / 100 * (1 - p / 100) for p in (one, two)) / items
            error = 100 * math.sqrt(variance)
            rows.append((model, length, one, two, two - one, error, (two - one) / error))
    found = pd.DataFrame(rows, columns=["model", "length", "before", "after", "gain", "error", "errors"])
    return found.assign(scratch=found["model"].str.contains("from scratch"))
