"""Topic clock: the rows of the sampler's own time, and the ratios of times."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from scipy import stats

from derived.lab.experiment import run_experiment
from derived.papers.cactus import clock
from derived.papers.cactus.clock import CLAIMS, SamplerTime, times
from derived.papers.cactus.matching import rule_of

EXPERIMENTS = (SamplerTime,)


def test_every_round_times_every_rule(rows):
    table = rows[SamplerTime]
    assert table["repeat"].tolist() == [0, 1, 2]
    assert (table[["exact", "cactus", "tas", "rows"]] > 0).all(axis=None)
    for claim in CLAIMS:
        assert claim.measure(table).n == 3


def test_every_time_follows_the_same_call(monkeypatch):
    """No rule is timed on what another one has left in caches."""
    events = []
    monkeypatch.setattr(clock, "now", lambda device: events.append("now") or float(len(events)))

    def called(p, drafted, q, rule, generator):
        events.append(str(rule))
        return SimpleNamespace(n_accepted=torch.tensor([0, 3, 1, 3]))

    monkeypatch.setattr(clock, "accept_reject", called)
    table = run_experiment(SamplerTime.at("ci"), seed=0, device="cpu")
    assert (table["cut"] == 0.5).all()  # of the drafts of two blocks in four one is rejected
    assert events.pop() == str(rule_of("cactus", SamplerTime.delta))
    rounds = [events[i : i + 14] for i in range(0, len(events), 14)]  # three rules of four events, then the two rows
    assert len(rounds) == 5
    for one in rounds:
        assert one[0::4][:3] == one[2::4][:3]
        assert len({*one[0:12:4]}) == 3


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
