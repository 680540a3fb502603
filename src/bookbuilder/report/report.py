"""Writes a chapter's replication report: the checklist of its template, answered from data and from the chapter's file.

An item that has no answer must say in the file why it does not apply; the build fails on one that does neither, and on
a reason for an item that has an answer.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup

from bookbuilder.chapter_pages import pages
from bookbuilder.ledger import changes, ledger
from bookbuilder.notebook.evidence import bibtex
from bookbuilder.paths import Repo, UserError
from bookbuilder.report import source

Row = dict[str, Any]
RATED = {"verified": 5, "toy": 3, "inconclusive": 3, "falsified": 1}  # the challenge's four words, from 1 to 5
OPEN = "open"  # the class of an item without an answer


def challenge(row: Row) -> str:
    """Say a verdict in the words of the open challenge of July 2026: verified, falsified, toy or inconclusive."""
    found = {"holds": "verified", "fails": "falsified", "refuted": "falsified"}.get(pages.verdict_key(row))
    return "toy" if found and row["scale"] == "toy" else found or "inconclusive"


def write(root: Path, target: Path, downloads: Path, chapter: pages.Chapter) -> None:
    """Write the page and the JSON file of a chapter's report, where it has a file."""
    slug = chapter.slug
    if not source.path(root, slug).is_file():
        return
    rows = pages.headlines(chapter.rows)
    told = source.read(root, slug, {row["id"] for row in rows})
    citation = bibtex((root / "book/references.bib").read_text("utf-8"), chapter.facts["paper"]["bibkey"])
    values = facts(root, chapter, rows) | {"told": told, "citation": citation}
    shown = pages.html("report.html", **values)
    _check(slug, shown, told)
    (target / "reports").mkdir(exist_ok=True)
    head = f"---\nhtml_theme.sidebar_secondary.remove: true\n---\n\n# Replication report: {chapter.name}\n\n"
    (target / f"reports/{slug}.md").write_text(f"{head}{pages.raw(shown)}\n", "utf-8")
    text = json.dumps(linked(chapter, values["theirs"]), indent=1, ensure_ascii=False)
    (downloads / f"{slug}-report.json").write_text(text + "\n", "utf-8")


def _check(slug: str, shown: str, told: source.Report) -> None:
    """UserError for an item of the checklist without an answer, and for a reason that no item needs."""
    items = {item["id"]: item["class"] for item in BeautifulSoup(shown, "html.parser").select("dd[id]")}
    silent = [key for key, classes in items.items() if OPEN in classes]
    idle = [key for key in told.apart if "apart" not in items.get(key, [])]
    where = f"{source.FOLDER}/{slug}.yml"
    if silent:
        raise UserError(f"{where}: nothing answers {', '.join(silent)}; say under `apart` why it does not apply")
    if idle:
        raise UserError(f"{where}: `apart` has {', '.join(idle)}, which has an answer or is no item; remove it")


def facts(root: Path, chapter: pages.Chapter, rows: Sequence[Row]) -> dict[str, Any]:
    """What the data say: claims, verdicts, effects, controls, changes, costs."""
    theirs = [row for row in rows if pages.group(row) != "ours"]
    records = [record for record in chapter.finding["records"] if record["state"] != "missing"]
    changed = [row for row in rows if row["changed"]]
    kinds = Counter(kind for row in changed for kind in {change["kind"] for change in row["changed"]})
    told = [(changes.IN_WORDS[kind], count) for kind, count in kinds.most_common()]
    registered = [row for row in ledger.committed(Repo(root)) if row["paper"] == chapter.slug and row["registered"]]
    return {
        **{"chapter": chapter, "slug": chapter.slug, "rows": rows, "theirs": theirs, "records": records},
        "hours": sum(record["seconds"] for record in records) / 3600,
        "failing": [row for row in rows if row["verdict"] == "fails"],
        "ran": [row for row in rows if row["verdict"] != "not run"],
        "effects": forest(rows),
        "judged": [row for row in rows if row["kind"] in ("bound", "statistic") and row["verdict"] != "not run"],
        **{"changed": changed, "kinds": told, "registered": registered},
        "counts": pages.grouped(list(theirs)),
        "words": Counter(challenge(row) for row in theirs),
        "challenge": {row["id"]: challenge(row) for row in theirs},
    }


def forest(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Place the effects on one axis: each difference as a share of the paper's number, with its interval, from -1 to 1
    of the widest; of a number that is zero there is no share."""
    some = [row for row in rows if row["effect"] and row["effect"]["paper"]]
    shares = [
        [
            row["effect"][name] / abs(row["effect"]["paper"])
            for name in ("difference_low", "difference", "difference_high")
        ]
        for row in some
    ]
    widest = max((abs(end) for ends in shares for end in ends), default=1.0) or 1.0
    return [
        {"row": row, "share": ends[1], "places": [round(end / widest, 4) for end in ends], "widest": widest}
        for row, ends in zip(some, shares, strict=True)
    ]


def linked(chapter: pages.Chapter, rows: Sequence[Row]) -> dict[str, Any]:
    """The report as linked data: a ScholarlyArticle, and a ClaimReview for each claim that is not ours."""
    paper, page = chapter.facts["paper"], f"../claims/{chapter.slug}.html"  # from downloads/
    names = re.split(r",\s*|\s+and\s+", paper["authors"])
    article = {
        **{"@type": "ScholarlyArticle", "@id": "#paper", "name": paper["title"]},
        "author": [{"@type": "Person", "name": name} for name in names],
        **({"url": f"https://arxiv.org/abs/{paper['arxiv']}"} if paper.get("arxiv") else {}),
    }
    reviews = [
        {
            **{"@type": "ClaimReview", "url": f"{page}#{row['id']}", "claimReviewed": row["statement"]},
            "itemReviewed": {"@type": "Claim", "name": row["id"], "appearance": {"@id": "#paper"}},
            "author": {"@type": "Organization", "name": "Transformers, Derived"},
            "datePublished": chapter.finding["date"][:10],
            "reviewRating": {
                **{"@type": "Rating", "ratingValue": RATED[challenge(row)], "bestRating": 5, "worstRating": 1},
                **{"alternateName": challenge(row), "ratingExplanation": f"{row['verdict']}: {row['criterion']}"},
            },
        }
        for row in rows
    ]
    return {"@context": "https://schema.org", "@graph": [article, *reviews]}
