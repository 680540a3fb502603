"""Quantisers of a number, and what K values must lose."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from derived.lab.rng import stream
from derived.papers.geometric_tax import LloydMax, shannon_lower_bound
from derived.papers.geometric_tax.fits import Bins

examples = settings(derandomize=True, max_examples=40, deadline=None, database=None)


def test_lloyd_max_by_brute_force():
    """Three codes for nine numbers: all ways to cut them."""
    x = torch.tensor([0.0, 0.1, 0.25, 0.9, 1.0, 1.4, 3.0, 3.1, 3.3], dtype=torch.float64)
    best = min(
        sum(float((part - part.mean()).square().sum()) for part in (x[:a], x[a:b], x[b:]))
        for a in range(1, 8)
        for b in range(a + 1, 9)
    )
    book = LloydMax.fit(x.flip(0), 3)
    assert abs(book.distortion(x).item() * 9 - best) <= 1e-12
    codes, cells = book.codes, book.encode(x)
    for k in range(3):
        assert abs(codes[k] - x[cells == k].mean()) <= 1e-12
    assert LloydMax.fit(x, 9).distortion(x) <= 1e-24


@pytest.mark.parametrize("shift", [0.0, 1e4, -3e6])
def test_the_nearest_code_does_not_depend_on_the_origin(shift):
    """float32 points far from it: against every distance in float64, and the distortion is that of points near it."""
    x = torch.cat([c + 0.3 * torch.randn(50, generator=stream(0, "x", c)) for c in (0, 4, 8)]).float() + shift
    book = LloydMax.fit(x, 3)
    near = (x.double()[:, None] - book.codes).abs().argmin(dim=1)
    assert torch.equal(book.encode(x), near)
    assert book.distortion(x).item() == pytest.approx((x.double() - book.codes[near]).square().mean().item())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: LloydMax.fit(torch.tensor([0.0, 1.0, 1.0]), 3), "3 codes for 2 distinct points"),
        (lambda: LloydMax.fit(torch.tensor([math.nan, 1.0]), 1), "= nan"),
        (lambda: shannon_lower_bound(0.0, 0.0, 4), "d = 0"),
    ],
)
def test_bad_codebooks_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@examples
@given(st.integers(1, 3), st.integers(1, 12), st.integers(0, 5))
def test_no_codebook_loses_less_than_shannon_says(d, K, seed):
    """`gt-shannon`: fitted codebooks on a cube, by scikit-learn, and random ones."""
    x, fresh = (
        torch.rand(size, d, generator=stream(seed, name, d, K), dtype=torch.float64)
        for size, name in ((600, "cube"), (4000, "fresh"))
    )
    bound = shannon_lower_bound(0.0, d, K)
    fitted = KMeans(K, n_init=1, random_state=seed).fit(x.numpy())
    assert -fitted.score(fresh.numpy()) / 4000 >= bound
    assert torch.cdist(fresh, x[:K]).amin(dim=1).square().mean() >= bound


def test_the_bound_of_a_gaussian_is_reached_by_its_own_test_channel():
    """d = 1: at rate ln K the distortion-rate function of N(0, 1) is K^-2, and the bound is equal to it."""
    for K in (1, 4, 64):
        assert abs(shannon_lower_bound(0.5 * math.log(2 * math.pi * math.e), 1, K) - K**-2.0) <= 1e-15


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_grid_of_cubes_leaves_no_room_for_a_logarithm(d):
    """`gt-shannon` (b): with equal bins on each axis ln K times the error goes to 0, so in a / ln K + b a = b = 0."""
    u = (torch.arange(2**18, dtype=torch.float64) + 0.5) / 2**18
    sides = [2**power for power in range(1, 13)]
    bins = [Bins.uniform(u[None], side) for side in sides]
    error = np.array([d * (u - each.decode(each.encode(u[None]))).square().mean().item() for each in bins])
    K = np.array(sides, dtype=float) ** d
    np.testing.assert_allclose(np.polyfit(np.log(K), np.log(error), 1)[0], -2 / d, rtol=1e-3)
    assert (np.diff(error * np.log(K)) < 0).all()
    assert error[-1] * np.log(K[-1]) < 1e-5 * d**2
    a, b = np.polyfit(1 / np.log(K), error, 1)  # the best such curve misses the last error by orders of magnitude
    assert abs(a / math.log(K[-1]) + b) > 1000 * error[-1]
    assert (error >= [shannon_lower_bound(0.0, d, int(each)) for each in K]).all()


def test_the_bound_falls_exponentially_in_parameters():
    """`gt-shannon` (c): with 2^(beta Theta) values a further parameter divides it by 4^(beta / d)."""
    beta, d = 2, 3
    bounds = [shannon_lower_bound(1.0, d, 2 ** (beta * theta)) for theta in (2, 4, 8, 16)]
    for one, other, theta in zip(bounds, bounds[1:], (2, 4, 8), strict=False):
        assert other / one == pytest.approx(4 ** (-beta * theta / d))
    power = [math.log(other / one) / math.log(2) for one, other in itertools.pairwise(bounds)]
    assert power[0] > power[1] > power[2]  # no power of Theta: its exponent grows with Theta
