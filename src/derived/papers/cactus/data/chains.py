"""Markov chains on many tokens, whose next law depends on the class of the last token.

symbol   name    meaning                                                         axes
p, q     p, q    laws of draft and verifier after a token of each class          (classes, V)
"""

import torch
from torch import Tensor


def zipf_chains(V: int, classes: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(p, q): in each row of q the r-th most likely token has a probability proportional to 1 / r, in an order of the
    row's own; p is proportional to q e^{noise}, noise N(0, 0.5^2). Token y is of class y mod ``classes``.

    >>> p, q = zipf_chains(3, 1, torch.Generator())
    >>> (11 * q.sort(dim=-1).values).round(decimals=9).tolist()
    [[2.0, 3.0, 6.0]]
    """
    rank = torch.rand(classes, V, generator=generator, dtype=torch.float64).argsort(dim=-1) + 1
    q = 1 / rank.double()
    q = q / q.sum(dim=-1, keepdim=True)
    return torch.softmax(q.log() + 0.5 * torch.randn(q.shape, generator=generator, dtype=torch.float64), dim=-1), q
