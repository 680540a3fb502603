"""Topic leaks: derivatives by later inputs, their measures and figures."""

import pandas as pd
import pytest

from derived.papers.in_place_ttt.claims import leaks as claims
from derived.papers.in_place_ttt.experiments.leaks import VARIANTS, Leaks
from derived.papers.in_place_ttt.figures import leaks as figures

EXPERIMENTS = (Leaks,)


def test_claims_get_the_expected_verdict_from_small_rows(rows, expected):
    for claim in claims.CLAIMS:
        verdict, _ = claim.judge(claim.measure(rows[Leaks]))
        assert verdict == expected[claim.id], claim.id


def test_every_variant_has_each_pair_once(rows):
    counts = rows[Leaks].groupby("variant").size()
    assert counts.to_dict() == {variant: 8 * 7 // (1 if variant == "chunks of one" else 2) for variant in VARIANTS}


def test_two_taps_across_leak_the_label_of_the_first_token_of_a_chunk(rows):
    """`ipt-causal`: by hand, eight tokens in chunks of three."""
    table = rows[Leaks].query("variant == 'two taps across' and jacobian > 0")
    assert table[["position", "future"]].values.tolist() == [[3, 1], [6, 1]]
    table = rows[Leaks].query("variant == 'update first' and jacobian > 0")
    assert table[["position", "future"]].values.tolist() == [[0, 1], [0, 2], [1, 1], [3, 1], [3, 2], [4, 1], [6, 1]]


@pytest.mark.parametrize(
    ("id", "variant"), [("IPT-4.a", "taps inside"), ("IPT-4.b", "two taps across"), ("IPT-4.b", "one tap across")]
)
def test_a_single_leak_is_noticed(rows, id, variant):
    (claim,) = (one for one in claims.CLAIMS if one.id == id)
    broken = rows[Leaks].copy()
    at = broken.index[(broken["variant"] == variant) & (broken["jacobian"] == 0)][0]
    broken.loc[at, "jacobian"] = 1e-9
    assert claim.judge(claim.measure(broken))[0] == "fails"


def test_chunks_of_one_leave_a_target_without_neighbours(rows):
    """`ipt-one`: in rows."""
    assert (rows[Leaks].query("variant == 'chunks of one'")["jacobian"] == 0).all()


def test_figures_say_in_words_what_they_show(rows):
    assert "two taps across 2" in figures.leak(rows[Leaks]).get_label()
    table = pd.DataFrame({"panel": "full", "reader": [0, 0, 1, 1], "read": [0, 1, 0, 1], "reads": [0, 0, 1, 0]})
    assert "full 25%" in figures.masks(table).get_label()
    assert "chunks of 4 tokens" in figures.chunk_diagram(4).get_label()


def test_a_missing_derivative_decides_nothing(rows, lacks):
    for id, variant in (("IPT-4.a", "taps inside"), ("IPT-4.b", "one tap across")):
        lacks(claims.CLAIMS, id, rows[Leaks], "jacobian", f"variant == '{variant}' and expected == 0")
