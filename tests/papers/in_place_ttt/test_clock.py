"""Topic clock: rows of the layer's time, and ratios of times over rounds."""

import pandas as pd
import pytest

from derived.papers.in_place_ttt.claims.clock import CLAIMS, over
from derived.papers.in_place_ttt.experiments.clock import FORMS, LayerTime

EXPERIMENTS = (LayerTime,)
SMALL = {LayerTime: {"lengths": (16, 32), "most": 600}}


def test_every_round_times_every_form_that_fits(rows):
    table = rows[LayerTime]
    assert set(table.loc[table["n"] == 16, "form"]) == {*FORMS}
    assert set(table.loc[table["n"] == 32, "form"]) == {*FORMS} - {"attention"}  # 1024 scores
    assert (table.groupby(["n", "form"])["repeat"].nunique() == 3).all()
    assert (table["seconds"] > 0).all()
    for claim in CLAIMS:
        assert claim.measure(table).n == 3


def test_flops_and_numbers_are_counted_as_derived():
    sized = LayerTime(d=4, h=8, chunk=2, lengths=(8,))
    assert sized.flops("static", 10) == 6 * 10 * 4 * 8
    assert sized.flops("lean", 10) == pytest.approx(10 * (6 * 4 * 8 + 2 * 4 * 4 + 10 * 4 + 2 * 4 * 8))
    assert sized.flops("attention", 10) - sized.flops("lean", 10) == pytest.approx(10**2 * 12 - 2 * 10 * 4 * 8)


def test_a_ratio_is_the_median_of_rounds_at_the_longest_text_that_both_forms_have():
    table = pd.DataFrame(
        [(n, form, r, time * (1 + r), 2.0 if form == "lean" else 1.0)
         for n in (1, 2) for form, time in (("lean", 3.0 * n), ("static", 1.0)) for r in range(40)]
        + [(3, "lean", r, 9.0, 2.0) for r in range(40)],
        columns=["n", "form", "repeat", "seconds", "flops"],
    )  # fmt: skip
    assert over("lean", "static")(table).value == pytest.approx(6)
    assert over("lean", "static", by_flops=True)(table).value == pytest.approx(3)
