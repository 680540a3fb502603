"""Linear fields without a loop: an iterate is a weighted sum of its samples.

symbol   name   meaning                                                        axes
lambda   lam    pull of the field h = y - lambda x                             scalar
w_i      -      weight of sample i in x_t, a_i prod_{i < j <= t} (1 - a_j lambda)    (t - s,)
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from .core import Path, StepSize, check_record, robbins_monro

PIECES = 16  # sums that run side by side: a matrix-vector product alone uses one thread on some processors


def linear_iterates(
    lam: float, y: Float[Tensor, "N ..."], step: StepSize | Tensor, x0: Tensor, *, record: Sequence[int] | None = None
) -> Path:
    """``robbins_monro`` for h = y - lambda x, as weighted sums of the samples.

    Between recorded times s < t, x_t = prod_{s < j <= t} (1 - a_j lambda) x_s + sum_i w_i y_i.
    Matrix-vector products read the samples once, at the speed of memory; the loop reads and writes the state in each
    step as well. Data (N, R) or (N, R, d); arguments and errors as there. It pays where few times are recorded.

    >>> y = torch.tensor([[1.0], [0.0], [2.0]], dtype=torch.float64)
    >>> linear_iterates(1.0, y, StepSize.power(), torch.zeros(1, dtype=torch.float64)).x
    tensor([[1.]], dtype=torch.float64)
    """
    steps = len(y)
    a = step.values(max(1, steps)) if isinstance(step, StepSize) else step
    if a.shape != (steps,) or y.shape[1:] != x0.shape or not bool(torch.isfinite(x0).all()):
        return robbins_monro(
            lambda x, y: y - lam * x, y, step, x0, record=record
        )  # which takes it, or says what is wrong
    times = check_record(record, steps)
    x, kept, s = x0, [], 0
    for t in times:
        share = 1 - lam * a[s:t]
        left = torch.cat([share, share.new_ones(1)]).flip(0).cumprod(dim=0).flip(0)  # prod over i <= j < t
        weights = (a[s:t] * left[1:]).to(y)
        x = left[0].to(y) * x + _weighted(weights, y[s:t].flatten(1)).view_as(x0)
        kept.append(x)
        s = t
    if not bool(torch.isfinite(x).all()):
        return robbins_monro(lambda x, y: y - lam * x, y, step, x0, record=record)
    return Path(times, torch.stack(kept))


def _weighted(weights: Tensor, y: Tensor) -> Tensor:
    """sum_i w_i y_i, (R,), of weights (n,) and y (n, R), in PIECES sums whatever the number of threads."""
    each = len(y) // PIECES
    whole = PIECES * each
    pieces = weights[:whole].view(PIECES, 1, each) @ y[:whole].unflatten(0, (PIECES, each))
    return pieces.sum(dim=(0, 1)) + weights[whole:] @ y[whole:]
