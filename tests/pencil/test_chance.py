"""The intervals of the small simulations against SciPy's."""

import chance
import pytest
from scipy import stats


@pytest.mark.parametrize("n", chance.STUDENT)
def test_the_interval_of_a_mean(draw, n):
    values = [draw.gauss(3, 2) for _ in range(n)]
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.999)
    assert chance.interval(values) == pytest.approx((expected.low, expected.high), abs=1e-4)


@pytest.mark.parametrize(("hits", "n"), [(0, 30), (1, 7), (13, 40), (300, 400), (40, 40)])
def test_the_interval_of_a_share(hits, n):
    expected = stats.binomtest(hits, n).proportion_ci(0.999, "exact")
    assert chance.share(hits, n) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_slope(draw):
    x, y = ([draw.gauss(0, 1) for _ in range(9)] for _ in range(2))
    assert chance.slope(x, y) == pytest.approx(stats.linregress(x, y).slope)
