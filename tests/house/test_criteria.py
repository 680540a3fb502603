"""What a verdict rests on does not change in silence once a record exists."""

import importlib
import json
from dataclasses import asdict
from pathlib import Path

import pytest

from derived.book.judge.ledger import unexplained
from derived.book.source import on_page
from derived.lab.record import read, slot
from derived.lab.study import terms

ROOT = Path(__file__).resolve().parents[2]
COMMITTED = json.loads((ROOT / "results/ledger.json").read_text("utf-8"))
SLUGS = sorted({row["paper"] for row in COMMITTED})


def rows(slug: str) -> list[dict]:
    """Each claim of a paper at each tier, with its terms as the code has them now."""
    found = []
    decided = on_page.decided(json.loads((ROOT / f"notebooks/{slug}.ipynb").read_text("utf-8")))
    for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS:
        if claim.kind == "on page":
            changed = [asdict(one) for one in claim.changed]
            found.append({"paper": slug, "id": claim.id, "tier": "ci", "changed": changed} | decided[claim.id])
            continue
        for tier in claim.experiment.tiers if claim.experiment else ("gpu",):
            facts = {"paper": slug, "id": claim.id, "tier": tier, "changed": [asdict(one) for one in claim.changed]}
            found.append(facts | terms(claim, tier))
    return found


@pytest.mark.parametrize("slug", SLUGS)
def test_a_term_that_changed_after_a_record_has_a_dated_entry(slug):
    assert not unexplained(COMMITTED, rows(slug))


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
                dates = [change["date"] for change in row["changed"]] if row else []
                if row and row["terms"] != stood and not any(date >= record.started[:10] for date in dates):
                    silent.append(f"{claim} ({tier})")
    assert not silent
