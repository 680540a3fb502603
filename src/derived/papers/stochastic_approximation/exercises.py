"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

w            weight of world 1
A1, A2       slopes of the fields of two worlds
alpha, beta  exponents of the step and of the tail of a stay
a, epsilon   constant step, probability that the world is redrawn
"""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch

from derived.lab.exercises import FLOAT32, Wrong, ask, checker, close, holds, ranges

from .model import theory

# Derive -------------------------------------------------------------------------------------------------------------


def _way(w, A1, A2):
    """Worlds with the roots 1 and 0: b = A x*."""
    return float(theory.mean_field_root([A1, A2], [A1, 0.0], weights=[w, 1 - w]))


steep = close(
    _way,
    ranges(w=(0.1, 0.9), A1=(0.2, 5.0), A2=(0.2, 5.0)),
    mistakes={
        "that is the mean of the two ends": lambda w, A1, A2: w,
        "the learner listens more to the world that pulls harder": lambda w, A1, A2: w * A2 / (w * A2 + (1 - w) * A1),
    },
)


def _growth(alpha, beta):
    """The power of N, from expected counts at two large N, to the three decimals that it has for what is drawn."""
    counts = [theory.expected_freezes(beta, alpha, 1.0, 2**e) for e in (16, 18)]
    return round(math.log2(counts[1] / counts[0]) / 2, 3)


def _tails(generator: torch.Generator) -> dict:
    """Powers of either sign, none so near zero that two digits of it would ask for more stays."""
    while True:
        point = ranges(alpha=(0.5, 0.95), beta=(1.1, 1.9))(generator)
        if abs(1 - point["alpha"] * point["beta"]) > 0.15:
            return point


threshold = close(
    _growth,
    _tails,
    digits=2,
    mistakes={
        "how many stays start there?": lambda alpha, beta: -alpha * beta,
        "the tail is asked at N^alpha": lambda alpha, beta: 1 - beta,
    },
)


def _late(a, epsilon, delay):
    """x_n = a sum (1-a)^i k_(n - delay - i) against k_n, the correlations rho^j summed one by one."""
    ages = np.arange(2000)
    weights = a * (1 - a) ** ages
    weights, ages = weights[weights > 1e-12], ages[weights > 1e-12]
    rho = 1 - epsilon
    own = weights @ rho ** np.abs(ages[:, None] - ages) @ weights
    return 1 + own - 2 * weights @ rho ** (ages + delay)


late = close(
    _late,
    ranges(a=(0.05, 0.9), epsilon=(0.02, 0.6), delay=(1, 6)),
    digits=3,
    mistakes={
        "the news is late": lambda a, epsilon, delay: theory.tracking_error(a, epsilon, 0.0),
        "late news makes nothing smaller": lambda a, epsilon, delay: (
            theory.tracking_error(a, epsilon, 0.0) * (1 - epsilon) ** delay
        ),
    },
)

# Implement: an ergodic process that forgets nothing -----------------------------------------------------------------

GRID = (np.arange(60) + 0.5) / 60  # values of u; 60 is a multiple of each q
LONG = 300
PATHS = 20  # that a process may have


def _paths(process: Callable, q: int) -> np.ndarray:
    """The path of each u of the grid, (u, n), whole numbers from 0 to q - 1."""
    found = np.stack([ask(process, (LONG,), u=float(u), n=LONG, q=q) for u in GRID])
    if not np.isin(found, np.arange(q)).all():
        raise Wrong(f"a value of yours is not one of 0 to {q - 1}")
    return found.astype(int)


def _forgets_nothing(process, q):
    """`sa-tail`: the remote past tells the rest; here, two paths that agree for forty steps agree for ever."""
    whole: dict[bytes, bytes] = {}
    for path in _paths(process, q):
        if whole.setdefault(path[:40].tobytes(), path.tobytes()) != path.tobytes():
            return "two paths agree for forty steps and part later"
    return f"there are {len(whole)} different paths" if len(whole) > PATHS else None


def _is_stationary(process, q):
    """A step later, a path of a stationary process is a path of it, and has come as often."""
    paths = _paths(process, q)
    now, later = (Counter(map(tuple, each)) for each in (paths[:, :-1], paths[:, 1:]))
    if {*now} != {*later}:
        return "one step later a path of yours is none of yours"
    if max(now.values()) > min(now.values()) + 1:  # sixty values of u may not divide evenly
        return "some paths come more often than the paths that they become a step later"
    return None


def _is_ergodic(process, q):
    """A step leads from path to path; if it does not reach them all, they fall into parts that never meet."""
    paths = _paths(process, q)
    after = {tuple(path[:40]): tuple(path[1:41]) for path in paths}
    at, reached = tuple(paths[0, :40]), set()
    while at not in reached:
        reached.add(at)
        at = after.get(at, at)
    return None if len(reached) == len(after) else "no path goes through all others: what is seen depends on u for ever"


def _visits_all_alike(process, q):
    """In one turn through all paths each value has its share."""
    path = _paths(process, q)[0]
    turn = next((n for n in range(1, PATHS + 1) if (path[n:] == path[:-n]).all()), LONG)
    shares = np.bincount(path[:turn], minlength=q) / turn
    worst = np.abs(shares - 1 / q).argmax()
    if abs(shares[worst] - 1 / q) > FLOAT32:
        return f"a path spends {shares[worst]:.2f} of its time in one value"
    return None


def _is_one_path(process, q):
    """The same u gives the same path, however much of it is asked for."""
    for u in GRID[::7]:
        long, short = (ask(process, (n,), u=float(u), n=n, q=q) for n in (2 * LONG, 50))
        if (long[:50] != short).any() or {*long[LONG:]} != {*range(q)}:
            return "for another n it is another path"
    return None


def _cycle(u, n, q):
    return (np.arange(n) + math.floor(u * q)) % q


process = holds(
    (_forgets_nothing, _is_stationary, _is_ergodic, _visits_all_alike, _is_one_path),
    ranges(q=(2, 6)),
    mistakes={
        "always from the same value, which is not stationary": lambda u, n, q: _cycle(0.0, n, q),
        "one value for ever, which is not ergodic": lambda u, n, q: np.full(n, math.floor(u * q)),
    },
)

EXERCISES = {
    "sa-ex-steep": steep,
    "sa-ex-threshold": threshold,
    "sa-ex-late": late,
    "sa-ex-tail": process,
}
check = checker(EXERCISES)
