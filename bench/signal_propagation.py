"""Race of signal propagation: ``python bench/signal_propagation.py [--quick] [--keep]``.

The mean-field engine on many Derf curves at once against the same recurrence in a loop that numba compiles, one curve
after another.
"""

from functools import cache
from math import acos, asin, pi, sqrt

import numpy as np
import torch
from race import Race, command, require

from derived.lab.rng import stream
from derived.papers.signal_propagation.model.kernels import ErfKernel
from derived.papers.signal_propagation.model.meanfield import propagate

TOKENS, START = 197, 0.2


def build(num_curves: int, depth: int) -> tuple:
    """alpha, a and s of each curve, and the depth."""
    draw = torch.rand(3, num_curves, generator=stream(0, "bench curves"), dtype=torch.float64).numpy()
    return 0.1 + 1.9 * draw[0], 0.02 + draw[1], 0.1 + 2 * draw[2], depth


def ours(inputs: tuple) -> tuple[np.ndarray, ...]:
    """propagate, all curves at once"""
    alpha, a, s, depth = inputs
    found = propagate(1.0, START, kernel=ErfKernel(alpha), a=a, s=s, n=TOKENS, depth=depth)
    logs, ratios = (found.log_J_backward, found.log_J_forward), (found.ratio_backward, found.ratio_forward)
    return found.q, found.p, *logs, *ratios


@cache
def compiled():
    """The loop as machine code, for one thread: ``paths`` (curves, 6, depth + 1) of q, p, J and K backward, forward."""
    from numba import njit

    @njit(fastmath=True)
    def moments(q, p, c):  # q~, p~, q^, p^ of Derf with c = 2 alpha^2
        total = 1 + c * q
        q_t, p_t = 2 / pi * asin(min(c * q / total, 1.0)), 2 / pi * asin(max(min(c * p / total, 1.0), -1.0))
        return q_t, p_t, 2 * c / pi / sqrt(total + c * q), 2 * c / pi / sqrt(total**2 - (c * p) ** 2)

    @njit(fastmath=True)
    def fill_all(paths, facts, all_c, all_a, all_s, start, n):
        for i in range(len(paths)):
            path, c, a, s, q, p, J, K = paths[i], all_c[i], all_a[i], all_s[i], 1.0, start, 1.0, 0.0
            path[0, 0], path[1, 0], path[4, 0], path[5, 0] = q, p, J, K
            for b in range(len(facts)):
                q_t, p_t, q_h, p_h = moments(q, p, c)
                q, p = q + a * (p_t + (q_t - p_t) / n), p + a * (p_t + (q_t - p_t) / n)
                x, y = a * q_h / n, a * p_h / n
                q_t, p_t, q_h, p_h = moments(q, p, c)
                rho = max(min(p_t / q_t, 1.0), -1.0)
                angle = pi - acos(rho)
                q, p = q + s / 2 * q_t, p + s * q_t * (sqrt(1 - rho**2) + rho * angle) / (2 * pi)
                u, v = 1 + s / 2 * q_h, 1 + s * angle / (2 * pi) * p_h
                facts[b, 0], facts[b, 1], facts[b, 2], facts[b, 3] = x, y, u, v
                J, K = u * ((1 + x) * J + y * K), v * ((n - 1) * x * J + (1 + (n - 1) * y) * K)
                path[0, b + 1], path[1, b + 1], path[4, b + 1], path[5, b + 1] = q, p, J, K
            path[2, -1], path[3, -1], J, K = 1.0, 0.0, 1.0, 0.0
            for b in range(len(facts) - 1, -1, -1):
                x, y, j, k = facts[b, 0], facts[b, 1], facts[b, 2] * J, facts[b, 3] * K
                J, K = (1 + x) * j + (n - 1) * x * k, y * j + (1 + (n - 1) * y) * k
                path[2, b], path[3, b] = J, K

    return fill_all


def peer(inputs: tuple) -> tuple[np.ndarray, ...]:
    """the scalar loop compiled by numba"""
    alpha, a, s, depth = inputs
    paths = np.empty((len(a), 6, depth + 1))
    compiled()(paths, np.empty((depth, 4)), 2 * alpha**2, a, s, START, float(TOKENS))
    q, p, J, K, J_forward, K_forward = paths.swapaxes(0, 1)
    K /= J
    K_forward /= J_forward
    return q, p, np.log(J, out=J), np.log(J_forward, out=J_forward), K, K_forward


def check(_: tuple, mine: tuple, theirs: tuple) -> None:
    """Relative gaps of q, of p over q, of both J and of both 1 + K/J."""
    (q, p, *logs), (q_, p_, *logs_) = mine[:4], theirs[:4]
    gaps = [
        np.abs(q / q_ - 1),
        np.abs(p - p_) / q,
        *(np.abs(np.expm1(x - y)) for x, y in zip(logs, logs_, strict=True)),
    ]
    gaps += [np.abs((x - y) / (1 + y)) for x, y in zip(mine[4:], theirs[4:], strict=True)]
    worst = float(max(gap.max() for gap in gaps))
    require(worst <= 1e-10, f"the curves differ by {worst:.3g}")


SIZES, TOY = {"num_curves": 10_000, "depth": 1000}, {"num_curves": 20, "depth": 30}
RACE = Race("Derf, 10000 curves of 1000 blocks", build, ours, peer, check, SIZES, TOY, needs="numba")

if __name__ == "__main__":
    command("signal_propagation", RACE)
