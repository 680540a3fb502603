"""Topic clock: the rows of the sampler's own time, and the ratios of times."""

import pandas as pd
import pytest

from derived.papers.cactus.claims.clock import CLAIMS, times
from derived.papers.cactus.experiments.clock import SamplerTime

EXPERIMENTS = (SamplerTime,)
SMALL = {SamplerTime: {"sizes": (20,), "repeats": 3}}


def test_every_round_times_every_rule(rows):
    table = rows[SamplerTime]
    assert table["repeat"].tolist() == [0, 1, 2]
    assert (table[["exact", "cactus", "tas", "rows"]] > 0).all(axis=None)
    for claim in CLAIMS:
        assert claim.measure(table).n == 3


def test_the_ratio_is_a_geometric_mean_at_the_largest_size():
    table = pd.DataFrame({"B": [1, 16, 16], "V": [10, 10, 10], "slow": [9.0, 2.0, 8.0], "fast": 1.0})
    assert times("slow", "fast")(table).value == pytest.approx(4.0)
