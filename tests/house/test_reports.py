"""Each chapter has a replication report that answers the checklist of its editors."""

import importlib
import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from bookbuilder import contents
from bookbuilder.chapter_pages.pages import Chapter
from bookbuilder.index_pages import welcome
from bookbuilder.ledger import ledger
from bookbuilder.notebook.reading import Minutes
from bookbuilder.paths import Repo
from bookbuilder.report import report, source
from derived.lab.findings import COLUMNS

ROOT = Path(__file__).resolve().parents[2]
SLUGS = Repo(ROOT).chapters()
LEAST = 30  # items of the checklist that every report answers


def chapter(slug: str) -> Chapter:
    """A chapter as the committed ledger and its claims have it, without a run."""
    claims = {claim.id: claim for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS}
    last = {row["id"]: row for row in ledger.committed(Repo(ROOT)) if row["paper"] == slug and ledger.has_run(row)}
    rows = [
        {
            **dict.fromkeys(COLUMNS),
            **{"seed": 0, "reason": claim.reason, "headline": True, "changed": [], "tier": "gpu", "verdict": "not run"},
            **{"statement": claim.statement, "criterion": claim.criterion, "accept": [None, None]},
            **last.get(claim.id, {}),
            **{name: getattr(claim, name) for name in ("id", "kind", "plain", "source", "where", "unit", "amends")},
            **{"scale": claim.scale_at("cpu"), "made_of": claim.made_of, "horizon": claim.horizon, "null": ""},
            "changed": [],
        }
        for claim in claims.values()
    ]
    facts = json.loads((ROOT / f"notebooks/{slug}.ipynb").read_text("utf-8"))["metadata"]["derived"]
    facts |= welcome.card_words(contents.read(ROOT), slug)
    run = {
        "chapter": slug,
        "rows": rows,
        "records": [],
        "versions": {"python": "3"},
        "seconds": 1.0,
        "device_name": "a",
    }
    finding = run | {"date": "2026-11-24", "peak_memory_mb": 1.0}
    return Chapter(slug, facts, finding, 0, {}, Minutes(1, 2), (), slug)


@pytest.mark.parametrize("slug", SLUGS)
def test_a_report_answers_the_checklist_or_says_what_does_not_apply(slug, tmp_path):
    assert source.path(ROOT, slug).is_file()
    report.write(ROOT, tmp_path, tmp_path, chapter(slug))
    items = BeautifulSoup((tmp_path / f"reports/{slug}.md").read_text("utf-8"), "html.parser").select("dl.report > dd")
    answered = [item for item in items if item["class"] == ["answered"]]
    assert len(answered) >= LEAST
    assert all(len(item.get_text().split()) >= 3 for item in items if item["class"] == ["apart"])


def loose(told: source.Report) -> list[str]:
    """Earlier work that bears on something without naming a claim, or names one without bearing on it."""
    return [one.what for one in told.earlier if (one.bears == "neither") == bool(one.claims)]


@pytest.mark.parametrize("slug", SLUGS)
def test_earlier_work_is_tied_to_the_claims_on_which_it_bears(slug):
    claims = {claim.id for claim in importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS}
    told = source.read(ROOT, slug, claims)
    assert loose(told) == []
    untied = [one.model_copy(update={"bears": "supports", "claims": []}) for one in told.earlier]
    assert len(loose(told.model_copy(update={"earlier": untied}))) == len(told.earlier)
