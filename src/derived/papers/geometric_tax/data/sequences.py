"""DNA as numbers: random letters, counts of words, and the other strand.

symbol   name   meaning                                                          axes
g        g      letters as numbers, ACGT = 0123, N = 4                           (n, L) or (L,), uint8
c_w(g)   -      how often the word w of k letters stands in g                    (n, 4^k)
"""

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from derived.lab.checks import check_count, check_within

_COMPLEMENT = torch.tensor([3, 2, 1, 0, 4], dtype=torch.uint8)


def _checked(s: Tensor) -> Tensor:
    check_within("s", s, 0, 4)
    return s


def reverse_complement(s: UInt8[Tensor, "*n L"]) -> UInt8[Tensor, "*n L"]:
    """The other strand, read in its own direction: backwards, A and T, C and G exchanged, N kept.

    >>> reverse_complement(torch.tensor([0, 0, 1], dtype=torch.uint8)).tolist()
    [2, 3, 3]
    """
    return _COMPLEMENT.to(s.device)[_checked(s).long()].flip(-1)


def kmer_counts(s: UInt8[Tensor, "n L"], k: int) -> Float[Tensor, "n 4^k"]:
    """c_w(s) for all words w of k letters in alphabetical order; windows with an N do not count.

    >>> kmer_counts(torch.tensor([[0, 1, 0, 1]], dtype=torch.uint8), 2)[0, :5].tolist()  # AA AC AG AT CA
    [0.0, 2.0, 0.0, 0.0, 1.0]
    """
    check_count("k", k)
    check_within("k", k, 1, 15)  # 4^15 counts are 8 GiB for each sequence
    s = _checked(s).long()
    if s.shape[1] < k:
        raise ValueError(f"s has sequences of {s.shape[1]} letters; give at least k = {k} letters")
    words = s.unfold(1, k, 1)
    number = (words * 4 ** torch.arange(k - 1, -1, -1, device=s.device)).sum(dim=-1)
    good = (words < 4).all(dim=-1)
    counts = torch.zeros(len(s), 4**k, dtype=torch.float64, device=s.device)
    return counts.scatter_add_(1, torch.where(good, number, 0), good.double())
