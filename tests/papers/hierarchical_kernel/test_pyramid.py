"""The pyramid against torch's own convolution, plain loops and means."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tensors import F64, TOLERANCE, normal
from torch.nn.functional import conv1d, pad

from derived.papers.hierarchical_kernel.model.layers import CausalDownsample, HKTAttention
from derived.papers.hierarchical_kernel.model.pyramid import causal_average, pyramid

examples = settings(derandomize=True, max_examples=20, deadline=None, database=None)
EPS = torch.finfo(torch.float64).eps


@examples
@given(st.integers(1, 23), st.integers(1, 4), st.integers(2, 4))
def test_convolution_pyramid_against_conv1d_and_loops(T, levels, kernel):
    """`hkt-pyramid`: ceil(T / 2^l) rows; row j is the sum over taps, as torch's convolution and loops say."""
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
    average, block = (pyramid(x, 3, kind) for kind in ("average", "block"))
    for j in range(1, 4):
        torch.testing.assert_close(average[2][j], x[4 * j - 3 : 4 * j + 1].mean(dim=0), rtol=0, atol=8 * EPS)
    torch.testing.assert_close(average[2][0], x[0] / 4, rtol=0, atol=8 * EPS)  # zeros stand before the first token
    for j in range(3):
        torch.testing.assert_close(block[2][j], x[4 * j : 4 * j + 4].mean(dim=0), rtol=0, atol=8 * EPS)


def test_frozen_average_is_the_convolution_it_starts_as():
    x = normal(2, 3, 11, 4)
    down = CausalDownsample(4, num_networks=2, **F64)
    torch.testing.assert_close(down(x), causal_average(x), rtol=0, atol=4 * EPS)
    facts = {"d": 4, "heads": 2, "num_networks": 2, "seed": 3, **F64}
    trained, frozen = HKTAttention(**facts), HKTAttention(**facts, pooling="average")
    torch.testing.assert_close(trained(x), frozen(x), rtol=0, atol=TOLERANCE)
