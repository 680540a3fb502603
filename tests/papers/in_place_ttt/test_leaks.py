"""Topic leaks: derivatives by later inputs, their measures and figures."""

import pandas as pd

from derived.papers.in_place_ttt import leaks
from derived.papers.in_place_ttt.leaks import VARIANTS, Leaks

EXPERIMENTS = (Leaks,)


def test_every_variant_has_each_pair_once(rows):
    counts = rows[Leaks].groupby("variant").size()
    assert counts.to_dict() == dict.fromkeys(VARIANTS, 8 * 7 // 2)


def test_two_taps_across_leak_the_label_of_the_first_token_of_a_chunk(rows):
    """`ipt-cross`, `ipt-update-first`: by hand, eight tokens in chunks of three."""
    table = rows[Leaks].query("variant == 'two taps across' and jacobian > 0")
    assert table[["position", "future"]].values.tolist() == [[3, 1], [6, 1]]
    table = rows[Leaks].query("variant == 'update first' and jacobian > 0")
    assert table[["position", "future"]].values.tolist() == [[0, 1], [0, 2], [1, 1], [3, 1], [3, 2], [4, 1], [6, 1]]


def test_taps_inside_a_chunk_leak_nothing_and_one_across_neither(rows):
    """`ipt-causal`, `ipt-cross`."""
    leaking = rows[Leaks].query("jacobian > 0")["variant"]
    assert set(leaking) == {"two taps across", "update first"}


def test_figures_say_in_words_what_they_show(rows):
    assert "two taps across 2" in leaks.leak(rows[Leaks]).get_label()
    table = pd.DataFrame({"panel": "full", "reader": [0, 0, 1, 1], "read": [0, 1, 0, 1], "reads": [0, 0, 1, 0]})
    assert "full 25%" in leaks.masks(table).get_label()
    assert "chunks of 4 tokens" in leaks.chunk_diagram(4).get_label()
