"""Distortion of clouds and the path of a label, by the pencil and by the package."""

import itertools
import math
import random

import pytest
import torch
from pencil import geometric_tax as pencil

from derived.papers import geometric_tax as package


def both(X, Y):
    theirs = package.procrustes_distortion(torch.tensor(X, dtype=torch.float64), torch.tensor(Y, dtype=torch.float64))
    return pencil.distortion(X, Y), float(theirs)


def test_distortion(table):
    """By Jacobi rotations here, by LAPACK there."""
    mine, theirs = both(table(9, 3), table(9, 3))
    assert mine == pytest.approx(theirs, abs=1e-12)
    assert mine > 0.1


def test_distortion_is_what_the_best_rotation_leaves(table):
    """`GT-1.a`, in the plane: half the least square over ten thousand rotations and reflections is D squared, up to the
    step between two of them."""
    X, Y = pencil.centred(table(9, 2)), pencil.centred(table(9, 2))
    (a, b), (c, d) = pencil.product(X, Y)
    turns = [2 * math.pi * k / 10_000 for k in range(10_000)]
    agree = max(math.cos(t) * (a + sign * d) + math.sin(t) * (b - sign * c) for t in turns for sign in (1, -1))
    assert -1e-12 < 1 - agree - pencil.distortion(X, Y) ** 2 < (math.pi / 10_000) ** 2


def test_clouds_that_are_not_related_are_not_at_distortion_one(table):
    """`GT-1.b` fails."""
    assert 1 - pencil.distortion(table(60, 5), table(60, 5)) > 0.05


def test_a_rotated_cloud_is_not_distorted(table):
    X = table(9, 2)
    assert pencil.distortion(X, [[3 * y + 1, -3 * x] for x, y in X]) < 1e-7


def test_what_a_mistake_costs():
    """Without order a small mistake costs what a large one does; with it, a third."""
    clean = range(4)
    small, large = ([*clean], [*clean])
    small[1], large[0] = 2, 3
    ordered = [both([[float(k)] for k in clean], [[float(k)] for k in noisy])[0] for noisy in (small, large)]
    free = [both([pencil.one_hot(k, 4) for k in clean], [pencil.one_hot(k, 4) for k in n])[0] for n in (small, large)]
    assert free[0] == pytest.approx(free[1], abs=1e-12)
    assert ordered[0] < 0.5 * ordered[1]


@pytest.mark.parametrize(("K", "sigma"), [(2, 0.05), (5, 0.1), (8, 0.02), (16, 0.3)])
def test_the_staircase(K, sigma):
    """`GT-4.a`: the length of the path, by chords here, by quadrature there, and between its two sides; the upper ones
    are limits, and either alone, taken for the length, would be refused."""
    length = pencil.fisher_rao_length(K, sigma, 4000)
    assert length == pytest.approx(package.fisher_rao_length(K, sigma), rel=1e-4)
    low, high = pencil.staircase(K, sigma)
    assert low <= length * (1 + 1e-4)
    assert length <= high * (1 + 1e-4)
    assert max(math.pi * (K - 1), 1 / sigma) > 1.1 * high


@pytest.mark.parametrize(("K", "sigma", "limit"), [(5, 0.01, 4 * math.pi), (300, 0.02, 50)])
def test_the_limits_of_the_staircase(K, sigma, limit):
    """`GT-4.a`: pi a step where the noise is small, 1 / sigma where the bins are."""
    assert pencil.fisher_rao_length(K, sigma, 2000) == pytest.approx(limit, rel=0.01)


@pytest.mark.parametrize("s", [0.05, 0.25, 1.0])
def test_the_noise_law(draw, s):
    """`GT-2.a`: D squared is near 1 - (1 + s)^-1/2, by what noise and cloud have in common; nearer than the law of no
    noise, which is refused."""
    X, E = ([[draw.gauss(0, 1) for _ in range(2)] for _ in range(4000)] for _ in range(2))
    X, E = pencil.centred(X), [[math.sqrt(s) * e for e in row] for row in pencil.centred(E)]
    Y = [[x + e for x, e in zip(*pair, strict=True)] for pair in zip(X, E, strict=True)]
    size = math.sqrt(sum(y * y for row in Y for y in row))
    bound = 3 * sum(pencil.singular_values(pencil.product(X, E))) / size
    found = pencil.distortion(X, Y) ** 2
    assert abs(found - pencil.noise_law(s) ** 2) <= bound + 1e-12
    if s == 1:
        assert abs(found - pencil.noise_law(0) ** 2) > bound


def test_counts_of_words_do_not_see_the_strand():
    """`GT-12.c`: read backwards with complements, a sequence has the counts of the complements, each in place of its
    word; so the clouds of counts are at distortion zero. Read backwards alone, it has others there."""
    draw, k = random.Random(0), 2
    words = [*itertools.product(range(4), repeat=k)]
    mate = [words.index(tuple(3 - letter for letter in reversed(word))) for word in words]
    assert [mate[mate[i]] for i in range(len(words))] == [*range(len(words))]

    def counts(g):
        return [float(sum(tuple(g[i : i + k]) == word for i in range(len(g) - k + 1))) for word in words]

    genes = [[draw.choices(range(4), (4, 3, 2, 1))[0] for _ in range(60)] for _ in range(5)]
    turned = [[3 - letter for letter in reversed(g)] for g in genes]
    for g, other in zip(genes, turned, strict=True):
        assert counts(other) == [counts(g)[i] for i in mate]
        assert counts(g[::-1]) != [counts(g)[i] for i in mate]
    assert pencil.distortion([counts(g) for g in genes], [counts(g) for g in turned]) < 1e-6
