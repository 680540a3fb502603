"""Scores of levels, by the pencil and by the package."""

import itertools
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
    """`HKT-2.a`: levels side by side are the queries and keys of one attention with these scores."""
    levels = pencil.pyramid(table(7, 3), 3, pencil.averages)
    M, alpha = [table(3, 3) for _ in range(3)], [0.5, 0.3, 0.2]
    S, (Q, K) = pencil.scores(levels, M, alpha), pencil.concatenated(levels, M, alpha)
    for i, row in enumerate(S):
        assert row == pytest.approx([sum(a * b for a, b in zip(Q[i], key, strict=True)) for key in K], abs=1e-12)


@pytest.mark.parametrize("levels", range(1, 7))
def test_how_many_scores(levels):
    """`HKT-1.a`: 4/3 (1 - 4^-L) T^2 where lengths halve. `HKT-1.d` fails where they are rounded up; `HKT-1.e` bounds
    them, and tables that do not shrink pass its bound."""
    for T in range(1, 200):
        lengths = [math.ceil(T / 2**k) for k in range(levels)]
        count = round(pencil.entries(T, levels) * T**2)
        assert count == sum(length**2 for length in lengths)
        if T % 2 ** (levels - 1) == 0:
            assert 3 * 4 ** (levels - 1) * count == (4**levels - 1) * T**2
        assert 3 * count <= 4 * (T - 1) ** 2 + 12 * (T - 1) + 3 * levels
    assert pencil.entries(64, 3) == 1.3125
    assert (pencil.entries(1, levels) > 4 / 3) == (levels > 1)
    assert (3 * levels * 199**2 > 4 * 198**2 + 12 * 198 + 3 * levels) == (levels > 1)


def least_square(S):
    """The least of z' S z over whole numbers z between -2 and 2, next to the length of z."""
    tables = (z for z in itertools.product(range(-2, 3), repeat=len(S)) if any(z))
    return min(pencil.form(z, S, z) / sum(a * a for a in z) for z in tables)


def test_kernels_of_levels_make_a_kernel(table):
    """`HKT-4.a`: if no level has a negative square, the scores have none; `HKT-4.f` fails: of the mixture of the levels
    it is not enough."""
    roots, turns = [table(2, 2) for _ in range(2)], table(1, 2)[0]
    forms = [
        [
            [sum(a * b for a, b in zip(x, y, strict=True)) + turn * (i - j) for j, y in enumerate(R)]
            for i, x in enumerate(R)
        ]
        for R, turn in zip(roots, turns, strict=True)
    ]
    X = table(5, 2)
    S = pencil.scores(pencil.pyramid(X, 2, pencil.averages), forms, [0.6, 0.4])
    assert least_square(S) > -1e-12
    indefinite = [[[2.0, 0.0], [0.0, -1.0]], [[-1.0, 0.0], [0.0, 2.0]]]  # their mean is half the identity
    S = pencil.scores(pencil.pyramid([[1.0, 1.0], [1.0, 0.0]], 2, pencil.block_means), indefinite, [0.5, 0.5])
    assert pencil.form((1, -1), S, (1, -1)) == -0.5


def test_the_layer_contains_attention(table):
    """`HKT-6.a`: with all weight on the tokens it is attention, the library's too, whose odds of two keys no other
    token moves; with weight on a summary one does."""
    X, M = table(6, 2), [table(2, 2) for _ in range(3)]

    def odds(X, alpha):
        row = pencil.scores(pencil.pyramid(X, 3, pencil.averages), M, alpha)[5]
        return row[4] - row[1]

    plain = pencil.attention([[pencil.form(x, M[0], y) for y in X] for x in X], X)
    x, form = (torch.tensor(each, dtype=torch.float64) for each in (X, M[0]))
    library = torch.nn.functional.scaled_dot_product_attention(x @ form, x, x, is_causal=True, scale=1.0)
    for mine, *theirs in zip(
        pencil.layer(X, M, [1.0, 0.0, 0.0], pencil.averages), plain, library.tolist(), strict=True
    ):
        for each in theirs:
            assert mine == pytest.approx(each, abs=1e-12)
    other = [[a + (k == 3) for a in row] for k, row in enumerate(X)]
    assert odds(other, [1.0, 0.0, 0.0]) == pytest.approx(odds(X, [1.0, 0.0, 0.0]), abs=1e-12)
    assert abs(odds(other, [0.5, 0.5, 0.0]) - odds(X, [0.5, 0.5, 0.0])) > 1e-3


def test_a_head_has_no_convolution_with_two_signs():
    """`HKT-6.c` fails: no row of weights, times any number, comes nearer to the taps 1, -1 than a distance of one; it
    reaches taps of one sign, and weights of two signs would come near."""
    grid = [k / 50 for k in range(-200, 201)]

    def nearest(tap, weights):
        return min((w * p - 1) ** 2 + (w * (1 - p) - tap) ** 2 for w in grid for p in weights)

    assert nearest(-1, grid[200:251]) == pytest.approx(1)
    assert nearest(1, grid[200:251]) == pytest.approx(0)
    assert nearest(-1, grid) < 0.1


def test_the_split_of_a_table(table):
    """`hkt-split`: the symmetric and the antisymmetric part, and each is the mixture of the levels' parts; of the other
    kind's parts it is not."""
    alpha, units = [0.5, 0.3, 0.2], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    levels, M = pencil.pyramid(table(5, 3), 3, pencil.averages), [table(3, 3) for _ in range(3)]
    S, by_level = pencil.scores(levels, M, alpha), [pencil.split(pencil.scores(levels, M, unit)) for unit in units]
    mixed = [
        [[sum(w * part[k][i][j] for w, part in zip(alpha, by_level, strict=True)) for j in range(5)] for i in range(5)]
        for k in (0, 1)
    ]
    for k, part in enumerate(pencil.split(S)):
        for i, row in enumerate(part):
            assert row == pytest.approx(mixed[k][i], abs=1e-12)
            assert row == pytest.approx([(-1) ** k * part[j][i] for j in range(5)], abs=1e-12)
    assert pencil.split(S)[0][0] != pytest.approx(mixed[1][0], abs=1e-3)
    split = package.symmetric_antisymmetric(torch.tensor(S, dtype=torch.float64))
    for mine, theirs in zip(pencil.split(S), split, strict=True):
        torch.testing.assert_close(torch.tensor(mine, dtype=torch.float64), theirs)
