"""What must hold of tokens: their dtype, their number, and a second moment and overlap that are a covariance.

name    meaning                                     axes
rho     correlation of two tokens, p / q            broadcastable
q, p    second moment and overlap of the tokens     broadcastable
n       number of tokens, an integer or infinity    broadcastable
"""

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from derived.lab.checks import check_one_dtype, check_positive, check_within

ROUNDING = 8 * np.finfo(float).eps  # of a quotient, so that p / q of equal tokens passes


def check_states(name: str, x: Tensor, dtype: torch.dtype | None = None) -> None:
    """Raise ValueError unless ``x`` is a floating-point tensor, of the ``dtype`` of the weights where one is given."""
    check_one_dtype(**{name: x})
    if dtype not in (None, x.dtype):
        raise ValueError(f"{name} has the dtype {x.dtype}, the weights have {dtype}; give {name}.to({dtype})")


def checked_correlation(name: str, rho: ArrayLike) -> np.ndarray:
    """``rho`` as floats in [-1, 1]; raises ValueError for a NaN, or an entry outside by more than rounding."""
    rho = np.asarray(rho, dtype=float)
    check_within(name, rho, -1 - ROUNDING, 1 + ROUNDING)
    return np.clip(rho, -1.0, 1.0)


def check_tokens(n: np.ndarray | float) -> None:
    """Raise ValueError unless every entry is an integer >= 2 or infinity: the overlap needs a pair of tokens."""
    n = np.asarray(n, dtype=float)
    if np.isnan(n).any() or np.any(n < 2) or np.any(n[np.isfinite(n)] % 1):
        raise ValueError(f"n = {n}; give a number of tokens >= 2 (one token has no overlap), or math.inf")


def check_moments(q: np.ndarray | float, p: np.ndarray | float, n: np.ndarray | float) -> None:
    """Raise ValueError unless q > 0 and -q / (n - 1) <= p <= q, so that q I + p (11^T - I) is a covariance."""
    check_positive("q", q)
    if not np.all(np.isfinite(p)):
        raise ValueError(f"p = {p}; give finite overlaps")
    low = -np.asarray(q, dtype=float) / (np.asarray(n, dtype=float) - 1)
    if np.any(np.less(p, low - ROUNDING * np.abs(q))) or np.any(np.greater(p, np.multiply(q, 1 + ROUNDING))):
        raise ValueError(f"p = {p} with q = {q}, n = {n} is no covariance; need -q / (n - 1) <= p <= q")
