"""Topic capacity: noise and recall of a memory, their measures and figures."""

import numpy as np
import pandas as pd
import pytest

from derived.papers.in_place_ttt import capacities
from derived.papers.in_place_ttt.capacities import Capacity, Noise

EXPERIMENTS = (Noise, Capacity)


def test_the_noise_is_what_theory_says(rows):
    """`ipt-noise`: in rows, whose root mean square of 64 x 64 numbers is right to a few per cent."""
    ratio = rows[Noise]["std"] / rows[Noise]["theory"]
    assert ratio.mean() == pytest.approx(1, abs=0.1)


def test_recall_falls_with_the_pairs_and_its_half_lies_near_the_rule(rows):
    """`ipt-capacity`: in rows."""
    table = rows[Capacity]
    mean = table.groupby(["V", "point"])["recall"].mean().unstack()
    assert (np.diff(mean.to_numpy(), axis=1) < 0.05).all()
    assert mean[0].min() > 0.85
    assert (table["half"] / table["theory"]).groupby(table["V"]).mean().between(0.7, 1.4).all()
    few = table[table["V"] < table["d"]]
    assert (few["half"] / few["rule"]).mean() < 0.5  # whoever forgets how often each token is written


def test_measures_on_tables_with_known_answers():
    by_id = {claim.id: claim for claim in capacities.CLAIMS}
    base = pd.DataFrame(
        [(r, N, h) for r in range(4) for N in (16, 64) for h in (4, 16)], columns=["replicate", "N", "h"]
    )
    noise = (base["N"] / base["h"]) ** 0.5
    sizes = pd.DataFrame(
        [(r, d, h, V) for r in range(4) for d, h, V in ((32, 64, 8), (64, 128, 8))],
        columns=["replicate", "d", "h", "V"],
    )
    pairs = 1.0 * sizes["d"] * sizes["h"]
    tables = {
        "IPT-8.b": base.assign(std=noise * (1 + 0.001 * base["replicate"]), theory=noise),
        "IPT-8.c": sizes.assign(point=0, half=1.1 * pairs * (1 + 0.001 * sizes["replicate"]), theory=pairs),
    }
    for id, table in tables.items():
        one_wrong = table.assign(theory=table["theory"].where(table["h"] < table["h"].max(), 0.5 * table["theory"]))
        assert by_id[id].judge(by_id[id].measure(table))[0] == "holds"
        assert by_id[id].judge(by_id[id].measure(one_wrong))[0] == "fails"


def test_half_is_where_recall_crosses_one_half():
    """Interpolated in the logarithm, on a recall that falls from 1 to 0 between 10 and 1000 pairs."""
    pairs, recall = np.array([10.0, 1000.0]), np.array([1.0, 0.0])
    assert np.exp(np.interp(-0.5, -recall, np.log(pairs))) == pytest.approx(100)


def test_figures_say_in_words_what_they_show(rows):
    assert "V = 4, d = 32, h = 16" in capacities.recall(rows[Capacity]).get_label()
    assert "N = 128" in capacities.noise(rows[Noise]).get_label()
