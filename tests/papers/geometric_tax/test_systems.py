"""Trajectories: the integrator's order, its witnesses, and what a lost one says."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from derived.lab.rng import stream
from derived.papers.geometric_tax.data import systems
from derived.papers.geometric_tax.model import integrators
from derived.papers.geometric_tax.model.integrators import coupled_lorenz, lorenz, lyapunov_exponent, oscillator, rk4


def order(end) -> float:
    """The observed order from errors at three steps, by Richardson: no reference is needed."""
    coarse, middle, fine = (end(steps) for steps in (40, 80, 160))
    return float(torch.log2((coarse - middle).norm() / (middle - fine).norm()))


@pytest.mark.parametrize("field", [lorenz, lambda s: coupled_lorenz(s, 0.1)], ids=["lorenz", "coupled"])
def test_the_order_is_four(field):
    start = 10 * torch.rand(6 if field is not lorenz else 3, 5, generator=stream(0, "start"), dtype=torch.float64)
    found = order(lambda steps: rk4(field, start, dt=0.4 / steps, steps=steps)[-1])
    assert 3.7 < found < 4.3


def test_the_order_of_an_oscillator_against_its_solution():
    gamma, omega = torch.tensor([0.5, 1.0], dtype=torch.float64), torch.tensor([3.0, 7.0], dtype=torch.float64)
    start = torch.stack([torch.ones(2, dtype=torch.float64), -gamma])
    exact = torch.exp(-gamma) * torch.cos(omega)
    errors = [
        (rk4(lambda s: oscillator(s, gamma, omega), start, dt=1 / n, steps=n)[-1, 0] - exact).abs().max()
        for n in (50, 100)
    ]
    assert 3.7 < float(torch.log2(errors[0] / errors[1])) < 4.3


def test_scipy_finds_the_same_path():
    start = np.array([1.0, 2.0, 20.0])
    there = solve_ivp(lambda _, s: lorenz(torch.tensor(s)).numpy(), (0, 1), start, rtol=1e-10, atol=1e-10).y[:, -1]
    here = rk4(lorenz, torch.tensor(start)[:, None], dt=1e-3, steps=1000)[-1, :, 0].numpy()
    assert np.abs(here - there).max() < 1e-6


def test_a_ring_without_coupling_is_lorenz_and_coupling_pulls():
    state = torch.randn(6, 4, generator=stream(0, "state"), dtype=torch.float64)
    alone = torch.cat([lorenz(state[:3]), lorenz(state[3:])])
    assert torch.allclose(coupled_lorenz(state, 0.0), alone)
    pull = coupled_lorenz(state, 0.5) - alone
    assert torch.allclose(pull[0], 0.5 * (state[3] - state[0]))
    assert torch.allclose(pull[3], 0.5 * (state[0] - state[3]))
    assert pull[[1, 2, 4, 5]].abs().max() < 1e-12


def test_a_lost_trajectory_is_named_with_its_step():
    start = torch.ones(1, 3, dtype=torch.float64)
    start[0, 1] = 10.0

    def blows_up(s):
        return s**2

    with pytest.raises(ValueError, match=r"trajectory 1 is not finite after step \d+ of dt = 0.1"):
        rk4(blows_up, start, dt=0.1, steps=400, every=40)
    with pytest.raises(ValueError, match="trajectory 0 is not finite after step 0"):
        rk4(lorenz, torch.full((3, 1), torch.nan), dt=0.1, steps=4)
    one = next(
        k for k in range(1, 400) if not rk4_bare(blows_up, start, k).isfinite().all()
    )  # the slow way to the same number
    with pytest.raises(ValueError, match=f"after step {one} of"):
        rk4(blows_up, start, dt=0.1, steps=400, every=7)


def rk4_bare(field, state, steps):
    for _ in range(steps):
        state = integrators.rk4_step(field, state, 0.1)
    return state


@pytest.mark.parametrize(("facts", "message"), [({"dt": 0.0}, "dt = 0"), ({"steps": 0}, "steps = 0")])
def test_bad_steps_are_refused(facts, message):
    with pytest.raises(ValueError, match=message):
        rk4(lorenz, torch.ones(3, 1), **({"dt": 0.1, "steps": 1} | facts))
    with pytest.raises(ValueError, match="4 coordinates; give a multiple of 3"):
        coupled_lorenz(torch.ones(4, 1))


def test_coordinates_apart_take_the_same_step():
    """Whatever the dimension, and for a batch of one."""
    g = stream(0, "apart")
    start = torch.randn(3, 1, generator=g, dtype=torch.float64)

    def apart(x, y, z):
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z

    state = tuple(start)
    for _ in range(5):
        state = integrators.rk4_coordinates(apart, state, 0.02)
    assert (torch.stack(state) - rk4(lorenz, start, dt=0.02, steps=5)[-1]).abs().max() <= 1e-13 * 50
    (one,) = integrators.rk4_coordinates(lambda s: (s**2,), (start[0],), 0.1)
    assert torch.allclose(one, integrators.rk4_step(lambda s: s**2, start[:1], 0.1)[0], rtol=1e-14)


def test_every_keeps_what_all_steps_would():
    start = torch.ones(3, 2, dtype=torch.float64)
    whole, some = (rk4(lorenz, start, dt=0.01, steps=12, every=k) for k in (1, 4))
    assert torch.equal(whole[::4], some)


def test_the_exponent_of_lorenz():
    """0.906 nats per unit of time (Sprott); starts on the attractor, 4 standard errors of 64 paths."""
    start = systems.lorenz(64, 2, time=0.1, burn_in=5.0, generator=stream(0, "start"))[:, 0].T.contiguous()
    found = lyapunov_exponent(lorenz, start, dt=0.01, steps=4000)
    error = float(found.std() / 8)
    assert abs(float(found.mean()) - 0.906) < 4 * error + 0.01
    assert error < 0.02


def test_paths_are_solutions():
    """Neighbouring points of a Lorenz path are joined by the flow; slopes of the others are derivatives."""
    path = systems.lorenz(3, 6, time=0.25, generator=stream(0, "paths"))
    again = rk4(lorenz, path[:, 0].T.contiguous(), dt=0.001, steps=250, every=50)
    assert (again.permute(2, 0, 1) - path).abs().max() < 1e-4
    for make, time in ((systems.oscillators, 4.0), (systems.waveforms, 1.0)):
        states = make(5, 2001, time=time, generator=stream(0, "paths"))
        slope = (states[:, 2:, 0] - states[:, :-2, 0]) / (2 * time / 2000)
        assert (slope - states[:, 1:-1, 1]).abs().max() < 2e-2 * states[..., 1].abs().max()


def test_a_seed_is_a_path():
    one, two = (systems.waveforms(3, 8, generator=stream(4, "paths")) for _ in range(2))
    assert torch.equal(one, two)
    with pytest.raises(ValueError, match="L = 1"):
        systems.lorenz(2, 1, generator=stream(0, "paths"))
