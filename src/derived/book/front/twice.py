"""Shows which claims the pencil decides a second time, and how often it agreed with the package at first sight."""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from derived.book import written
from derived.book.page import pages
from derived.book.source.statements import pencilled

FILE = "pencil/first_sight.yml"


class Disagreement(written.Shape):
    """What differed at first sight, and which of the two was wrong, or the test that compared them."""

    date: datetime.date
    fault: Literal["the pencil", "the package", "the test"]
    what: str
    claims: list[str] = Field(default_factory=list)


def table(root: Path, chapters: Sequence[pages.Chapter]) -> str:
    """Write the claims that are decided twice, the rate of agreement, and each disagreement with its cause. MyST."""
    twice: dict[str, list[str]] = {}
    for chapter in chapters:
        named = pencilled(root, chapter.slug)
        if found := [row["id"] for row in pages.headlines(chapter.rows) if row["id"] in named]:
            twice[chapter.slug] = found
    count = sum(map(len, twice.values()))
    told = written.read(root / FILE, list[Disagreement])
    wrong = {claim for one in told if one.fault != "the test" for claim in one.claims}
    agreed = count - sum(claim in wrong for found in twice.values() for claim in found)
    return pages.raw(pages.html("twice.html", twice=twice, count=count, agreed=agreed, told=told) if count else "")
