"""The three implementations of the layer, what it contains, and its controls (HKT-2, 6)."""

import math

import pytest
import torch
from beartype import beartype
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import jaxtyped
from torch.nn.functional import conv1d, pad, scaled_dot_product_attention

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import layers, mechanism
from derived.papers.hierarchical_kernel.cost import AttentionInputs, attention_seconds
from derived.papers.hierarchical_kernel.layers import (
    CausalDownsample,
    ConvQKAttention,
    HierarchicalScores,
    HKTAttention,
    PlainAttention,
)
from derived.papers.hierarchical_kernel.mechanism import IMPLEMENTATIONS, pyramid

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


def features(T: int, levels: int, d_k: int = 4, lead: tuple[int, ...] = (2, 3), dtype: torch.dtype = torch.float64):
    q, k = (
        [normal(*lead, mechanism.num_rows(T, l), d_k, name=f"{side}{l}", dtype=dtype) for l in range(levels)]
        for side in "qk"
    )
    alpha = torch.softmax(normal(lead[-1], levels, name="alpha"), dim=-1).to(dtype)
    return q, k, normal(*lead, T, 5, name="v", dtype=dtype), alpha


def dependence(outputs, x: torch.Tensor) -> torch.Tensor:
    """(rows, T): the largest |d output_i / d x_t| over features; outputs maps (T, d) to (rows, anything)."""
    return torch.autograd.functional.jacobian(outputs, x).abs().amax(dim=(1, 3))


# --- one layer, three implementations ---------------------------------------------------------------------------------


def slow_attention(q, k, v, alpha, causal=True, offset=0, first=0):
    """One head, in plain loops over queries and keys: the definition of the layer, token by token."""
    T, rows = len(v), []
    for i in range(first, T):
        last = i + 1 if causal else T
        logits = []
        for j in range(last):
            each = [
                a[(i + offset * (l > 0)) >> l] @ b[(j + offset * (l > 0)) >> l]
                for l, (a, b) in enumerate(zip(q, k, strict=True))
            ]
            logits.append(sum(w * s / math.sqrt(q[0].shape[-1]) for w, s in zip(alpha, each, strict=True)))
        p = torch.stack(logits).exp()
        rows.append((p / p.sum(dim=0)) @ v[:last])
    return torch.stack(rows)


