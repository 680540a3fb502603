"""The synthetic systems of the paper, generated: every state, of which a model sees the first coordinate alone.

symbol   name      meaning                                                              axes
n, L     n, L      number of sequences, points of each
-        time      the span of a sequence; neighbouring points lie time / (L - 1) apart
-        states    all coordinates; [..., 0] is what is observed                        (n, L, d)

The ranges of the draws are those of the author's code.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_at_least, check_count, check_positive

from ..model.integrators import coupled_lorenz as coupled_field
from ..model.integrators import lorenz as lorenz_field
from ..model.integrators import rk4

STEP = 0.005  # the longest step of the integrator: an error of about 1e-5 after one unit of time


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
    return _paths(lorenz_field, 1, n, L, time, generator, dtype, burn_in)


def coupled_lorenz(
    n: int,
    L: int = 512,
    *,
    units: int = 2,
    coupling: float = 0.1,
    time: float = 25.0,
    generator: torch.Generator,
    dtype: torch.dtype = torch.float64,
    burn_in: float = 0.0,
) -> Float[Tensor, "n L d"]:
    """A ring of Lorenz units, (x, y, z) of the first, then of the next; d = 3 units.

    >>> from derived.lab.rng import stream
    >>> coupled_lorenz(2, 5, units=3, time=0.2, generator=stream(0, "paths")).shape
    torch.Size([2, 5, 9])
    """
    check_count("units", units)
    check_at_least("coupling", coupling, 0)
    return _paths(lambda state: coupled_field(state, coupling), units, n, L, time, generator, dtype, burn_in)


def _paths(field, units, n, L, time, generator, dtype, burn_in) -> Tensor:
    check_count("n", n)
    check_count("L", L, least=2)
    check_positive("time", time)
    check_at_least("burn_in", burn_in, 0)
    low, high = torch.tensor([-15.0, -15.0, 10.0]), torch.tensor([15.0, 15.0, 40.0])
    drawn = torch.rand(n, units, 3, generator=generator, dtype=torch.float64, device=generator.device)
    low, high = low.to(drawn), high.to(drawn)
    state = (low + (high - low) * drawn).flatten(1).mT.contiguous().to(dtype)  # (d, n)
    if burn_in:
        steps = math.ceil(burn_in / STEP)
        state = rk4(field, state, dt=burn_in / steps, steps=steps, every=steps)[-1]
    gap = time / (L - 1)
    every = math.ceil(gap / STEP)
    path = rk4(field, state, dt=gap / every, steps=every * (L - 1), every=every)
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
