"""Documents with private bigrams: what follows a token is a secret of the document, learned only by reading it.

symbol   name      meaning                                                        axes
V        size      different tokens                                               scalar
pi       -         the document's own permutation of the tokens                   (V,)
p        follow    probability that the next token is pi(x), else uniform         scalar
"""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from derived.lab.checks import check_count, check_fraction


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
