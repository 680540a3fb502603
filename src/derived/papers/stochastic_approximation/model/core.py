"""Stochastic approximation: step sizes and the one loop, vectorised over replicas.

symbol   name   meaning                                                              axes
x_n      x      iterate after n samples                                              (*state,), e.g. (R,) or (R, d)
Y_n      y      the data, time first                                                 (N, ...), y[n - 1] fits the state
a_n      step   step size, n = 1, 2, ...                                             (N,), or (N, ...) that fits
h        h      the field: where a sample asks the iterate to go                     h(x, y_n) -> (*state,)

    x_n = x_{n-1} + a_n h(x_{n-1}, Y_n)

Martingale noise M_n is a part of y_n. Only time is a loop: all replicas move in one step.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_at_least, check_choice, check_count, check_positive

Field = Callable[[Tensor, Tensor], Tensor]
LOOK = 256  # steps between two looks for a state that is not finite; such a state stays so, since x + anything is


@dataclass(frozen=True)
class StepSize:
    """Step sizes a_n = a (n + n0)^-alpha, n = 1, 2, ...; ``require`` says which theorem's condition they miss.

    ValueError for a <= 0, alpha < 0 or n0 < 0. [prior: Robbins and Monro 1951]

    >>> StepSize.power(alpha=0.5, n0=3).values(1)
    tensor([0.5000], dtype=torch.float64)
    >>> StepSize.power(alpha=0.7).require("window")
    Traceback (most recent call last):
    ValueError: a_n = 1 n^-0.7: sup n a_n = infinity, which ergodic data alone do not forgive; give alpha = 1
    """

    a: float = 1.0
    alpha: float = 1.0
    n0: float = 0.0

    def __post_init__(self) -> None:
        check_positive("a", self.a)
        check_at_least("alpha", self.alpha, 0)
        check_at_least("n0", self.n0, 0)

    @classmethod
    def power(cls, a: float = 1.0, alpha: float = 1.0, n0: float = 0.0) -> Self:
        """a_n = a (n + n0)^-alpha."""
        return cls(a, alpha, n0)

    @classmethod
    def constant(cls, a: float) -> Self:
        """a_n = a for ever: tracks, and never settles."""
        return cls(a, 0.0)

    def values(self, steps: int) -> Float[Tensor, "N"]:
        """a_1, ..., a_N in float64."""
        check_count("steps", steps)
        return self.a * (torch.arange(1, steps + 1, dtype=torch.float64) + self.n0) ** -self.alpha

    def require(self, condition: str) -> None:
        """ValueError unless sum a_n = inf and sum a_n^2 < inf ("robbins-monro"), and sup n a_n < inf too ("window")."""
        check_choice("condition", condition, ("robbins-monro", "window"))
        given = f"a_n = {self.a:g} n^-{self.alpha:g}"
        if self.alpha > 1:
            raise ValueError(f"{given}: sum a_n is finite, and the iterate stops short of every limit; give alpha <= 1")
        if self.alpha <= 0.5:
            raise ValueError(f"{given}: sum a_n^2 = infinity, and the noise is not averaged away; give alpha > 1/2")
        if condition == "window" and self.alpha < 1:
            raise ValueError(f"{given}: sup n a_n = infinity, which ergodic data alone do not forgive; give alpha = 1")


class Path(NamedTuple):
    """The iterates at the recorded times."""

    times: tuple[int, ...]
    x: Tensor  # (times, *state)


def record_times(steps: int, points: int, first: int = 1) -> tuple[int, ...]:
    """At most ``points`` whole times from ``first`` to ``steps``, evenly spread in ln n, both ends included.

    >>> record_times(100, 3)
    (1, 10, 100)
    """
    check_count("steps", steps, first)
    check_count("points", points, 2)
    spread = torch.logspace(math.log10(first), math.log10(steps), points, dtype=torch.float64).round().long()
    return tuple(sorted({first, steps, *spread.tolist()}))


def robbins_monro(
    h: Field, y: Float[Tensor, "N ..."], step: StepSize | Tensor, x0: Tensor, *, record: Sequence[int] | None = None
) -> Path:
    """x_n = x_{n-1} + a_n h(x_{n-1}, y_n) for n = 1, ..., N; the states at the times of ``record`` (default: the last).

    ``h`` sees the whole state, all replicas at once, and changes nothing in place. ``step`` is a StepSize or a tensor
    (N,), or (N, ...) where each replica has its steps. Gradients with respect to ``x0``, ``y`` and what ``h``
    uses are those of the recursion. ValueError for empty data, steps of another length, times outside 1..N, and a state
    that is not finite: the message names the first step and the replica where it is so.

    >>> y = torch.tensor([[1.0], [0.0], [2.0]], dtype=torch.float64)
    >>> robbins_monro(lambda x, y: y - x, y, StepSize.power(), torch.zeros(1, dtype=torch.float64), record=(2, 3)).x
    tensor([[0.5000],
            [1.0000]], dtype=torch.float64)
    """
    steps = len(y)
    check_count("the length of y", steps)
    sizes = step.values(steps) if isinstance(step, StepSize) else step
    if len(sizes) != steps:
        raise ValueError(f"{len(sizes)} steps for {steps} samples; give one step size a sample")
    times = check_record(record, steps)
    if not x0.is_floating_point() or not bool(torch.isfinite(x0).all()):
        raise ValueError(f"x0 is not finite, or of dtype {x0.dtype}; give a finite start of floating-point numbers")
    if not bool(torch.isfinite(sizes).all()) or bool((sizes < 0).any()):
        raise ValueError("a step size is negative or not finite; give finite numbers >= 0")
    # A number per step is a Python float (no tensor is made of it); sizes by replica stay tensors.
    sizes = sizes.tolist() if sizes.ndim == 1 and not sizes.requires_grad else sizes.to(y.device)
    x, wanted, kept = x0.clone(), set(times), []
    checked, seen = x.clone(), 0
    for n, (y_n, a_n) in enumerate(zip(y.unbind(0), sizes, strict=True), start=1):
        push = h(x, y_n)
        if n == 1 and push.shape != x.shape:
            raise ValueError(f"h gives shape {tuple(push.shape)} at a state {tuple(x.shape)}; give one number an entry")
        x = _moved(x, push, a_n)
        if n in wanted:
            kept.append(x.clone())
        if n % LOOK == 0 or n == steps:
            if not bool(torch.isfinite(x).all()):
                _name_the_step(h, y, sizes, checked, range(seen, n))
            checked, seen = x.clone(), n
    return Path(times, torch.stack(kept))


def check_record(record: Sequence[int] | None, steps: int) -> tuple[int, ...]:
    """The recorded times in order; ValueError unless they are whole numbers from 1 to ``steps``."""
    times = (steps,) if record is None else tuple(sorted(set(record)))
    if not times or times[0] < 1 or times[-1] > steps or any(time != int(time) for time in times):
        raise ValueError(f"record = {record}; give times from 1 to {steps}, the number of samples")
    return times


def _moved(x: Tensor, push: Tensor, a: float | Tensor) -> Tensor:
    """x + a push; in place unless a gradient needs the old x."""
    if x.requires_grad or push.requires_grad or (isinstance(a, Tensor) and a.requires_grad):
        return x + a * push
    return x.addcmul_(push, a.expand_as(push)) if isinstance(a, Tensor) else x.add_(push, alpha=a)


def _name_the_step(h: Field, y: Tensor, sizes, x: Tensor, steps: range) -> None:
    """Walk again from the last finite state; ValueError at the first step that leaves one that is not.

    A field that draws noise may be finite the second time: then the error names the steps between two looks.
    """
    for n in steps:
        x = _moved(x, h(x, y[n]), sizes[n])
        bad = ~torch.isfinite(x)
        if bool(bad.any()):
            place = bad.nonzero()[0].tolist()
            given = "the data are not finite there" if not bool(torch.isfinite(y[n]).all()) else "the data are finite"
            raise ValueError(
                f"the state is not finite at step {n + 1}, entry {place} ({given}); "
                "give finite data, a field of linear growth, or smaller steps"
            )
    raise ValueError(
        f"some step from {steps.start + 1} to {steps.stop} left a state that is not finite, and not when walked again: "
        "the field is no function of (x, y); give it its noise with the data"
    )
