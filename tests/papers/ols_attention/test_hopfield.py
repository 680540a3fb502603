"""R12: the flip field against its naive twin, steps on it, and what they do with ties."""

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from derived.lab.rng import stream
from derived.papers.ols_attention.model import capacity, hopfield

EPS = torch.finfo(torch.float64).eps
INTERACTIONS = (2, 3, 4, "exp", capacity.bridge(4))


def naive_field(state: Tensor, patterns: Tensor, interaction) -> Tensor:
    """5.12 read literally, spin by spin and pattern by pattern: 2 K N evaluations of F, e^u taken as e^{u - N}."""
    N = len(state)
    field = torch.zeros_like(state)
    for i in range(N):
        for pattern in patterns:
            rest = pattern @ state - pattern[i] * state[i]
            up = capacity.evaluate(interaction, rest + pattern[i], float(N))
            down = capacity.evaluate(interaction, rest - pattern[i], float(N))
            field[i] += (up - down) * state[i]
    return field


@st.composite
def memories(draw, max_patterns: int = 6):
    N, K = draw(st.integers(1, 9)), draw(st.integers(1, max_patterns))
    g = stream(draw(st.integers(0, 2**31)), "memory")
    return hopfield.random_signs(N, generator=g), hopfield.random_signs(K, N, generator=g)


@given(memories(), st.sampled_from(INTERACTIONS))
def test_r12_flip_field_in_one_product(memory, interaction):
    """R12, 5.12: A + x B with one product equals the 2KN evaluations, and both equal the energy difference."""
    state, patterns = memory
    field = hopfield.flip_field(state, patterns, interaction)
    N, K = len(state), len(patterns)
    scale = math.exp(float((patterns @ state).max()) - N) if interaction == "exp" else 1.0
    size = {"exp": math.e**2}.get(interaction, float((N + 2.0) ** 4)) * K
    assert (scale * field - naive_field(state, patterns, interaction)).abs().max() <= 16 * (K + N) * EPS * size
    for i in range(N):
        flipped = state.clone()
        flipped[i] = -flipped[i]
        gain = hopfield.energy(flipped, patterns, interaction) - hopfield.energy(state, patterns, interaction)
        top = math.exp(float((patterns @ state).max())) if interaction == "exp" else 1.0
        assert abs(gain - top * field[i]) <= 16 * (K + N) * EPS * max(top, 1.0) * size


@given(memories(), st.sampled_from((2, 3, "exp")))
def test_r12_steps_batch_over_states_and_memories(memory, interaction):
    """A batch of memories with several states each equals one state and one memory at a time."""
    state, patterns = memory
    N, K = len(state), len(patterns)
    g = stream(21, N, K)
    memories_ = torch.stack([patterns, hopfield.random_signs(K, N, generator=g)])
    states = torch.stack([torch.stack([state, -state, patterns[0]])] * 2)
    together = hopfield.kh_step(states, memories_, interaction)
    for b, t in product(range(2), range(3)):
        assert torch.equal(together[b, t], hopfield.kh_step(states[b, t], memories_[b], interaction))
    assert torch.equal(hopfield.flip_field(states[0, 0], patterns, 2), hopfield.flip_field(states[0], patterns, 2)[0])


def test_r12_tiles_do_not_change_the_decision(monkeypatch):
    """Streaming the patterns in tiles with a running maximum gives the field of a single tile."""
    g = stream(22, "tiles")
    patterns, states = hopfield.random_signs(2, 50, 20, generator=g), hopfield.random_signs(2, 3, 20, generator=g)
    weights = torch.rand(2, 50, generator=g, dtype=torch.float64)
    for interaction in (3, "exp"):
        whole = hopfield.flip_field(states, patterns, interaction, weights)
        with monkeypatch.context() as patch:
            patch.setattr(hopfield, "TILE", 42)  # seven patterns at a time
            tiled = hopfield.flip_field(states, patterns, interaction, weights)
        assert (tiled - whole).abs().max() <= 100 * EPS * (50 * 22.0**3 if interaction == 3 else 50 * math.e**2)
        assert torch.equal(tiled < 0, whole < 0)
        with monkeypatch.context() as patch:
            _, allowed = hopfield._flip_field(states, patterns, interaction, weights)
            patch.setattr(hopfield, "TILE", 42)
            _, in_tiles = hopfield._flip_field(states, patterns, interaction, weights)
        assert torch.allclose(in_tiles, allowed, rtol=1e-9, atol=0)  # or flips that are decided would be left open


