"""Scores of levels, by the reference program and by the package."""

import math

import pytest
import torch

from derived.papers import hierarchical_kernel as package
from derived.papers.hierarchical_kernel import reference

POOLINGS = [("average", reference.averages), ("block", reference.block_means)]


@pytest.mark.parametrize(("pooling", "summarise"), POOLINGS)
def test_scores(draw, table, pooling, summarise):
    X = table(8, 4)
    layer = package.HierarchicalScores(4, levels=3, pooling=pooling, dtype=torch.float64, seed=draw.randrange(100))
    forms = [(q[0].mT @ k[0] / 4**0.5).tolist() for q, k in zip(layer.W_Q, layer.W_K, strict=True)]
    S = reference.scores(reference.pyramid(X, 3, summarise), forms, [1 / 3] * 3)
    x = torch.tensor(X, dtype=torch.float64)[None]
    torch.testing.assert_close(torch.tensor(S, dtype=torch.float64), layer(x)[0, 0].detach())


@pytest.mark.parametrize(("pooling", "summarise"), POOLINGS)
def test_who_sees_the_future(table, pooling, summarise):
    """`hkt-causal`, `hkt-leak`: a summary that ends with its token is causal, a block's mean is not."""
    leaks = reference.sees_the_future(table(8, 2), [[[1.0, 0.0], [0.0, 1.0]]] * 3, [0.4, 0.3, 0.3], summarise)
    if pooling == "average":
        assert leaks == []
    else:
        assert (2, 3) in leaks
        assert all(i > 0 for i, _ in leaks)


def test_one_attention_with_longer_queries_and_keys(table):
    """`hkt-concat`: levels side by side are the queries and keys of one attention with these scores."""
    levels = reference.pyramid(table(7, 3), 3, reference.averages)
    M, alpha = [table(3, 3) for _ in range(3)], [0.5, 0.3, 0.2]
    S, (Q, K) = reference.scores(levels, M, alpha), reference.concatenated(levels, M, alpha)
    for i, row in enumerate(S):
        assert row == pytest.approx([sum(a * b for a, b in zip(Q[i], key, strict=True)) for key in K], abs=1e-12)


def test_the_split_of_a_table(table):
    """`hkt-split`: the parts of the plain program's scores, by loops, are those of the package."""
    levels = reference.pyramid(table(5, 3), 3, reference.averages)
    S = reference.scores(levels, [table(3, 3) for _ in range(3)], [0.5, 0.3, 0.2])
    split = package.symmetric_antisymmetric(torch.tensor(S, dtype=torch.float64))
    for sign, theirs in zip((1, -1), split, strict=True):
        mine = [[(S[i][j] + sign * S[j][i]) / 2 for j in range(5)] for i in range(5)]
        torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs)


def test_a_kernel_in_the_scores_is_a_convolution(table):
    """`hkt-convolution`: attention of the plain program with ln kappa for scores, and -40 for ln 0, by loops."""
    kappa, X = [0.5, 0.2, 0.0, 0.3], table(6, 2)
    lag = [[kappa[i - j] if 0 <= i - j < 4 else 0.0 for j in range(6)] for i in range(6)]
    scores = [[math.log(k) if k else -40.0 for k in row] for row in lag]
    for weights, found in zip(lag, reference.attention(scores, X), strict=True):
        wanted = [sum(w * x[c] for w, x in zip(weights, X, strict=True)) / sum(weights) for c in range(2)]
        assert found == pytest.approx(wanted, abs=1e-12)
