"""Closed forms of scalar training: the gradient flows, what they conserve and where they end.

symbol    name          meaning                                            axes
l, P      l, P          scalar whitening weight and scalar read-out        numbers or arrays
s, beta   s, beta       root second moment and least-squares slope         numbers or arrays
read_out  read_out      "frozen": P = s beta, its theoretical value; "recomputed": P = L^T X^T Y / n from the
                        current L; "trained": P is a parameter, too
"""

from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from derived.lab.checks import check_choice, check_positive

ReadOut = Literal["frozen", "recomputed", "trained"]
READ_OUTS = get_args(ReadOut)


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
