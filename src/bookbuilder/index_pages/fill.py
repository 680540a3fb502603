"""Fill the placeholders of the book's pages from the data of all chapters."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat

from bookbuilder.chapter_pages import pages
from bookbuilder.index_pages import glossary, reference, welcome

SHARED = "shared.json"  # in the stage: what a shared link to a page shows


def fill(
    root: Path, build: Path, stage: Path, chapters: list[pages.Chapter], statements: Sequence[dict[str, Any]]
) -> None:
    """Put fragments in place of their lines in the pages of the stage.

    ``statements`` are the numbered ones of all chapters, for their index.
    """
    executed = {c.slug: nbformat.read(build / f"executed/notebooks/{c.slug}.ipynb", as_version=4) for c in chapters}
    cards = welcome.cards(root, chapters, executed)
    (stage / SHARED).write_text(json.dumps(welcome.shared(cards)), "utf-8")
    named = [(chapter.slug, chapter.name) for chapter in chapters]
    reference.write(root, stage, named)
    fragments = {
        "<!-- first -->": welcome.first(root, cards, executed),
        "<!-- cards -->": welcome.shelf(cards),
        "<!-- counts -->": welcome.counts(cards),
        "<!-- glossary -->": glossary.glossary(root, executed),
        "<!-- ledger -->": pages.ledger(chapters),
        "<!-- theorems -->": pages.theorems(chapters, statements),
        "<!-- status -->": pages.status(chapters),
        "<!-- decks -->": pages.raw(pages.html("decks.html", chapters=chapters)),
        "<!-- package -->": reference.page(root, named),
        "<!-- races -->": reference.races(root, named),
    }
    for path in (stage / "book").glob("*.md"):
        lines = path.read_text("utf-8").splitlines()
        path.write_text("\n".join(fragments.get(line, line) for line in lines) + "\n", "utf-8")
