"""Many trajectories of an ordinary differential equation at once, by the classical method of Runge and Kutta.

symbol    name      meaning                                                       axes
s         state     where each trajectory stands; the coordinates come first      (d, *batch)
f         field     its velocity, ds/dt = f(s)                                    state -> state
dt        dt        length of a step
x, y, z   x, y, z   Lorenz' three coordinates; x is the one that is observed      (*batch)
eps       coupling  how strongly a unit of the ring feels the next one
gamma     gamma     damping of an oscillator                                      (*batch)
omega     omega     its angular frequency                                         (*batch)
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab.checks import check_count, check_positive

Field = Callable[[Tensor], Tensor]


def rk4_step(field: Field, state: Float[Tensor, "d *batch"], dt: float) -> Float[Tensor, "d *batch"]:
    """One step: s + dt (k1 + 2 k2 + 2 k3 + k4) / 6; its error is of order dt^5, that of a path of order dt^4."""
    k1 = field(state)
    k2 = field(torch.add(state, k1, alpha=dt / 2))
    k3 = field(torch.add(state, k2, alpha=dt / 2))
    k4 = field(torch.add(state, k3, alpha=dt))
    return torch.add(state, (k2 + k3).mul_(2).add_(k1).add_(k4), alpha=dt / 6)


def rk4_coordinates(field: Callable[..., tuple], state: tuple[Tensor, ...], dt: float) -> tuple[Tensor, ...]:
    """``rk4_step`` with the coordinates apart, for ``field`` too: what is never stacked a compiler keeps in registers,
    and joins many steps into one pass over the paths.

    >>> [round(s.item(), 4) for s in rk4_coordinates(lambda x, v: (v, -x), (torch.tensor(1.0), torch.tensor(0.0)), 0.1)]
    [0.995, -0.0998]
    """

    def moved(k: tuple, by: float) -> list[Tensor]:
        return [s + by * each for s, each in zip(state, k, strict=True)]

    k1 = field(*state)
    k2 = field(*moved(k1, dt / 2))
    k3 = field(*moved(k2, dt / 2))
    k4 = field(*moved(k3, dt))
    slopes = zip(k1, k2, k3, k4, strict=True)
    return tuple(moved([a + 2 * (b + c) + d for a, b, c, d in slopes], dt / 6))


def rk4(
    field: Field, state: Float[Tensor, "d *batch"], *, dt: float, steps: int, every: int = 1
) -> Float[Tensor, "times d *batch"]:
    """The states at the start and after each ``every`` steps.

    ValueError for steps < 1, every < 1 or dt <= 0; and where a trajectory is no longer finite, with the number of the
    step after which it is not.

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
            raise ValueError(_lost(field, path[-1], dt, start))
        path.append(state)
    return torch.stack(path)


def _lost(field: Field, state: Tensor, dt: float, step: int) -> str:
    """Which trajectory was lost after which step, from the last kept state on, which is that of ``step``."""
    while bool(state.isfinite().all()):
        state, step = rk4_step(field, state, dt), step + 1
    bad = (~state.isfinite()).any(dim=0).flatten().nonzero()[0].item()
    return f"trajectory {bad} is not finite after step {step} of dt = {dt:.15g}; give finite starts or a smaller dt"


def lorenz(
    state: Float[Tensor, "3 *batch"], sigma: float = 10.0, rho: float = 28.0, beta: float = 8 / 3
) -> Float[Tensor, "3 *batch"]:
    """Lorenz' system: x' = sigma (y - x), y' = x (rho - z) - y, z' = x y - beta z.

    >>> lorenz(torch.tensor([1.0, 2.0, 3.0]))
    tensor([10., 23., -6.])
    """
    x, y, z = state
    out = torch.empty_like(state)
    torch.sub(y, x, out=out[0]).mul_(sigma)
    torch.sub(rho, z, out=out[1]).mul_(x).sub_(y)
    torch.mul(x, y, out=out[2]).sub_(z, alpha=beta)
    return out


def coupled_lorenz(state: Float[Tensor, "d *batch"], coupling: float = 0.1) -> Float[Tensor, "d *batch"]:
    """A ring of d / 3 Lorenz units; each x is drawn to that of the next unit: x_i' += eps (x_{i+1} - x_i).

    ValueError where d is no multiple of 3.

    >>> coupled_lorenz(torch.tensor([1.0, 2.0, 3.0, 11.0, 2.0, 3.0]), coupling=0.5)[0]
    tensor(15.)
    """
    if len(state) % 3:
        raise ValueError(f"the state has {len(state)} coordinates; give a multiple of 3, three for each unit")
    units = state.unflatten(0, (-1, 3))
    out = lorenz(units.transpose(0, 1)).transpose(0, 1).contiguous()
    out[:, 0].add_(units[:, 0].roll(-1, dims=0) - units[:, 0], alpha=coupling)
    return out.flatten(0, 1)


def oscillator(
    state: Float[Tensor, "2 *batch"], gamma: Float[Tensor, "*batch"], omega: Float[Tensor, "*batch"]
) -> Float[Tensor, "2 *batch"]:
    """A damped oscillator: x' = v, v' = -2 gamma v - (omega^2 + gamma^2) x, solved by exp(-gamma t) cos(omega t + phi).

    >>> oscillator(torch.tensor([1.0, 0.0]), torch.tensor(0.0), torch.tensor(2.0))
    tensor([ 0., -4.])
    """
    x, v = state
    return torch.stack([v, -2 * gamma * v - (omega**2 + gamma**2) * x])


def lyapunov_exponent(
    field: Field, state: Float[Tensor, "d *batch"], *, dt: float, steps: int, apart: float = 1e-7
) -> Float[Tensor, "*batch"]:
    """The largest Lyapunov exponent of each trajectory, in nats per unit of time.

    A second trajectory starts ``apart`` from the first and is drawn back to that distance after every step (Benettin);
    the exponent is the mean of ln(growth) / dt over the second half of the steps. Use float64. ValueError for
    steps < 2, dt <= 0 or apart <= 0.

    >>> lyapunov_exponent(lambda s: 2 * s, torch.ones(1, 1, dtype=torch.float64), dt=0.01, steps=20).round(decimals=4)
    tensor([2.], dtype=torch.float64)
    """
    check_count("steps", steps, least=2)
    check_positive("dt", dt)
    check_positive("apart", apart)
    offset = torch.zeros_like(state)
    offset[0] = apart
    growth = 0.0
    for step in range(steps):
        moved = rk4_step(field, state + offset, dt)
        state = rk4_step(field, state, dt)
        offset = moved - state
        distance = offset.norm(dim=0)
        offset = offset * (apart / distance)
        if step >= steps // 2:
            growth = growth + (distance / apart).log()
    return growth / (dt * (steps - steps // 2))
