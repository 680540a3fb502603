"""Lists the open races: who holds each record, since when, and what runs the race again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from derived.book.page import pages

HOLDERS = {"met": "this book", "undecided": "nobody yet"}  # a race that was missed is its peer's


def table(root: Path, chapters: Sequence[pages.Chapter]) -> str:
    """Write the headline races of all chapters, those that anybody can still win first. MyST."""
    raced = [(chapter, held(root, chapter.slug)) for chapter in chapters]
    return pages.raw(pages.html("races.html", chapters=[(chapter, rows) for chapter, rows in raced if rows]))


def held(root: Path, slug: str) -> list[dict[str, Any]]:
    """Read the headline races of a chapter, each with its holder and the day since when; none where none was run.

    A run that knew no limit of the machine has none.
    """
    path = root / "results" / slug / "bench.json"
    if not path.is_file():
        return []
    found = json.loads(path.read_text("utf-8"))
    rows = [row for row in found["rows"] if row["headline"]]
    return [
        {"limit": None}
        | row
        | {"holder": HOLDERS.get(row["verdict"], row["peer"]), "since": row.get("since") or found["date"]}
        for row in sorted(rows, key=lambda row: row["verdict"] == "met")
    ]
