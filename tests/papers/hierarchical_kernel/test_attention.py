"""The three implementations of attention over a pyramid, and its concatenated features (HKT-2)."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.model import attention
from derived.papers.hierarchical_kernel.model.pyramid import num_rows

examples = settings(derandomize=True, max_examples=20, deadline=None, database=None)
# Every compared number is a sum of at most 10^3 products of standard normal numbers, each rounded a few times.
TOLERANCE = 1e-12


def normal(*shape: int, name: str = "x", dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, name, *shape), dtype=torch.float64).to(dtype)


def features(T: int, levels: int, d_k: int = 4, lead: tuple[int, ...] = (2, 3), dtype: torch.dtype = torch.float64):
    q, k = (
        [normal(*lead, num_rows(T, l), d_k, name=f"{side}{l}", dtype=dtype) for l in range(levels)] for side in "qk"
    )
    alpha = torch.softmax(normal(lead[-1], levels, name="alpha"), dim=-1).to(dtype)
    return q, k, normal(*lead, T, 5, name="v", dtype=dtype), alpha


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
    for name, attend in attention.IMPLEMENTATIONS.items():
        found = attend(q, k, v, alpha, causal=causal, **({"tile": tile} if name == "tables" else {}))
        torch.testing.assert_close(found, slow, rtol=0, atol=TOLERANCE, msg=f"{name} differs from the loops")


@pytest.mark.parametrize("name", attention.IMPLEMENTATIONS)
def test_delayed_rows_and_long_sequences(name):
    """An offset of one token, and lengths beyond a tile and beyond the short cut of the fused layer."""
    q, k, v, alpha = features(300, 3, lead=(1, 2))
    torch.testing.assert_close(
        attention.IMPLEMENTATIONS[name](q, k, v, alpha)[0, 1, 299:],
        slow_attention([a[0, 1] for a in q], [b[0, 1] for b in k], v[0, 1], alpha[1], first=299),
        rtol=0,
        atol=TOLERANCE,
    )
    T = 18
    q, k = ([normal(1, 1, (T >> l) + (l > 0), 4, name=f"{side}{l}") for l in range(3)] for side in "qk")
    v, alpha = normal(1, 1, T, 4), torch.softmax(normal(1, 3), dim=-1)
    slow = slow_attention([a[0, 0] for a in q], [b[0, 0] for b in k], v[0, 0], alpha[0], offset=1)
    found = attention.IMPLEMENTATIONS[name](q, k, v, alpha, offset=1, **({"tile": 8} if name == "tables" else {}))
    torch.testing.assert_close(found[0, 0], slow, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_low_precision_stays_within_its_rounding(dtype):
    """`hkt-lipschitz` bounds the output's error by that of the scores: (d_k L + 6) eps max|q||k| times max|v|."""
    q, k, v, alpha = features(40, 3)
    exact = attention.attend_reference(q, k, v, alpha)
    eps = torch.finfo(dtype).eps
    size = max(float((a.norm(dim=-1).max() * b.norm(dim=-1).max()) / 2) for a, b in zip(q, k, strict=True))
    bound = ((4 * 3 + 6) * eps * size + (40 + 4) * eps) * float(v.abs().max())
    low = [[a.to(dtype) for a in side] for side in (q, k)]
    for attend in attention.IMPLEMENTATIONS.values():
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
    for attend in (attention.IMPLEMENTATIONS["reference"], attention.IMPLEMENTATIONS[name]):
        inputs = [leaf.clone().requires_grad_() for leaf in leaves]
        grads.append(torch.autograd.grad(run(attend, *inputs), inputs))
    for ours, peer in zip(*grads, strict=True):
        torch.testing.assert_close(ours, peer, rtol=0, atol=TOLERANCE * (1 + float(peer.abs().max())))
    inputs = [leaf.clone().requires_grad_() for leaf in leaves]
    assert torch.autograd.gradcheck(lambda *values: run(attention.IMPLEMENTATIONS[name], *values), inputs)
    a = torch.tensor([0.0, -math.inf, -math.inf], dtype=torch.float64).requires_grad_()
    (gradient,) = torch.autograd.grad(attention.IMPLEMENTATIONS[name](q, k, v, torch.softmax(a, dim=-1)).sum(), a)
    assert bool(torch.isfinite(gradient).all())


