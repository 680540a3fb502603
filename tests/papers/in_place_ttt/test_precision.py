"""Topic precision: what is kept of a clipped write, its measures and its figure."""

import pandas as pd

from derived.papers.in_place_ttt import precision
from derived.papers.in_place_ttt.precision import Clip

EXPERIMENTS = (Clip,)
BY_ID = {claim.id: claim for claim in precision.CLAIMS}


def test_what_is_kept_is_what_the_sum_over_binades_says(rows):
    """`ipt-lost`: in rows; five standard errors of a count."""
    table = rows[Clip]
    error = (table["theory"] * (1 - table["theory"]) / 20_000) ** 0.5
    assert ((table["changed"] - table["theory"]).abs() <= 5 * error + 1e-4).all()


def test_more_writes_change_more_and_no_output_moves_beyond_the_norms(rows):
    """`ipt-clip`: in rows."""
    table = rows[Clip]
    assert (table["after"] >= table["changed"]).all()
    assert (table["moved"] <= table["bound"] * (1 + 1e-9)).all()
    kept = table.query("dtype == 'float32'").set_index(["tau", "replicate"])["changed"]
    lost = table.query("dtype == 'bfloat16'").set_index(["tau", "replicate"])["changed"]
    assert (kept > lost).all()


def test_the_claim_tells_a_clip_from_none(rows, lacks):
    """With the printed norm it holds; with rows of a million times that norm it does not."""
    table = rows[Clip]
    large = table[table["tau"] == 10.0].assign(tau=1e-5)
    claim = BY_ID["IPT-16.a"]
    assert claim.judge(claim.measure(large))[0] == "fails"
    facts = {"tau": 1e-5, "dtype": "bfloat16"}
    exact = pd.DataFrame({"changed": 4 * [2.4e-5, 2.6e-5], "after": 4 * [6.4e-4, 6.5e-4], **facts})
    assert claim.judge(claim.measure(exact))[0] == "holds"
    for name in ("changed", "after"):  # each alone refutes
        assert claim.judge(claim.measure(exact.assign(**{name: 100 * exact[name]})))[0] == "fails", name
        lacks(precision.CLAIMS, claim.id, exact, name)


def test_the_figure_says_in_words_what_it_shows(rows):
    table = rows[Clip].query("dtype == 'bfloat16'")
    assert "At 1e-05: " in precision.survival(table).get_label()
