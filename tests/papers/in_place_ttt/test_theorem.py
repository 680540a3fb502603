"""Topic theorem: logits that a pair moves, keys of random layers, edges; their measures and figures."""

import numpy as np
import pandas as pd

from derived.lab.experiment import run_condition
from derived.papers.in_place_ttt.claims import theorem as claims
from derived.papers.in_place_ttt.experiments.theorem import Edges, Keys, Logits
from derived.papers.in_place_ttt.figures import theorem as figures

EXPERIMENTS = (Logits, Keys, Edges)
BY_ID = {claim.id: claim for claim in claims.CLAIMS}


def judged(id, table):
    return BY_ID[id].judge(BY_ID[id].measure(table))[0]


def test_the_proven_claims_hold_in_small_rows(rows):
    """`ipt-logits`, `ipt-margin`."""
    for id in ("IPT-7.a", "IPT-7.b", "IPT-8.a"):
        assert judged(id, rows[Logits]) == "holds", id


def test_swapped_targets_fail(rows):
    """The two targets are told apart: each fails the other's promise."""
    swap = {"next": "reconstruction", "reconstruction": "next"}
    swapped = rows[Logits].assign(target=rows[Logits]["target"].map(swap))
    assert judged("IPT-7.a", swapped) == judged("IPT-8.a", swapped) == "fails"


def test_a_gain_off_by_a_factor_is_noticed(rows):
    table = rows[Logits]
    assert judged("IPT-7.a", table.assign(gain=2 * table["gain"])) == "fails"
    assert judged("IPT-7.b", table.assign(reach=0.5 * table["reach"])) == "fails"
    assert (table["gap"] <= table["bound"]).all()


def test_the_first_run_is_noisy_and_the_mean_of_both_signs_is_not(rows):
    table = rows[Logits]
    noise = table["delta"] - table["mean"]
    assert noise.abs().min() > 1e-6
    assert abs(noise.mean()) < 4 * noise.std() / len(noise) ** 0.5
    assert np.allclose(table["mean"], table["expected"])


def test_keys_of_small_layers(rows):
    """`ipt-keys`: in rows."""
    cosine = rows[Keys].groupby("mlp")["cosine"].mean()
    assert abs(cosine["gated"]) < 0.05
    assert abs(cosine["plain"] - 1 / np.pi) < 0.05
    exact = rows[Keys].assign(cosine=rows[Keys]["mlp"].map({"gated": 0.0, "plain": 1 / np.pi}))
    assert judged("IPT-7.e", exact) == "holds"
    for mlp in ("gated", "plain"):
        assert judged("IPT-7.e", exact.assign(cosine=exact["cosine"] + 0.03 * (exact["mlp"] == mlp))) == "fails", mlp
    bias = rows[Keys].groupby(["mlp", "N"])["bias"].mean()
    assert 3 < bias["plain", 64] / bias["plain", 16] < 5  # in proportion
    assert bias["gated", 64] / bias["gated", 16] < 3


def test_a_pair_counts_inside_a_chunk_only(rows):
    """`ipt-bound-pair`: in rows."""
    delta = rows[Edges].groupby("place")["delta"].mean()
    assert delta["inside"] > 0.8
    assert delta.drop("inside").abs().max() < 0.2


def test_rows_follow_the_seed():
    small = Edges.at("tiny")
    first, again, other = (run_condition(small, small.conditions()[0], seed, "cpu") for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, again)
    assert not np.allclose(first["delta"], other["delta"])


def test_the_figure_says_in_words_what_it_shows(rows):
    label = figures.shifts(rows[Logits]).get_label()
    mean = rows[Logits].query("target == 'next' and token == 'v'")["delta"].mean()
    assert f"next token, right answer: {mean:.2f}" in label
