"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

S           scores, s11 to s22 where there are four           (n, m)
a, b        weights of the two texts                          (n,), (m,)
beta        weight of the first token
num         half-steps, rows first
P, P_bar    a plan, and the derivative of a loss in it        (n, m)
"""

import math

import numpy as np
import torch

from derived.lab.exercises import FLOAT32, ask, checker, close, holds, ranges
from derived.lab.rng import stream

from .model import couplings, plan, theory

# Derive -------------------------------------------------------------------------------------------------------------


def _converged(s11, s12, s21, s22) -> torch.Tensor:
    return plan.sinkhorn(torch.tensor([[s11, s12], [s21, s22]], dtype=torch.float64), tol=1e-13).plan


def _cross(s11, s12, s21, s22):
    return s11 + s22 - s12 - s21


_scores = ranges(s11=(-2.0, 2.0), s12=(-2.0, 2.0), s21=(-2.0, 2.0), s22=(-2.0, 2.0))
share = close(
    lambda **S: 2 * _converged(**S)[0, 0],
    _scores,
    mistakes={
        "that is softmax": lambda s11, s12, s21, s22: 1 / (1 + math.exp(s12 - s11)),
        "the cross-ratio has two factors of p and two of 1 - p": lambda **S: 1 / (1 + math.exp(-_cross(**S))),
    },
)

rate = close(
    lambda **S: theory.local_rate(_converged(**S)),
    _scores,
    digits=3,
    mistakes={
        "an iteration has two half-steps": lambda **S: abs(math.tanh(_cross(**S) / 4)),
        "the argument is twice as large as it should be": lambda **S: math.tanh(_cross(**S) / 2) ** 2,
    },
)


def _nearest(beta):
    a = torch.full((3,), 1 / 3, dtype=torch.float64)
    b = torch.tensor([beta, (1 - beta) / 2, (1 - beta) / 2], dtype=torch.float64)
    return couplings.distance_to_couplings(torch.tensor([[1.0, 0, 0]] * 3, dtype=torch.float64) / 3, a, b)


sink = close(
    _nearest,
    ranges(beta=(0.05, 0.95)),
    mistakes={
        "that is what a coupling can give to token 1": lambda beta: beta,
        "that is for equal weights": lambda beta: 2 / 3,
    },
)

# Implement: half-steps ----------------------------------------------------------------------------------------------


def _problem(n: int, m: int, table: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and unequal weights."""
    draw = stream(table, "a table")
    S, a, b = (torch.randn(*size, generator=draw, dtype=torch.float64) for size in ((n, m), (n,), (m,)))
    return S.numpy(), a.softmax(dim=-1).numpy(), b.softmax(dim=-1).numpy()


def _first_is_softmax(steps, n, m, table):
    """`sk-gibbs`: the first half-step is softmax over the weighted tokens."""
    S, a, b = _problem(n, m, table)
    rows = b * np.exp(S)
    gap = np.abs(ask(steps, (n, m), S=S, num=1, a=a, b=b) - a[:, None] * rows / rows.sum(axis=1, keepdims=True)).max()
    return None if gap <= FLOAT32 else f"after one half-step it is off softmax by {gap:.2g}"


def _rows_then_columns(steps, n, m, table):
    """`sk-gibbs`: an odd number of half-steps ends on rows, an even one on columns."""
    S, a, b = _problem(n, m, table)
    for num, axis, sums in ((3, 1, a), (4, 0, b)):
        gap = np.abs(ask(steps, (n, m), S=S, num=num, a=a, b=b).sum(axis=axis) - sums).max()
        if not gap <= FLOAT32:
            return f"after {num} half-steps the {'rows' if axis else 'columns'} are off their weights by {gap:.2g}"
    return None


def _columns_come_right(steps, n, m, table):
    """`sk-hilbert`: each half-step brings the error to at most kappa times what it was."""
    S, a, b = _problem(n, m, table)
    kappa = float(theory.birkhoff_coefficient(torch.from_numpy(S)))
    first, last = (np.abs(ask(steps, (n, m), S=S, num=num, a=a, b=b).sum(axis=0) / b) for num in (1, 21))
    wide, narrow = (np.ptp(np.log(each)) for each in (first, last))
    return None if narrow <= kappa**20 * wide * (1 + 1e-6) + FLOAT32 else f"twenty half-steps leave {narrow / wide:.2g}"


def _rows_have_no_offset(steps, n, m, table):
    """`sk-offsets`: a number added to a row of scores changes no half-step, however large it is."""
    S, a, b = _problem(n, m, table)
    for offset in (-15.0, 900.0, -900.0):
        moved = ask(steps, (n, m), S=S + offset, num=5, a=a, b=b) - ask(steps, (n, m), S=S, num=5, a=a, b=b)
        if not np.abs(moved).max() <= FLOAT32 * abs(offset):  # S + offset is rounded as well
            return f"the same scores and {offset:g} have another table"
    return None


