"""Rows that are distributions: each error says what was given, why it is wrong and what would be right.

name    meaning                                   axes
rows    distributions along the last axis      (..., V)
"""

import math

import torch
from torch import Tensor

from derived.lab.checks import check_positive, check_within


def as_float64(values: Tensor | float) -> Tensor:
    """The values as a float64 tensor on their own device."""
    return torch.as_tensor(values, dtype=torch.float64)


def check_share(name: str, value: float) -> None:
    """Raise ValueError unless 0 < ``value`` <= 1."""
    check_positive(name, value)
    check_within(name, value, 0, 1)


def as_probability(name: str, values: Tensor | float) -> Tensor:
    """The values as a float64 tensor. Raises ValueError for NaN, and outside [0, 1] by more than rounding."""
    values = as_float64(values)
    slack = sum_tolerance(values.dtype, 1)
    if values.numel() and not bool(((values >= -slack) & (values <= 1 + slack)).all()):
        raise ValueError(f"{name} runs from {values.min().item():.3g} to {values.max().item():.3g}; give probabilities")
    return values


def sum_tolerance(dtype: torch.dtype, num_tokens: int) -> float:
    """How far a softmax row of this dtype may sum from one.

    Each entry is rounded by eps / 2 of itself, or by half the smallest subnormal where it underflows; the normaliser is
    a sum of V terms, whose rounding errors are taken as a random walk, sqrt(V) eps, with 64 eps for the exponentials.
    float64 rows may have been made in float32 and widened, so they get float32's tolerance.
    """
    info = torch.finfo(torch.float32 if dtype == torch.float64 else dtype)
    return (64 + math.sqrt(num_tokens)) * info.eps + num_tokens * info.smallest_normal * info.eps


def check_laws(name: str, rows: Tensor, where: str = "") -> None:
    """Raise ValueError unless every row along the last axis is a distribution up to the rounding of its dtype."""
    if not isinstance(rows, Tensor) or not rows.is_floating_point() or rows.ndim < 1 or 0 in rows.shape:
        given = f"{rows.dtype} {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
        raise ValueError(f"{name} is {given}; give a floating-point tensor (..., V) with at least one row")
    sums = rows.sum(dim=-1, dtype=torch.promote_types(rows.dtype, torch.float32))
    apart, least = (sums - 1).abs(), rows.amin().item()
    if not apart.max().item() <= (tolerance := sum_tolerance(rows.dtype, rows.shape[-1])):  # NaN counts as far
        first = (~(apart <= tolerance)).nonzero()[0].tolist()
        total = sums[tuple(first)].item()
        hint = "a zero row has no law to draw from" if total == 0 else "give probabilities, as softmax returns them"
        raise ValueError(f"{name}{where}: row {first} sums to {total:.9g}, not to 1; {hint}")
    if least < 0:
        raise ValueError(f"{name}{where}: there is a negative probability, {least:.3g}; clip and rescale it")


def check_same_vocabulary(name: str, num_tokens: int, other_name: str, other_num_tokens: int) -> None:
    """Raise ValueError unless both have the same number of tokens."""
    if num_tokens != other_num_tokens:
        raise ValueError(
            f"{name} has {num_tokens} tokens and {other_name} has {other_num_tokens}; draft and verifier must share "
            "one vocabulary, token by token"
        )


def check_pair(p: Tensor, q: Tensor) -> None:
    """Raise ValueError unless p and q are distributions on one vocabulary."""
    check_laws("p", p)
    check_laws("q", q)
    check_same_vocabulary("p", p.shape[-1], "q", q.shape[-1])
