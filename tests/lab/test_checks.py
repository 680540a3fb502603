"""Checks of arguments: what is right passes, and each error names the argument, the value and the cure."""

import math
import re

import numpy as np
import pytest
import torch

from derived.lab.checks import (
    check_at_least,
    check_count,
    check_dtype,
    check_factored,
    check_fraction,
    check_one_dtype,
    check_positive,
    check_within,
)

KINDS = {
    "number": float,
    "array": lambda x: np.array([[1e-3, x]]),
    "tensor": lambda x: torch.tensor([1e-3, x], dtype=torch.float64),
    "scalar tensor": lambda x: torch.tensor(x, requires_grad=True),
    "scalar array": np.array,
}
CHECKS = {
    "> 0": (check_positive, (), (1e-300, 7.0), (0.0, -1.0, math.inf)),
    ">= 0.001": (check_at_least, (1e-3,), (1e-3, 7.0), (0.0, -1.0, math.inf)),
    "from 0.001 to 2": (check_within, (1e-3, 2), (1e-3, 2.0), (0.0, 2.5, -math.inf)),
    "strictly between 0 and 0.5": (check_fraction, (0.5,), (1e-3, 0.49), (0.0, 0.5)),
    "strictly between 0 and 1": (check_fraction, (), (1e-3, 0.99), (0.0, 1.0)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wanted", CHECKS)
def test_numbers_are_checked_entry_by_entry(kind, wanted):
    check, limits, right, wrong = CHECKS[wanted]
    make = KINDS[kind]
    for value in right:
        if kind == "scalar tensor" and value < 1e-30:
            continue  # zero in float32
        check("x", make(value), *limits)
    for value in (*wrong, math.nan):
        with pytest.raises(ValueError, match=rf"^x(\[.*1\])? = {value:g}; give .*{re.escape(wanted)}$"):
            check("x", make(value), *limits)


@pytest.mark.parametrize("value", [True, "1", None, [1.0]])
def test_what_is_no_number_is_shown_as_it_was_given(value):
    with pytest.raises(ValueError, match=re.escape(f"x = {value!r}; give a finite number > 0")):
        check_positive("x", value)


def test_counts_of_every_integer_type_and_with_a_reason():
    check_count("n", np.int64(1))
    check_count("n", 0, 0)
    with pytest.raises(ValueError, match="d = 1; give an integer >= 2; nothing moves on a sphere of dimension 0"):
        check_count("d", 1, 2, "nothing moves on a sphere of dimension 0")


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn, np.float64, "float64"]
)
def test_a_dtype_is_of_floating_point_numbers_that_torch_multiplies(dtype):
    with pytest.raises(ValueError, match=re.escape(f"dtype = {dtype!r}; give a floating-point type of torch")):
        check_dtype(dtype)
    check_dtype(torch.bfloat16)


@pytest.mark.parametrize("given", [torch.ones(2).long(), torch.ones(2) > 0, np.ones(2), [1.0], None])
@pytest.mark.parametrize("check", [check_one_dtype, check_factored])
def test_a_tensor_of_floating_point_numbers_is_asked_for(check, given):
    with pytest.raises(
        ValueError, match=r"^Y is a (tensor of torch\.\w+|ndarray|list|NoneType); give a floating-point"
    ):
        check(X=torch.ones(2), Y=given)


def test_tensors_of_two_dtypes_name_the_one_to_change():
    x, y = torch.ones(2), torch.ones(2).half()
    check_one_dtype(X=x, Y=x, Z=x)
    check_one_dtype(X=y)
    with pytest.raises(
        ValueError, match=r"^Y has the dtype torch\.float16 and Z torch\.float32; .*Y\.to\(torch\.float32\)$"
    ):
        check_one_dtype(X=x, Y=y, Z=x)
