"""What pages are made of: checks that can fail, and rows of the ledger."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import torch
from matplotlib.figure import Figure

from derived.lab import page, stats
from derived.lab.claims import Claim, on_page
from derived.lab.findings import FINDINGS, interval
from derived.lab.study import ledger, study


@pytest.mark.parametrize("bound", [1e-3, [1e-3, 1e-3], np.array([1e-3, 1e-1])])
def test_check_says_the_worst_gap_and_its_share_of_the_bound(bound, capsys):
    page.check([5e-4, 1e-4], bound)
    assert capsys.readouterr().out == "worst gap 5.0e-04, 0.5 of its bound, n = 2\n"


@pytest.mark.parametrize(("gap", "bound"), [([0.5, 2.0], [1.0, 1.0]), ([float("nan")], 1.0)])
def test_check_fails_above_the_bound_and_on_nan(gap, bound):
    with pytest.raises(AssertionError, match="times its bound"):
        page.check(gap, bound)


@pytest.mark.parametrize("gap", [[0.1, -1e-300], torch.tensor([-5.0])])
def test_a_gap_below_zero_is_no_gap(gap):
    with pytest.raises(ValueError, match="a gap is below zero"):
        page.check(gap, 1.0)


@pytest.mark.parametrize("say", [page.check, page.at_most])
def test_an_infinite_bound_bounds_nothing(say):
    with pytest.raises(ValueError, match="a bound is infinite"):
        say([0.5, 0.5], torch.tensor([1.0, float("inf")]))


@pytest.mark.parametrize("bound", [2.0, [4.0, 2.0]])
def test_an_inequality_says_the_share_of_its_bound(bound, capsys):
    page.at_most(torch.tensor([-3.0, 1.0]), bound)
    assert capsys.readouterr().out == "at most 0.5 of its bound, n = 2\n"


def test_a_fact_is_told_with_its_instances(capsys):
    page.confirm(torch.tensor([1.0, 2.0]) > 0, "both are positive")
    page.confirm(2 > 1, "two exceeds one")
    assert capsys.readouterr().out == "true in 2 of 2: both are positive\ntrue in 1 of 1: two exceeds one\n"


def test_what_is_not_so_once_is_not_so():
    with pytest.raises(AssertionError, match="not so in 1 of 2 instances: both exceed one"):
        page.confirm(np.array([1.0, 2.0]) > 1, "both exceed one")
    with pytest.raises(AssertionError, match="not so"):
        page.confirm(float("nan") < 1, "it is small")


@pytest.mark.parametrize("facts", [[], float("nan"), None])
def test_nothing_and_what_is_no_fact_confirm_nothing(facts):
    with pytest.raises(ValueError, match="prove nothing"):
        page.confirm(facts, "it is so")


def test_a_table_has_words_for_the_names_of_all_its_heads():
    rows = pd.DataFrame({"V": [2, 4], "rule": "tas", "kl": [0.5, 1.0]}).groupby(["V", "rule"])[["kl"]].agg(["mean"])
    table = page.worded(rows, V="tokens V", tas="TAS", kl="KL", mean="average")
    assert table.columns.tolist() == [("KL", "average")]
    assert table.index.names == ["tokens V", "rule"]
    assert table.index.tolist() == [(2, "TAS"), (4, "TAS")]
    assert rows.index.names == ["V", "rule"]
    spread = pd.DataFrame({"V": [2, 2], "rule": ["a", "b"], "kl": [0.5, 1.0]}).pivot(index="V", columns="rule")["kl"]
    assert page.worded(spread, rule="KL under", b="the second").columns.tolist() == ["a", "the second"]
    assert page.worded(spread, rule="KL under").columns.name == "KL under"


@pytest.mark.parametrize(
    ("low", "high", "written"),
    [(None, None, ""), (1.0, 2.55555, "[1, 2.556]"), (1.0, None, "[1, ∞)"), (None, 2.0, "(-∞, 2]")],
)
def test_an_interval_may_be_open_at_infinity(low, high, written):
    assert interval(low, high) == written


def test_a_figure_without_alt_text_is_refused():
    with pytest.raises(ValueError, match=r"no alt text: .* must call figure\.set_label"):
        page.show(Figure())


def test_a_figure_is_shown_as_svg_with_its_alt_text_and_where_its_rows_come_from_each_once(monkeypatch):
    shown, figure = [], Figure()
    monkeypatch.setattr(page, "display", lambda data, metadata, raw: raw and shown.append((data, metadata)))
    figure.set_label("A line.")
    page.show(figure, *(SimpleNamespace(provenance=lambda own=own: ["live", own]) for own in ("one", "two")))
    [(data, metadata)] = shown
    assert "<svg" in data["image/svg+xml"]
    assert data["text/plain"] == "A line."
    assert metadata == {"image/svg+xml": {"alt": "A line.", "provenance": "live; one; two"}}


def test_an_explorer_brings_its_alt_text(monkeypatch):
    shown = []
    monkeypatch.setattr(page, "display", lambda data, raw: raw and shown.append(data))
    page.explorer(go.Figure(layout={"meta": {"play": True, "alt": "Three bars."}}))
    assert shown[0]["text/plain"] == "Three bars."
    assert shown[0]["application/vnd.plotly.v1+json"]["layout"]["meta"] == {"play": True, "alt": "Three bars."}


def mean_of(toy) -> Claim:
    """A claim on the rows of the toy experiment."""
    return Claim(
        id="T-1",
        statement="The mean is below 2.",
        plain="It is small.",
        source="ours",
        where="–",
        paper_value="–",
        kind="statistic",
        criterion="below 2",
        experiment=toy,
        unit=r"of $\pi$",
        measure=lambda rows: stats.mean(rows["value"]),
        accept=(0.0, 2.0),
    )


def test_a_reading_is_refuted_by_a_witness_and_by_nothing_less(capsys):
    page.refute([0.001, 0.5], 0.01, "T-1")
    assert capsys.readouterr().out == "refuted by 50 times its limit, n = 2 (T-1)\n"
    for gap in ([0.01], [float("nan")]):
        with pytest.raises(AssertionError, match="no witness: the largest gap is"):
            page.refute(gap, 0.01)


def rows_of(*claims, seed=0) -> dict:
    return {row["id"]: row for row in ledger("toy", claims, [], page.CHECKS, seed)}


def test_a_claim_is_decided_by_the_worst_of_its_checks_and_all_their_instances(capsys):
    page.studies("ci", 0, "cpu")
    page.check([0.5, 0.1], 1.0, "T-1")
    page.check([0.75], 1.0, "T-1")
    page.check([0.875], 1.0)
    page.at_most(0.5, 1.0, "T-2")
    page.refute(2.0, 1.0, "T-3")
    page.refute(2.0, 1.0, "T-4")
    rows = rows_of(*(on_page(f"T-{i}") for i in (1, 2, 3)), on_page("T-4", source="paper"))
    found = {name: (row["kind"], row["value"], row["n"], row["verdict"]) for name, row in rows.items()}
    assert found == {
        "T-1": ("identity", 0.75, 3, "holds"),
        "T-2": ("bound", 0.5, 1, "holds"),  # the builder refuses a page without the proof
        "T-3": ("counterexample", 2.0, 1, "refuted"),
        "T-4": ("counterexample", 2.0, 1, "fails"),
    }
    assert rows["T-1"]["criterion"] == "largest gap over its bound in the check cell: at most $1$"
    assert rows_of(on_page("T-1"), seed=3)["T-1"]["seed"] == 3
    page.studies("ci", 0, "cpu")
    assert rows_of(on_page("T-1"))["T-1"]["verdict"] == "not run"


def test_a_control_in_a_check_cell_must_violate_the_bound(capsys):
    page.studies("ci", 0, "cpu")
    page.at_most([0.5, 0.25], 1.0, "T-1", control=3.0)
    page.check([0.5], [0.25 * 4], "T-1", control=[0.5, 2.0])
    assert capsys.readouterr().out.endswith("0.5 of its bound, n = 1 (T-1); the control has 2 times the bound\n")
    control = rows_of(on_page("T-1"))["T-1"]["control"]
    assert (control["value"], control["verdict"]) == (2.0, "fails")
    assert rows_of(on_page("T-2", control="nothing does nothing here"))["T-2"]["control"] == "nothing does nothing here"
    for arm in (1.0, [0.5, 0.9], np.nan):
        with pytest.raises(AssertionError, match="the control passes"):
            page.at_most(0.5, 1.0, "T-1", control=arm)


def test_a_page_runs_each_experiment_once_and_reports_what_it_ran(toy, monkeypatch):
    class Other(toy):
        shifts = (5.0,)

    run = page.studies("ci", 3, "cpu")
    first, other = run(toy), run(Other)
    assert run(toy) is first
    assert list(run) == [first, other]
    assert (first.tier, first.seed, first.device) == ("ci", 3, "cpu")
    pd.testing.assert_frame_equal(first.live, study(toy, "ci", 3, "cpu").live)
    assert list(page.studies("ci", 3, "cpu")) == []  # pages share nothing

    shown = []
    monkeypatch.setattr(page, "display", lambda data, raw: raw and shown.append(data))
    page.report("toy", [mean_of(toy)], run)
    assert "] of $\\pi$</td>" in shown[0]["text/html"]
    assert "chapter-ledger" in shown[0]["text/html"]
    findings = shown[0][FINDINGS]
    assert (findings["rows"][0]["id"], findings["rows"][0]["verdict"]) == ("T-1", "holds")
    assert {state["experiment"] for state in findings["records"]} == {"Toy", "Other"}


def test_a_claim_on_what_was_not_run_is_refused(toy):
    with pytest.raises(ValueError, match="did not run: Toy"):
        page.report("toy", [mean_of(toy)], page.studies("ci", 0, "cpu"))


class Shown:
    """Words that a page leaves out."""

    def bare(self):
        return 1

    def told(self):
        """So are these."""
        return 2


def test_source_is_shown_without_its_docstrings_and_with_every_other_line():
    lines = [line.strip() for line in page.source(Shown).data.splitlines() if line.strip()]
    assert lines == ["```python", "class Shown:", "def bare(self):", "return 1", "def told(self):", "return 2", "```"]