@examples
@given(st.integers(1, 21), st.integers(1, 4), st.booleans(), st.integers(1, 9))
def test_implementations_against_loops(T, levels, causal, tile):
    """`hkt-concat`: reference, fused (concatenated features) and coarse tables are one layer, at any length."""
    if 2 ** (levels - 1) > T:
        return
    q, k, v, alpha = features(T, levels)
    slow = torch.stack(
        [
            slow_attention([a[r, h] for a in q], [b[r, h] for b in k], v[r, h], alpha[h], causal)
            for r in range(2)
            for h in range(3)
        ]
    ).unflatten(0, (2, 3))
    for name, attend in IMPLEMENTATIONS.items():
        found = attend(q, k, v, alpha, causal=causal, **({"tile": tile} if name == "tables" else {}))
        torch.testing.assert_close(found, slow, rtol=0, atol=TOLERANCE, msg=f"{name} differs from the loops")


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_delayed_rows_and_long_sequences(name):
    """An offset of one token, and lengths beyond a tile and beyond the short cut of the fused layer."""
    q, k, v, alpha = features(300, 3, lead=(1, 2))
    torch.testing.assert_close(
        IMPLEMENTATIONS[name](q, k, v, alpha)[0, 1, 299:],
        slow_attention([a[0, 1] for a in q], [b[0, 1] for b in k], v[0, 1], alpha[1], first=299),
        rtol=0,
        atol=TOLERANCE,
    )
    T = 18
    q, k = ([normal(1, 1, (T >> l) + (l > 0), 4, name=f"{side}{l}") for l in range(3)] for side in "qk")
    v, alpha = normal(1, 1, T, 4), torch.softmax(normal(1, 3), dim=-1)
    slow = slow_attention([a[0, 0] for a in q], [b[0, 0] for b in k], v[0, 0], alpha[0], offset=1)
    found = IMPLEMENTATIONS[name](q, k, v, alpha, offset=1, **({"tile": 5} if name == "tables" else {}))
    torch.testing.assert_close(found[0, 0], slow, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_stays_within_its_rounding(dtype):
    """`hkt-lipschitz` bounds the output's error by that of the scores: (d_k L + 6) eps max|q||k| times max|v|."""
    q, k, v, alpha = features(40, 3)
    exact = mechanism.attend_reference(q, k, v, alpha)
    eps = torch.finfo(dtype).eps
    size = max(float((a.norm(dim=-1).max() * b.norm(dim=-1).max()) / 2) for a, b in zip(q, k, strict=True))
    bound = ((4 * 3 + 6) * eps * size + (40 + 4) * eps) * float(v.abs().max())
    low = [[a.to(dtype) for a in side] for side in (q, k)]
    for attend in IMPLEMENTATIONS.values():
        found = attend(*low, v.to(dtype), alpha.to(dtype)).double()
        gap = float((found - exact).abs().max())
        assert eps / 100 < gap < bound  # and it is rounded: a float64 result would be too good


@pytest.mark.parametrize("name", ["fused", "tables"])
def test_gradients_agree_and_are_right(name):
    """The three implementations have one gradient; checked against finite differences, and finite at alpha = e_0."""
    q, k, v, alpha = features(9, 3, lead=(1, 2))
    leaves = [*q, *k, v, alpha]

    def run(attend, *values):
        return attend(list(values[:3]), list(values[3:6]), values[6], values[7]).square().sum()

    grads = []
    for attend in (IMPLEMENTATIONS["reference"], IMPLEMENTATIONS[name]):
        inputs = [leaf.clone().requires_grad_() for leaf in leaves]
        grads.append(torch.autograd.grad(run(attend, *inputs), inputs))
    for ours, peer in zip(*grads, strict=True):
        torch.testing.assert_close(ours, peer, rtol=0, atol=TOLERANCE * (1 + float(peer.abs().max())))
    inputs = [leaf.clone().requires_grad_() for leaf in leaves]
    assert torch.autograd.gradcheck(lambda *values: run(IMPLEMENTATIONS[name], *values), inputs)
    a = torch.tensor([0.0, -math.inf, -math.inf], dtype=torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(IMPLEMENTATIONS[name](q, k, v, torch.softmax(a, dim=-1)).sum(), a)
    assert bool(torch.isfinite(gradient).all())


@pytest.mark.parametrize(("width", "lead"), [(5, (2, 3)), (7, (1,)), (3, ())])
def test_padding_changes_nothing(width, lead):
    """The kernel of an accelerator gets zeros where widths differ; the plain softmax says the same, as do the tiles."""
    q, k, v = (normal(*lead, 150, size, name=name) for name, size in (("q", width), ("k", width), ("v", 5)))
    S = (0.3 * q @ k.mT).masked_fill(torch.ones(150, 150).triu(1) > 0, -math.inf)
    for attend in (mechanism.attend_padded, mechanism.attend_plain):
        for causal, table in ((True, S), (False, 0.3 * q @ k.mT)):
            found = attend(q, k, v, scale=0.3, causal=causal)
            torch.testing.assert_close(found, torch.softmax(table, dim=-1) @ v, rtol=0, atol=TOLERANCE)


def test_concatenated_features_and_rank():
    """`hkt-concat`, `hkt-rank`: S = q~ k~^T with the factor on either side; rank S <= sum_l min(d_k, T_l)."""
    q, k, _, alpha = features(16, 3, d_k=3)
    S = mechanism.mix(mechanism.score_tables(q, k), alpha)
    for split in (False, True):
        left, right = mechanism.concatenated_features(q, k, alpha, split=split)
        assert left.shape[-1] == 9
        torch.testing.assert_close(left @ right.mT, S, rtol=0, atol=TOLERANCE)
    assert set(torch.linalg.matrix_rank(S).flatten().tolist()) == {3 + 3 + 3}
    # 3 + 3 + 3 + 2 with two rows on the coarsest level; but levels 2 and 3 share the 4 dimensions of U_2, so 3 + 3 + 4
    q, k, _, alpha = features(16, 4, d_k=3)
    assert set(torch.linalg.matrix_rank(mechanism.mix(mechanism.score_tables(q, k), alpha)).flatten().tolist()) == {10}


def test_no_table_is_materialised_for_gradients():
    """What "tables" saves for the way back grows like T d, not like T^2."""
    sizes = {}
    for name in IMPLEMENTATIONS:
        q, k, v, alpha = features(512, 2, d_k=2, lead=(1, 1), dtype=torch.float32)
        inputs, saved = [a.requires_grad_() for a in (*q, *k, v)], []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, saved=saved: saved.append(t.numel()) or t, lambda t: t):
            IMPLEMENTATIONS[name](inputs[:2], inputs[2:4], inputs[4], alpha)
        sizes[name] = max(saved)
    assert sizes["reference"] >= 512**2 > 16 * max(sizes["tables"], sizes["fused"])


# --- what the layer contains ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("impl", IMPLEMENTATIONS)
def test_one_level_is_ordinary_attention(impl):
    """`hkt-contains`: L = 1, and alpha = e_0 at any L, are ordinary attention, as torch computes it."""
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
    """`hkt-contains`, strictly: d ln(A_ij / A_ij') / d x_{j-1} is 0 with one level, a_1 C_11^T M_1^T x^(1) with two
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


# --- modules ----------------------------------------------------------------------------------------------------------


def test_scores_against_loops():
    scores = shaken(HierarchicalScores(4, 2, 3, num_networks=2, **F64))
    x = normal(2, 1, 8, 4)
    S = scores(x)
    alpha = torch.softmax(scores.a, dim=-1)
    rows = scores.pyramid(x)
    for r, h, i, j in [(0, 0, 7, 2), (1, 1, 5, 6), (1, 0, 0, 0)]:
        part, total = slice(2 * h, 2 * h + 2), 0.0
        for l in range(3):
            q = scores.W_Q[l][r, part] @ rows[l][r, 0, i >> l]
            total += alpha[r, h, l] * (q @ (scores.W_K[l][r, part] @ rows[l][r, 0, j >> l])) / math.sqrt(2)
        torch.testing.assert_close(S[r, 0, h, i, j], total, rtol=0, atol=TOLERANCE)
    tables = scores.tables(x)
    assert [table.shape[-1] for table in tables] == [8, 4, 2]
    mixed = mechanism.mix(tables, scores.alpha().view(2, 1, 2, 3))
    torch.testing.assert_close(mixed, S, rtol=0, atol=TOLERANCE)


def test_order_of_the_coarse_levels_is_that_of_their_parameters():
    """Level l's weights act on level l: exchanging those of levels 1 and 2 changes the scores."""
    scores = shaken(HierarchicalScores(4, 1, 3, pooling="average", **F64))
    x = normal(1, 8, 4)
    before = scores(x)
    order = [0, 2, 1]
    with torch.no_grad():
        for side in (scores.W_Q, scores.W_K):
            copies = [side[l].clone() for l in order]
            for parameter, copy in zip(side, copies, strict=True):
                parameter.copy_(copy)
    assert float((scores(x) - before).detach().abs().max()) > 0.1


def test_weights_of_a_network_do_not_depend_on_its_neighbours_or_kind():
    three, one = HKTAttention(4, 2, 2, num_networks=3, seed=5), HKTAttention(4, 2, 2, num_networks=1, seed=5)
    for a, b in zip(three.parameters(), one.parameters(), strict=True):
        torch.testing.assert_close(a[:1], b, rtol=0, atol=0)
    wide = PlainAttention(4, 2, 2, num_networks=3, seed=5)
    torch.testing.assert_close(wide.W_Q, torch.cat(list(three.scores.W_Q), dim=1), rtol=0, atol=0)
    assert not torch.equal(three.W_V[0], three.W_V[1])
    assert not torch.equal(HKTAttention(4, seed=6).W_V, HKTAttention(4, seed=5).W_V)
    x = normal(3, 2, 8, 4, dtype=torch.float32)
    moved = x.clone()
    moved[1] += 1
    torch.testing.assert_close(three(moved)[0], three(x)[0], rtol=0, atol=0)


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


def test_initial_weights():
    layer = HKTAttention(64, 2, 3, num_networks=4, alpha0=0.8)
    for W in (*layer.scores.W_Q, *layer.scores.W_K, layer.W_V, layer.W_O):
        assert abs(float(W.detach().square().mean()) * 64 - 1) < 4 * math.sqrt(2 / W.numel())
    torch.testing.assert_close(layer.scores.alpha()[0, 0].detach(), torch.tensor([0.8, 0.1, 0.1]), rtol=1e-6, atol=0)
    torch.testing.assert_close(HKTAttention(4).scores.alpha(), torch.full((1, 1, 3), 1 / 3), rtol=1e-6, atol=0)
    assert HKTAttention(4, levels=1, alpha0=0.5).scores.alpha().item() == 1


# --- bad input, timing, annotations -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: HKTAttention(4, 1, 4)(torch.zeros(1, 7, 4)), r"T = 7 tokens are fewer than the 8.*at most 3 levels"),
        (lambda: HKTAttention(4)(torch.zeros(8, 4)), r"give \(R, \*batch, T, width\) with R = 1, width = 4"),
        (lambda: HKTAttention(4)(torch.zeros(2, 8, 4)), "R = 1"),
        (lambda: HKTAttention(4, heads=3), "heads = 3 does not divide"),
        (lambda: HKTAttention(4, levels=0), "levels = 0"),
        (lambda: HKTAttention(4, impl="flash"), "impl = 'flash'"),
        (lambda: HKTAttention(4, pooling="max"), "pooling = 'max'"),
        (lambda: HKTAttention(4, alpha0=1.0), "alpha0 = 1.0"),
        (lambda: CausalDownsample(4, 1), "kernel = 1"),
        (lambda: PlainAttention(4, widen=0), "widen = 0"),
        (lambda: ConvQKAttention(4, 1, 0), "kernel = 0"),
        (lambda: pyramid(torch.zeros(8, 2), 3, "convolution"), "with weights: none"),
        (lambda: pyramid(torch.zeros(8, 2), 3, "average", [torch.zeros(1, 2, 2, 2)]), "with weights: 1"),
        (lambda: mechanism.num_rows(0, 1), "T = 0"),
        (lambda: mechanism.attend_tables([], [], torch.zeros(2, 2), torch.ones(1), tile=0), "tile = 0"),
    ],
)
def test_bad_arguments_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("T", [5, 6, 7, 9, 100])
def test_length_need_not_be_a_power_of_two(T):
    layer = shaken(HKTAttention(4, 2, 3, **F64))
    x = normal(1, T, 4)
    whole = layer(pad(x, (0, 0, 0, 128 - T)))[:, :T]  # longer by padding, which no earlier row reads
    torch.testing.assert_close(layer(x), whole, rtol=0, atol=TOLERANCE)


