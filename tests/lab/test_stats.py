"""Intervals cover at their level, and reject a wrong value."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from derived.lab import stats


def test_the_mean_agrees_with_scipy():
    x = np.array([1.0, 2.0, 4.0, 8.0])
    ours, theirs = stats.mean(x), scipy_stats.ttest_1samp(x, 0).confidence_interval(stats.LEVEL)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert ours.error == pytest.approx(scipy_stats.sem(x), rel=1e-12)


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 50), (7, 50), (50, 50)])
def test_a_proportion_agrees_with_scipy(k, n):
    ours = stats.proportion(k, n)
    theirs = scipy_stats.binomtest(k, n).proportion_ci(stats.LEVEL, method="exact")
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), rel=1e-9, abs=1e-12)


def test_the_slope_of_a_line_is_exact_and_noise_gives_it_a_width():
    x = np.array([0.0, 1.0, 3.0])
    lines = 2.5 * x + np.array([[0.0], [1.0], [-4.0]])
    assert stats.slope(x, lines).value == pytest.approx(2.5, rel=1e-12)
    assert stats.slope(x, lines).error == pytest.approx(0.0, abs=1e-12)
    noisy = lines + np.random.default_rng(1).normal(0, 0.1, lines.shape)
    assert stats.slope(x, noisy).low < stats.slope(x, noisy).value < stats.slope(x, noisy).high


def test_the_worst_ratio_is_the_largest_and_nan_never_passes():
    assert stats.worst([1e-3, 2e-3], [1e-2, 4e-3]) == stats.Estimate(0.5, 2)
    assert np.isnan(stats.worst([np.nan, 0.0], [1.0, 1.0]).value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: stats.mean([1.0]),
        lambda: stats.mean([1.0, np.inf]),
        lambda: stats.proportion(3, 2),
        lambda: stats.slope([1.0, 1.0], [[1.0, 2.0]]),
        lambda: stats.slope([1.0, 2.0], [1.0, 2.0]),
        lambda: stats.worst([], []),
        lambda: stats.worst([1.0, 2.0, 3.0], [1.0, 2.0]),
    ],
)
def test_bad_input_is_refused(call):
    with pytest.raises(ValueError, match=r".{20}"):
        call()


def test_a_negative_bound_bounds_nothing():
    with pytest.raises(ValueError, match="1 of 2 bounds are negative"):
        stats.worst([1.0, 5.0], [1.0, -1e-9])
