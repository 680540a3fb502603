"""Lists the open races: who holds each record, since when, and what runs the race again; and what is no race."""

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

    A run that knew no limit of the machine has none; ``beside`` are the ratios at other numbers of threads.
    """
    found = read(root, slug)
    rows = [row for row in found["rows"] if row["headline"]]
    return [
        {"limit": None, "beside": [each for each in found.get("beside", ()) if each["name"] == row["name"]]}
        | row
        | {"holder": HOLDERS.get(row["verdict"], row["peer"]), "since": row.get("since") or found["date"]}
        for row in sorted(rows, key=lambda row: row["verdict"] == "met")
    ]


def reported(root: Path, chapters: Sequence[pages.Chapter]) -> str:
    """Write what is no race, chapter by chapter: the ratio and the reason. MyST."""
    told = [(chapter, [row for row in read(root, chapter.slug)["rows"] if row.get("why")]) for chapter in chapters]
    return pages.raw(pages.html("no_races.html", chapters=[(chapter, rows) for chapter, rows in told if rows]))


def read(root: Path, slug: str) -> dict[str, Any]:
    """Read what the races of a chapter gave; no rows where none was run."""
    path = root / "results" / slug / "bench.json"
    return json.loads(path.read_text("utf-8")) if path.is_file() else {"rows": []}
