"""Distortion of clouds and the path of a label, by the pencil and by the package."""

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
    """The length of the path, by chords here, by quadrature there, and between its two sides."""
    length = pencil.fisher_rao_length(K, sigma, 4000)
    assert length == pytest.approx(package.fisher_rao_length(K, sigma), rel=1e-4)
    low, high = pencil.staircase(K, sigma)
    assert low <= length * (1 + 1e-4)
    assert length <= high * (1 + 1e-4)


def test_the_noise_law(draw):
    X = [[draw.gauss(0, 1) for _ in range(2)] for _ in range(2000)]
    Y = [[x + draw.gauss(0, 0.5) for x in row] for row in X]
    assert pencil.distortion(X, Y) == pytest.approx(pencil.noise_law(0.25), rel=0.05)
