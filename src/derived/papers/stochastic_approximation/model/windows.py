"""Weighted sums over windows of time, the step from averages that start at zero to averages that start at n.

symbol   name     meaning                                                              axes
a_i      steps    positive steps that do not increase, i = 1, 2, ...                   (N,)
g_i      g        data, row i - 1                                                      (N,) or (N, R)
S_j      -        g_1 + ... + g_j                                                      as g
n        start    first time of the windows n..k, k = n, ..., N                        number >= 2

The lemma: |sum_{i=n}^k a_i g_i| <= eps (2 (n-1) a_n + sum_{i=n}^k a_i) with eps = max_{n-1 <= j <= k} |S_j| / j.
Source: ours; summation by parts.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count


def window_sums(steps: Float[Tensor, "N"], g: Float[Tensor, "N *R"], start: int) -> Float[Tensor, "K *R"]:
    """sum_{i=n}^k a_i g_i for k = n, ..., N. ValueError for steps that do not fit, increase or are not positive.

    >>> window_sums(torch.tensor([1.0, 0.5, 0.25]), torch.ones(3), 2)
    tensor([0.5000, 0.7500])
    """
    _check(steps, g, start)
    return (_column(steps, g) * g)[start - 1 :].cumsum(dim=0)


def window_bounds(steps: Float[Tensor, "N"], g: Float[Tensor, "N *R"], start: int) -> Float[Tensor, "K *R"]:
    """The lemma's bound of ``window_sums``, for each window with the averages up to its own end.

    >>> window_bounds(torch.tensor([1.0, 0.5, 0.25]), torch.ones(3), 2)
    tensor([1.5000, 1.7500])
    """
    _check(steps, g, start)
    count = _column(torch.arange(1, len(g) + 1, dtype=g.dtype), g)
    epsilon = ((g.cumsum(dim=0) / count).abs()[start - 2 :]).cummax(dim=0).values[1:]
    length = _column(steps[start - 1 :].cumsum(dim=0), g)
    return epsilon * (2 * (start - 1) * steps[start - 1] + length)


def extreme_sequence(steps: int, start: int) -> Float[Tensor, "N"]:
    """Data that attain the bound in every window from ``start`` on: S_{n-1} = -(n-1), then S_i = i.

    >>> extreme_sequence(4, 3).cumsum(dim=0)
    tensor([-1., -2.,  3.,  4.], dtype=torch.float64)
    """
    check_count("start", start, least=2)
    check_count("steps", steps, least=start)
    g = torch.ones(steps, dtype=torch.float64)
    g[: start - 1] = -1.0
    g[start - 1] = 2 * start - 1
    return g


def _column(values: Tensor, g: Tensor) -> Tensor:
    """Values (N,) with as many axes as g."""
    return values.reshape(-1, *[1] * (g.ndim - 1))


def _check(steps: Tensor, g: Tensor, start: int) -> None:
    if steps.ndim != 1 or not len(steps) or g.shape[:1] != steps.shape:
        raise ValueError(f"steps {tuple(steps.shape)} and g {tuple(g.shape)}; give (N,) and (N,) or (N, R)")
    check_count("start", start, least=2)
    if start > len(steps):
        raise ValueError(f"start = {start} of {len(steps)} steps; give a start within the data")
    if not bool((steps > 0).all()) or bool((steps.diff() > 0).any()):
        raise ValueError("the steps must be positive and not increase: the lemma sums by parts")
