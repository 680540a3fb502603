"""Real speeches read letter by letter, and rules that are linear in what they count.

symbol    name       meaning                                                     axes
s         tokens     letters 0 .. 26                                              (num, T)
y         labels     half-century 0 .. 4                                         (num,)

Letters are a to z, 1 .. 26; all else between two of them is one 0.
"""

import functools
import re
from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from derived.lab.real.texts import speeches

LETTERS = 27
ERAS = 5  # half-centuries since 1790


def spoken(text: str) -> Tensor:
    """The letters of a text, uint8.

    >>> spoken("We, the 48").tolist()
    [23, 5, 0, 20, 8, 5, 0]
    """
    plain = re.sub("[^a-z]+", "`", text.lower())  # the character before "a"
    return torch.frombuffer(bytearray(plain.encode()), dtype=torch.uint8) - ord("`")


@functools.cache
def by_era() -> list[list[Tensor]]:
    """The letters of the State of the Union speeches, those of a half-century together."""
    found: list[list[Tensor]] = [[] for _ in range(ERAS)]
    for each in speeches():
        found[(each.year - 1790) // 50].append(spoken(each.text))
    return found


def windows(texts: list[list[Tensor]], num: int, length: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """``num`` windows of ``length`` letters and the group of each: group, text and beginning are uniform draws."""
    labels = torch.randint(len(texts), (num,), generator=generator)
    at = torch.rand(num, 2, generator=generator, dtype=torch.float64).tolist()
    drawn = []
    for label, (which, begin) in zip(labels.tolist(), at, strict=True):
        text = texts[label][int(which * len(texts[label]))]
        start = int(begin * (len(text) - length + 1))
        drawn.append(text[start : start + length])
    return torch.stack(drawn), labels


def counts(tokens: Tensor, symbols: int, run: int = 1, bins: int = 2048) -> Tensor:
    """How often each run of ``run`` symbols occurs in a row of tokens, (num, bins); many runs may share a bin."""
    codes = torch.zeros_like(tokens[:, run - 1 :], dtype=torch.int64)
    for i in range(run):
        codes = codes * symbols + tokens[:, i : tokens.shape[1] - run + 1 + i]
    bins = min(bins, symbols**run)
    hashed = codes if symbols**run <= bins else codes * 2654435761 % 2**32 * bins >> 32  # Fibonacci hashing
    return torch.zeros(len(tokens), bins).scatter_add_(1, hashed, torch.ones(hashed.shape))


def by_linear_rule(seen: Tensor, labels: Tensor, asked: Tensor) -> Tensor:
    """The guesses (num,) of ridge regression on classes, whose penalty is the best of seven on a fifth of the data."""
    middle, width = seen.mean(dim=0), seen.std(dim=0) + 1e-6
    x, z = ((each - middle).div(width).double() for each in (seen, asked))
    classes, held, penalties = one_hot(labels.long()).double(), len(x) // 5, [10.0**power for power in range(-4, 3)]
    right = [(guess == labels[:held]).sum() for guess in _ridge(x[held:], classes[held:], x[:held], penalties)]
    return next(_ridge(x, classes, z, [penalties[int(torch.stack(right).argmax())]]))


def _ridge(x: Tensor, y: Tensor, asked: Tensor, penalties: list[float]) -> Iterator[Tensor]:
    """The guesses at each penalty, which is per item. X^T (X X^T + p)^-1 = (X^T X + p)^-1 X^T: we solve the smaller."""
    mean = y.mean(dim=0)
    few = len(x) < x.shape[1]
    gram, ahead = (x @ x.mT, y - mean) if few else (x.mT @ x, x.mT @ (y - mean))
    asked, one = asked @ x.mT if few else asked, torch.eye(len(gram), dtype=x.dtype)
    for each in penalties:
        weights = torch.cholesky_solve(ahead, torch.linalg.cholesky(gram + each * len(x) * one))
        yield (asked @ weights + mean).argmax(dim=-1)
