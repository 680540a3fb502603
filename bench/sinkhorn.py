"""Races of Sinkhorn: ``python bench/sinkhorn.py [--quick] [--threads 1] [--output FILE]``.

1. ``sinkhorn`` against POT (``sinkhorn``, ``sinkhorn_stabilized``, ``sinkhorn_log``) and OTT-JAX (jitted, in
   both its modes, vmapped over a batch) on entropic problems of points in space, float64, one thread each.
2. The implicit derivative, ``implicit_vjp`` of the plan that ``sinkhorn`` finds, against OTT-JAX's own in both
   modes, and against autograd through as many half-steps.

What is equal is the error of the marginals that is really reached: at most 1e-6 in sum for every contender, whose own
threshold is set for it (POT's is an L2 norm, looked at every ten iterations; OTT's an L1 norm, likewise). It is read
off the plans, which are compared in total variation, before anything is timed; the check refuses the plan of softmax. A
peer that is not installed is named and left out. Idle threads sleep (``OMP_WAIT_POLICY=PASSIVE``), everybody's: torch's
would spin for milliseconds after each of its calls and keep NumPy's, which both sides need, from the cores.
"""

import importlib.util
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import ClassVar, NamedTuple

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # torch's idle threads would spin where NumPy's want the cores

import harness
import numpy as np
import torch
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.sinkhorn.model.backward import implicit_vjp
from derived.papers.sinkhorn.model.plan import half_steps, sinkhorn

EPSILON, ERROR, MOST = 0.1, 1e-6, 5000


class Inputs(NamedTuple):
    """Costs (B, n, n), the same as numpy has it, and a loss <W, P>."""

    cost: Tensor
    numpy: np.ndarray
    W: Tensor


def build(B: int, n: int) -> Inputs:
    x, y = torch.rand(2, B, n, 3, generator=stream(0, "bench points"), dtype=torch.float64)
    cost = torch.cdist(x, y).square()
    W = torch.randn(B, n, n, generator=stream(0, "bench loss"), dtype=torch.float64)
    return Inputs(cost, cost.numpy(), W)


def ours(inputs: Inputs) -> Tensor:
    """sinkhorn, one batch"""
    return sinkhorn(inputs.cost / -EPSILON, tol=ERROR, max_iterations=MOST).plan


def pot(inputs: Inputs, method: str) -> np.ndarray:
    import ot

    n = inputs.numpy.shape[-1]
    a = np.full(n, 1 / n)
    facts = {"method": method, "numItermax": MOST, "stopThr": ERROR / n**0.5, "warn": False}
    return np.stack([ot.sinkhorn(a, a, each, EPSILON, **facts) for each in inputs.numpy])


class Ott:
    """OTT-JAX's solver, jitted once for every size."""

    solvers: ClassVar[dict] = {}

    @classmethod
    def plans(cls, lse: bool) -> Callable:
        if lse not in cls.solvers:
            import jax
            from ott.geometry import geometry
            from ott.problems.linear import linear_problem
            from ott.solvers.linear import sinkhorn as solvers

            jax.config.update("jax_enable_x64", True)
            solver = solvers.Sinkhorn(lse_mode=lse, threshold=ERROR, norm_error=1, max_iterations=MOST)

            def plan(cost):
                return solver(linear_problem.LinearProblem(geometry.Geometry(cost, epsilon=EPSILON))).matrix

            def slope(cost, W):
                return jax.grad(lambda C: (W * plan(C)).sum())(cost)

            cls.solvers[lse] = jax.jit(jax.vmap(plan)), jax.jit(jax.vmap(slope))
        return cls.solvers[lse]


def ott(inputs: Inputs, lse: bool) -> np.ndarray:
    return np.asarray(Ott.plans(lse)[0](inputs.numpy))


def implicit(inputs: Inputs) -> Tensor:
    """sinkhorn and implicit_vjp"""
    plan = sinkhorn(inputs.cost / -EPSILON, tol=1e-10, max_iterations=MOST).plan
    return implicit_vjp(plan, inputs.W)[0] / -EPSILON


def unrolled(inputs: Inputs) -> Tensor:
    """autograd through 401 half-steps"""
    cost = inputs.cost.clone().requires_grad_()
    return torch.autograd.grad((inputs.W * half_steps(cost / -EPSILON, 401).exp()).sum(), cost)[0]


def ott_derivative(inputs: Inputs, lse: bool) -> np.ndarray:
    return np.asarray(Ott.plans(lse)[1](inputs.numpy, inputs.W.numpy()))


