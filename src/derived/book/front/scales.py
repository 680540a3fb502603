"""Counts the claims by scale and by what they are made of: the paper's size, ours or a toy; synthetic or real."""

from collections import Counter
from collections.abc import Sequence

from derived.book.page import pages
from derived.book.page.pages import GROUPS, SCALES, Chapter, Row

COLUMNS = (*SCALES.values(), "not run", "synthetic", "real data", "real weights")


def table(chapters: Sequence[Chapter]) -> str:
    """Write how many claims of each group are exact or of which scale, and how many that ran are real. MyST."""
    rows = [row for chapter in chapters for row in chapter.rows if row["headline"]]
    parts = {name: [row for row in rows if pages.group(row) == name] for name in GROUPS}
    groups = {name: counted(part) for name, part in (*parts.items(), ("all", rows)) if part}
    return pages.raw(pages.html("scales.html", groups=groups, columns=COLUMNS))


def counted(rows: Sequence[Row]) -> Counter[str]:
    """Count claims by the columns of the table; one that was not run has no scale and is made of nothing."""
    ran = [row for row in rows if row["verdict"] != "not run"]
    named = [SCALES[row["scale"] or "exact"] for row in ran] + [row["made_of"] for row in ran]
    return Counter([*named, *("not run" for _ in range(len(rows) - len(ran)))])
