"""Measures on tables whose answers are known, and what they refuse."""

import numpy as np
import pandas as pd
import pytest

from derived.lab import measure, stats
from derived.lab.measure import farthest_from, highest, lowest

ROWS = pd.DataFrame(
    {
        "d": np.repeat([4, 8, 16], 6),
        "replicate": np.tile(np.arange(6), 3),
        "x": np.random.default_rng(0).normal(1.0, 0.1, 18),
        "gap": np.linspace(0.0, 1.7, 18),
        "bound": 2.0,
    }
)


def test_conditions_and_expressions_choose_and_measure():
    assert measure.mean("x - 1", "d > 4")(ROWS) == stats.mean(ROWS["x"][6:] - 1)
    assert measure.mean(lambda rows: rows["x"] ** 2)(ROWS) == stats.mean(ROWS["x"] ** 2)


@pytest.mark.parametrize(
    "made", [measure.worst(where="d > 99"), measure.largest("x", "d > 99"), measure.mean("x", "d > 99")]
)
def test_no_rows_decide_nothing(made):
    with pytest.raises(ValueError, match="d > 99"):
        made(ROWS)


def test_the_worst_ratio_counts_rows():
    assert (measure.worst()(ROWS).value, measure.worst()(ROWS).n) == (0.85, 18)
    assert measure.worst("2 * gap", "bound + 2", "d == 4")(ROWS).value == pytest.approx(0.25)


def test_extremes_refuse_a_nan_instead_of_passing_it_over():
    table = pd.DataFrame({"x": [0.9, 1.3, 0.8]})
    assert [made("x")(table).value for made in (measure.largest, measure.smallest)] == [1.3, 0.8]
    broken = pd.DataFrame({"x": [0.9, np.nan, 0.8]})
    for made in (measure.largest("x"), measure.smallest("x")):
        with pytest.raises(ValueError, match="1 of 3 rows have no number"):
            made(broken)


@pytest.mark.parametrize("success", ["x < 1", "1 - x / x", lambda rows: rows["x"] / rows["x"]])
def test_a_comparison_with_nan_is_no_failure(success):
    """NaN < 1 says no, and a claim that expects "fails" would be met."""
    broken = pd.DataFrame({"x": [0.0, 0.9, 0.8]}) if callable(success) else pd.DataFrame({"x": [np.nan, 0.9, 0.8]})
    with pytest.raises(ValueError, match="1 of 3 rows have no number"):
        measure.share(success, unit=())(broken)


def test_cases_are_judged_together_and_the_right_one_decides():
    level = 1 - (1 - stats.LEVEL) / 3
    cases = [stats.mean(ROWS["x"][start : start + 6], level) for start in (0, 6, 12)]
    assert measure.mean("x", by=["d"], decides=lowest)(ROWS) == lowest(cases)
    assert measure.mean("x", by=["d"], decides=highest)(ROWS) == highest(cases)
    far = measure.mean("x", by=["d"], decides=farthest_from(1.3))(ROWS)
    assert far == min(cases, key=lambda one: one.low), "below 1.3 the lowest end is the farthest"
    assert measure.mean("x", by=["d"], decides=farthest_from(0.0))(ROWS) == max(cases, key=lambda one: one.high)
    alone = measure.mean("x", "d == 4", by=["d"], decides=lowest)(ROWS)
    assert alone == measure.mean("x", "d == 4")(ROWS), "one case is judged at the level of one"


def test_a_claim_that_was_looked_at_again_is_judged_at_a_wider_level():
    level = 1 - (1 - stats.LEVEL) / 2
    x, y = np.array([4.0, 8.0, 16.0]), ROWS["x"].to_numpy().reshape(3, 6).T
    both = pd.concat([ROWS.assign(arm=arm, x=ROWS["x"] * (arm + 1)) for arm in (0, 1)])
    each = [stats.slope(x, y * (arm + 1), 1 - (1 - stats.LEVEL) / 4) for arm in (0, 1)]
    for found, known in (
        (measure.slope("x", "d", looks=2)(ROWS), stats.slope(x, y, level)),
        (measure.power("x", "d", looks=2)(ROWS), stats.slope(np.log(x), np.log(y), level)),
        (measure.slope("x", "d", by=["arm"], decides=lowest, looks=2)(both), lowest(each)),
    ):
        assert (found.low, found.high) == pytest.approx((known.low, known.high), rel=1e-12)


def test_the_end_of_an_interval_decides_and_not_its_value():
    sharp, wide = stats.Estimate(1.0, 6, 0.9, 1.1), stats.Estimate(1.2, 6, 0.5, 1.9)
    assert lowest([sharp, wide]) == stats.Estimate(1.0, 6, 0.5, 1.1)
    assert highest([sharp, wide]) == stats.Estimate(1.2, 6, 0.9, 1.9)
    surer = stats.Estimate(1.5, 6, 1.4, 1.6)
    assert highest([surer, wide]) == stats.Estimate(1.5, 6, 1.4, 1.9), "the greatest value is not of the widest one"


def test_cases_without_a_rule_that_decides_are_refused():
    with pytest.raises(ValueError, match="neither"):
        measure.mean("x", by=["d"])
    with pytest.raises(ValueError, match="neither"):
        measure.mean("x", decides=lowest)


def test_a_draw_is_the_mean_of_its_rows():
    by_hand = stats.mean(ROWS["x"].to_numpy().reshape(3, 6).mean(axis=0))
    found = measure.mean("x", unit=["replicate"])(ROWS)
    assert (found.value, found.low, found.n) == pytest.approx((by_hand.value, by_hand.low, 6), rel=1e-12)


@pytest.mark.parametrize("column", ["x", "replicate"])
def test_a_row_without_a_number_or_a_draw_is_not_passed_over(column):
    broken = ROWS.astype({"replicate": float})
    broken.loc[3, column] = np.nan
    with pytest.raises(ValueError, match="1 of 18 rows"):
        measure.mean("x", unit=["replicate"])(broken)


def test_a_share_counts_draws_all_of_whose_rows_succeed():
    wins = ROWS.assign(good=~((ROWS["d"] == 8) & (ROWS["replicate"] == 2)))
    assert measure.share("good")(wins) == stats.proportion(5, 6)
    assert measure.share("good", unit=())(wins) == stats.proportion(17, 18)


@pytest.mark.parametrize("exponent", [-1.5, 0.0, 2.0])
def test_a_power_law_and_an_exponential_are_recovered_per_draw(exponent):
    factor = 1 + 0.1 * ROWS["replicate"]
    law = ROWS.assign(y=factor * ROWS["d"] ** exponent, z=factor * np.exp(exponent * ROWS["d"]))
    found = measure.power("y", "d")(law)
    assert (found.value, found.n) == (pytest.approx(exponent, abs=1e-12), 6)
    assert measure.slope("z", "d", y=np.log)(law).value == pytest.approx(exponent, abs=1e-12)
    noisy = law.assign(y=law["y"] * np.exp(0.3 * ROWS["x"]))
    assert not measure.power("y", "d")(noisy).low <= exponent - 1 <= measure.power("y", "d")(noisy).high


def test_a_draw_that_lacks_a_point_has_no_slope():
    with pytest.raises(ValueError, match="not finite"):
        measure.power("x", "d")(ROWS.drop(index=3))
