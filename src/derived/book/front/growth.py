"""Tells how the book grows, what a chapter adds to a build in seconds and in bytes, and where a build's time goes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from derived.book.page import pages
from derived.book.page.pages import Chapter

AIM = 30.0  # seconds of a core that a chapter should take at most
TIMES = '<div id="times"></div>'  # on the status page: its own build is timed before it is told


def sentence(root: Path, build: Path, chapters: Sequence[Chapter]) -> str:
    """Write the median over chapters of the seconds of a run and of the megabytes of executed notebook and records."""
    seconds = [chapter.finding["seconds"] for chapter in chapters]
    notebooks = [(build / f"executed/notebooks/{chapter.slug}.ipynb").stat().st_size for chapter in chapters]
    records = [
        sum(path.stat().st_size for path in (root / "results" / chapter.slug).rglob("*") if path.is_file())
        for chapter in chapters
    ]
    middle = [
        f"{median(each) / 1e6:.2g} MB ({min(each) / 1e6:.2g} to {max(each) / 1e6:.2g})" for each in (notebooks, records)
    ]
    return (
        f"**How does the book grow?** At the median a chapter adds {median(seconds):.0f} s to a build from nothing "
        f"({min(seconds):.0f} to {max(seconds):.0f}), {middle[0]} of executed notebook and "
        f"{middle[1]} of records. A build that changes one chapter runs that one alone."
    )


def told(page: str, chapters: Sequence[Chapter], parts: Mapping[str, float]) -> str:
    """The status page with the seconds that each part of its build took; a chapter counts as it last ran, and one that
    took longer than ``AIM`` says where."""
    rows = [(chapter.name, chapter.finding["seconds"], *_where(chapter.finding)) for chapter in chapters]
    return page.replace(TIMES, pages.html("times.html", rows=[*rows, *((part, parts[part], "", "") for part in parts)]))


def _where(finding: Mapping[str, Any]) -> tuple[str, str]:
    """The three sections of a long run that took the most seconds, and its busiest functions."""
    if finding["seconds"] <= AIM:
        return "", ""
    sections, functions = (
        sorted(finding.get(part, {}).items(), key=lambda each: -each[1]) for part in ("sections", "functions")
    )
    return (
        "; ".join(f"{name}: {seconds:.1f}" for name, seconds in sections[:3]),
        "; ".join(f"{name} {share:.0%}" for name, share in functions),
    )
