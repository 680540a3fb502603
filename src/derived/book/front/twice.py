"""Shows which claims the pencil decides a second time, how often it agreed with the package at first sight, and why the
other headline claims are decided once."""

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from derived.book import written
from derived.book.page import pages
from derived.book.source.statements import pencilled

FILE = "pencil/first_sight.yml"
ONCE = "pencil/once.yml"


class Disagreement(written.Shape):
    """What differed at first sight, and which of the two was wrong, or the test that compared them."""

    date: datetime.date
    fault: Literal["the pencil", "the package", "the test"]
    what: str
    claims: list[str] = Field(default_factory=list)


class Once(written.Shape):
    """What keeps the pencil from these headline claims."""

    why: str
    claims: list[str]


def table(root: Path, chapters: Sequence[pages.Chapter]) -> str:
    """Write the claims that are decided twice, the rate of agreement, each disagreement with its cause, and why other
    headline claims are decided once. MyST."""
    twice: dict[str, list[str]] = {}
    once: dict[str, list[tuple[str, str]]] = {}
    known = reasons(root)
    for chapter in chapters:
        named = pencilled(root, chapter.slug)
        rows = pages.headlines(chapter.rows)
        if found := [row["id"] for row in rows if row["id"] in named]:
            twice[chapter.slug] = found
        for row in rows:
            if row["plain"] and row["id"] not in named and (why := reason(row, known)):
                once.setdefault(why, []).append((chapter.slug, row["id"]))
    count = sum(map(len, twice.values()))
    told = written.read(root / FILE, list[Disagreement])
    wrong = {claim for one in told if one.fault != "the test" for claim in one.claims}
    agreed = count - sum(claim in wrong for found in twice.values() for claim in found)
    values = {"twice": twice, "once": once, "count": count, "agreed": agreed, "told": told}
    return pages.raw(pages.html("twice.html", **values) if count else "")


def reasons(root: Path) -> dict[str, str]:
    """Read, by claim, what keeps the pencil from it."""
    return {claim: one.why for one in written.read(root / ONCE, list[Once]) for claim in one.claims}


def reason(claim: Mapping[str, Any], known: Mapping[str, str]) -> str:
    """Find what keeps the pencil from a claim: nobody could run it, real weights, or what is known; else empty."""
    if not claim["experiment"] and claim["kind"] == "measured":
        return "nobody could run them"
    return "real weights" if claim["made_of"] == "real weights" else known.get(claim["id"], "")
