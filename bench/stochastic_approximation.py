"""Races of iterates in bulk: ``python bench/stochastic_approximation.py [--quick] [--threads 1] [--output FILE]``.

10,000 replicas for 10,000 steps, float64, data (N, R) given: the linear field h = y - 2 x (as the weighted sum that it
is, and by the loop that takes any field) and the nonlinear h = tanh(y - x), at a_n = 1 / (n + 4). Peers:

1. numba, a compiled loop that is parallel over blocks of replicas; inside a block time is the outer loop, so that the
   data are read as they lie and the replicas fill the vector units. One block a thread was the fastest of five sizes.
2. JAX, jitted: ``lax.scan``, which goes step by step as our loop does.
3. A row of its own: a Python loop over 500 replicas, each a Python loop over time.

The loop that takes any field calls it from Python at every step. Both peers compile one field into their loop: what
the call costs is reported, and is no race.

Before anything is timed all last iterates must agree to 1e-10. The process is bound to as many cores as there are
threads, so that no library takes more. numba and jax are imported where they are used. On a GPU the loop's share of
the memory bandwidth is printed, and nothing is raced.
"""

import os
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec

import harness
import torch

from derived.lab.rng import stream
from derived.papers.stochastic_approximation.model.core import StepSize, robbins_monro
from derived.papers.stochastic_approximation.model.linear import linear_iterates

STEP, AGREE = StepSize.power(n0=4.0), 1e-10


def build(replicas: int, steps: int) -> torch.Tensor:
    """Data (N, R)."""
    return torch.randn(max(steps, 8), max(replicas, 8), generator=stream(0, "bench"), dtype=torch.float64)


def ours_linear(y: torch.Tensor) -> torch.Tensor:
    """linear_iterates, h = y - 2 x"""
    return linear_iterates(2.0, y, STEP, torch.zeros_like(y[0])).x[-1]


def ours_loop(y: torch.Tensor) -> torch.Tensor:
    """robbins_monro, h = y - 2 x"""
    return robbins_monro(lambda x, y: torch.sub(y, x, alpha=2), y, STEP, torch.zeros_like(y[0])).x[-1]


def ours_tanh(y: torch.Tensor) -> torch.Tensor:
    """robbins_monro, h = tanh(y - x)"""
    return robbins_monro(lambda x, y: torch.sub(y, x).tanh_(), y, STEP, torch.zeros_like(y[0])).x[-1]