def test_timed_contenders_compute_one_layer():
    inputs = AttentionInputs(33, d_k=4, levels=3, heads=2, dtype=torch.float64)
    for impl in ("fused", "tables"):
        torch.testing.assert_close(inputs.attend(impl), inputs.attend("reference"), rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(inputs.attend("plain"), inputs.attend("sdpa"), rtol=0, atol=TOLERANCE)
    assert float((inputs.attend("plain") - inputs.attend("fused")).abs().max()) > 1e-3
    seconds = attention_seconds(inputs, ("fused", "sdpa"), rounds=3)
    assert set(seconds) == {"fused", "sdpa"}
    assert all(len(each) == 3 and min(each) > 0 for each in seconds.values())


def test_annotations_are_true():
    checked = jaxtyped(typechecker=beartype)
    x = normal(2, 3, 9, 4)
    for name in ("causal_average", "block_average"):
        checked(getattr(mechanism, name))(x)
    checked(mechanism.causal_convolution)(x, normal(2, 5, 3, 4))
    checked(mechanism.linear)(x, normal(2, 5, 4))
    q, k, v, alpha = features(9, 3)
    for name in ("attend_reference", "attend_fused", "attend_tables"):
        checked(getattr(mechanism, name))(q, k, v, alpha)
    checked(mechanism.mix)(mechanism.score_tables(q, k), alpha)
    for name in ("split_heads",):
        checked(getattr(layers, name))(x, 2)
    layer = HKTAttention(4, 2, num_networks=2, **F64)
    assert checked(type(layer).forward)(layer, x).shape == x.shape
