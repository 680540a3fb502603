"""Effects beside the paper's number, and the three ways in which an interval decides nothing."""

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from derived.lab import stats
from derived.lab.effect import Published, effect, see, undecided
from derived.lab.stats import Estimate

UP, INF = (0.0, math.inf), math.inf


@pytest.mark.parametrize(
    ("found", "accept", "matters", "why"),
    [
        (Estimate(0.5, 10, -0.5, 1.5), UP, None, {"kind": "too few", "n": 25}),
        (Estimate(-0.5, 10, -1.5, 0.5), UP, None, {"kind": "too few", "n": 25}),
        (Estimate(-0.5, 10, -1.5, 0.25), (-INF, 0.0), 2.0, {"kind": "absent", "excluded": 1.5}),
        (Estimate(0.0, 10, -1.0, 1.0), UP, 1.0, {"kind": "absent", "excluded": 1.0}),
        (Estimate(0.0, 10, -1.0, 1.0), UP, 0.5, {"kind": "too few", "n": 25, "excludes": 0.5}),
        (Estimate(0.0, 10, -1.0, 1.0), (-INF, 0.0), 0.5, {"kind": "too few", "n": 25, "excludes": 0.5}),
        (Estimate(0.5, 10, -0.5, 1.5), UP, 0.9, {"kind": "too few", "n": 25}),
        (Estimate(0.6, 10, -0.4, 1.6), UP, 0.5, {"kind": "too few", "n": 19}),  # larger than what matters
        (Estimate(0.02, 10, -0.98, 1.02), UP, None, {"kind": "at the edge"}),
        (Estimate(0.2, 10, -1.0, 1.4), UP, None, {"kind": "too few", "n": 177}),
        (Estimate(math.exp(0.5), 10, math.exp(-0.5), math.exp(1.5)), (1.0, INF), None, {"kind": "too few", "n": 25}),
        (Estimate(1.9, 10, 0.5, 3.5), (-1.0, 2.0), 9.0, {"kind": "at the edge"}),  # a range has no direction
        (Estimate(1.0, 10, 0.5, 1.5), UP, None, None),
        (Estimate(1.0, 10), UP, None, None),
        (Estimate(math.nan, 10, math.nan, math.nan), UP, None, None),
    ],
)
def test_why_an_interval_decides_nothing(found, accept, matters, why):
    assert undecided(found, accept, matters) == why


@pytest.mark.parametrize("n", [3, 8, 40])
@pytest.mark.parametrize("level", [stats.LEVEL, 1 - (1 - stats.LEVEL) / 7])
def test_as_many_draws_as_it_names_decide_and_one_less_does_not(n, level):
    """A slow twin: the interval of the same mean and spread at one size after another."""
    sample = np.random.default_rng(0).normal(0.0, 1.0, n)
    sample += 0.3 - sample.mean()
    spread = sample.std(ddof=1)

    def reach(size):
        return scipy_stats.t.ppf((1 + level) / 2, size - 1) * spread / math.sqrt(size)

    first = stats.mean(sample, level)
    needed = undecided(first, UP, None)["n"]
    assert reach(needed) <= 0.3 < reach(needed - 1)
    absent = undecided(first, (0.25, INF), 0.45)
    assert absent["excludes"] == 0.45
    assert 0.05 + reach(absent["n"]) <= 0.45 < 0.05 + reach(absent["n"] - 1)


def test_a_design_sees_four_in_five_of_the_differences_that_it_says_it_sees():
    n, draws = 400, np.random.default_rng(1)
    reach = scipy_stats.t.ppf(0.9995, n - 1) / math.sqrt(n)
    smallest = see(Estimate(0.0, n, -reach, reach))
    found = [stats.mean(draws.normal(smallest, 1, n)).low > 0 for _ in range(500)]
    assert np.mean(found) == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 500))
    assert see(Estimate(1.0, 5)) is None


def test_the_interval_of_a_difference_holds_the_errors_of_both_sides():
    ours = Estimate(0.7, 9, 0.6, 0.9)
    exact = effect(Published(0.5, "share"), ours)
    assert exact["difference"] == pytest.approx(0.2)
    assert (exact["difference_low"], exact["difference_high"]) == pytest.approx((0.1, 0.4))
    assert exact["ratio"] == pytest.approx(1.4)
    assert exact["sees"] == see(ours)
    rough = effect(Published(0.5, "share", 0.1), ours)
    reach = scipy_stats.norm.ppf(0.9995) * 0.1
    assert rough["difference_low"] == pytest.approx(0.2 - math.hypot(0.1, reach))
    assert rough["difference_high"] == pytest.approx(0.2 + math.hypot(0.2, reach))
    assert rough["sees"] > exact["sees"]
    assert effect(Published(0.0, "share"), ours)["ratio"] is None
