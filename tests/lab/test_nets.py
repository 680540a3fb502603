"""Parts of small networks: each against a slow twin, network by network, and draws that depend on names alone."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from derived.lab.nets import Draws, layer_norm, linear, merge_heads, normal, split_heads
from derived.lab.rng import stream

SIZES = st.integers(1, 4)


def numbers(*shape: int, name: str = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, name), dtype=torch.float64)


@given(R=SIZES, batch=st.lists(SIZES, min_size=1, max_size=2), i=SIZES, o=SIZES)
def test_each_network_multiplies_by_its_own_weight(R, batch, i, o):
    x, W = numbers(R, *batch, i), numbers(R, o, i, name="W")
    for r in range(R):
        torch.testing.assert_close(linear(x, W)[r], x[r] @ W[r].T)


@given(R=SIZES, T=SIZES, heads=SIZES, width=SIZES)
def test_heads_are_slices_of_the_features_and_merging_puts_them_back(R, T, heads, width):
    x = numbers(R, 2, T, heads * width)
    split = split_heads(x, heads)
    for h in range(heads):
        assert torch.equal(split[:, :, h], x[..., h * width : (h + 1) * width])
    assert torch.equal(merge_heads(split), x)


def test_heads_that_do_not_divide_the_features_are_refused():
    with pytest.raises(RuntimeError):
        split_heads(torch.zeros(1, 2, 5), 2)


def test_layer_norm_is_of_mean_zero_and_of_variance_almost_one():
    x = 3 + 2 * numbers(2, 5, 7)
    mean, variance = x.mean(dim=-1, keepdim=True), x.var(dim=-1, unbiased=False, keepdim=True)
    torch.testing.assert_close(layer_norm(x), (x - mean) / (variance + 1e-5).sqrt())


def test_normal_numbers_have_their_deviation():
    """4000 draws: the mean is 0 and the variance 0.01 within 4 standard errors, and not 0.0121."""
    x = normal(40, 100, std=0.1, generator=stream(0, "normal"), dtype=torch.float64)
    assert x.mean().abs() < 4 * 0.1 / math.sqrt(4000)
    assert abs(x.var() / 0.01 - 1) < 4 * math.sqrt(2 / 4000)
    assert abs(x.var() / 0.0121 - 1) > 4 * math.sqrt(2 / 4000)
    assert normal(2, std=1.0, generator=stream(0, "x"), dtype=torch.float32).dtype == torch.float32


def test_a_weight_depends_on_seed_layer_name_and_network_alone():
    draws = Draws(num_networks=3, seed=1, layer="block 0")
    W = draws.matrix("W", 4, 5)
    assert W.shape == (3, 4, 5)
    assert W.requires_grad
    assert torch.equal(W, draws.matrix("W", 4, 5))
    assert torch.equal(W[:1], Draws(seed=1, layer="block 0").matrix("W", 4, 5))
    same = Draws(num_networks=3, seed=1, layer="block 0", dtype=torch.float64).matrix("W", 4, 5)
    assert torch.equal(W, same.float())  # the same draws in every dtype
    others = [draws.matrix("V", 4, 5), Draws(num_networks=3, seed=2, layer="block 0").matrix("W", 4, 5)]
    others.append(Draws(num_networks=3, seed=1, layer="block 1").matrix("W", 4, 5))
    assert all(not torch.equal(W, other) for other in others)
    assert not torch.equal(W[0], W[1])


def test_the_variance_of_a_matrix_is_one_over_its_columns():
    W = Draws(num_networks=2, dtype=torch.float64).matrix("W", 100, 20)
    assert abs(W.var() * 20 - 1) < 4 * math.sqrt(2 / W.numel())


def test_a_common_start_is_repeated_for_each_network():
    start = Draws(num_networks=3, dtype=torch.float64).full(torch.arange(4.0).view(2, 2))
    assert start.dtype == torch.float64
    assert torch.equal(start, torch.arange(4.0, dtype=torch.float64).view(1, 2, 2).expand(3, 2, 2))
    with pytest.raises(ValueError, match="num_networks = 0"):
        Draws(num_networks=0)
