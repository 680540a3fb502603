r"""Attention as a flow of particles: the drift of each normalisation, and the energy that one of them descends.

symbol    name       meaning                                                                   axes
x         x          tokens as points, each of weight 1/n                                      (n, d)
epsilon   epsilon    temperature: scores <x_i, x_j> / epsilon, bandwidth sqrt(epsilon)         scalar
A         -          attention matrix, softmax of the scores or n times Sinkhorn's plan        (n, n)
drift     -          (A x)_i - x_i, from a token to the mean of what it attends to             (n, d)
"""

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_positive

from .backward import sinkhorn_plan
from .plan import sinkhorn_symmetric
from .theory import kl


def softmax_drift(x: Float[Tensor, "n d"], epsilon: float = 1.0) -> Float[Tensor, "n d"]:
    """softmax(x x^T / epsilon) x - x.

    >>> softmax_drift(torch.tensor([[0.0], [1.0]]))
    tensor([[ 0.5000],
            [-0.2689]])
    """
    check_positive("epsilon", epsilon)
    return (x @ x.mT / epsilon).softmax(dim=-1) @ x - x


def sinkhorn_drift(x: Float[Tensor, "n d"], epsilon: float = 1.0) -> Float[Tensor, "n d"]:
    """n P x - x with P the plan of x x^T / epsilon; the momentum is zero, since columns are full. Differentiable.

    >>> sinkhorn_drift(torch.tensor([[0.0], [1.0]])).round(decimals=4)
    tensor([[ 0.3775],
            [-0.3775]])
    """
    check_positive("epsilon", epsilon)
    plan = sinkhorn_plan(x @ x.mT / epsilon, symmetric=True, tol=_tolerance(x))
    return len(x) * plan @ x - x


def self_transport(x: Float[Tensor, "n d"], epsilon: float = 1.0) -> Float[Tensor, ""]:
    """OT_epsilon(mu, mu) = min <C, P> + epsilon KL(P | mu x mu), C_ij = |x_i - x_j|^2 / 2, mu uniform on the tokens.

    Autograd holds the plan fixed, which by the envelope theorem gives the gradient all the same.

    >>> x = torch.tensor([[0.0], [2.0]], dtype=torch.float64)
    >>> round(self_transport(x).item(), 4)  # ln 2 - ln(1 + e^-2)
    0.5662
    """
    check_positive("epsilon", epsilon)
    cost = (x.unsqueeze(1) - x.unsqueeze(0)).square().sum(dim=-1) / 2
    plan = sinkhorn_symmetric(-cost.detach() / epsilon, tol=_tolerance(x)).plan
    product = torch.full_like(plan, len(x) ** -2)
    return (plan * cost).sum(dim=(0, 1)) + epsilon * kl(plan.flatten(), product.flatten())


def _tolerance(x: Tensor) -> float:
    """Of the sum of n errors of rounding, with room: what an iteration reaches and does not wait for in vain."""
    return (32 + 16 * len(x)) * torch.finfo(x.dtype).eps