def _padding_gets_nothing(steps, n, m, table):
    """A token of weight zero is as if it were not there."""
    S, a, b = _problem(n, m, table)
    padded = ask(steps, (n, m + 1), S=np.c_[S, np.ones(n)], num=5, a=a, b=np.append(b, 0.0))
    if not padded[:, m].max() <= 1e-12:
        return f"a key of weight zero receives {padded[:, m].sum():.2g}"
    gap = np.abs(padded[:, :m] - ask(steps, (n, m), S=S, num=5, a=a, b=b)).max()
    return None if gap <= FLOAT32 else f"a key of weight zero moves the others by {gap:.2g}"


def _columns_first(S, num, a, b):
    S, a, b = (torch.as_tensor(each) for each in (S, a, b))
    return plan.half_steps(S.mT, num, b, a).exp().mT


def _kernel(S, num, a, b):
    """Outside of the log domain."""
    kernel, v = np.exp(S), b
    for step in range(num):
        if step % 2:
            v = b / (kernel.T @ u)
        else:
            u = a / (kernel @ v)
    return u[:, None] * kernel * v


half_steps = holds(
    (_first_is_softmax, _rows_then_columns, _columns_come_right, _rows_have_no_offset, _padding_gets_nothing),
    ranges(n=(2, 6), m=(2, 6), table=(1, 999)),
    mistakes={"columns first": _columns_first, "no log domain": _kernel},
)

# Implement: the derivative of a plan --------------------------------------------------------------------------------


def _plan(n: int, m: int, table: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A plan and two derivatives of losses."""
    S, a, b = (torch.from_numpy(each) for each in _problem(n, m, table))
    P = plan.sinkhorn(S, a, b, tol=1e-14, max_iterations=5000).plan
    return P.numpy(), *torch.randn(2, n, m, generator=stream(table, "losses"), dtype=P.dtype).numpy()


def _sums_have_no_gradient(gradient, n, m, table):
    """`sk-vjp`: what a loss reads of row and column sums alone is fixed."""
    P, first, _ = _plan(n, m, table)
    moved = np.abs(ask(gradient, (n, m), P=P, P_bar=first[:, :1] + first[:1])).max()
    return f"a loss of row and column sums has a gradient of {moved:.2g}" if moved > FLOAT32 else None


def _is_symmetric(gradient, n, m, table):
    """`sk-vjp`: the Jacobian is symmetric and has no negative direction."""
    P, first, second = _plan(n, m, table)
    one, two = (ask(gradient, (n, m), P=P, P_bar=each) for each in (first, second))
    if abs((one * second).sum() - (two * first).sum()) > FLOAT32:
        return "the Jacobian is not symmetric"
    return "the Jacobian has a negative direction" if (one * first).sum() < -FLOAT32 else None


def _is_the_slope_of_plans(gradient, n, m, table):
    """By differences of two plans."""
    P, loss, way = _plan(n, m, table)
    S, a, b = (torch.from_numpy(each) for each in _problem(n, m, table))
    near = [
        plan.sinkhorn(S + h * torch.from_numpy(way), a, b, tol=1e-14, max_iterations=5000).plan for h in (1e-4, -1e-4)
    ]
    slope = float((torch.from_numpy(loss) * (near[0] - near[1])).sum()) / 2e-4
    gap = abs((ask(gradient, (n, m), P=P, P_bar=loss) * way).sum() - slope)
    return f"along a change of the scores yours is off the slope of the loss by {gap:.2g}" if gap > 1e-5 else None


def _by_rows(P, P_bar):
    return P * (P_bar - (P * P_bar).sum(axis=1, keepdims=True) / P.sum(axis=1, keepdims=True))


def _rows_then_once_columns(P, P_bar):
    left = P_bar - (P * P_bar).sum(axis=1, keepdims=True) / P.sum(axis=1, keepdims=True)
    return P * (left - (P * left).sum(axis=0) / P.sum(axis=0))


derivative = holds(
    (_sums_have_no_gradient, _is_symmetric, _is_the_slope_of_plans),
    ranges(n=(2, 5), m=(2, 5), table=(1, 999)),
    mistakes={
        "the column potential detached, which is the derivative of softmax": _by_rows,
        "rows, and then columns once": _rows_then_once_columns,
    },
)

EXERCISES = {
    "sk-ex-two": (share, rate),
    "sk-ex-sink": sink,
    "sk-ex-steps": half_steps,
    "sk-ex-regression": derivative,
}
check = checker(EXERCISES)
