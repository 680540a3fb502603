"""The exercises of the chapter: what is right, where it is tried, and what often goes wrong.

w            weight of world 1
A1, A2       slopes of the fields of two worlds
lam          eigenvalue of a reversible chain
alpha, beta  exponents of the step and of the tail of a sojourn
r, g, m      share of the prompt, fading per step of age, what the prompt alone would read
a, epsilon   constant step, probability that the world is drawn anew
scores, values  of tokens                                           (tokens,)
"""

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import torch

from derived.lab.exercises import FLOAT32, Derive, Implement, Wrong, ask, checker, ranges
from derived.lab.rng import stream

from .model import theory

# Derive -------------------------------------------------------------------------------------------------------------


def _way(w, A1, A2):
    """Worlds with the roots 1 and 0: b = A x*."""
    return float(theory.mean_field_root([A1, A2], [A1, 0.0], weights=[w, 1 - w]))


steep = Derive(
    _way,
    ranges(w=(0.1, 0.9), A1=(0.2, 5.0), A2=(0.2, 5.0)),
    low=0,
    high=1,
    mistakes={
        "that is the mean of the two ends": lambda w, A1, A2: w,
        "the learner listens more to the world that pulls harder": lambda w, A1, A2: w * A2 / (w * A2 + (1 - w) * A1),
        "worlds come with their weights": lambda w, A1, A2: A1 / (A1 + A2),
        "slopes, not their squares": lambda w, A1, A2: w * A1**2 / (w * A1**2 + (1 - w) * A2**2),
    },
)


def _moved(lam, steps):
    """On a chain of two states with the eigenvalue lam, which is reversible."""
    stay = (1 + lam) / 2
    P = np.array([[stay, 1 - stay], [1 - stay, stay]])
    f = np.array([1.0, -1.0])
    jumps = (f[None] - f[:, None]) ** 2
    return (np.linalg.matrix_power(P, steps) * jumps).sum() / 2


eigenfunction = Derive(
    _moved,
    ranges(lam=(-0.9, 0.99), steps=(1, 8)),
    low=0,
    high=4,
    mistakes={
        "that is one step": lambda lam, steps: 2 * (1 - lam),
        "both times have the stationary law": lambda lam, steps: 1 - lam**steps,
        "a conditional mean is no value": lambda lam, steps: (1 - lam**steps) ** 2,
        "f moves although its mean square does not": lambda lam, steps: 1 - lam ** (2 * steps),
    },
)


def _growth(alpha, beta):
    """The power of N, from expected counts at two large N, to the three decimals that it has for what is drawn."""
    counts = [theory.expected_freezes(beta, alpha, 1.0, 2**e) for e in (16, 18)]
    return round(math.log2(counts[1] / counts[0]) / 2, 3)


def _tails(generator: torch.Generator) -> dict:
    """Powers of either sign, none so near zero that two digits of it would ask for more sojourns."""
    while True:
        point = ranges(alpha=(0.5, 0.95), beta=(1.1, 1.9))(generator)
        if abs(1 - point["alpha"] * point["beta"]) > 0.15:
            return point


threshold = Derive(
    _growth,
    _tails,
    digits=2,
    mistakes={
        "how many sojourns start there?": lambda alpha, beta: -alpha * beta,
        "the tail is asked at N^alpha": lambda alpha, beta: 1 - beta,
        "the mean length of a sojourn is finite": lambda alpha, beta: 1 - alpha * (beta - 1),
        "a tail is a power of a power": lambda alpha, beta: 1 - alpha - beta,
    },
)


def _fading(r, g, m):
    theta = (1 - r) * (1 - g) * g ** np.arange(600)
    theta = theta[theta > 1e-14]
    return theory.linear_chain_moments(r * m, theta).long_run


