"""The three implementations of attention over a pyramid, and its concatenated features."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_tensors import TOLERANCE, features, normal

from derived.papers.hierarchical_kernel.model import attention

examples = settings(derandomize=True, max_examples=20, deadline=None, database=None)


def slow_attention(q, k, v, alpha, first=0):
    """One head, in plain loops over queries and keys: the definition of the layer, token by token."""
    T, rows = len(v), []
    for i in range(first, T):
        logits = []
        for j in range(i + 1):
            each = [a[i >> l] @ b[j >> l] for l, (a, b) in enumerate(zip(q, k, strict=True))]
            logits.append(sum(w * s / math.sqrt(q[0].shape[-1]) for w, s in zip(alpha, each, strict=True)))
        p = torch.stack(logits).exp()
        rows.append((p / p.sum(dim=0)) @ v[: i + 1])
    return torch.stack(rows)


@examples
@given(st.integers(1, 21), st.integers(1, 4), st.integers(1, 9))
def test_implementations_against_loops(T, levels, tile):
    """`hkt-concat`: reference, fused (concatenated features) and coarse tables are one layer, at any length."""
    if 2 ** (levels - 1) > T:
        return
    q, k, v, alpha = features(T, levels)
    slow = torch.stack(
        [
            slow_attention([a[r, h] for a in q], [b[r, h] for b in k], v[r, h], alpha[h])
            for r in range(2)
            for h in range(3)
        ]
    ).unflatten(0, (2, 3))
    for name, attend in attention.IMPLEMENTATIONS.items():
        found = attend(q, k, v, alpha, **({"tile": tile} if name == "tables" else {}))
        torch.testing.assert_close(found, slow, rtol=0, atol=TOLERANCE, msg=f"{name} differs from the loops")


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


def test_concatenated_features_and_rank():
    """`hkt-concat`: S = q~ k~^T with the factor on either side; rank S <= sum_l min(d_k, T_l)."""
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


@pytest.mark.parametrize("width", [5, 3])
def test_unequal_widths_on_either_road(width):
    """By tiles where widths differ, by torch's kernel where they do not: the plain softmax says the same."""
    q, k, v = (normal(2, 150, size, name=name) for name, size in (("q", width), ("k", width), ("v", 5)))
    table = (0.3 * q @ k.mT).masked_fill(torch.ones(150, 150).triu(1) > 0, -math.inf)
    found = attention.attend_plain(q, k, v, scale=0.3)
    torch.testing.assert_close(found, torch.softmax(table, dim=-1) @ v, rtol=0, atol=TOLERANCE)


def test_rows_are_repeated_in_both_directions():
    """`hkt-layer`: U S U^T, by numpy's Kronecker product, and tables of full size as they are."""
    table, one = normal(3, 3), torch.tensor([1.0], dtype=torch.float64)
    found = attention.mix([torch.zeros(6, 6).double(), table], torch.cat([0 * one, one]))
    torch.testing.assert_close(torch.kron(table, torch.ones(2, 2).double()), found, rtol=0, atol=0)
    full = attention.mix([torch.zeros(3, 3).double(), table], torch.cat([0 * one, one]))
    torch.testing.assert_close(full, table, rtol=0, atol=0)
