"""Checks of matrices: each error says what was given, why it is wrong and what would be right.

name    meaning                           axes
X       design matrix, tokens as rows     (..., n, p)
Y       responses                         (..., n, m)
"""

import torch
from torch import Tensor

from derived.lab.checks import check_one_dtype


def check_matrix(name: str, matrix: Tensor) -> None:
    """Raise ValueError unless ``matrix`` is a finite floating-point tensor (..., rows >= 1, columns >= 1)."""
    check_one_dtype(**{name: matrix})
    if matrix.ndim < 2:
        raise ValueError(f"{name} has shape {tuple(matrix.shape)}; give at least two axes (..., rows, columns)")
    if 0 in matrix.shape:
        raise ValueError(f"{name} has shape {tuple(matrix.shape)}, so it is empty; give at least one row and column")
    if not bool(torch.isfinite(matrix.sum())) and not bool(torch.isfinite(matrix).all()):  # the sum alone is faster
        raise ValueError(f"{name} contains NaN or infinity; drop or impute those rows first")


def check_rows(name: str, matrix: Tensor, other_name: str, other: Tensor) -> None:
    """Raise ValueError unless both matrices have the same number of rows (one row per token)."""
    if matrix.shape[-2] != other.shape[-2]:
        raise ValueError(
            f"{name} has {matrix.shape[-2]} rows and {other_name} has {other.shape[-2]}; "
            "both must have one row per token"
        )


def check_columns(name: str, matrix: Tensor, other_name: str, other: Tensor) -> None:
    """Raise ValueError unless both matrices have the same number of columns (one column per feature)."""
    if matrix.shape[-1] != other.shape[-1]:
        raise ValueError(
            f"{name} has {matrix.shape[-1]} columns and {other_name} has {other.shape[-1]}; "
            "both must have one column per feature"
        )


def check_composable(left_name: str, left: Tensor, right_name: str, right: Tensor) -> None:
    """Raise ValueError unless the product ``left @ right`` is defined."""
    if left.shape[-1] != right.shape[-2]:
        raise ValueError(
            f"{left_name} {tuple(left.shape)} cannot multiply {right_name} {tuple(right.shape)}: "
            f"{right_name} needs {left.shape[-1]} rows"
        )
