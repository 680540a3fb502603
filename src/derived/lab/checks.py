"""Argument checks: each error says what was given, why it is wrong and what would be right.

name    meaning
name    the argument as the caller knows it
value   what was given; numbers may be a number, an array or a tensor of any shape, of which every entry must be right
"""

import math
from collections.abc import Callable, Collection
from numbers import Integral, Real

import numpy as np
import torch
from torch import Tensor

Numbers = float | np.ndarray | Tensor


def check_count(name: str, value: int, least: int = 1, why: str = "") -> None:
    """ValueError unless ``value`` is an integer of at least ``least``; ``why`` is added to the message.

    >>> check_count("depth", 0)
    Traceback (most recent call last):
    ValueError: depth = 0; give an integer >= 1
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} = {value!r}; give an integer >= {least}{why and '; ' + why}")


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """ValueError unless ``value`` is one of ``choices``.

    >>> check_choice("norm", "rms", ("layernorm", "tanh"))
    Traceback (most recent call last):
    ValueError: norm = 'rms'; give one of 'layernorm', 'tanh'
    """
    if value not in choices:
        raise ValueError(f"{name} = {value!r}; give one of {', '.join(map(repr, choices))}")


def check_positive(name: str, value: Numbers) -> None:
    """ValueError unless every entry of ``value`` is finite and > 0.

    >>> check_positive("alpha", np.array([1.0, -2.0]))
    Traceback (most recent call last):
    ValueError: alpha[1] = -2; give a finite number > 0
    """
    _check(name, value, lambda x: (x > 0) & (x < math.inf), "a finite number > 0")


def check_finite(name: str, value: Numbers) -> None:
    """ValueError unless every entry of ``value`` is finite: NaN would become a number that looks like any other.

    >>> check_finite("X", torch.tensor([1.0, math.nan]))
    Traceback (most recent call last):
    ValueError: X[1] = nan; give a finite number
    """
    _check(name, value, lambda x: abs(x) < math.inf, "a finite number")


def check_at_least(name: str, value: Numbers, low: float) -> None:
    """ValueError unless every entry of ``value`` is finite and >= ``low``.

    >>> check_at_least("noise", math.nan, 0)
    Traceback (most recent call last):
    ValueError: noise = nan; give a finite number >= 0
    """
    _check(name, value, lambda x: (x >= low) & (x < math.inf), f"a finite number >= {low:.15g}")


def check_within(name: str, value: Numbers, low: float, high: float) -> None:
    """ValueError unless low <= ``value`` <= high in every entry.

    >>> check_within("epsilon", torch.tensor([[0.5, 1.5]]), 0, 1)
    Traceback (most recent call last):
    ValueError: epsilon[0, 1] = 1.5; give a number from 0 to 1
    """
    _check(name, value, lambda x: (x >= low) & (x <= high), f"a number from {low:.15g} to {high:.15g}")


def check_fraction(name: str, value: Numbers, below: float = 1.0) -> None:
    """ValueError unless 0 < ``value`` < below in every entry.

    >>> check_fraction("error", 0.5, below=0.5)
    Traceback (most recent call last):
    ValueError: error = 0.5; give a number strictly between 0 and 0.5
    """
    _check(name, value, lambda x: (x > 0) & (x < below), f"a number strictly between 0 and {below:.15g}")


def check_dtype(dtype: torch.dtype) -> None:
    """ValueError unless ``dtype`` is a floating-point type in which torch draws and multiplies.

    >>> check_dtype(torch.int64)
    Traceback (most recent call last):
    ValueError: dtype = torch.int64; give a floating-point type of torch, such as torch.float64
    """
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point and dtype.itemsize > 1):
        raise ValueError(f"dtype = {dtype!r}; give a floating-point type of torch, such as torch.float64")


def check_one_dtype(**tensors: Tensor) -> None:
    """ValueError unless all are floating-point tensors of the last one's dtype, as products of them need.

    >>> check_one_dtype(X=torch.ones(2), Y=torch.ones(2).double())
    Traceback (most recent call last):
    ValueError: X has the dtype torch.float32 and Y torch.float64; give both one dtype, as by X.to(torch.float64)
    """
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            given = f"tensor of {tensor.dtype}" if isinstance(tensor, Tensor) else type(tensor).__name__
            raise ValueError(f"{name} is a {given}; give a floating-point torch tensor, such as one of float64")
    last, like = name, tensor.dtype
    for name, tensor in tensors.items():
        if tensor.dtype != like:
            raise ValueError(
                f"{name} has the dtype {tensor.dtype} and {last} {like}; give both one dtype, as by {name}.to({like})"
            )


def check_factored(**matrices: Tensor) -> None:
    """ValueError unless torch factors matrices of their dtypes, float32 and float64.

    >>> check_factored(X=torch.eye(2).half())
    Traceback (most recent call last):
    ValueError: X has the dtype torch.float16, in which torch factors no matrix; give X.float()
    """
    for name, matrix in matrices.items():
        check_one_dtype(**{name: matrix})
        if matrix.dtype not in (torch.float32, torch.float64):
            raise ValueError(
                f"{name} has the dtype {matrix.dtype}, in which torch factors no matrix; give {name}.float()"
            )


def _check(name: str, value: Numbers, inside: Callable, wanted: str) -> None:
    """ValueError with the first entry that is not inside; NaN never is."""
    if isinstance(value, bool) or not isinstance(value, Real | np.ndarray | Tensor):
        raise ValueError(f"{name} = {value!r}; give {wanted}")
    right = inside(value)
    if isinstance(value, Real):
        if not right:
            raise ValueError(f"{name} = {value:.15g}; give {wanted}")
    elif not bool(right.all()):
        place = torch.as_tensor(~right).nonzero()[0].tolist()
        raise ValueError(f"{name}{place or ''} = {value[tuple(place)].item():.15g}; give {wanted}")
