"""What is expected of a claim is in the committed ledger before its first run, and later changes say why."""

import datetime
import json
from types import SimpleNamespace

import pytest
import toybook
import yaml

from bookbuilder.ledger import changes
from bookbuilder.ledger import register as module
from bookbuilder.ledger.ledger import COMMITTED
from bookbuilder.ledger.register import register
from bookbuilder.paths import Repo, UserError
from derived.lab.claims import at_most, computed, unseen
from derived.lab.experiment import Experiment
from derived.lab.study import terms


@pytest.fixture
def toy(repo, monkeypatch):
    """A repo whose paper has the claim T-1, without running anything."""

    class Toy(Experiment):
        tiers = {"ci": {}, "cpu": {}}  # noqa: RUF012

    claims = (
        computed("T-1", "$1=1$.", Toy, lambda rows: None, "gap", at_most(1)),
        computed("T-2", "$2=2$.", Toy, lambda rows: None, "gap", at_most(1), judged_at=("cpu",)),
        unseen("T-3", "$3=3$.", "no data"),
    )
    monkeypatch.setattr(module, "claims_of", lambda paper: SimpleNamespace(CLAIMS=claims))
    return Repo(repo), claims


def test_a_claim_is_entered_with_its_terms_and_the_day_and_without_a_verdict(toy):
    repo, claims = toy
    before = json.loads(repo.ledger.read_text())
    register(repo, "toy", "undecided", ["T-2"], "cpu")
    *others, row = json.loads(repo.ledger.read_text())
    assert others == before
    assert tuple(row) == COMMITTED
    assert (row["id"], row["tier"], row["expected"], row["verdict"]) == ("T-2", "cpu", "undecided", None)
    assert row["terms"] == terms(claims[1], "cpu")["terms"]
    assert row["registered"]


def test_before_it_runs_a_claim_is_registered_again_without_a_reason(toy):
    repo, claims = toy
    register(repo, "toy", "fails", ["T-1"], "ci")
    (row,) = (row for row in json.loads(repo.ledger.read_text()) if (row["paper"], row["tier"]) == ("toy", "ci"))
    assert (row["expected"], row["terms"]) == ("fails", terms(claims[0], "ci")["terms"])


def test_another_verdict_where_a_record_is_there_must_be_asked_for(toy):
    """Its rows may be known, though the claim has no verdict yet."""
    repo, _ = toy
    register(repo, "toy", "holds", ["T-2"], "cpu")
    (repo.root / "results/toy/Toy/cpu").mkdir(parents=True)
    before = repo.ledger.read_text()
    register(repo, "toy", "holds", ["T-2"], "cpu")
    assert repo.ledger.read_text() == before
    with pytest.raises(UserError, match=r"T-2 has a record at tier cpu; .*--again"):
        register(repo, "toy", "fails", ["T-2"], "cpu")
    assert repo.ledger.read_text() == before
    register(repo, "toy", "fails", ["T-2"], "cpu", again=True)
    assert json.loads(repo.ledger.read_text())[-1]["expected"] == "fails"


def test_another_verdict_after_a_run_must_be_asked_for_and_leaves_all_else(toy):
    repo, _ = toy
    toybook.write_ledger(repo.root, toybook.COMMITTED)
    with pytest.raises(UserError, match=r"T-1 has a verdict at tier ci; .*--again"):
        register(repo, "toy", "fails", ["T-1"], "ci")
    assert json.loads(repo.ledger.read_text()) == [toybook.COMMITTED]
    register(repo, "toy", "fails", ["T-1"], "ci", again=True)
    assert json.loads(repo.ledger.read_text()) == [toybook.COMMITTED | {"expected": "fails"}]


@pytest.mark.parametrize(
    ("verdict", "id", "tier", "said"),
    [
        ("hold", "T-1", "ci", "'hold' is no verdict to expect"),
        ("holds", "T-9", "ci", "toy has no claim T-9 at tier ci"),
        ("holds", "T-2", "ci", "toy has no claim T-2 at tier ci"),
        ("holds", "T-1", "gpu", "toy has no claim T-1 at tier gpu"),
        ("holds", "T-3", "gpu", "toy has no claim T-3 at tier gpu"),
    ],
)
def test_what_cannot_be_expected_is_refused(toy, verdict, id, tier, said):
    repo, _ = toy
    before = repo.ledger.read_text()
    with pytest.raises(UserError, match=said):
        register(repo, "toy", verdict, [id], tier)
    assert repo.ledger.read_text() == before


CHANGE = {
    "date": datetime.date(2026, 11, 22),
    "claims": ["T-1", "T-2"],
    "kind": "criterion",
    "what": "It was 8.",
    "why": "Too few.",
}


def write(root, *entries) -> None:
    path = root / changes.FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump([*entries]))


def test_changes_are_read_by_claim_the_oldest_first(tmp_path):
    assert changes.read(tmp_path) == {}
    write(tmp_path, CHANGE, CHANGE | {"date": datetime.date(2026, 11, 21), "claims": ["T-2"], "kind": "range"})
    found = changes.read(tmp_path)
    assert [one["kind"] for one in found["T-2"]] == ["range", "criterion"]
    assert {*found["T-1"][0]} == {"date", "kind", "what", "why"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "whim"}, "kind"),
        ({"date": "yesterday"}, "date"),
        ({"claims": []}, "claims"),
        ({"why": ""}, "why"),
        ({"because": "so"}, "because"),
    ],
)
def test_an_entry_of_another_shape_is_told_in_one_line(tmp_path, wrong, said):
    write(tmp_path, CHANGE, CHANGE | wrong)
    with pytest.raises(UserError) as caught:
        changes.read(tmp_path)
    assert str(caught.value).startswith("changes.yml: 1: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_entry_that_a_merge_ran_into_the_one_before_is_refused(tmp_path):
    """Without its first line the second entry's keys are twice in the first, of which YAML keeps the last."""
    path = tmp_path / changes.FILE
    path.parent.mkdir(parents=True)
    path.write_text("- date: 2026-11-24\n  claims: [T-1]\n  kind: range\n  what: It.\n  why: So.\n  claims: [T-2]\n")
    with pytest.raises(UserError, match=r"changes.yml, line \d+: the key claims is there twice"):
        changes.read(tmp_path)