def same_plans(inputs: Inputs, mine: Tensor, peer: Tensor | np.ndarray) -> float:
    """Both reach the error that was asked for, and the plans are as near as two such errors allow; returns TV."""
    plans = [each if isinstance(each, Tensor) else torch.as_tensor(np.array(each)) for each in (mine, peer)]
    n = plans[0].shape[-1]
    for plan in plans:
        error = sum((plan.sum(dim=axis) - 1 / n).abs().sum(dim=-1) for axis in (-1, -2)).max()
        require(float(error) <= 1.05 * ERROR, f"the marginals are off by {float(error):.2g}, over {ERROR:.2g}")
    apart = float((plans[0] - plans[1]).abs().sum(dim=(-2, -1)).max() / 2)
    require(apart <= 1e3 * ERROR, f"the plans are {apart:.2g} apart in total variation")
    return apart


def same_slopes(inputs: Inputs, mine: Tensor, peer: Tensor | np.ndarray, most: float = 1e-8) -> float:
    """The largest gap of the derivatives, relative to their length."""
    peer = peer if isinstance(peer, Tensor) else torch.as_tensor(np.array(peer))
    apart = float(((mine - peer).norm(dim=(-2, -1)) / mine.norm(dim=(-2, -1))).max())
    require(apart <= most, f"the derivatives are {apart:.2g} apart, relative to their length")
    return apart


def require(condition: bool, message: str) -> None:
    if not condition:
        raise SystemExit(message)


def work(inputs: Inputs) -> tuple[float, float]:
    """Costs are read and plans written; an iteration has two products with the kernel."""
    found = sinkhorn(inputs.cost / -EPSILON, tol=ERROR, max_iterations=MOST)
    return 2 * inputs.cost.nbytes, 4 * inputs.cost.numel() * (found.iterations + 1)


def named(call: Callable, doc: str) -> partial:
    """The call with the words for the table."""
    call = partial(call) if not isinstance(call, partial) else call
    call.__doc__ = call.__name__ = doc
    return call


DOMAINS = [(lse, f"OTT-JAX, {'log' if lse else 'kernel'} domain") for lse in (True, False)]
PEERS = {
    "ot": [
        named(partial(pot, method=name), f"POT {name}") for name in ("sinkhorn", "sinkhorn_stabilized", "sinkhorn_log")
    ],
    "ott": [named(partial(ott, lse=lse), f"{words}, jitted") for lse, words in DOMAINS],
}
SLOPES = [named(partial(ott_derivative, lse=lse), f"{words}, implicit") for lse, words in DOMAINS]


def refuses_softmax() -> None:
    """The check of results sees a mutant: the plan of softmax in place of ours."""
    inputs = build(2, 8)
    try:
        same_plans(inputs, ours(inputs), (inputs.cost / -EPSILON).softmax(dim=-1) / 8)
    except SystemExit:
        return
    raise SystemExit("the check of results lets softmax pass")


def races(quick: bool) -> Iterator[harness.Race]:
    there = {name: importlib.util.find_spec(name) is not None for name in PEERS}
    for name in (name for name, found in there.items() if not found):
        print(f"sinkhorn: {name} is not installed here and is left out")
    for B, n in ((1, 16), (4, 16)) if quick else ((1, 64), (64, 256), (1, 1024)):
        # The log domains are ten times slower than the kernel domains, so they run in the small sizes alone.
        calls = [call for name in PEERS if there[name] for call in PEERS[name]]
        calls = [call for call in calls if "log" not in call.__doc__ or B * n * n <= 64**3]
        if calls:
            peers = tuple(harness.Peer(run=call, gap=same_plans) for call in calls)
            sizes = {"B": B, "n": n}
            name = f"B = {B}, n = {n}, to 1e-6"
            yield harness.Race(name=name, build=build, sizes=sizes, ours=ours, peers=peers, work=work)
    n = 16 if quick else 128
    slopes = [harness.Peer(run=unrolled, gap=same_slopes, role="plain")]
    if there["ott"]:
        slopes += [harness.Peer(run=call, gap=partial(same_slopes, most=1e-4)) for call in SLOPES]
    name, sizes = f"B = 1, n = {n}, derivative of a plan", {"B": 1, "n": n}
    yield harness.Race(name=name, build=build, sizes=sizes, ours=implicit, peers=tuple(slopes))


def timed(quick: bool, rounds: int, threads: int) -> Iterator[harness.Row]:
    refuses_softmax()
    yield from harness.contests(races)(quick, rounds, threads)


if __name__ == "__main__":
    harness.command("sinkhorn", timed, rounds=21, quick_rounds=3, dtype="float64")