@cache
def compiled(nonlinear: bool) -> Callable:
    """numba's loop: blocks of replicas in parallel, time inside, replicas innermost; the field is compiled into it."""
    import numba
    import numpy as np

    field = numba.njit((lambda x, y: np.tanh(y - x)) if nonlinear else (lambda x, y: y - 2.0 * x), fastmath=True)

    @numba.njit(parallel=True, fastmath=True)
    def loop(y, a, block):
        steps, replicas = y.shape
        x = np.zeros(replicas)
        for b in numba.prange((replicas + block - 1) // block):
            first, last = b * block, min((b + 1) * block, replicas)
            z = np.zeros(last - first)
            for n in range(steps):
                row, size = y[n, first:last], a[n]
                for r in range(len(z)):
                    z[r] += size * field(z[r], row[r])
            x[first:last] = z
        return x

    return loop


def _numba(y: torch.Tensor, nonlinear: bool) -> torch.Tensor:
    import numba

    numba.set_num_threads(torch.get_num_threads())
    block = -(-y.shape[1] // torch.get_num_threads())  # one block a thread: the fastest of those that were tried
    return torch.as_tensor(compiled(nonlinear)(y.numpy(), STEP.values(len(y)).numpy(), block))


def numba_linear(y: torch.Tensor) -> torch.Tensor:
    """numba, a block of replicas a thread"""
    return _numba(y, False)


def numba_tanh(y: torch.Tensor) -> torch.Tensor:
    """numba, a block of replicas a thread"""
    return _numba(y, True)


@cache
def jitted(name: str) -> Callable:
    """JAX: a scan, step by step, of either field."""
    import jax
    from jax import lax, numpy

    jax.config.update("jax_enable_x64", True)

    def stepwise(field):
        step = lambda x, now: (x + now[1] * field(x, now[0]), None)  # noqa: E731
        return lambda y, a: lax.scan(step, numpy.zeros_like(y[0]), (y, a))[0]

    fields = {"linear": lambda x, y: y - 2 * x, "tanh": lambda x, y: numpy.tanh(y - x)}
    return jax.jit(stepwise(fields[name]))


def jax_scan(y: torch.Tensor) -> torch.Tensor:
    """jax.lax.scan, jitted"""
    import numpy as np

    return torch.as_tensor(np.array(jitted("linear")(y.numpy(), STEP.values(len(y)).numpy())))


def jax_tanh(y: torch.Tensor) -> torch.Tensor:
    """jax.lax.scan, jitted"""
    import numpy as np

    return torch.as_tensor(np.array(jitted("tanh")(y.numpy(), STEP.values(len(y)).numpy())))


def in_python(y: torch.Tensor) -> torch.Tensor:
    """a Python loop for each replica"""
    a, ends = STEP.values(len(y)).tolist(), []
    for column in y.mT.tolist():
        x = 0.0
        for a_n, y_n in zip(a, column, strict=True):
            x += a_n * (y_n - 2 * x)
        ends.append(x)
    return torch.tensor(ends, dtype=torch.float64)


def same_ends(_: torch.Tensor, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The largest distance of two last iterates; all orders of the same sums agree far below AGREE."""
    gap = float((ours - peer).abs().max())
    if ours.shape != peer.shape or not gap <= AGREE:
        raise SystemExit(f"the last iterates differ by {gap:.3g}, more than {AGREE:g}")
    return gap


def bandwidth() -> None:
    """On a GPU: the data's bytes over the time of the loop, and over that of one sum of the same data."""
    y = build(10_000, 10_000).cuda()
    rates = {}
    for name, run in (("weighted sum", ours_linear), ("loop", ours_loop), ("one sum", torch.sum)):
        run(y)
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run(y)
        end.record()
        torch.cuda.synchronize()
        rates[name] = y.numel() * 8 / start.elapsed_time(end) / 1e6
    print(", ".join(f"{name}: {rate:.0f} GB/s" for name, rate in rates.items()))


def work(y: torch.Tensor) -> tuple[float, float]:
    """The data are read once."""
    return y.nbytes, 2 * y.numel()


ONE_FIELD = "One field is compiled into its loop; ours calls any Python field once a step and looks for infinities."
ONE_TANH = (
    "One field is compiled into its loop, with a rational function for tanh; most of our time is torch's tanh. Whoever "
    "has one field and many replicas should compile it."
)


def races(quick: bool) -> Iterator[harness.Race]:
    sizes = {"replicas": 1000, "steps": 500} if quick else {"replicas": 10_000, "steps": 10_000}
    words, few = "{replicas:,} replicas, {steps:,} steps".format(**sizes), sizes | {"replicas": 500}

    def peer(run: Callable, role: harness.Role = "peer", why: str = "") -> harness.Peer:
        return harness.Peer(run=run, gap=same_ends, role=role, why=why)

    def race(name: str, ours: Callable, *peers: harness.Peer, **facts) -> harness.Race:
        return harness.Race(name=name, build=build, ours=ours, peers=peers, work=work, **({"sizes": sizes} | facts))

    yield race(f"linear, {words}", ours_linear, *map(peer, (numba_linear, jax_scan)))
    yield race(f"linear as any field, {words}", ours_loop, peer(numba_linear, why=ONE_FIELD), rounds=5)
    yield race(f"tanh, {words}", ours_tanh, peer(numba_tanh, why=ONE_FIELD), peer(jax_tanh, why=ONE_TANH), rounds=5)
    alone = "linear as any field, 500 replicas, {steps:,} steps".format(**few)
    yield race(alone, ours_loop, peer(in_python, role="plain"), sizes=few, rounds=5)


def timed(quick: bool, rounds: int, threads: int) -> Iterator[harness.Row]:
    if missing := [name for name in ("numba", "jax") if find_spec(name) is None]:
        raise SystemExit(f"no {' and no '.join(missing)} here; the extra `bench` brings them")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    if torch.cuda.is_available():
        bandwidth()
    yield from harness.contests(races)(quick, rounds, threads)


if __name__ == "__main__":
    harness.command("stochastic_approximation", timed, rounds=31, quick_rounds=3, dtype="float64")
