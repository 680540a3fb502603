r"""One-line mutations of Sinkhorn's half-steps, and the properties that each loses.

symbol   name     meaning                                                          axes
S        scores   finite scores                                                    (..., n, m)
a, b     a, b     weights                                                          (..., n), (..., m)
k        num      half-steps, rows first                                           int

Each mutation has the call of ``half_steps`` and returns P itself.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from .plan import half_steps

Steps = Callable[[Tensor, int, Tensor, Tensor], Tensor]


def unchanged(scores: Tensor, num: int, a: Tensor, b: Tensor) -> Tensor:
    """The half-steps unchanged, for comparison."""
    return half_steps(scores, num, a, b).exp()


def columns_first(scores: Tensor, num: int, a: Tensor, b: Tensor) -> Tensor:
    """Columns before rows: the transposed problem."""
    return half_steps(scores.mT, num, b, a).exp().mT


def rows_only(scores: Tensor, num: int, a: Tensor, b: Tensor) -> Tensor:
    """The column step is left out: softmax, whatever the number of half-steps."""
    return half_steps(scores, 1, a, b).exp()


def both_at_once(scores: Tensor, num: int, a: Tensor, b: Tensor) -> Tensor:
    """Each step reads the other potential as it was before: Jacobi in place of Gauss and Seidel."""
    f, g = a.log(), b.log()
    for _ in range(num):
        f, g = (
            a.log() - torch.logsumexp(scores + g.unsqueeze(-2), dim=-1),
            b.log() - torch.logsumexp(scores + f.unsqueeze(-1), dim=-2),
        )
    return (scores + f.unsqueeze(-1) + g.unsqueeze(-2)).exp()


def without_weights(scores: Tensor, num: int, a: Tensor, b: Tensor) -> Tensor:
    """Every row and column is brought to the same sum, whatever the weights."""
    return half_steps(scores, num).exp()


def small_number_added(scores: Tensor, num: int, a: Tensor, b: Tensor) -> Tensor:
    """Sums of exponentials outside the log domain, and 1e-6 against division by zero."""
    kernel, v = scores.exp(), b
    u = a / ((kernel @ v.unsqueeze(-1)).squeeze(dim=-1) + 1e-6)
    for step in range(1, num):
        if step % 2:
            v = b / ((kernel.mT @ u.unsqueeze(-1)).squeeze(dim=-1) + 1e-6)
        else:
            u = a / ((kernel @ v.unsqueeze(-1)).squeeze(dim=-1) + 1e-6)
    return u.unsqueeze(-1) * kernel * v.unsqueeze(-2)


MUTATIONS: dict[str, Steps] = {
    "none": unchanged,
    "columns first": columns_first,
    "no column step": rows_only,
    "both potentials at once": both_at_once,
    "weights forgotten": without_weights,
    "a small number added": small_number_added,
}


class Damage(NamedTuple):
    """Violations of four properties by a mutation; each is of the size of rounding where the property is kept."""

    softmax: float  # TV between the first half-step and softmax over the tokens of b
    rows: float  # sum |P 1 - a| after many half-steps, an odd number
    columns: float  # sum |P^T 1 - b| after many half-steps
    offsets: float  # TV by which the result moves when every row gets an offset of -15


def damage(steps: Steps, scores: Tensor, a: Tensor, b: Tensor, num: int = 201) -> Damage:
    """The worst of each property over a batch of problems.

    >>> a = torch.tensor([0.5, 0.5], dtype=torch.float64)
    >>> damage(rows_only, torch.tensor([[[1.0, 0.0], [0.0, 0.0]]], dtype=torch.float64), a, a).columns > 0.1
    True
    """
    softmax = a.unsqueeze(-1) * (scores + b.log().unsqueeze(-2)).softmax(dim=-1)
    plan = steps(scores, num, a, b)
    moved = steps(scores - 15.0, num, a, b) - plan
    return Damage(
        (steps(scores, 1, a, b) - softmax).abs().sum(dim=(-2, -1)).max().item() / 2,
        (plan.sum(dim=-1) - a).abs().sum(dim=-1).max().item(),
        (plan.sum(dim=-2) - b).abs().sum(dim=-1).max().item(),
        moved.abs().sum(dim=(-2, -1)).max().item() / 2,
    )
