"""Without its real weights and data an experiment runs nothing, and its record speaks for it."""

import pandas as pd
import pytest

from derived.lab.claims import Claim
from derived.lab.real import pinned
from derived.lab.record import save
from derived.lab.stats import mean
from derived.lab.study import absence, ledger, record_states, study

SAID = "not here: make real (rxnmapper)"


def claim(experiment) -> Claim:
    facts = {"id": "T-1", "statement": "The mean is about one.", "kind": "statistic", "accept": (0.9, 1.1)}
    return Claim(**facts, experiment=experiment, measure=lambda rows: mean(rows["value"]))


@pytest.fixture
def absent(toy, recorded, tmp_path, monkeypatch):
    """The toy experiment, which needs what is not here, with a record."""
    monkeypatch.setattr(pinned, "root", lambda: tmp_path / "real")
    save(recorded(toy))
    monkeypatch.setattr(toy, "needs", ("rxnmapper",), raising=False)
    return toy


def bring(name: str) -> None:
    package = pinned.BY_NAME[name]
    package.place.mkdir(parents=True)
    (package.place / pinned.MARK).write_text(package.mark)


@pytest.mark.parametrize("tier", ["ci", "cpu"])
def test_nothing_runs_and_the_record_is_the_headline(absent, monkeypatch, tier):
    monkeypatch.setattr(absent, "run", None)
    found = study(absent, tier, 0, "cpu")
    rows = {row["tier"]: row for row in ledger("toy", [claim(absent)], [found])}
    assert (rows["ci"]["verdict"], rows["ci"]["reason"], rows["ci"]["value"]) == ("not run", SAID, None)
    assert rows["cpu"]["value"] is not None
    assert rows["cpu"]["headline"]
    assert not rows["ci"]["headline"]


def test_figures_have_the_record_and_its_rows_at_tier_ci(absent, recorded):
    found = study(absent, "ci", 0, "cpu")
    pd.testing.assert_frame_equal(found.best, recorded(absent).rows)
    pd.testing.assert_frame_equal(found.live, recorded(absent).ci_rows)
    assert found.provenance()[-1] == "small, recorded with tier cpu, seed 0"


def test_a_record_is_not_compared_with_itself(absent):
    found = study(absent, "ci", 0, "cpu")
    states = {state["tier"]: state for state in record_states([claim(absent)], [found])}
    assert states["cpu"]["state"] == "not compared"


def test_what_is_here_again_runs_again(absent):
    bring("rxnmapper")
    assert absence(absent) == ""
    [row] = [row for row in ledger("toy", [claim(absent)], [study(absent, "ci", 0, "cpu")]) if row["tier"] == "ci"]
    assert row["value"] is not None


def test_another_version_is_not_here(absent):
    bring("rxnmapper")
    (pinned.BY_NAME["rxnmapper"].place / pinned.MARK).write_text("0  rxnmapper==0.4.2\n")
    assert absence(absent) == SAID


def test_neither_record_nor_data_is_told(toy, tmp_path, monkeypatch):
    monkeypatch.setattr(pinned, "root", lambda: tmp_path / "real")
    monkeypatch.setattr(toy, "needs", ("minilm",), raising=False)
    with pytest.raises(RuntimeError, match=r"Toy has no record, and what it needs is not here: make real OPTIONAL=1"):
        study(toy, "ci", 0, "cpu")
