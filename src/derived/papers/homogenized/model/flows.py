"""Layers without noise: the flow that they follow, and the field that they follow one order closer.

symbol         name         meaning                                                          axes
b_rho          field        the mean attention field, a function of the tokens               (..., n, d) -> (..., n, d)
b              (inside)     P_x b_rho, the drift                                             (..., n, d)
eta            eta          residual step
"""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor

from derived.lab.checks import check_choice

from .heads import attention_field, normalise, tangent

Field = Callable[[Tensor], Tensor]
Corrector = Literal["none", "first", "full"]


def self_attention(X: Float[Tensor, "*batch n d"], beta: float) -> Float[Tensor, "*batch n d"]:
    """sum_k softmax_k(beta <x_i, x_k>) x_k, the field of V = A = I. [prior]"""
    eye = torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)
    return attention_field(X, eye, eye, beta)


def modified_drift(field: Field, eta: float, corrector: Corrector = "full") -> Field:
    """The drift whose flow over a time eta is one layer x -> N(x + eta b_rho) up to O(eta^3). [ours]

    "full": b - (eta/2) nabla_b b - eta <x, b_rho> b. "first": without the last term, as in the transcription; right
    for projected velocities N(x + eta P_x b_rho). "none": b.
    Deterministic heads; random ones add -(eta/H) E[<x, xi> P_x xi], which is 0 for centred i.i.d. value matrices.
    """
    check_choice("corrector", corrector, get_args(Corrector))

    def b(X: Tensor) -> Tensor:
        return tangent(X, field(X))

    def drift(X: Tensor) -> Tensor:
        ambient = field(X)
        velocity = tangent(X, ambient)
        if corrector == "none":
            return velocity
        change = torch.autograd.functional.jvp(b, X, velocity)[1]  # torch.func.jvp compiles by a deprecated path
        modified = velocity - eta / 2 * tangent(X, change)
        if corrector == "full":
            modified = modified - eta * (X * ambient).sum(dim=-1, keepdim=True) * velocity
        return modified

    return drift


def sphere_flow(
    drift: Field, X0: Float[Tensor, "*batch n d"], time: float, *, steps: int
) -> Float[Tensor, "*batch n d"]:
    """The flow X' = drift(X) of a tangent field at ``time``: Runge and Kutta's fourth-order steps, then N. [ours]"""
    X, h = X0, time / steps
    for _ in range(steps):
        X = normalise(runge_kutta(X, h, drift))
    return X


def sphere_euler(
    field: Field, X0: Float[Tensor, "*batch n d"], time: float, *, steps: int, projected: bool = False
) -> Float[Tensor, "*batch n d"]:
    """``steps`` deterministic layers of eta = time / steps: x <- N(x + eta b_rho), or N(x + eta P_x b_rho). [digest]"""
    X, eta = X0, time / steps
    for _ in range(steps):
        move = field(X)
        X = normalise(X + eta * (tangent(X, move) if projected else move))
    return X


def observed_order(steps: ArrayLike, errors: ArrayLike) -> float:
    """The slope of log error against log step size, least squares."""
    return float(np.polyfit(np.log(steps), np.log(errors), 1)[0])


def runge_kutta(y: Tensor, h: float, rate: Field) -> Tensor:
    """One of Runge and Kutta's fourth-order steps of y' = rate(y)."""
    a = rate(y)
    b = rate(y + h / 2 * a)
    c = rate(y + h / 2 * b)
    return y + h / 6 * (a + 2 * b + 2 * c + rate(y + h * c))
