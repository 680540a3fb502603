"""What a verdict rests on does not change in silence, and each verdict is the one that was expected of it."""

import importlib
import json
from pathlib import Path

import pytest
import yaml

from derived.book.judge import changes, news
from derived.book.judge.ledger import has_run, key, unexplained
from derived.book.source import measured, on_page
from derived.lab.record import read, slot
from derived.lab.study import terms

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = json.loads((ROOT / "results/ledger.json").read_text("utf-8"))
CHANGES = changes.read(ROOT)
SLUGS = sorted({row["paper"] for row in COMMITTED})


def rows(slug: str) -> list[dict]:
    """Each claim of a paper at each tier, with its terms as the code has them now."""
    found = []
    decided = on_page.decided(json.loads((ROOT / f"notebooks/{slug}.ipynb").read_text("utf-8")))
    for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS:
        facts = {"paper": slug, "id": claim.id, "changed": CHANGES.get(claim.id, [])}
        facts["measure"] = measured.measure(ROOT, slug, claim.id)
        if claim.kind == "on page":
            found.append(facts | {"tier": "ci"} | decided[claim.id])
            continue
        for tier in claim.experiment.tiers if claim.experiment else ("gpu",):
            found.append(facts | {"tier": tier} | terms(claim, tier))
    return found


@pytest.mark.parametrize("slug", SLUGS)
def test_a_term_that_changed_after_a_record_has_a_dated_entry(slug):
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


def test_every_change_is_of_a_claim_that_is_in_the_ledger_or_left_it():
    left = {claim for record in news.read(ROOT) for claim in record.get("gone", [])}
    assert {*CHANGES} <= left | {row["id"] for row in COMMITTED}


@pytest.mark.parametrize("slug", SLUGS)
def test_a_change_stands_beside_the_records_of_its_chapter(slug):
    papers = {row["id"].split("-")[0]: row["paper"] for row in COMMITTED}
    entries = yaml.safe_load((ROOT / changes.file(slug)).read_text("utf-8"))
    assert {papers[claim.split("-")[0]] for entry in entries for claim in entry["claims"]} == {slug}


def test_a_row_that_left_the_ledger_says_why():
    reasons = {claim for claim, told in CHANGES.items() for one in told if one["kind"] == "left"}
    gone = {claim for record in news.read(ROOT) if record["date"] >= "2026-11-24" for claim in record.get("gone", [])}
    assert gone - {row["id"] for row in COMMITTED} <= reasons


@pytest.mark.parametrize("slug", SLUGS)
def test_a_term_that_changed_since_its_record_began_has_an_entry_of_that_time(slug):
    module = importlib.import_module(f"derived.papers.{slug}.claims")
    now = {(row["id"], row["tier"]): row for row in rows(slug)}
    silent = []
    for experiment in module.EXPERIMENTS:
        for tier in (tier for tier in experiment.tiers if tier != "ci"):
            record = read(slot(slug, experiment.__name__, tier), "")
            for claim, stood in record.terms.items() if record else ():
                row = now.get((claim, tier))
                dates = [change["date"] for change in row["changed"] if change["kind"] != "expected"] if row else []
                if row and row["terms"] != stood and not any(date >= record.started[:10] for date in dates):
                    silent.append(f"{claim} ({tier})")
    assert not silent
