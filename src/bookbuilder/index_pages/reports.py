"""Write the replication reports: ``book/reports/<slug>.md``, with the results that the build has."""

from pathlib import Path

from bookbuilder.chapter_pages import numbers, pages

FOLDER = "book/reports"
RESULTS = "<!-- results -->"  # where the table of the paper's claims goes


def source(root: Path, slug: str) -> Path:
    """Return the path of a chapter's report."""
    return root / FOLDER / f"{slug}.md"


def write(root: Path, target: Path, chapter: pages.Chapter) -> None:
    """Write the page of a chapter's report, where it has one: its numbers and its table of claims filled in."""
    file = source(root, chapter.slug)
    if not file.is_file():
        return
    table = pages.raw(pages.chapter_ledger(chapter.finding))
    text = numbers.filled(chapter.slug, file.read_text("utf-8"), chapter.rows)
    (target / "reports").mkdir(exist_ok=True)
    (target / "reports" / file.name).write_text(text.replace(RESULTS, table), "utf-8")
