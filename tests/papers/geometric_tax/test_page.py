"""What the page proves beside the package's own formulas."""

import itertools
import math

import numpy as np
import pytest

from derived.lab.stats import Estimate
from derived.papers.geometric_tax.claims.measures import ratio
from derived.papers.geometric_tax.model.codebooks import shannon_lower_bound


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_grid_of_cubes_leaves_no_room_for_a_logarithm(d):
    """`gt-bits` (1): the grid's error is d/12 K^(-2/d), and ln K times it goes to 0: in a / ln K + b, a = b = 0."""
    sides = 2 ** np.arange(1, 16)
    K, error = sides.astype(float) ** d, d / 12 / sides.astype(float) ** 2
    np.testing.assert_allclose(error, d / 12 * K ** (-2 / d))
    assert (np.diff(error * np.log(K)) < 0).all()
    assert error[-1] * np.log(K[-1]) < 1e-7
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
