"""Distortion of clouds and the path of a label, by the reference program and by the package."""

import math

import pytest
import torch

from derived.papers import geometric_tax as package
from derived.papers.geometric_tax import reference


def both(X, Y):
    theirs = package.procrustes_distortion(torch.tensor(X, dtype=torch.float64), torch.tensor(Y, dtype=torch.float64))
    return reference.distortion(X, Y), float(theirs)


def test_distortion(table):
    """By Jacobi rotations here, by LAPACK there."""
    mine, theirs = both(table(9, 3), table(9, 3))
    assert mine == pytest.approx(theirs, abs=1e-12)
    assert mine > 0.1


def test_a_rotated_cloud_is_not_distorted(table):
    X = table(9, 2)
    assert reference.distortion(X, [[3 * y + 1, -3 * x] for x, y in X]) < 1e-7


@pytest.mark.parametrize("s", [0.05, 0.25, 1.0])
def test_the_noise_law(draw, s):
    """D squared is near 1 - (1 + s)^-1/2, by what noise and cloud have in common; nearer than the law of no
    noise, which is refused."""
    X, E = ([[draw.gauss(0, 1) for _ in range(2)] for _ in range(4000)] for _ in range(2))
    X, E = reference.centred(X), [[math.sqrt(s) * e for e in row] for row in reference.centred(E)]
    Y = [[x + e for x, e in zip(*pair, strict=True)] for pair in zip(X, E, strict=True)]
    size = math.sqrt(sum(y * y for row in Y for y in row))
    bound = 3 * sum(reference.singular_values(reference.product(X, E))) / size
    found = reference.distortion(X, Y) ** 2
    assert abs(found - reference.noise_law(s) ** 2) <= bound + 1e-12
    if s == 1:
        assert abs(found - reference.noise_law(0) ** 2) > bound