fading = Derive(
    _fading,
    ranges(r=(0.15, 0.9), g=(0.3, 0.9), m=(0.1, 0.9)),
    low=0,
    digits=3,
    mistakes={
        "the data are not independent": lambda r, g, m: m * (1 - m),
        "the innovations have a smaller variance than the data": lambda r, g, m: m * (1 - m) / r**2,
        "memory adds up over all ages": lambda r, g, m: m * (1 - m) / (1 - (1 - r) * (1 - g)) ** 2,
        "the sum over lags has two sides": lambda r, g, m: m * (1 - m) / r,
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


late = Derive(
    _late,
    ranges(a=(0.05, 0.9), epsilon=(0.02, 0.6), delay=(1, 6)),
    low=0,
    digits=3,
    mistakes={
        "the news is late": lambda a, epsilon, delay: theory.tracking_error_exact(a, epsilon, 0.0),
        "late news makes nothing smaller": lambda a, epsilon, delay: (
            theory.tracking_error_exact(a, epsilon, 0.0) * (1 - epsilon) ** delay
        ),
        "the variance of what is held does not know the delay": lambda a, epsilon, delay: (
            1 + (1 - epsilon) ** delay * (theory.tracking_error_exact(a, epsilon, 0.0) - 1)
        ),
        "a step later, the correlation has one factor more": lambda a, epsilon, delay: _late(a, epsilon, delay - 1),
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
        return "some paths come more often than those that they are a step later"
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


def _coins(u, n, q):
    return torch.randint(q, (n,), generator=stream(0, "coins", str(u))).numpy()


process = Implement(
    (_forgets_nothing, _is_stationary, _is_ergodic, _visits_all_alike, _is_one_path),
    ranges(q=(2, 6)),
    mistakes={
        "always from the same value, which is not stationary": lambda u, n, q: _cycle(0.0, n, q),
        "one value for ever, which is not ergodic": lambda u, n, q: np.full(n, math.floor(u * q)),
        "independent values, which forget": _coins,
        "to the end and back, which visits the ends less often": lambda u, n, q: (
            np.abs((np.arange(n) + math.floor(u * (2 * q - 2))) % (2 * q - 2) - (q - 1)) if q > 2 else np.zeros(n)
        ),
        "two worlds, one of them without its last value": lambda u, n, q: (
            _cycle(u, n, q) if u < 0.5 else _cycle(u, n, q - 1)
        ),
        "constant after a while": lambda u, n, q: _cycle(u, n, q)[np.minimum(np.arange(n), LONG)],
        "another path for each length": lambda u, n, q: _cycle((u + n / 7) % 1, n, q) if n != LONG else _cycle(u, n, q),
    },
)

# Implement: memories that can be joined -----------------------------------------------------------------------------


def _sizes(generator: torch.Generator) -> dict:
    """Sizes of scores over four powers of ten: small ones show who forgets a memory, large ones who overflows."""
    point = ranges(power=(0.0, 3.95), tokens=(1, 999))(generator)
    return {"size": 10 ** point["power"], "tokens": point["tokens"]}


def _tokens(size: float, tokens: int) -> tuple[np.ndarray, np.ndarray]:
    draw = stream(tokens, "tokens to join")
    scores, values = torch.randn(2, 12, generator=draw, dtype=torch.float64).numpy()
    return size * scores, values


def _memory(join: Callable, scores: np.ndarray, values: np.ndarray) -> tuple:
    """All tokens, one after the other, from the memory of none."""
    memory = (-math.inf, 0.0, 0.0)
    for score, value in zip(scores, values, strict=True):
        memory = _joined(join, memory, (float(score), float(value), 1.0))
    return memory


def _joined(join: Callable, first: tuple, second: tuple) -> tuple:
    return tuple(float(each) for each in ask(join, (3,), first=first, second=second))


def _read(memory: tuple) -> float:
    return memory[1] / memory[2] if memory[2] else math.nan


def _softmax(scores: np.ndarray, values: np.ndarray) -> float:
    weights = np.exp(scores - scores.max())
    return weights @ values / weights.sum()


def _rounding(size: float) -> float:
    """What float32 makes of scores of some 3 times ``size``, and with it of their weights; twelve tokens."""
    return 12 * float(np.finfo(np.float32).eps) * (1 + 3 * size)


def _reads_what_softmax_reads(join, size, tokens):
    """{eq}`sa-eq-read`, over the stored tokens."""
    scores, values = _tokens(size, tokens)
    gap = abs(_read(_memory(join, scores, values)) - _softmax(scores, values))
    return None if gap <= _rounding(size) else f"what twelve tokens read is off softmax by {gap:.2g}"


def _order_does_not_matter(join, size, tokens):
    scores, values = _tokens(size, tokens)
    halves = [_memory(join, scores[part], values[part]) for part in (slice(0, 5), slice(5, 12))]
    one, two = _joined(join, *halves), _joined(join, *halves[::-1])
    gap = max(abs(_read(each) - _softmax(scores, values)) for each in (one, two))
    return None if gap <= _rounding(size) else f"two halves joined are off softmax by {gap:.2g}"


def _nothing_changes_nothing(join, size, tokens):
    memory, none = _memory(join, *_tokens(size, tokens)), (-math.inf, 0.0, 0.0)
    for first, second, both in ((memory, none, memory), (none, memory, memory), (none, none, none)):
        if not np.allclose(_joined(join, first, second), both, rtol=1e-6, atol=1e-6):
            return "joined with the memory of no token it changes"
    return None


def _knows_its_largest(join, size, tokens):
    scores, values = _tokens(size, tokens)
    memory = _memory(join, scores, values)
    gap = max(abs(memory[0] - scores.max()), abs(memory[2] - np.exp(scores - scores.max()).sum()))
    return None if gap <= _rounding(size) else f"the largest score is {scores.max():.4g}, in yours {memory[0]:.4g}"


def _join(rescale: tuple[bool, bool] = (True, True), flat: bool = False, top: Callable = max) -> Callable:
    """Rescales numerator and denominator, or one of them alone; ``flat`` takes all scores for equal."""

    def join(first, second):
        largest = top(first[0], second[0])
        if math.isinf(largest):
            return largest, 0.0, 0.0
        factor = [1.0 if flat else math.exp(min(each[0] - largest, 700.0)) for each in (first, second)]
        above = [f if rescale[0] else 1.0 for f in factor]
        below = [f if rescale[1] else 1.0 for f in factor]
        parts = (first, second)
        sums = [sum(f * each[k] for f, each in zip(fs, parts, strict=True)) for fs, k in ((above, 1), (below, 2))]
        return largest, *sums

    return join


join = Implement(
    (_reads_what_softmax_reads, _order_does_not_matter, _nothing_changes_nothing, _knows_its_largest),
    _sizes,
    mistakes={
        "numerator not rescaled": _join(rescale=(False, True)),
        "denominator not rescaled": _join(rescale=(True, False)),
        "all scores 0": _join(flat=True),
        "no running maximum": lambda first, second: (
            0.0,
            *(np.exp(first[0]) * first[k] + np.exp(second[0]) * second[k] for k in (1, 2)),
        ),
        "the first memory's largest is kept": _join(top=lambda one, two: one if one > -math.inf else two),
        "the memory of the larger score alone": lambda first, second: max(first, second),
        "means of means": lambda first, second: (
            max(first[0], second[0]),
            (_read(first) + _read(second)) / 2 if first[2] and second[2] else first[1] + second[1],
            1.0,
        ),
    },
)

EXERCISES = {
    "sa-ex-steep": steep,
    "sa-ex-harmonic": eigenfunction,
    "sa-ex-threshold": threshold,
    "sa-ex-fading": fading,
    "sa-ex-late": late,
    "sa-ex-tail": process,
    "sa-ex-join": join,
}
check = checker(EXERCISES)
