"""Argument checks: each error says what was given, why it is wrong and what would be right.

name    meaning                                             axes
T       length of the sequence                              integer
levels  number L of resolutions, the finest one included    integer
"""

import math
from numbers import Integral

import torch
from torch import Tensor


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} = {value!r}; give one of {', '.join(map(repr, choices))}")


def check_count(name: str, value: int, least: int = 1) -> None:
    """Raise ValueError unless ``value`` is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} = {value!r}; give an integer >= {least}")


def check_within(name: str, value: float, low: float, high: float) -> None:
    """Raise ValueError unless low <= value <= high."""
    if not low <= value <= high:
        raise ValueError(f"{name} = {value}; give a number from {low:g} to {high:g}")


def check_levels(T: int, levels: int) -> None:
    """Raise ValueError unless T >= 2^(levels - 1): the coarsest row must have a whole block of tokens to stand for."""
    check_count("levels", levels)
    check_count("T", T)
    if 2 ** (levels - 1) > T:
        raise ValueError(
            f"T = {T} tokens are fewer than the {2 ** (levels - 1)} that a row of level {levels - 1} stands for; "
            f"give a longer sequence or at most {int(math.log2(T)) + 1} levels"
        )


def check_square(name: str, M: Tensor) -> None:
    """Raise ValueError unless ``M`` is a batch of finite square matrices."""
    if M.ndim < 2 or M.shape[-1] != M.shape[-2]:
        raise ValueError(f"{name} has shape {tuple(M.shape)}; give square matrices (..., n, n)")
    if not bool(torch.isfinite(M).all()):
        raise ValueError(f"{name} has entries that are not finite; give finite numbers")