def test_r12_weights_are_multiplicities():
    """A pattern of weight 2 counts like two copies, one of weight 0 like none."""
    g = stream(23, "weights")
    patterns, state = hopfield.random_signs(3, 7, generator=g), hopfield.random_signs(7, generator=g)
    weighted = hopfield.flip_field(state, patterns, 3, torch.tensor([2.0, 1.0, 0.0], dtype=torch.float64))
    assert torch.equal(weighted, hopfield.flip_field(state, patterns[[0, 0, 1]], 3))


@pytest.mark.parametrize("N", [3, 800])
def test_r12_exponentials_neither_overflow_nor_vanish(N):
    """F = e^u: e^800 is no float64 and e^{-800} is zero, yet a stored pattern holds and its neighbour returns."""
    patterns = hopfield.random_signs(3, N, generator=stream(24, N))
    neighbour = patterns[0].clone()
    neighbour[0] = -neighbour[0]
    far = hopfield.corrupt(patterns[0], 0.45, generator=stream(24, "far"))
    assert torch.equal(hopfield.kh_step(patterns[0], patterns[:1], "exp"), patterns[0])
    assert torch.equal(hopfield.kh_step(neighbour, patterns[:1], "exp"), patterns[0])
    if N == 800:
        assert torch.equal(hopfield.kh_step(neighbour, patterns, "exp"), patterns[0])
        assert torch.equal(hopfield.kh_step(far, patterns, "exp"), patterns[0])


def test_r12_ties_keep_their_spin():
    """Two patterns one bit apart and nothing else: the field at that bit is zero, and rounding must not flip it."""
    for N, copies in product((2, 3, 9, 16, 33), (1, 3, 7)):
        one = torch.ones(N, dtype=torch.float64)
        two = one.clone()
        two[N // 2] = -1
        pair = torch.stack([one, two])
        for interaction in (2, 3, "exp", capacity.bridge(7), capacity.bridge(10)):
            assert torch.equal(hopfield.kh_step(pair, pair.repeat(copies, 1), interaction), pair)


def test_r12_bridge_tends_to_the_exponential():
    """R12: (1 + u/n)^n e^{-u} = 1 - u^2 / 2n + O(n^-2)."""
    u = torch.tensor([-2.0, 1.0, 3.0], dtype=torch.float64)
    for n in (10_000, 20_000):
        gap = 1 - capacity.bridge(n)(u) * torch.exp(-u)
        np.testing.assert_allclose(gap, u**2 / (2 * n), rtol=10 / n * 3)


def test_r12_patterns_one_bit_apart():
    """`ols-duplicate`: the fields cancel at that bit, and with a third pattern exactly one of the two moves there."""
    N, i = 8, 3
    for seed in range(40):
        one, third = hopfield.random_signs(2, N, generator=stream(42, seed))
        two = one.clone()
        two[i] = -two[i]
        pair, three = torch.stack([one, two]), torch.stack([one, two, third])
        assert hopfield.flip_field(one, pair[:1], "exp")[i] > 0.5
        assert hopfield.flip_field(pair, pair, "exp")[:, i].abs().max() < 8 * EPS
        fields = hopfield.flip_field(pair, three, "exp")[:, i]
        assert abs(fields.sum()) < 64 * EPS
        assert abs(fields[0]) > 1e-8
        assert int((hopfield.kh_step(pair, three, "exp") != pair)[:, i].sum()) == 1
