"""Topic timing: rows of both clocks, and the ratios of times."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from derived.papers.cactus.timing import CLAIMS, PairTime, SamplerTime, times

EXPERIMENTS = (SamplerTime, PairTime)


def test_every_round_times_every_rule(rows):
    table = rows[SamplerTime]
    assert table["repeat"].tolist() == [0, 1, 2]
    assert (table[["exact", "cactus", "tas", "rows"]] > 0).all(axis=None)
    assert CLAIMS[1].measure(table).n == 3


def test_the_ratio_is_a_median_at_the_largest_size():
    """Two modes of one clock, as recorded: the median stays with the larger, and the interval with order statistics."""
    table = pd.DataFrame({"B": 16, "V": 10, "slow": 2.0, "fast": [1.0] * 25 + [8.0] * 15})
    table = pd.concat([table, pd.DataFrame({"B": [1], "V": [10], "slow": [9.0], "fast": [1.0]})])
    found = times("slow", "fast")(table)
    assert (found.value, found.n, found.low, found.high) == pytest.approx((2.0, 40, 0.25, 2.0))
    ranked = pd.DataFrame({"B": 1, "V": 1, "slow": range(1, 41), "fast": 1})
    found = times("slow", "fast")(ranked)
    assert 2 * stats.binom.cdf(found.low - 1, 40, 0.5) <= 0.001 < 2 * stats.binom.cdf(found.low, 40, 0.5)
    assert found.low + found.high == 41
    few = times("slow", "fast")(ranked.tail(3))
    assert (few.low, few.high) == (0, math.inf)


def test_speedup_is_that_of_the_slower_pair():
    def timed(pair: int, rule: str, knob: float, cost: float) -> pd.DataFrame:
        facts = {"pair": pair, "shape": "truncated", "rule": rule, "knob": knob, "prompt": range(6), "tokens": 10}
        return pd.DataFrame(facts | {"seconds": 10 * cost * np.linspace(0.9, 1.1, 6)})

    cases = ((0, "alone", 0.0, 3.0), (0, "cactus", 0.0, 9.0), (0, "cactus", 1.0, 2.0), (0, "tas", 5.0, 0.1))
    cases += ((1, "alone", 0.0, 3.0), (1, "cactus", 1.0, 2.5))
    claim = next(one for one in CLAIMS if one.experiment is PairTime)
    found = claim.measure(pd.concat([timed(*case) for case in cases]))
    assert found.value == pytest.approx(1.2)
    assert found.n == 6
    assert found.low == pytest.approx(1.2)  # both times rise and fall together
