"""Scores of levels, by the pencil and by the package."""

import math

import pytest
import torch
from pencil import hierarchical_kernel as pencil

from derived.papers import hierarchical_kernel as package

POOLINGS = [("average", pencil.averages), ("block", pencil.block_means)]


@pytest.mark.parametrize(("pooling", "summarise"), POOLINGS)
def test_scores(draw, table, pooling, summarise):
    X = table(8, 4)
    layer = package.HierarchicalScores(4, levels=3, pooling=pooling, dtype=torch.float64, seed=draw.randrange(100))
    forms = [(q[0].mT @ k[0] / 4**0.5).tolist() for q, k in zip(layer.W_Q, layer.W_K, strict=True)]
    S = pencil.scores(pencil.pyramid(X, 3, summarise), forms, [1 / 3] * 3)
    x = torch.tensor(X, dtype=torch.float64)[None]
    torch.testing.assert_close(torch.tensor(S, dtype=torch.float64), layer(x)[0, 0].detach())


@pytest.mark.parametrize(("pooling", "summarise"), POOLINGS)
def test_who_sees_the_future(table, pooling, summarise):
    """A summary that ends with its first token is causal, a block's mean is not."""
    leaks = pencil.sees_the_future(table(8, 2), [[[1.0, 0.0], [0.0, 1.0]]] * 3, [0.4, 0.3, 0.3], summarise)
    if pooling == "average":
        assert leaks == []
    else:
        assert (2, 3) in leaks
        assert all(i > 0 for i, _ in leaks)


def test_one_attention_with_longer_queries_and_keys(table):
    levels = pencil.pyramid(table(7, 3), 3, pencil.averages)
    M, alpha = [table(3, 3) for _ in range(3)], [0.5, 0.3, 0.2]
    S, (Q, K) = pencil.scores(levels, M, alpha), pencil.concatenated(levels, M, alpha)
    for i, row in enumerate(S):
        assert row == pytest.approx([sum(a * b for a, b in zip(Q[i], key, strict=True)) for key in K], abs=1e-12)


@pytest.mark.parametrize("T", [8, 64, 100, 511])
def test_how_many_scores(T):
    """`HKT-1.g`: 1.3125 T^2 where 4 divides T; a little more where lengths are rounded up."""
    lengths = [T, math.ceil(T / 2), math.ceil(T / 4)]
    assert pencil.entries(T, 3) * T**2 == sum(length**2 for length in lengths)
    assert (pencil.entries(T, 3) == 1.3125) == (T % 4 == 0)


def test_the_split_of_a_table(table):
    """`HKT-5.a`: the symmetric and the antisymmetric part."""
    S = table(5, 5)
    split = package.symmetric_antisymmetric(torch.tensor(S, dtype=torch.float64))
    for mine, theirs in zip(pencil.split(S), split, strict=True):
        torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs)
