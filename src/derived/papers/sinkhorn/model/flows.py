r"""Attention as a flow of particles: the drift of each normalisation, the energy that one of them descends, its limits.

symbol    name       meaning                                                                   axes
x         x          tokens as points, each of weight 1/n                                      (n, d)
epsilon   epsilon    temperature: scores <x_i, x_j> / epsilon, bandwidth sqrt(epsilon)         scalar
A         -          attention matrix, softmax of the scores or n times Sinkhorn's plan        (n, n)
drift     -          (A x)_i - x_i, from a token to the mean of what it attends to             (n, d)
rho       -          a density on the line or on the circle; score is grad ln rho
f         -          potential of rho with itself: int exp(f(x) + f(y) - |x - y|^2 / 2 epsilon) rho(y) dy = 1
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_choice, check_count, check_positive

from .backward import sinkhorn_plan
from .plan import sinkhorn_symmetric
from .theory import kl

NORMALISERS = ("softmax", "sinkhorn")


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


class LimitDrift(NamedTuple):
    """The drift of a density on the circle, the gradient of its logarithm, and the potential's."""

    x: Float[Tensor, "num"]
    drift: Float[Tensor, "num"]
    score: Float[Tensor, "num"]
    slope: Float[Tensor, "num"]  # -f' for Sinkhorn, (ln G rho)' for softmax: drift = epsilon slope, exactly


def limit_drift(width: float, normaliser: str, num: int = 512) -> LimitDrift:
    """Barycentric drift of rho = (1 + cos(x) / 2) / 2 pi under a Gaussian kernel of bandwidth ``width``, by quadrature.

    ``num`` points; the trapezoidal rule is exact to rounding for width >= 4 spacings. Slopes by Fourier series.
    ValueError for a bandwidth under four spacings or over 1, where the kernel would meet itself around the circle.

    >>> found = limit_drift(0.1, "softmax")
    >>> bool((found.drift / 0.01 - found.slope).abs().max() < 1e-9)
    True
    """
    check_choice("normaliser", normaliser, NORMALISERS)
    check_count("num", num, least=8)
    spacing = 2 * math.pi / num
    if not 4 * spacing <= width <= 1:
        raise ValueError(f"width = {width:.3g} with num = {num}; give a width from {4 * spacing:.3g} to 1")
    x = spacing * torch.arange(num, dtype=torch.float64)
    density = (1 + x.cos() / 2) / (2 * math.pi)
    reach = math.ceil(9 * width / spacing)
    step = torch.arange(-reach, reach + 1)  # to a neighbour, in spacings; the kernel is below 1e-17 beyond
    offset = spacing * step.double()
    weight = torch.exp(-((offset / width) ** 2) / 2) * spacing / (width * math.sqrt(2 * math.pi))
    at = (torch.arange(num).unsqueeze(1) + step) % num
    scale = torch.ones_like(x)
    if normaliser == "sinkhorn":
        for _ in range(200):  # the averaged iteration: its error halves at least
            scale = (scale / ((density * scale)[at] @ weight)).sqrt()
    mass = (density * scale)[at]
    drift = mass @ (weight * offset) / (mass @ weight)
    frequency = torch.fft.fftfreq(num, 1 / num, dtype=torch.float64) * 1j
    slope = torch.fft.ifft(frequency * torch.fft.fft((mass @ weight).log())).real
    return LimitDrift(x, drift, -x.sin() / 2 / (1 + x.cos() / 2), slope)
