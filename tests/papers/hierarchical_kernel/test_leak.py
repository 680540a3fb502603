"""Causality: prefixes and Jacobians; block pooling leaks and is caught, and the leak looks like a result (HKT-3)."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import leak
from derived.papers.hierarchical_kernel.claims import CLAIMS
from derived.papers.hierarchical_kernel.instances import random_layers
from derived.papers.hierarchical_kernel.leak import Leak, jacobian
from derived.papers.hierarchical_kernel.model.attention import IMPLEMENTATIONS, mix
from derived.papers.hierarchical_kernel.model.layers import HKTAttention
from derived.papers.hierarchical_kernel.model.pyramid import pyramid, row_index

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
@pytest.mark.parametrize("pooling", ["convolution", "average", "delayed"])
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
        for i, row in enumerate(row_index(T, l, int(pooling == "delayed")).tolist()):
            assert float(rows[row, i + 1 :].sum()) == 0
    if pooling != "delayed":
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


def test_leaking_scores_move_by_the_sum_over_all_levels_that_hold_the_token():
    """`hkt-leak`: dS_ij/dx_t by automatic differentiation, and by the sum over the levels whose block of i holds t."""
    x, M, alpha = normal(8, 3).requires_grad_(), normal(3, 3, 3, name="M"), torch.tensor([0.5, 0.3, 0.2]).double()
    rows = pyramid(x, 3, "block")
    S = mix([z @ form @ z.mT for z, form in zip(rows, M, strict=True)], alpha)
    for i, t in ((4, 5), (4, 7), (2, 3), (5, 6), (0, 1), (3, 4)):
        for j in range(i + 1):
            found = torch.autograd.grad(S[i, j], x, retain_graph=True)[0][t]
            slow = torch.zeros(3, dtype=torch.float64)
            for l in (l for l in range(3) if i >> l == t >> l):
                slow += alpha[l] / 2**l * (M[l] @ rows[l][j >> l] + (i >> l == j >> l) * M[l].mT @ rows[l][i >> l])
            torch.testing.assert_close(found, slow, rtol=0, atol=TOLERANCE)
    found = torch.autograd.grad(S[4, 0], x, retain_graph=True)[0][5]
    assert float((found - alpha[2] / 4 * M[2] @ rows[2][0]).detach().norm()) > 1e-2  # one level is not enough


def test_without_a_mask_everything_is_read():
    layer = shaken(HKTAttention(4, 1, 2, causal=False, **F64))
    assert bool((dependence(lambda z: layer(z[None])[0], normal(6, 4)) > 0).all())


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
    small = dataclasses.replace(Leak.at("tiny"), steps=200, num_test=300)
    table = run_experiment(small, seed=5, device="cpu").assign(gain=lambda t: t["loss"] - t["chance"])
    means = table.groupby("kind")["gain"].mean()
    assert means["hkt-block"] < -0.1
    assert means[["plain", "hkt"]].abs().max() < 0.02
    assert (table.groupby("kind")["loss"].nunique() == 2).all()  # replicates share nothing


def test_each_row_of_the_leak_fails_where_the_other_kind_stands_in():
    """HKT-3.d on rows of a layer that leaks, HKT-3.e on rows of one that does not: neither holds."""
    losses = {"hkt": [1.386, 1.388, 1.387, 1.385, 1.387, 1.386], "hkt-block": [1.1, 1.12, 1.11, 1.09, 1.1, 1.11]}
    table = pd.concat(pd.DataFrame({"kind": kind, "loss": each, "chance": np.log(4)}) for kind, each in losses.items())
    for id, kind in (("HKT-3.d", "hkt"), ("HKT-3.e", "hkt-block")):
        other = table.assign(kind=table["kind"].map({"hkt": "hkt-block", "hkt-block": "hkt"}))
        assert CLAIM[id].judge(CLAIM[id].measure(table))[0] == "holds", kind
        assert CLAIM[id].judge(CLAIM[id].measure(other))[0] == "fails", kind


def test_the_figure_of_jacobians_leaves_rounding_empty(words_of):
    tiny = pd.DataFrame({"i": [0, 0, 1, 1], "t": [0, 1, 0, 1], "size": [1.0, 1e-16, 0.5, 1.0]})
    ahead = tiny.assign(pooling="average", size=tiny["size"].clip(lower=0.1))
    figure = leak.jacobian_maps(pd.concat([*(tiny.assign(pooling=name) for name in ("block", "delayed")), ahead]))
    assert "block means 1e-16, completed blocks 1e-16" in words_of(figure)
    titles = [ax.texts[0].get_text() for ax in figure.axes]
    assert titles == ["block means: causal", "completed blocks: causal", "averages: see ahead"]
    shown = np.ma.filled(figure.axes[0].images[0].get_array(), np.nan)
    assert np.isnan(shown).tolist() == [[False, True], [False, False]]


def test_the_figure_of_leaks_says_losses_less_chance(words_of):
    kinds = ("plain", "hkt", "hkt-block")
    losses = [{"kind": kind, "loss": 1.3 + 0.01 * r, "accuracy": 0.3} for kind in kinds for r in range(5)]
    rows = pd.DataFrame(losses).assign(chance=1.4, tier="ci", recorded=False)
    assert "plain -0.080, accuracy 0.30" in words_of(leak.leak(rows))
