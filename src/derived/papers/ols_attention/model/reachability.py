"""Closed forms of training: which end points gradient training can reach, and whether the loss identifies L.

symbol    name          meaning                                            axes
l, P      l, P          scalar whitening weight and scalar read-out        numbers or arrays
s, beta   s, beta       root second moment and OLS slope of a scalar task  numbers or arrays
L, B      L, B          whitening map and least-squares coefficients       (..., p, d), (..., p, m)
Sigma     Sigma         second moment X^T X / n                            (..., p, p)
read_out  read_out      "frozen": P = s beta, its theoretical value; "recomputed": P = L^T X^T Y / n from the
                        current L; "trained": P is a parameter of its own
"""

from typing import Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import ArrayLike
from torch import Tensor

from derived.lab.checks import check_choice, check_positive

from .checks import check_composable, check_matrix

ReadOut = Literal["frozen", "recomputed", "trained"]
READ_OUTS = get_args(ReadOut)


def identifiable(B: Float[Tensor, "*batch p m"], rcond: float | None = None) -> bool:
    """Whether zero loss forces L L^T = Sigma^{-1}: iff rank B = p, see `ols-identify`. [ours]

    Sigma is invertible and L has d >= p columns.

    Zero loss says S b = b for every column b of Sigma^{1/2} B, where S = Sigma^{1/2} L L^T Sigma^{1/2}; these columns
    span R^p iff rank B = p. Over a batch: whether it holds for every member.
    """
    check_matrix("B", B)
    return bool((torch.linalg.matrix_rank(B, rtol=rcond) == B.shape[-2]).all())


def matrix_loss(
    L: Float[Tensor, "*batch p d"], Sigma: Float[Tensor, "*batch p p"], B: Float[Tensor, "*batch p m"]
) -> Float[Tensor, "*batch"]:
    """||Sigma^{1/2} ((L L^T Sigma)^2 - I) B||_F^2, the loss above the least-squares one, P recomputed. [ours]"""
    check_composable("Sigma", Sigma, "L", L)
    check_composable("Sigma", Sigma, "B", B)
    step = L @ (L.mT @ Sigma)
    gap = step @ (step @ B) - B
    return (gap * (Sigma @ gap)).sum(dim=(-2, -1))


def prediction_slope(l: ArrayLike, P: ArrayLike, s: ArrayLike, beta: ArrayLike, read_out: ReadOut) -> np.ndarray:
    """The slope of the scalar layer's prediction: l^3 s^2 P, with P = s beta, l s^2 beta or P itself. [ours]"""
    l, P, s, beta = (np.asarray(value, dtype=np.float64) for value in (l, P, s, beta))
    check_positive("s", s)
    read_outs = {"frozen": s * beta, "recomputed": l * s**2 * beta, "trained": P}
    check_choice("read_out", read_out, read_outs)
    return l**3 * s**2 * read_outs[read_out]


def scalar_flow(
    l: ArrayLike, P: ArrayLike, s: ArrayLike, beta: ArrayLike, read_out: ReadOut
) -> tuple[np.ndarray, np.ndarray]:
    """(dl/dt, dP/dt) of gradient flow on the mean squared error of the scalar layer, whose excess is s^2 e^2.

    With e = slope - beta (`ols-flows`):
    frozen      dl/dt = -6 s^2 e l^2 s^3 beta           zeros at 1/s and at the saddle 0, where the sign of dl/dt stays
    recomputed  dl/dt = -8 s^2 e l^3 s^4 beta           minima at 1/s and -1/s, a maximum at 0
    trained     dl/dt = -6 s^4 e l^2 P, dP/dt = -2 s^4 e l^3, which conserves l^2 - 3 P^2
    [ours]
    """
    error = prediction_slope(l, P, s, beta, read_out) - beta
    l, P, s, beta = (np.asarray(value, dtype=np.float64) for value in (l, P, s, beta))
    if read_out == "frozen":
        return -6 * s**5 * beta * error * l**2, np.zeros_like(P)
    if read_out == "recomputed":
        return -8 * s**6 * beta * error * l**3, np.zeros_like(P)
    return -6 * s**4 * error * l**2 * P, -2 * s**4 * error * l**3


