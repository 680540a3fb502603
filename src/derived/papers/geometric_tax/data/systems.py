"""The synthetic systems of the paper, generated: every state, of which a model sees the first coordinate alone.

symbol   name      meaning                                                              axes
n, L     n, L      number of sequences, points of each
-        time      the span of a sequence; neighbouring points lie time / (L - 1) apart
-        states    all coordinates; [..., 0] is what is observed                        (n, L, d)
s        state     where each trajectory stands; the coordinates come first             (d, *batch)
f        field     its velocity, ds/dt = f(s)                                           state -> state

The ranges of the draws are those of the author's code.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_positive

STEP = 0.005  # the longest step of the integrator: an error of about 1e-5 after one unit of time
Field = Callable[[Tensor], Tensor]


def rk4_step(field: Field, state: Float[Tensor, "d *batch"], dt: float) -> Float[Tensor, "d *batch"]:
    """One step: s + dt (k1 + 2 k2 + 2 k3 + k4) / 6; its error is of order dt^5, that of a path of order dt^4."""
    k1 = field(state)
    k2 = field(torch.add(state, k1, alpha=dt / 2))
    k3 = field(torch.add(state, k2, alpha=dt / 2))
    k4 = field(torch.add(state, k3, alpha=dt))
    return torch.add(state, (k2 + k3).mul_(2).add_(k1).add_(k4), alpha=dt / 6)


def rk4(
    field: Field, state: Float[Tensor, "d *batch"], *, dt: float, steps: int, every: int = 1
) -> Float[Tensor, "times d *batch"]:
    """The states at the start and after each ``every`` steps.

    ValueError for steps < 1, every < 1 or dt <= 0, and where a trajectory is no longer finite.

    >>> rk4(lambda s: -s, torch.ones(1, 2, dtype=torch.float64), dt=0.1, steps=10)[-1]
    tensor([[0.3679, 0.3679]], dtype=torch.float64)
    """
    check_count("steps", steps)
    check_count("every", every)
    check_positive("dt", dt)
    path = [state]
    for start in range(0, steps - every + 1, every):
        for _ in range(every):
            state = rk4_step(field, state, dt)
        if not bool(state.isfinite().all()):
            raise ValueError(
                f"a trajectory is not finite after step {start + every}; give finite starts or a smaller dt"
            )
        path.append(state)
    return torch.stack(path)


def lorenz_field(state: Float[Tensor, "3 *batch"]) -> Float[Tensor, "3 *batch"]:
    """Lorenz' system: x' = 10 (y - x), y' = x (28 - z) - y, z' = x y - 8/3 z.

    >>> lorenz_field(torch.tensor([1.0, 2.0, 3.0]))
    tensor([10., 23., -6.])
    """
    out = torch.empty_like(state)
    (x, y, z), (dx, dy, dz) = state.unbind(), out.unbind()
    torch.sub(y, x, out=dx).mul_(10.0)
    torch.sub(28.0, z, out=dy).mul_(x).sub_(y)
    torch.mul(x, y, out=dz).sub_(z, alpha=8 / 3)
    return out


def lorenz(
    n: int,
    L: int = 512,
    *,
    time: float = 25.0,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float64,
    burn_in: float = 0.0,
) -> Float[Tensor, "n L 3"]:
    """Lorenz paths (x, y, z) from starts in [-15, 15]^2 x [10, 40], after ``burn_in`` units of time.

    >>> from derived.lab.rng import stream
    >>> lorenz(2, 5, time=0.2, generator=stream(0, "paths")).shape
    torch.Size([2, 5, 3])
    """
    check_count("n", n)
    check_count("L", L, least=2)
    check_positive("time", time)
    check_at_least("burn_in", burn_in, 0)
    low, high = torch.tensor([-15.0, -15.0, 10.0]), torch.tensor([15.0, 15.0, 40.0])
    drawn = torch.rand(n, 1, 3, generator=generator, dtype=torch.float64, device=generator.device)
    low, high = low.to(drawn), high.to(drawn)
    state = (low + (high - low) * drawn).flatten(1).mT.contiguous().to(dtype)  # (3, n)
    if burn_in:
        steps = math.ceil(burn_in / STEP)
        state = rk4(lorenz_field, state, dt=burn_in / steps, steps=steps, every=steps)[-1]
    gap = time / (L - 1)
    every = math.ceil(gap / STEP)
    path = rk4(lorenz_field, state, dt=gap / every, steps=every * (L - 1), every=every)
    return path.permute(2, 0, 1).contiguous()


def oscillators(
    n: int, L: int = 512, *, time: float = 4.0, generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> Float[Tensor, "n L 2"]:
    """Damped oscillators, position A exp(-gamma t) cos(omega t + phi) and velocity.

    A in [0.5, 2], gamma in [0.2, 2], omega in [2, 20], phi in [0, 2 pi).

    >>> from derived.lab.rng import stream
    >>> oscillators(2, 5, generator=stream(0, "paths")).shape
    torch.Size([2, 5, 2])
    """
    check_count("L", L, least=2)
    A, gamma, omega, phi = _uniform(n, ((0.5, 2), (0.2, 2), (2, 20), (0, 2 * math.pi)), generator)
    t = _times(time, L, A)
    angle, fade = omega * t + phi, A * (-gamma * t).exp()
    position = fade * angle.cos()
    return torch.stack([position, -gamma * position - omega * fade * angle.sin()], dim=-1).to(dtype)


def waveforms(
    n: int, L: int = 512, *, time: float = 1.0, generator: torch.Generator, dtype: torch.dtype = torch.float64
) -> Float[Tensor, "n L 2"]:
    """Sums of three to five sines, and their slope in time.

    Frequencies in [0.5, 50], amplitudes in [0.1, 1], phases in [0, 2 pi).

    >>> from derived.lab.rng import stream
    >>> waveforms(2, 5, generator=stream(0, "paths")).shape
    torch.Size([2, 5, 2])
    """
    check_count("L", L, least=2)
    count = torch.randint(3, 6, (n, 1), generator=generator, device=generator.device)
    drawn = _uniform(n, ((0.5, 50), (0.1, 1), (0, 2 * math.pi)), generator, 5)
    frequency, amplitude, phase = (each.unsqueeze(-1) for each in drawn)  # (n, 5, 1)
    sounds = torch.arange(5, device=count.device) < count
    amplitude = amplitude * sounds.unsqueeze(-1)
    angle = 2 * math.pi * frequency * _times(time, L, amplitude) + phase
    slope = 2 * math.pi * frequency * amplitude * angle.cos()
    return torch.stack([(amplitude * angle.sin()).sum(dim=1), slope.sum(dim=1)], dim=-1).to(dtype)


def _uniform(n: int, ranges: tuple, generator: torch.Generator, each: int = 1) -> list[Tensor]:
    """Draws (n, each) from each range."""
    check_count("n", n)
    options = {"generator": generator, "dtype": torch.float64, "device": generator.device}
    return [low + (high - low) * torch.rand(n, each, **options) for low, high in ranges]


def _times(time: float, L: int, like: Tensor) -> Tensor:
    check_positive("time", time)
    return time * torch.arange(L, device=like.device, dtype=like.dtype) / (L - 1)
