"""What the page proves beside the package's own formulas."""

import itertools
import math

import numpy as np
import pytest
import torch

from derived.lab.stats import Estimate
from derived.papers.geometric_tax.measures import ratio
from derived.papers.geometric_tax.model.codebooks import UniformQuantizer, shannon_lower_bound


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_grid_of_cubes_leaves_no_room_for_a_logarithm(d):
    """`gt-bits` (1): with equal bins on each axis ln K times the error goes to 0, so in a / ln K + b a = b = 0."""
    u = (torch.arange(2**18, dtype=torch.float64) + 0.5) / 2**18
    sides = [2**power for power in range(1, 13)]
    bins = [UniformQuantizer(side, 0.0, 1.0) for side in sides]
    error = np.array([d * (u - each.decode(each.encode(u))).square().mean().item() for each in bins])
    K = np.array(sides, dtype=float) ** d
    np.testing.assert_allclose(np.polyfit(np.log(K), np.log(error), 1)[0], -2 / d, rtol=1e-3)
    assert (np.diff(error * np.log(K)) < 0).all()
    assert error[-1] * np.log(K[-1]) < 1e-5 * d**2
    a, b = np.polyfit(1 / np.log(K), error, 1)  # the best such curve misses the last error by orders of magnitude
    assert abs(a / math.log(K[-1]) + b) > 1000 * error[-1]
    assert (error >= [shannon_lower_bound(0.0, d, int(each)) for each in K]).all()


def test_the_bound_falls_exponentially_in_parameters():
    """`gt-bits` (2): with 2^(beta Theta) values each further parameter divides it by the same factor, 4^(beta / d)."""
    beta, d = 2, 3
    bounds = [shannon_lower_bound(1.0, d, 2 ** (beta * theta)) for theta in (2, 4, 8, 16)]
    for one, other, theta in zip(bounds, bounds[1:], (2, 4, 8), strict=False):
        assert other / one == pytest.approx(4 ** (-beta * theta / d))
    power = [math.log(other / one) / math.log(2) for one, other in itertools.pairwise(bounds)]
    assert power[0] > power[1] > power[2]  # no power of Theta: its exponent grows with Theta


def test_a_ratio_whose_interval_is_too_wide_for_floats_has_no_upper_end():
    found = ratio(Estimate(math.log(3), 2, low=-900.0, high=900.0))
    assert found.value == pytest.approx(3)
    assert (found.low, found.high) == (0, math.inf)