@pytest.mark.parametrize(("width", "lead"), [(5, (2, 3)), (7, (1,)), (3, ())])
def test_padding_changes_nothing(width, lead):
    """The kernel of an accelerator gets zeros where widths differ; the plain softmax says the same, as do the tiles."""
    q, k, v = (normal(*lead, 150, size, name=name) for name, size in (("q", width), ("k", width), ("v", 5)))
    S = (0.3 * q @ k.mT).masked_fill(torch.ones(150, 150).triu(1) > 0, -math.inf)
    for attend in (attention.attend_padded, attention.attend_plain):
        for causal, table in ((True, S), (False, 0.3 * q @ k.mT)):
            found = attend(q, k, v, scale=0.3, causal=causal)
            torch.testing.assert_close(found, torch.softmax(table, dim=-1) @ v, rtol=0, atol=TOLERANCE)


def test_concatenated_features_and_rank():
    """`hkt-concat`, `hkt-rank`: S = q~ k~^T with the factor on either side; rank S <= sum_l min(d_k, T_l)."""
    q, k, _, alpha = features(16, 3, d_k=3)
    S = attention.mix(attention.score_tables(q, k), alpha)
    for split in (False, True):
        left, right = attention.concatenated_features(q, k, alpha, split=split)
        assert left.shape[-1] == 9
        torch.testing.assert_close(left @ right.mT, S, rtol=0, atol=TOLERANCE)
    assert set(torch.linalg.matrix_rank(S).flatten().tolist()) == {3 + 3 + 3}
    # 3 + 3 + 3 + 2 with two rows on the coarsest level; but levels 2 and 3 share the 4 dimensions of U_2, so 3 + 3 + 4
    q, k, _, alpha = features(16, 4, d_k=3)
    assert set(torch.linalg.matrix_rank(attention.mix(attention.score_tables(q, k), alpha)).flatten().tolist()) == {10}


def test_no_table_is_materialised_for_gradients():
    """What "tables" saves for the way back grows like T d, not like T^2."""
    sizes = {}
    for name in attention.IMPLEMENTATIONS:
        q, k, v, alpha = features(512, 2, d_k=2, lead=(1, 1), dtype=torch.float32)
        inputs, saved = [a.requires_grad_() for a in (*q, *k, v)], []
        with torch.autograd.graph.saved_tensors_hooks(lambda t, saved=saved: saved.append(t.numel()) or t, lambda t: t):
            attention.IMPLEMENTATIONS[name](inputs[:2], inputs[2:4], inputs[4], alpha)
        sizes[name] = max(saved)
    assert sizes["reference"] >= 512**2 > 16 * max(sizes["tables"], sizes["fused"])


def test_upsampling_repeats_entries():
    table = normal(3, 3)
    wide = attention.upsample(table, 11, 2)
    assert all(wide[i, j] == table[i // 4, j // 4] for i in range(11) for j in range(11))
    torch.testing.assert_close(torch.kron(table, torch.ones(4, 4, dtype=torch.float64))[:11, :11], wide, rtol=0, atol=0)


@pytest.mark.parametrize("name", attention.IMPLEMENTATIONS)
def test_unequal_numbers_of_levels_are_named(name):
    q, k = [normal(1, 1, 8 >> l, 2, name=l) for l in range(2)], [normal(1, 1, 8 >> l, 2, name=l) for l in range(3)]
    v, attend = normal(1, 1, 8, 2), attention.IMPLEMENTATIONS[name]
    with pytest.raises(ValueError, match=r"give (as many of each|one weight per level)"):
        attend(q, q, v, torch.full((3,), 1 / 3, dtype=torch.float64))
    with pytest.raises(ValueError, match="2 levels of queries, 3 of keys"):
        attend(q, k, v, torch.full((2,), 0.5, dtype=torch.float64))


def test_no_token_is_refused():
    """By the tiles, for unequal widths, and by the fused kernel, which would answer a table without rows."""
    for width in (2, 3):
        q, k, v = torch.zeros(1, 0, 2), torch.zeros(1, 0, 2), torch.zeros(1, 0, width)
        with pytest.raises(ValueError, match="T = 0"):
            attention.attend_plain(q, k, v, scale=1.0)
    with pytest.raises(ValueError, match="T = 0"):
        attention.IMPLEMENTATIONS["tables"]([q], [k], v, torch.ones(1))


def test_a_score_that_is_no_number_is_refused_and_not_answered_with_zeros():
    q, k, v = (normal(1, 4, 2, name=name) for name in "qkv")
    for bad in (math.nan, math.inf):
        q[0, 2, 1] = bad
        with pytest.raises(ValueError, match="not finite"):
            attention.attend_plain(q, k, v, scale=1.0)
