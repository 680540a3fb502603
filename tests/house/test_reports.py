"""Each chapter has a replication report: the form of a replication article, and claims that are in the ledger."""

import re
from pathlib import Path

import pytest

from bookbuilder import contents
from bookbuilder.chapter_pages import numbers
from bookbuilder.index_pages import reports
from bookbuilder.ledger import ledger
from bookbuilder.paths import Repo, UserError

ROOT = Path(__file__).resolve().parents[2]
SLUGS = Repo(ROOT).chapters()
WORDS = 2000  # at most
HEADINGS = [
    "## Question at our scale",
    "## What was ambiguous and what we chose",
    "## Results",
    "## Code review of the authors' repository",
    "## Our own bugs, and which our checks shared",
    "## Limits",
    "## Communication",
]
CLAIM = re.compile(r"\b(?:OLS|SP|HT|SK|HKT|SA|IPT|CAC|TE|GT)-E?\d+\w?(?:\.\w)?\b")


def rows(slug: str) -> list[dict]:
    """The committed rows of a chapter that have run, the largest tier of a claim last."""
    some = [row for row in ledger.committed(Repo(ROOT)) if row["paper"] == slug and row["value"] is not None]
    return [row | {"headline": True} for row in sorted(some, key=lambda row: ["ci", "cpu", "gpu"].index(row["tier"]))]


@pytest.mark.parametrize("slug", SLUGS)
def test_a_report_has_the_form_of_a_replication_article(slug):
    text = reports.source(ROOT, slug).read_text("utf-8")
    title = f"# Replication report: {contents.read(ROOT).chapters[slug].name}"
    assert re.findall(r"^#+ .*", text, re.M) == [title, *HEADINGS]
    assert text.splitlines().count(reports.RESULTS) == 1
    assert len(text.split()) <= WORDS


@pytest.mark.parametrize("slug", SLUGS)
def test_a_report_names_claims_of_the_ledger_and_prints_their_numbers(slug):
    text = reports.source(ROOT, slug).read_text("utf-8")
    ids = {row["id"] for row in ledger.committed(Repo(ROOT)) if row["paper"] == slug}
    assert set(CLAIM.findall(text)) - ids == set()
    assert len(re.findall(numbers.ROLE, text)) >= 5
    assert "{claim}" not in numbers.filled(slug, text, rows(slug))
    with pytest.raises(UserError, match="no claim is called so"):
        numbers.filled(slug, text, [])
