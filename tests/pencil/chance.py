"""Intervals of 99.9 % for small simulations, in plain Python."""

import math
from collections.abc import Sequence

STUDENT = {8: 5.4079, 12: 4.4370, 16: 4.0728, 20: 3.8834, 32: 3.6335}  # quantile 0.9995 for so many values


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Student's, for the mean of independent values."""
    n, mean = len(values), sum(values) / len(values)
    error = math.sqrt(sum((v - mean) ** 2 for v in values) / (n - 1) / n)
    return mean - STUDENT[n] * error, mean + STUDENT[n] * error


def share(hits: int, n: int) -> tuple[float, float]:
    """Clopper and Pearson's, for a probability of which so many of n independent trials came true."""

    def tail(first: int, last: int, p: float) -> float:
        logs = (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in range(first, last + 1))
        return sum(math.exp(w + k * math.log(p) + (n - k) * math.log1p(-p)) for k, w in enumerate(logs, start=first))

    def root(first: int, last: int, rises: bool) -> float:
        low, high = 0.0, 1.0
        for _ in range(50):
            p = (low + high) / 2
            low, high = (low, p) if (tail(first, last, p) > 0.0005) == rises else (p, high)
        return low

    return root(hits, n, True) if hits else 0.0, root(0, hits, False) if hits < n else 1.0


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Of least squares."""
    centre = sum(x) / len(x)
    return sum((a - centre) * b for a, b in zip(x, y, strict=True)) / sum((a - centre) ** 2 for a in x)
