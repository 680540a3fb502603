"""The pyramid and its causality: loops, prefixes and Jacobians; block pooling leaks and is caught (HKT-3)."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import conv1d, pad

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import mechanism
from derived.papers.hierarchical_kernel.layers import CausalDownsample, HKTAttention
from derived.papers.hierarchical_kernel.mechanism import IMPLEMENTATIONS, pyramid, row_index

examples = settings(derandomize=True, max_examples=20, deadline=None, database=None)
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


# --- the pyramid ------------------------------------------------------------------------------------------------------


@examples
@given(st.integers(1, 23), st.integers(1, 4), st.integers(2, 4))
def test_convolution_pyramid_against_conv1d_and_loops(T, levels, kernel):
    """ceil(T / 2^l) rows; row j is the sum over taps, as torch's own strided convolution and as plain loops say."""
    if 2 ** (levels - 1) > T:
        return
    x, weights = normal(1, T, 3), [normal(1, 3, kernel, 3, name=f"w{l}") for l in range(levels - 1)]
    found = pyramid(x, levels, "convolution", weights)
    for l, rows in enumerate(found):
        assert rows.shape == (1, -(-T // 2**l), 3)
    for before, after, weight in zip(found[:-1], found[1:], weights, strict=True):
        peer = conv1d(pad(before.mT, (kernel - 1, 0)), weight[0].transpose(1, 2), stride=2).mT
        torch.testing.assert_close(after, peer, rtol=0, atol=TOLERANCE * float(peer.abs().max()))
        for j in range(after.shape[1]):
            places = [(m, 2 * j - kernel + 1 + m) for m in range(kernel)]
            slow = sum(weight[0, :, m] @ before[0, r] for m, r in places if r >= 0)
            torch.testing.assert_close(after[0, j], slow, rtol=0, atol=TOLERANCE * (1 + float(peer.abs().max())))


def test_averages_are_means_of_the_tokens_they_stand_for():
    x = normal(13, 2)
    average, block, delayed = (pyramid(x, 3, kind) for kind in ("average", "block", "delayed"))
    for j in range(1, 4):
        torch.testing.assert_close(average[2][j], x[4 * j - 3 : 4 * j + 1].mean(dim=0), rtol=0, atol=8 * EPS)
    torch.testing.assert_close(average[2][0], x[0] / 4, rtol=0, atol=8 * EPS)  # zeros stand before the first token
    for j in range(3):
        torch.testing.assert_close(block[2][j], x[4 * j : 4 * j + 4].mean(dim=0), rtol=0, atol=8 * EPS)
        torch.testing.assert_close(delayed[2][j + 1], block[2][j], rtol=0, atol=0)
    assert [len(rows) for rows in delayed] == [13, 7, 4]
    assert not delayed[1][0].any()
    torch.testing.assert_close(row_index(13, 2, 1)[:5], torch.tensor([0, 0, 0, 1, 1]), rtol=0, atol=0)


def test_frozen_average_is_the_convolution_it_starts_as():
    x = normal(2, 3, 11, 4)
    down = CausalDownsample(4, num_networks=2, **F64)
    torch.testing.assert_close(down(x), mechanism.causal_average(x), rtol=0, atol=4 * EPS)
    facts = {"d": 4, "heads": 2, "num_networks": 2, "seed": 3, **F64}
    trained, frozen = HKTAttention(**facts), HKTAttention(**facts, pooling="average")
    torch.testing.assert_close(trained(x), frozen(x), rtol=0, atol=TOLERANCE)


# --- causality --------------------------------------------------------------------------------------------------------


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
    S = mechanism.mix([z @ form @ z.mT for z, form in zip(rows, M, strict=True)], alpha)
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
