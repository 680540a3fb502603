"""What a verdict rests on does not change in silence, and each verdict is the one that was expected of it."""

import importlib
import json
from pathlib import Path

import pytest

from bookbuilder.ledger import changes
from bookbuilder.ledger.ledger import has_run, key, recorded, unexplained
from bookbuilder.notebook import notebook_claims
from derived.lab.findings import JUDGED
from derived.lab.record import read, slot
from derived.lab.study import judged_by, terms

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = json.loads((ROOT / "results/ledger.json").read_text("utf-8"))
CHANGES = changes.read(ROOT)
SLUGS = sorted({row["paper"] for row in COMMITTED})


def rows(slug: str) -> list[dict]:
    """Each claim of a paper at each tier, with its terms as the code has them now."""
    found = []
    decided = notebook_claims.decided(json.loads((ROOT / f"notebooks/{slug}.ipynb").read_text("utf-8")))
    for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS:
        facts = {"paper": slug, "id": claim.id, "changed": CHANGES.get(claim.id, [])}
        if claim.kind == "on page":
            found.append(facts | {"tier": "ci", "unit": JUDGED[decided[claim.id]["kind"]][0]} | decided[claim.id])
            continue
        for tier in claim.experiment.tiers if claim.experiment else ("gpu",):
            found.append(facts | {"tier": tier, "unit": claim.unit} | terms(claim, tier))
    return found


@pytest.mark.parametrize("slug", SLUGS)
def test_a_criterion_that_changed_after_a_record_has_a_dated_entry(slug):
    assert not unexplained(COMMITTED, rows(slug))


@pytest.mark.parametrize("slug", SLUGS)
def test_every_claim_is_registered_with_the_verdict_that_is_expected_of_its_live_rows(slug):
    expected = {key(row): row["expected"] for row in COMMITTED}
    for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS:
        live = claim.experiment and "ci" in {*claim.judged_at} & {*claim.experiment.tiers}
        if live or claim.kind == "on page":
            assert expected.get((slug, claim.id, "ci")), claim.id


def test_every_verdict_of_the_committed_ledger_is_the_expected_one():
    assert not [key(row) for row in COMMITTED if has_run(row) and row["verdict"] != row["expected"]]


def test_every_change_is_of_a_recorded_claim():
    assert {*CHANGES} <= {row["id"] for row in COMMITTED if recorded(row)}


@pytest.mark.parametrize("slug", SLUGS)
def test_a_criterion_that_changed_since_its_record_began_has_an_entry_of_that_time(slug):
    module = importlib.import_module(f"derived.papers.{slug}.claims")
    judged = {(row["id"], row["tier"]) for row in COMMITTED if recorded(row)}
    now = {claim.id: judged_by(claim) for claim in module.CLAIMS}
    silent = []
    for experiment in module.EXPERIMENTS:
        for tier in (tier for tier in experiment.tiers if tier != "ci"):
            record = read(slot(slug, experiment.__name__, tier), "")
            for claim, stood in record.terms.items() if record else ():
                since = [one for one in CHANGES.get(claim, []) if one["date"] >= record.started[:10]]
                if (claim, tier) in judged and now[claim] != stood and not since:
                    silent.append(f"{claim} ({tier})")
    assert not silent
