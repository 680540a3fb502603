"""Documents with private bigrams: what follows a token is a secret of the document, learned only by reading it.

symbol   name      meaning                                                        axes
V        size      different tokens                                               scalar
pi       -         the document's own permutation of the tokens                   (V,)
p        follow    probability that the next token is pi(x), else uniform         scalar
"""

import itertools
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import one_hot

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


def best_reader(ids: Int[Tensor, "B n"], *, size: int, follow: float = 0.8) -> Float[Tensor, "B V"]:
    """The distribution of the token after these, for a reader who knows how documents are made and nothing else of
    this one: the mean over all V! permutations, weighted by how well each explains what was read. No reader of the
    same tokens has a lower expected loss.

    ValueError unless 2 <= size <= 7.

    >>> [round(each, 9) for each in best_reader(torch.tensor([[0, 1]]), size=2)[0].tolist()]  # 0.1 + 0.8 · 0.9
    [0.82, 0.18]
    """
    check_count("size", size, 2)
    check_fraction("follow", follow)
    if size > 7:
        raise ValueError(f"size = {size} has {math.factorial(size):,} permutations; give at most 7")
    secrets = one_hot(torch.tensor([*itertools.permutations(range(size))]), size).double().flatten(1)
    steps = one_hot(size * ids[:, :-1] + ids[:, 1:], size * size).sum(dim=1).double()  # how often y came after x
    other = (1 - follow) / size
    weights = (steps @ secrets.mT * math.log(1 + follow / other)).softmax(dim=-1)
    after = (weights @ secrets).unflatten(1, (size, size))[torch.arange(len(ids)), ids[:, -1]]
    return other + follow * after
