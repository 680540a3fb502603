"""Causality: prefixes and Jacobians; block pooling leaks and is caught, and the leak looks like a result."""

import dataclasses

import numpy as np
import pytest
import torch
from random_tensors import F64, TOLERANCE, dependence, normal, shaken

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import reference
from derived.papers.hierarchical_kernel.instances import random_layers
from derived.papers.hierarchical_kernel.leak import Leak, jacobian
from derived.papers.hierarchical_kernel.model.attention import IMPLEMENTATIONS
from derived.papers.hierarchical_kernel.model.layers import HKTAttention

EPS = torch.finfo(torch.float64).eps


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


def test_the_jacobian_is_that_of_autograd():
    """Instances share their backward passes; each entry is the Frobenius norm of one block."""
    layers, x = random_layers(2, 3, 1, 2, generator=stream(2, "layers"), dtype=torch.float64), normal(2, 4, 3)
    whole = torch.autograd.functional.jacobian(layers, x)  # (instances, T, d, instances, T, d)
    blocks = torch.stack([whole[r, :, :, r] for r in range(2)]).square().sum(dim=(2, 4)).sqrt()
    torch.testing.assert_close(jacobian(layers, x.clone()), blocks, rtol=0, atol=TOLERANCE)


def test_the_leak_looks_too_good_and_only_where_it_leaks():
    small = dataclasses.replace(Leak.at("tiny"), steps=120, num_test=200)
    table = run_experiment(small, seed=5, device="cpu").assign(gain=lambda t: t["loss"] - t["chance"])
    means = table.groupby("kind")["gain"].mean()
    assert means["hkt-block"] < -0.1
    assert means[["plain", "hkt"]].abs().max() < 0.02
    assert (table.groupby("kind")["loss"].nunique() == 2).all()  # replicates share nothing


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
