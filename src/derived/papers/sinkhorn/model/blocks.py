r"""The universal approximator, built by hand: a relation between texts on [0, 1] is averaged over blocks.

symbol     name      meaning                                                            axes
phi, psi   hats      m + 1 hat functions at 0, 1/m, ..., 1, a partition of unity         (..., n, m + 1)
w_kl       -         mass of the relation in block (k, l)                               (..., m + 1, m + 1)
mu_k       -         weight of block k of the first text; nu_l of the second             (..., m + 1)
t          floor     share of the product coupling that is mixed in                     scalar
tau        tau       keeps the kernel continuous where a block is empty                 scalar

All supports have diameter at most 2/m. The proofs are the page's: theorems sk-universal and sk-conditional.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count, check_fraction, check_positive, check_within


def hats(x: Float[Tensor, "*batch n"], m: int) -> Float[Tensor, "*batch n m_plus_1"]:
    """phi_k(x) = max(0, 1 - |m x - k|), k = 0..m: they sum to one. ValueError for x outside [0, 1] or m < 1.

    >>> hats(torch.tensor([0.0, 0.25, 0.5]), 2)
    tensor([[1.0000, 0.0000, 0.0000],
            [0.5000, 0.5000, 0.0000],
            [0.0000, 1.0000, 0.0000]])
    """
    check_count("m", m)
    check_within("x", x, 0, 1)
    return (1 - (m * x.unsqueeze(-1) - torch.arange(m + 1).to(x)).abs()).clamp(min=0.0)


def block_plan(
    x: Float[Tensor, "*batch n"],
    y: Float[Tensor, "*batch k"],
    a: Float[Tensor, "*batch n"],
    b: Float[Tensor, "*batch k"],
    target: Float[Tensor, "*batch n k"],
    m: int,
    floor: float = 0.0,
) -> Float[Tensor, "*batch n k"]:
    """(1 - t) pi + t a b^T with pi the target averaged over blocks: again a coupling of a and b.

    >>> half = torch.tensor([0.5, 0.5])
    >>> block_plan(*[torch.tensor([0.0, 1.0])] * 2, half, half, torch.eye(2) / 2, m=1)
    tensor([[0.5000, 0.0000],
            [0.0000, 0.5000]])
    """
    density = _density(x, y, a, b, target, m, 0.0)
    product = a.unsqueeze(-1) * b.unsqueeze(-2)
    return ((1 - floor) * density + floor) * product


def block_kernel(
    x: Float[Tensor, "*batch n"],
    y: Float[Tensor, "*batch k"],
    a: Float[Tensor, "*batch n"],
    b: Float[Tensor, "*batch k"],
    target: Float[Tensor, "*batch n k"],
    m: int,
    tau: float = 1e-6,
    floor: float = 1e-3,
) -> Float[Tensor, "*batch n k"]:
    r"""Scores ln k_tau whose Sinkhorn plan approximates the coupling ``target``: no learning.

    k_tau(x, y) = t + (1 - t) sum_kl w_kl phi_k(x) psi_l(y) / ((mu_k + tau)(nu_l + tau)), bounded and continuous in the
    texts as well as in x and y. ValueError for tau <= 0 or a floor outside (0, 1).

    >>> half = torch.tensor([0.5, 0.5])
    >>> block_kernel(*[torch.tensor([0.0, 1.0])] * 2, half, half, torch.eye(2) / 2, m=1)
    tensor([[ 0.6926, -6.9078],
            [-6.9078,  0.6926]])
    """
    check_positive("tau", tau)
    check_fraction("floor", floor)
    return (floor + (1 - floor) * _density(x, y, a, b, target, m, tau)).log()


def _density(x: Tensor, y: Tensor, a: Tensor, b: Tensor, target: Tensor, m: int, tau: float) -> Tensor:
    """sum_kl w_kl phi_k psi_l / ((mu_k + tau)(nu_l + tau)), with 0 / 0 = 0."""
    phi, psi = hats(x, m), hats(y, m)
    mass = phi.mT @ target @ psi
    mu, nu = ((each.mT @ weights.unsqueeze(-1)).squeeze(dim=-1) for each, weights in ((phi, a), (psi, b)))
    scale = (mu + tau).unsqueeze(-1) * (nu + tau).unsqueeze(-2)
    return phi @ torch.where(mass > 0, mass / scale, 0.0) @ psi.mT


def block_bound(m: int, tau: float, floor: float, logit_error: float = 0.0) -> float:
    r"""Bound W_1 by sqrt2 (2/m + t + sqrt((2m + 2) tau / 2) + zeta / 2), zeta the sup error of the scores.

    >>> round(block_bound(16, 1e-6, 1e-3), 4)
    0.184
    """
    check_count("m", m)
    return math.sqrt(2) * (2 / m + floor + math.sqrt((m + 1) * tau) + logit_error / 2)


def conditional_kernel(
    y: Float[Tensor, "*batch k"],
    b: Float[Tensor, "*batch k"],
    target: Float[Tensor, "*batch n k"],
    m: int,
    tau: float = 1e-6,
    floor: float = 1e-3,
) -> tuple[Float[Tensor, "*batch n k"], Float[Tensor, "*batch n"]]:
    """Scores whose softmax over the tokens of b approximates the conditional distributions ``target`` (rows of sum 1), and the
    mass lambda that tau loses in each row.

    k(x, y) = t + (1 - t) sum_l kappa_l psi_l(y) / (nu_l + tau), kappa_l the mass of the row in block l. Attention adds
    ln b to the scores: weights b_j k_ij / sum_j b_j k_ij.

    >>> scores, lost = conditional_kernel(torch.tensor([0.0, 1.0]), torch.tensor([0.5, 0.5]), torch.eye(2), m=1)
    >>> (scores + torch.tensor(0.5).log()).softmax(dim=-1)
    tensor([[9.9950e-01, 5.0000e-04],
            [5.0000e-04, 9.9950e-01]])
    """
    check_positive("tau", tau)
    check_fraction("floor", floor)
    psi = hats(y, m)
    nu = (psi.mT @ b.unsqueeze(-1)).mT + tau  # (..., 1, m + 1)
    mass = target @ psi
    lost = (mass * tau / nu).sum(dim=-1)
    return (floor + (1 - floor) * (mass / nu) @ psi.mT).log(), lost


def conditional_bound(m: int, floor: float, lost: Float[Tensor, "*rows"]) -> Float[Tensor, "*rows"]:
    """Bound W_1 of a row by 2/m + t + lambda, on a text of diameter 1.

    >>> conditional_bound(4, 0.25, torch.tensor([0.0]))
    tensor([0.7500])
    """
    check_count("m", m)
    return 2 / m + floor + lost
