"""Trajectories: the integrator's order, its witnesses, and what a lost one says."""

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from derived.lab.rng import stream
from derived.papers.geometric_tax.data import systems
from derived.papers.geometric_tax.data.systems import lorenz_field, rk4


def test_the_order_is_four():
    """By Richardson: no reference is needed."""
    start = 10 * torch.rand(3, 5, generator=stream(0, "start"), dtype=torch.float64)
    coarse, middle, fine = (rk4(lorenz_field, start, dt=0.4 / n, steps=n)[-1] for n in (40, 80, 160))
    assert 3.7 < float(torch.log2((coarse - middle).norm() / (middle - fine).norm())) < 4.3


def test_scipy_finds_the_same_path():
    start = np.array([1.0, 2.0, 20.0])
    there = solve_ivp(lambda _, s: lorenz_field(torch.tensor(s)).numpy(), (0, 1), start, rtol=1e-10, atol=1e-10).y
    here = rk4(lorenz_field, torch.tensor(start)[:, None], dt=1e-3, steps=1000)[-1, :, 0].numpy()
    assert np.abs(here - there[:, -1]).max() < 1e-6


def test_a_lost_trajectory_says_so():
    with pytest.raises(ValueError, match="not finite after step 40;"):
        rk4(lambda s: s**2, torch.full((1, 3), 1.0, dtype=torch.float64), dt=0.1, steps=400, every=40)
    with pytest.raises(ValueError, match="not finite after step 1;"):
        rk4(lorenz_field, torch.full((3, 1), torch.nan), dt=0.1, steps=4)


def test_paths_are_solutions():
    """Neighbouring points of a Lorenz path are joined by the flow; slopes of the others are derivatives."""
    path = systems.lorenz(3, 6, time=0.25, generator=stream(0, "paths"))
    again = rk4(lorenz_field, path[:, 0].T.contiguous(), dt=0.001, steps=250, every=50)
    assert (again.permute(2, 0, 1) - path).abs().max() < 1e-4
    for make, time in ((systems.oscillators, 4.0), (systems.waveforms, 1.0)):
        states = make(5, 2001, time=time, generator=stream(0, "paths"))
        slope = (states[:, 2:, 0] - states[:, :-2, 0]) / (2 * time / 2000)
        assert (slope - states[:, 1:-1, 1]).abs().max() < 2e-2 * states[..., 1].abs().max()
