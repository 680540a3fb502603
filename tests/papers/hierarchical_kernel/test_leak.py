"""Causality: prefixes and Jacobians; block pooling leaks and is caught, and the leak looks like a result."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import leak, reference
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.instances import random_layers
from derived.papers.hierarchical_kernel.leak import Leak, jacobian
from derived.papers.hierarchical_kernel.model.attention import IMPLEMENTATIONS
from derived.papers.hierarchical_kernel.model.layers import HKTAttention

CLAIM = {one.id: one for one in CLAIMS}

EPS = torch.finfo(torch.float64).eps
# Every compared number is a sum of at most 10^3 products of standard normal numbers, each rounded a few times.
TOLERANCE = 1e-12
F64 = {"dtype": torch.float64}


def normal(*shape: int, name: str = "x", dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, name, *shape), dtype=torch.float64).to(dtype)


def shaken(layer: torch.nn.Module) -> torch.nn.Module:
    """The layer with every parameter moved away from its start, so that averages and equal alphas hide nothing."""
    with torch.no_grad():
        for i, (name, parameter) in enumerate(layer.named_parameters()):
            noise = torch.randn(parameter.shape, generator=stream(7, name, i), dtype=torch.float64)
            parameter += 0.5 * noise.to(parameter)
    return layer


def dependence(outputs, x: torch.Tensor) -> torch.Tensor:
    """(rows, T): the largest |d output_i / d x_t| over features; outputs maps (T, d) to (rows, anything)."""
    return torch.autograd.functional.jacobian(outputs, x).abs().amax(dim=(1, 3))


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
@pytest.mark.parametrize("pooling", ["convolution", "average"])
def test_causal_pooling_never_reads_the_future(pooling, impl):
    """`hkt-causal`: row j of level l has zero derivative by tokens t > 2^l j, output i by tokens t > i, exactly."""
    T = 9
    layer = shaken(HKTAttention(2, 2, 3, impl, pooling=pooling, kernel=3, **F64))
    x = normal(T, 2)
    jacobian = dependence(lambda z: layer(z[None])[0], x)
    assert float(jacobian.triu(1).abs().max()) == 0
    assert bool((jacobian.tril() > 0).diagonal().all())
    for l in range(3):
        rows = dependence(lambda z, l=l: layer.scores.pyramid(z[None])[l][0], x)
        for i in range(T):
            assert float(rows[i >> l, i + 1 :].sum()) == 0
    rows = dependence(lambda z: layer.scores.pyramid(z[None])[2][0], x)
    for j in range(len(rows)):
        assert float(rows[j, 4 * j]) > 0  # the last token that it may read, it reads


def test_prefixes_decide_their_outputs():
    """`hkt-causal` again, without derivatives: the outputs of x[:t] are the first t outputs of x."""
    layer, x = shaken(HKTAttention(4, 1, 3, kernel=2, **F64)), normal(1, 12, 4)
    whole = layer(x)
    for t in range(4, 12):
        torch.testing.assert_close(layer(x[:, :t]), whole[:, :t], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_block_pooling_leaks_and_is_caught(impl):
    """`hkt-leak`: with block pooling output i reads tokens up to the end of its block of 4, and none behind it.

    In the first block a level counts only from its second row on: the first row is shared by all keys up to i, adds one
    number to all their scores, and softmax drops it.
    """
    layer = shaken(HKTAttention(4, 2, 3, impl, pooling="block", **F64))
    jacobian = dependence(lambda z: layer(z[None])[0], normal(12, 4))
    for i in range(12):
        end = max(2**l * ((i >> l) + 1) - 1 for l in range(3) if i >> l or l == 0)
        rounding = 0.0 if i >= 4 else 100 * EPS  # what softmax drops cancels only up to rounding
        assert float(jacobian[i, end + 1 :].amax() if end < 11 else 0.0) <= rounding
        assert i == end or float(jacobian[i, i + 1 : end + 1].min()) > 1e-6
    assert float(jacobian.triu(1).max()) > 1e-3


def test_the_jacobian_is_that_of_finite_differences():
    layers = random_layers(2, 3, 1, 2, generator=stream(2, "layers"), dtype=torch.float64, impl="reference")
    x = normal(2, 4, 3)
    size = jacobian(layers, x.clone())
    step, numeric = 1e-6, torch.zeros(2, 4, 4, dtype=torch.float64)
    with torch.no_grad():
        for t in range(4):
            for c in range(3):
                moved = torch.zeros_like(x)
                moved[:, t, c] = step
                slope = (layers(x + moved) - layers(x - moved)) / (2 * step)
                numeric[:, :, t] += slope.square().sum(dim=-1)
    assert torch.allclose(size, numeric.sqrt(), rtol=1e-6, atol=1e-8)


def test_the_leak_looks_too_good_and_only_where_it_leaks():
    small = dataclasses.replace(Leak.at("tiny"), steps=120, num_test=200)
    table = run_experiment(small, seed=5, device="cpu").assign(gain=lambda t: t["loss"] - t["chance"])
    means = table.groupby("kind")["gain"].mean()
    assert means["hkt-block"] < -0.1
    assert means[["plain", "hkt"]].abs().max() < 0.02
    assert (table.groupby("kind")["loss"].nunique() == 2).all()  # replicates share nothing


def test_each_row_of_the_leak_fails_where_the_other_kind_stands_in():
    """On rows of a layer that does not leak the claim fails."""
    losses = {"hkt": [1.386, 1.388, 1.387, 1.385, 1.387, 1.386], "hkt-block": [1.1, 1.12, 1.11, 1.09, 1.1, 1.11]}
    table = pd.concat(pd.DataFrame({"kind": kind, "loss": each, "chance": np.log(4)}) for kind, each in losses.items())
    other, claim = table.assign(kind=table["kind"].map({"hkt": "hkt-block", "hkt-block": "hkt"})), CLAIM["HKT-3.e"]
    assert claim.judge(claim.measure(table))[0] == "holds"
    assert claim.judge(claim.measure(other))[0] == "fails"


def test_the_figure_of_jacobians_leaves_rounding_empty(words_of):
    tiny = pd.DataFrame({"i": [0, 0, 1, 1], "t": [0, 1, 0, 1], "size": [1.0, 1e-16, 0.5, 1.0]})
    ahead = tiny.assign(pooling="average", size=tiny["size"].clip(lower=0.1))
    figure = leak.jacobian_maps(pd.concat([tiny.assign(pooling="block"), ahead]))
    assert "block means 1e-16, causal averages 0.1" in words_of(figure)
    titles = [ax.texts[0].get_text() for ax in figure.axes]
    assert titles == ["block means: nothing ahead", "causal averages: sees ahead"]
    shown = np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)
    assert np.isnan(shown).tolist() == [[False, True], [False, False]]


def test_the_figure_of_leaks_says_losses_less_chance(words_of):
    kinds = ("plain", "hkt", "hkt-block")
    losses = [{"kind": kind, "loss": 1.3 + 0.01 * r, "accuracy": 0.3} for kind in kinds for r in range(5)]
    rows = pd.DataFrame(losses).assign(chance=1.4, tier="ci", recorded=False)
    assert "plain -0.080, accuracy 0.30" in words_of(leak.leak(rows))


@pytest.mark.parametrize("T", [2, 7, 12])
def test_the_reach_of_block_means_by_the_reference_program(T):
    """`hkt-leak`: who sees the future in the plain program is exactly whom the proposition names."""
    X, M = normal(T, 2, name="reach").tolist(), [normal(2, 2, name=f"M{l}").tolist() for l in range(3)]
    expected = []
    for i in range(1, T):
        m = min(2, int(np.log2(i)))
        expected += [(i, t) for t in range(i + 1, min(T, 2**m * ((i >> m) + 1)))]
    found, weights = [], [0.5, 0.3, 0.2]
    before = reference.layer(X, M, weights, block_means_of_any_length)
    for t in range(T):
        other = [[x + 1.0 for x in row] if k == t else row for k, row in enumerate(X)]
        after = reference.layer(other, M, weights, block_means_of_any_length)
        found += [(i, t) for i in range(t) if max(abs(a - b) for a, b in zip(after[i], before[i], strict=True)) > 1e-9]
    assert sorted(found) == sorted(expected)


def block_means_of_any_length(X: list) -> list:
    """Means of pairs with a zero after the last token, as the package pads."""
    return reference.block_means(X if len(X) % 2 == 0 else [*X, [0.0 for _ in X[0]]])
