"""Drafts that only count: tokens of the verifier in other books, and what followed earlier in the text itself.

support  the tokens that the draft may propose at a position; everything else is one last column, which it never does
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

SHARES = (0.1, 0.3, 0.6)  # of one, two and three tokens in a row
MOST = (200, 100, 50)  # tokens that each may propose


class Ngrams:
    """Interpolated counts of one, two and three tokens in a row.

    >>> draft = Ngrams([1, 2, 3, 1, 2, 4])
    >>> {token: round(p, 2) for token, p in draft.proposals([1, 2]).items() if p > 0.2}
    {3: 0.47, 4: 0.47}
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        counts: list[dict[tuple[int, ...], Counter]] = [defaultdict(Counter) for _ in MOST]
        for place, token in enumerate(tokens):
            for size, table in enumerate(counts):
                if place >= size:
                    table[tuple(tokens[place - size : place])][token] += 1
        self._tables = [
            {context: self._law(count, most) for context, count in table.items()}
            for table, most in zip(counts, MOST, strict=True)
        ]

    @staticmethod
    def _law(count: Counter, most: int) -> dict[int, float]:
        top = count.most_common(most)
        total = sum(times for _, times in top)
        return {token: times / total for token, times in top}

    def proposals(self, before: Sequence[int]) -> dict[int, float]:
        """Probabilities of the next token; the share of a context that was never seen goes to the shorter ones."""
        found: dict[int, float] = defaultdict(float)
        laws = [table.get(tuple(before[len(before) - size :])) for size, table in enumerate(self._tables)]
        total = sum(share for share, law in zip(SHARES, laws, strict=True) if law)
        for share, law in zip(SHARES, laws, strict=True):
            for token, p in (law or {}).items():
                found[token] += share / total * p
        return dict(found)


LONGEST = 3  # tokens in a row that a prompt lookup looks for


def lookup(before: Sequence[int]) -> dict[int, float]:
    """Prompt lookup: the token that followed when the text last had its longest known ending, for certain; nothing
    where even its last token is new.

    >>> lookup([1, 2, 3, 1, 2]), lookup([1, 2])
    ({3: 1.0}, {})
    """
    for size in range(min(LONGEST, len(before) - 1), 0, -1):
        ending = tuple(before[-size:])
        for place in range(len(before) - size - 1, -1, -1):
            if tuple(before[place : place + size]) == ending:
                return {before[place + size]: 1.0}
    return {}


def lumped(
    proposals: dict[int, float], q: Float[Tensor, "V"], width: int
) -> tuple[Float[Tensor, "width"], Float[Tensor, "width"]]:
    """Draft and verifier on the draft's support, padded to ``width``, with all other tokens as the last one.

    No rule of the chapter tells those others apart: the draft never proposes them, and what replaces a rejected draft
    has them in proportion to q. So acceptance, total variation and KL are those of the whole vocabulary.
    """
    tokens = torch.tensor([*proposals])
    p, own = torch.zeros(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
    p[: len(tokens)] = torch.tensor([*proposals.values()], dtype=torch.float64)
    own[: len(tokens)] = q[tokens].double()
    own[-1] = (1 - own.sum()).clamp(min=0.0)
    return p / p.sum(), own / own.sum()
