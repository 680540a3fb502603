r"""Closed forms of Sinkhorn's iteration: how fast it is, what it climbs, and what a plan can see of its scores.

symbol    name     meaning                                                               axes
S         scores   finite scores                                                         (..., n, m)
a, b      a, b     weights                                                               (..., n), (..., m)
f, g      f, g     potentials, P = exp(S + f_i + g_j)                                    (..., n), (..., m)
P         plan     a coupling of a and b                                                 (..., n, m)
osc       -        largest minus smallest entry
Delta     -        largest S_ik + S_jl - S_jk - S_il; kappa = tanh(Delta / 4)            (...)
P hat     -        D_a^-1/2 P D_b^-1/2, with singular values 1 = sigma_1 > sigma_2 >= …
"""

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_factored, check_within


def oscillation(x: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """max x - min x over the last axis.

    >>> oscillation(torch.tensor([1.0, 4.0, 2.0]))
    tensor(3.)
    """
    return x.amax(dim=-1) - x.amin(dim=-1)


def hilbert_distance(u: Float[Tensor, "*batch n"], v: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """d_H(e^u, e^v) = osc(u - v), Hilbert's projective metric, of two vectors given by their logarithms.

    >>> hilbert_distance(torch.tensor([0.0, 1.0]), torch.tensor([5.0, 4.0]))
    tensor(2.)
    """
    return oscillation((u - u[..., :1]) - (v - v[..., :1]))  # no offset counts; a large one would round the rest away


def cross_difference(scores: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch"]:
    """Delta, the largest S_ik + S_jl - S_jk - S_il over all i, j, k, l: what no row or column offset changes.

    >>> cross_difference(torch.tensor([[1.0, 0.0], [7.0, 7.0]]))
    tensor(1.)
    """
    return oscillation(scores.unsqueeze(-2) - scores.unsqueeze(-3)).amax(dim=(-2, -1))


def birkhoff_coefficient(scores: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch"]:
    """kappa = tanh(Delta / 4): e^S contracts Hilbert's metric by this factor. [prior: Birkhoff 1957]

    >>> birkhoff_coefficient(torch.zeros(2, 3))
    tensor(0.)
    """
    return torch.tanh(cross_difference(scores) / 4)


def normalised_plan(plan: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch n m"]:
    """P hat = D_a^-1/2 P D_b^-1/2 with a and b the plan's own sums; a token of weight zero has a row of zeros.

    >>> normalised_plan(torch.tensor([[0.25, 0.25], [0.0, 0.5]]))
    tensor([[0.7071, 0.4082],
            [0.0000, 0.8165]])
    """
    a, b = plan.sum(dim=-1), plan.sum(dim=-2)
    root_a, root_b = (torch.where(each > 0, each.rsqrt(), 0.0) for each in (a, b))
    return plan * root_a.unsqueeze(-1) * root_b.unsqueeze(-2)


def local_rate(plan: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch"]:
    """sigma_2^2, by which the error of Sinkhorn's iteration shrinks in the end; 0 for one token. [prior: Knight 2008]

    >>> local_rate(torch.tensor([[0.4, 0.1], [0.1, 0.4]]))  # singular values 1 and 0.6
    tensor(0.3600)
    """
    check_factored(plan=plan)
    values = torch.linalg.svdvals(normalised_plan(plan))
    return values[..., 1] ** 2 if values.shape[-1] > 1 else torch.zeros_like(values[..., 0])


def optimal_relaxation(rate: Tensor | float) -> Tensor:
    """omega* = 2 / (1 + sqrt(1 - sigma_2^2)), of local rate omega* - 1. [prior: Young 1954, Thibault et al. 2021]

    ValueError for a rate outside [0, 1].

    >>> optimal_relaxation(0.36)
    tensor(1.1111, dtype=torch.float64)
    """
    check_within("rate", rate, 0, 1)
    return 2 / (1 + (1 - torch.as_tensor(rate, dtype=torch.float64)).sqrt())


def double_centre(scores: Float[Tensor, "*batch n m"]) -> Float[Tensor, "*batch n m"]:
    """The scores less their row and column means: all that a plan sees of them.

    >>> double_centre(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[0., 0.],
            [0., 0.]])
    """
    half = scores - scores.mean(dim=-1, keepdim=True)
    return half - half.mean(dim=-2, keepdim=True)


def kl(P: Float[Tensor, "*batch n"], Q: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch"]:
    """KL(P | Q) = sum P ln(P / Q) - P + Q over the last axis, with 0 ln 0 = 0; infinite where Q = 0 < P.

    The masses of P and Q may differ. Each term is computed as Q h(P / Q) with h(r) = r ln r - r + 1, so that nearby
    distributions lose no digits to cancellation.

    >>> kl(torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75]))
    tensor(0.1438)
    """
    ratio = P / Q
    near = (ratio - 1).abs() < 0.5
    offset = torch.where(near, ratio - 1, 0.0)
    close = Q * ((1 + offset) * torch.log1p(offset) - offset)
    far = torch.xlogy(P, P) - torch.xlogy(P, Q) - P + Q
    return torch.where(near, close, far).sum(dim=-1)