def overshoot(l0: ArrayLike, s: ArrayLike, beta: ArrayLike, lr: float) -> np.ndarray:
    """How far the first step of gradient descent goes from l0, P recomputed, in units of the way to l = 0. [ours]

    chi u^2 (u^4 - 1) with u = l0 s and chi = 8 lr s^4 beta^2 (`ols-overshoot`). For |u| > 1 and chi <= 1/4: below
    1 descent keeps its sign and comes to sign(l0) / s; between 1 and 2 the first step changes the sign; above 2 every
    step does and is longer than the one before.
    """
    check_positive("s", np.asarray(s, dtype=np.float64))
    check_positive("lr", lr)
    u = np.asarray(l0, dtype=np.float64) * np.asarray(s, dtype=np.float64)
    chi = 8 * lr * np.asarray(s, dtype=np.float64) ** 4 * np.asarray(beta, dtype=np.float64) ** 2
    return chi * u**2 * (u**4 - 1)


def conserved_quantity(l: ArrayLike, P: ArrayLike) -> np.ndarray:
    """l^2 - 3 P^2, which gradient flow conserves when l and P are both trained. [ours]"""
    return np.asarray(l, dtype=np.float64) ** 2 - 3 * np.asarray(P, dtype=np.float64) ** 2


def predicted_end_point(l0: ArrayLike, P0: ArrayLike, s: ArrayLike, beta: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The limit (l, P) of the gradient flow that trains both l and P, from (l0, P0), see `ols-end-point`. [ours]

    With c = l0^2 - 3 P0^2 and q = 3 beta^2 / s^4, v = l^2 is the one positive root of v^4 - c v^3 - q: the curve of
    zero loss l^3 P = beta / s^2 meets the hyperbola l^2 - 3 P^2 = c once on each side of l = 0, and l keeps its sign.
    The flow gets there iff l0 P0 beta > 0 or c > 0; otherwise |P| cannot fall below sqrt(-c / 3), P keeps the wrong
    sign and the flow stalls at l = 0, P = sign(P0) sqrt(-c / 3).

    The root is found by Newton's method from max(c, 0) + q^{1/4}, above the root, where the quartic increases and is
    convex, so that the iterates fall monotonically to it. Arguments broadcast; raises ValueError for s <= 0.

    >>> l, P = predicted_end_point(0.5, 0.5, s=1.0, beta=2.0)
    >>> round(float(l**3 * P), 12), round(float(l**2 - 3 * P**2), 12)  # zero loss, on the hyperbola of the start
    (2.0, -0.5)
    """
    l0, P0, s, beta = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (l0, P0, s, beta)))
    check_positive("s", s)
    c, q = conserved_quantity(l0, P0), 3 * beta**2 / s**4
    reached = ((l0 * P0 * beta > 0) | (c > 0)) & (l0 != 0)
    v = np.where(reached, np.maximum(c, 0) + q**0.25, 1.0)
    for _ in range(100):  # at worst a factor 3/4 per step far above the root, quadratic near it
        v = np.where(reached, v - (v**3 * (v - c) - q) / (v**2 * (4 * v - 3 * c)), 1.0)
    l = np.where(reached, np.sign(l0) * np.sqrt(v), 0.0)
    stalled_P = np.sign(P0) * np.sqrt(np.maximum(-c, 0) / 3)
    return l, np.where(reached, beta / (s**2 * np.where(reached, l, 1.0) ** 3), stalled_P)


def edge_of_stability(
    s: ArrayLike, beta: ArrayLike, read_out: ReadOut, end_point: tuple[ArrayLike, ArrayLike] | None = None
) -> np.ndarray:
    """eta* = 2 / (largest curvature at the end point): gradient descent with a step above it cannot settle there.

    frozen 1 / (9 s^4 beta^2), recomputed 1 / (16 s^4 beta^2); trained, at (l, P) = ``end_point`` on the curve of zero
    loss, 1 / (s^6 (9 l^4 P^2 + l^6)). [ours]
    """
    s, beta = np.asarray(s, dtype=np.float64), np.asarray(beta, dtype=np.float64)
    check_positive("s", s)
    check_choice("read_out", read_out, READ_OUTS)
    if read_out == "trained":
        if end_point is None:
            raise ValueError("read_out = 'trained' has a curve of end points; give end_point=(l, P)")
        l, P = (np.asarray(value, dtype=np.float64) for value in end_point)
        return 1 / (s**6 * (9 * l**4 * P**2 + l**6))
    return 1 / ((9 if read_out == "frozen" else 16) * s**4 * beta**2)
