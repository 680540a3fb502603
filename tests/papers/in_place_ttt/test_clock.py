"""Topic clock: rows of the layer's time, and ratios of times over rounds."""

import pandas as pd
import pytest
import torch

from derived.papers.in_place_ttt import clock
from derived.papers.in_place_ttt.clock import CLAIMS, Alive, LayerTime, moved, over

EXPERIMENTS = (LayerTime,)


def test_every_round_times_every_form_that_fits(rows):
    table = rows[LayerTime]
    assert set(table.groupby(["n", "batch"]).groups) == {(16, 1), (16, 2), (32, 1)}  # 64 tokens are too many
    assert set(table.loc[table["n"] == 16, "form"]) == {"static", "lean", "scan", "attention"}
    assert set(table.loc[table["n"] == 32, "form"]) == {"static", "lean", "scan"}  # 1024 scores
    assert (table.groupby(["n", "batch", "form"])["repeat"].nunique() == 3).all()
    assert (table[["seconds", "pace", "flow"]] > 0).all(axis=None)
    for claim in CLAIMS:
        assert claim.measure(table).n == 3


def test_flops_and_numbers_are_counted_as_derived():
    sized = LayerTime(d=4, h=8, chunk=2, lengths=(8,))
    assert sized.flops("static", 10) == 6 * 10 * 4 * 8
    assert sized.flops("lean", 10) == pytest.approx(10 * (6 * 4 * 8 + 2 * 4 * 4 + 10 * 4 + 2 * 4 * 8))
    assert sized.flops("attention", 10) - sized.flops("lean", 10) == pytest.approx(10**2 * 12 - 2 * 10 * 4 * 8)


def test_a_ratio_is_the_median_of_rounds_at_the_longest_text_that_both_forms_have():
    table = pd.DataFrame(
        [(n, 1, form, r, time * (1 + r), 2.0 if form == "lean" else 1.0)
         for n in (1, 2) for form, time in (("lean", 3.0 * n), ("static", 1.0)) for r in range(40)]
        + [(3, 1, "lean", r, 9.0, 2.0) for r in range(40)]
        + [(2, 4, form, r, time, 2.0) for form, time in (("lean", 5.0), ("static", 1.0)) for r in range(40)],
        columns=["n", "batch", "form", "repeat", "seconds", "flops"],
    )  # fmt: skip
    assert over("lean", "static")(table).value == pytest.approx(6)
    assert over("lean", "static", by_flops=True)(table).value == pytest.approx(3)
    assert over("lean", "static", single=False)(table).value == pytest.approx(5)


def test_the_least_traffic_is_counted_as_derived():
    """d = 2, h = 3, six tokens in two chunks: input and output 24, keys 36, weights 18; then the memory's own."""
    assert moved("static", 6, 3, 2, 3) == 24 + 36 + 18
    assert moved("lean", 6, 3, 2, 3) - moved("static", 6, 3, 2, 3) == 36 + 18 + 3 * 2 * 6
    assert moved("scan", 6, 3, 2, 3) - moved("lean", 6, 3, 2, 3) == 2 * 6
    assert moved("attention", 6, 3, 2, 3) - moved("static", 6, 3, 2, 3) == 36 + 18 + 2 * 36
    assert LayerTime(d=2, h=3, chunk=3).moved("static", 6, 5) == 5 * (24 + 36) + 18


def test_only_the_scan_and_attention_forms_take_memory_beside_keys_and_values(rows):
    """`ipt-prefix`: the states of all chunks, or all scores, are alive at once; one running state is not seen."""
    peak = rows[LayerTime].query("n == 32 and batch == 1").groupby("form")["peak"].first()
    assert peak["lean"] < peak["scan"]
    kept = torch.zeros(64, 64)
    with Alive() as alive:
        again = kept.mul(2).add(1)
        kept.add_(again)  # in place, and of a tensor from before: nothing new
    assert (alive.peak, alive.now) == (2 * kept.nbytes, kept.nbytes)
    del again
    assert alive.now == 0


def test_a_call_takes_what_the_clock_says_between_its_begin_and_its_end(monkeypatch):
    ticks = iter((100.0, 103.5))
    monkeypatch.setattr(clock, "now", lambda device: next(ticks))
    assert clock._timed(lambda: None, torch.device("cpu")) == 3.5
