"""A second writing of the recurrences, one curve and one number at a time, that shares no code with the package."""

import math

import pytest


def moments(norm: str, alpha: float, q: float, p: float) -> tuple[float, float, float, float]:
    """q~, p~, q^, p^ of LayerNorm or of erf(alpha x)."""
    if norm == "layernorm":
        return 1.0, p / q, 1 / q, 1 / q
    x, y = 2 * alpha**2 * q, 2 * alpha**2 * p
    slope = 4 * alpha**2 / math.pi
    arcs = [2 / math.pi * math.asin(each / (1 + x)) for each in (x, y)]
    return *arcs, slope / math.sqrt((1 + x) ** 2 - x * x), slope / math.sqrt((1 + x) ** 2 - y * y)


def angle(rho: float) -> float:
    return (math.pi - math.acos(min(1.0, rho))) / (2 * math.pi)


def recurrence(norm: str, alpha: float, q: float, p: float, *, a: float, s: float, n: float, depth: int) -> dict:
    """q, p and J^{B,b} at b = 0 .. depth under uniform attention, and J^{b,0} at b = depth, n may be infinite."""
    course, steps = [(q, p)], []
    for _ in range(depth):
        tilde_q, tilde_p, hat_q, hat_p = moments(norm, alpha, q, p)
        mixed = a * (tilde_p + (tilde_q - tilde_p) / n)
        q, p = q + mixed, p + mixed
        tilde_q, tilde_p, half_q, half_p = moments(norm, alpha, q, p)
        rho = tilde_p / tilde_q
        joint = angle(rho)
        steps.append((a * hat_q, a * hat_p, 1 + s / 2 * half_q, 1 + s * joint * half_p))
        kappa = rho * joint + math.sqrt(max(0.0, 1 - rho * rho)) / (2 * math.pi)
        q, p = q + s / 2 * tilde_q, p + s * tilde_q * kappa
        course.append((q, p))
    J, K, back = 1.0, 0.0, [1.0]
    for own, shared, up_J, up_K in reversed(steps):
        J, K = J * up_J, K * up_K
        mean = J / n + (K if math.isinf(n) else K * (n - 1) / n)
        J, K = J + own * mean, K + shared * mean
        back.append(J)
    return {"q": [q for q, _ in course], "p": [p for _, p in course], "J": back[::-1]}


@pytest.fixture(scope="session")
def by_hand():
    """``recurrence``, for the tests that compare rows with it."""
    return recurrence
