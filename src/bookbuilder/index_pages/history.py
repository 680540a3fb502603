"""Writes the changes of criteria for the page of history."""

from collections.abc import Sequence
from typing import Any

from bookbuilder.chapter_pages import pages

Row = dict[str, Any]


def history(chapters: Sequence[pages.Chapter]) -> str:
    """Write the changes of criteria made after rows existed, newest first, grouping claims that changed together."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for chapter in chapters:
        for row in chapter.rows:
            for change in row["changed"] if row["headline"] else ():
                key = (change["date"], chapter.slug, chapter.name, change["what"], change["why"])
                groups.setdefault(key, []).append(row)
    names = ("date", "slug", "name", "what", "why")
    changes = [dict(zip(names, key, strict=True), rows=rows) for key, rows in groups.items()]
    changes.sort(key=lambda change: change["date"], reverse=True)
    claims = {row["id"] for rows in groups.values() for row in rows}
    return pages.raw(pages.html("history.html", changes=changes, claims=len(claims)))
