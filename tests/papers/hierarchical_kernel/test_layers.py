"""What the layer contains, its rivals, and the weights that they share."""

import math

import pytest
import torch
from random_tensors import F64, TOLERANCE, dependence, normal, shaken
from torch.nn.functional import conv1d, pad, scaled_dot_product_attention

from derived.papers.hierarchical_kernel.model.attention import IMPLEMENTATIONS, attend_tables
from derived.papers.hierarchical_kernel.model.layers import (
    CausalDownsample,
    ConvQKAttention,
    HierarchicalScores,
    HKTAttention,
    PlainAttention,
)
from derived.papers.hierarchical_kernel.model.pyramid import (
    num_rows,
    pyramid,
)


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_one_level_is_ordinary_attention(impl):
    """`hkt-strict`: L = 1, and alpha = e_0 at any L, are ordinary attention, as torch computes it."""
    d, heads, x = 6, 2, normal(1, 9, 6)
    one = HKTAttention(d, heads, 1, impl, **F64)
    peer = torch.nn.MultiheadAttention(d, heads, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        peer.in_proj_weight.copy_(torch.cat([one.scores.W_Q[0][0], one.scores.W_K[0][0], one.W_V[0]]))
        peer.out_proj.weight.copy_(one.W_O[0])
    mask = torch.ones(9, 9, dtype=torch.bool).triu(1)
    expected = peer(x, x, x, attn_mask=mask, need_weights=False)[0]
    torch.testing.assert_close(one(x), expected, rtol=0, atol=TOLERANCE)
    three = HKTAttention(d, heads, 3, impl, **F64)  # the same streams: level 0 has the same weights
    with torch.no_grad():
        three.scores.a.copy_(torch.tensor([0.0, -math.inf, -math.inf]).expand(1, heads, 3))
    torch.testing.assert_close(three(x), expected, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(PlainAttention(d, heads, **F64)(x), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("kernel", [2, 3, 4])
@pytest.mark.parametrize("before", [True, False])
def test_log_odds_see_a_third_token_in_the_layer_only(kernel, before):
    """`hkt-strict`: d ln(A_ij / A_ij') / d x_{j-1} is 0 with one level, a_1 C_11^T M_1^T x^(1) with two
    and not zero with three, for j' <= j - 2 and for j' >= j + k, at the shortest i."""
    d, j = 4, 2
    other = j - 2 if before else j + kernel
    i, gradients = j + kernel, {}
    for levels in (1, 2, 3):
        scores = shaken(HierarchicalScores(d, 1, levels, kernel=kernel, **F64))
        x = normal(1, i + 1, d).requires_grad_()
        S = scores(x)[0, 0]
        gradients[levels] = torch.autograd.grad(S[i, j] - S[i, other], x)[0][0, j - 1]
        if levels == 2:
            W_Q, W_K, C = scores.W_Q[1][0], scores.W_K[1][0], scores.downsample[0].weight[0, :, kernel - 2]
            row = scores.pyramid(x)[1][0, i // 2]
            expected = scores.alpha()[0, 0, 1] * C.mT @ W_K.mT @ W_Q @ row / math.sqrt(d)
            torch.testing.assert_close(gradients[2], expected, rtol=0, atol=TOLERANCE)
    assert float(gradients[1].abs().max()) == 0
    assert min(float(gradients[levels].abs().max()) for levels in (2, 3)) > 1e-3


def test_controls_against_direct_formulas():
    """conv-QK: a causal convolution before W_Q and W_K alone; wide: width L d_k, scaled by its own width."""
    x = normal(1, 10, 4)
    conv = shaken(ConvQKAttention(4, 2, 4, **F64))
    z = conv1d(pad(x.mT, (3, 0)), conv.weight[0].transpose(1, 2)).mT
    heads = []
    for h in range(2):
        part = slice(2 * h, 2 * h + 2)
        q, k = (z @ W[0, part].T for W in (conv.W_Q, conv.W_K))
        heads.append(scaled_dot_product_attention(q, k, x @ conv.W_V[0, part].T, is_causal=True))
    torch.testing.assert_close(conv(x), torch.cat(heads, dim=-1) @ conv.W_O[0].T, rtol=0, atol=TOLERANCE)
    plain = PlainAttention(4, 2, **F64)
    torch.testing.assert_close(ConvQKAttention(4, 2, 4, **F64)(x), plain(x), rtol=0, atol=TOLERANCE)
    wide = PlainAttention(4, 1, 3, **F64)
    S = (x @ wide.W_Q[0].T) @ (x @ wide.W_K[0].T).mT / math.sqrt(12)
    A = torch.softmax(S.masked_fill(torch.ones(10, 10).triu(1) > 0, -math.inf), dim=-1)
    torch.testing.assert_close(wide(x), A @ x @ wide.W_V[0].T @ wide.W_O[0].T, rtol=0, atol=TOLERANCE)
    for control in (conv, wide):
        assert float(dependence(lambda t, control=control: control(t[None])[0], x[0]).triu(1).max()) == 0


@pytest.mark.parametrize("impl", ["reference", "fused", "tables"])
@pytest.mark.parametrize("pooling", ["convolution", "average"])
def test_a_short_prompt_and_padding_on_the_right_read_like_the_beginning_of_a_longer_text(pooling, impl):
    layer, x = HKTAttention(4, 2, 4, impl, pooling=pooling, **F64), normal(1, 3, 9, 4)
    whole = layer(x)
    for T in (1, 2, 3, 7):
        torch.testing.assert_close(layer(x[:, :, :T]), whole[:, :, :T], rtol=0, atol=1e-12)
        padded = pad(x[:, :, :T], (0, 0, 0, 9 - T), value=5.0)
        torch.testing.assert_close(layer(padded)[:, :, :T], whole[:, :, :T], rtol=0, atol=1e-12)
    on_the_left = layer(pad(x[:, :, :3], (0, 0, 6, 0)))[:, :, 6:]
    assert (on_the_left - whole[:, :, :3]).abs().max() > 1e-3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: HKTAttention(4)(torch.zeros(8, 4)),
            r"shape \(8, 4\); give a floating torch.Tensor of shape \(R, \*batch, T, d\)",
        ),
        (lambda: HKTAttention(4)(torch.zeros(2, 8, 4)), r"R = 1.*for one network x.unsqueeze\(0\)"),
        (lambda: HKTAttention(4, heads=3), "heads = 3 does not divide"),
        (lambda: HKTAttention(4, levels=0), "levels = 0"),
        (lambda: HKTAttention(4, impl="flash"), "impl = 'flash'"),
        (lambda: HKTAttention(4, pooling="max"), "pooling = 'max'"),
        (lambda: HKTAttention(4, alpha0=1.0), "alpha0 = 1;"),
        (lambda: CausalDownsample(4, 1), "kernel = 1"),
        (lambda: PlainAttention(4, widen=0), "widen = 0"),
        (lambda: ConvQKAttention(4, 1, 0), "kernel = 0"),
        (lambda: pyramid(torch.zeros(8, 2), 3, "convolution"), "with weights: none"),
        (lambda: num_rows(0, 1), "T = 0"),
        (lambda: attend_tables([], [], torch.zeros(2, 2), torch.ones(1), tile=0), "tile = 0"),
        (lambda: HKTAttention(4)(normal(1, 8, 4)), r"x is torch.float64, and the weights are torch.float32; give x.to"),
        (lambda: PlainAttention(4, **F64)(torch.zeros(1, 8, 4)), "or the layer dtype=torch.float32"),
        (lambda: PlainAttention(4)(torch.zeros(1, 0, 4)), "give at least one entry"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("kernel", [2, 3])
def test_without_stride_rows_at_the_blocks_are_those_of_the_pyramid(kernel):
    """Row 2^l j of level l is row j with stride; every row is causal; the mixture is that of full tables, by loops."""
    with_, without = (HierarchicalScores(4, 2, 3, kernel=kernel, stride=s, **F64) for s in (True, False))
    shaken(with_)
    without.load_state_dict(with_.state_dict())
    x = normal(1, 11, 4)
    coarse, dense = with_.pyramid(x), without.pyramid(x)
    for l in range(3):
        torch.testing.assert_close(dense[l][:, :: 2**l], coarse[l], rtol=0, atol=TOLERANCE)
        assert dense[l].shape == x.shape
        weight = without.downsample[l - 1].weight[0] if l else None
        for i in (0, 3, 10) if l else ():
            taps = [(m, i - 2 ** (l - 1) * m) for m in range(kernel)]
            slow = sum(weight[:, kernel - 1 - m] @ dense[l - 1][0, row] for m, row in taps if row >= 0)
            torch.testing.assert_close(dense[l][0, i], slow, rtol=0, atol=TOLERANCE)
    tables, alpha = without.tables(x), without.alpha()[0]
    slow = sum(alpha[:, l, None, None] * table[0] for l, table in enumerate(tables))
    torch.testing.assert_close(without(x)[0], slow, rtol=0, atol=TOLERANCE)
    layers = [
        shaken(HKTAttention(4, 2, 3, impl, kernel=kernel, stride=False, **F64)) for impl in ("reference", "fused")
    ]
    torch.testing.assert_close(*(layer(x) for layer in layers), rtol=0, atol=TOLERANCE)
    assert float(dependence(lambda z: layers[1](z[None])[0], x[0]).triu(1).max()) == 0


@pytest.mark.parametrize("pooling", ["average", "block"])
def test_no_stride_is_for_convolutions(pooling):
    with pytest.raises(ValueError, match="only 'convolution' has this form"):
        HKTAttention(4, pooling=pooling, stride=False, **F64)(normal(1, 5, 4))
    with pytest.raises(ValueError, match="impl = 'tables' without stride"):
        HKTAttention(4, impl="tables", stride=False)


def test_gradients_of_tokens_that_do_not_lie_in_a_row():
    """Of a transposed view, which no kernel may read as if it were contiguous."""
    layer, x = shaken(HKTAttention(4, 2, 3, **F64)), normal(1, 4, 9)
    strided, plain = (each.requires_grad_() for each in (x.clone(), x.mT.contiguous()))
    layer(strided.mT).square().sum().backward()
    layer(plain).square().sum().backward()
    torch.testing.assert_close(strided.grad.mT, plain.grad, rtol=0, atol=TOLERANCE)
