"""Race of iterates in bulk: ``python bench/stochastic_approximation.py [--quick] [--keep]``.

``robbins_monro``, which takes any field and calls it once a step, on 10,000 replicas for 10,000 steps of the field
h = tanh(y - x) at a_n = 1 / (n + 4), against a jitted ``lax.scan``, into which this one field is compiled.
"""

import os
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from race import Race, command, require

from derived.lab.rng import stream
from derived.papers.stochastic_approximation.model.core import StepSize, robbins_monro

STEP = StepSize.power(n0=4.0)


def build(replicas: int, steps: int) -> torch.Tensor:
    """Data (N, R)."""
    return torch.randn(steps, replicas, generator=stream(0, "bench"), dtype=torch.float64)


def ours(y: torch.Tensor) -> torch.Tensor:
    """robbins_monro, h = tanh(y - x)"""
    return robbins_monro(lambda x, y: torch.sub(y, x).tanh_(), y, STEP, torch.zeros_like(y[0])).x[-1]


@cache
def jitted() -> Callable:
    """A scan, step by step, in float64 on the CPU."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    import jax
    from jax import lax, numpy

    jax.config.update("jax_enable_x64", True)
    step = lambda x, now: (x + now[1] * numpy.tanh(now[0] - x), None)  # noqa: E731
    return jax.jit(lambda y, a: lax.scan(step, numpy.zeros_like(y[0]), (y, a))[0])


def peer(y: torch.Tensor) -> torch.Tensor:
    """jax.lax.scan, jitted"""
    return torch.as_tensor(np.array(jitted()(y.numpy(), STEP.values(len(y)).numpy())))


def check(_: torch.Tensor, mine: torch.Tensor, theirs: torch.Tensor) -> None:
    """All orders of the same sums agree far below this bound."""
    require(mine.shape == theirs.shape, f"last iterates of shapes {tuple(mine.shape)} and {tuple(theirs.shape)}")
    gap = float((mine - theirs).abs().max())
    require(gap <= 1e-10, f"the last iterates differ by {gap:.3g}")


NOTE = (
    "One field is compiled into its loop, with a rational function for tanh; most of our time is torch's tanh. Whoever "
    "has one field and many replicas should compile it."
)
SIZES, TOY = {"replicas": 10_000, "steps": 10_000}, {"replicas": 50, "steps": 100}
RACE = Race("tanh, 10,000 replicas, 10,000 steps", build, ours, peer, check, SIZES, TOY, needs="jax", note=NOTE)

if __name__ == "__main__":
    command("stochastic_approximation", RACE)
