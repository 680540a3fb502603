"""Argument checks: each error says what was given, why it is wrong and what would be right.

name    meaning                                     axes
q, p    second moment and overlap of the tokens     broadcastable
n       number of tokens, an integer or infinity    broadcastable
"""

from numbers import Integral

import numpy as np


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} = {value!r}; give one of {', '.join(map(repr, choices))}")


def check_count(name: str, value: int, least: int = 1) -> None:
    """Raise ValueError unless ``value`` is an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} = {value!r}; give an integer >= {least}")


def check_at_least(name: str, value: np.ndarray | float, bound: float) -> None:
    """Raise ValueError unless every entry of ``value`` is finite and at least ``bound``."""
    if not np.all(np.isfinite(value)) or np.any(np.less(value, bound)):
        raise ValueError(f"{name} = {value}; give finite numbers >= {bound:g}")


def check_positive(name: str, value: np.ndarray | float) -> None:
    """Raise ValueError unless every entry of ``value`` is finite and positive."""
    if not np.all(np.isfinite(value)) or np.any(np.less_equal(value, 0)):
        raise ValueError(f"{name} = {value}; give finite numbers > 0")


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
    slack = 8 * np.finfo(float).eps  # of q: the rounding of a quotient, so that p = -q / (n - 1) itself passes
    low = -np.asarray(q, dtype=float) / (np.asarray(n, dtype=float) - 1)
    if np.any(np.less(p, low - slack * np.abs(q))) or np.any(np.greater(p, np.multiply(q, 1 + slack))):
        raise ValueError(f"p = {p} with q = {q}, n = {n} is no covariance; need -q / (n - 1) <= p <= q")
