"""Reads book/chapters.yml: the chapters in their order with what their cards say, and the table of contents."""

from collections.abc import Collection, Iterable
from pathlib import Path

from pydantic import Field

from bookbuilder import yaml_io
from bookbuilder.paths import UserError, write_whole

FILE = "book/chapters.yml"
FIRST = "book/intro"  # the page before all parts


class Words(yaml_io.Shape):
    """What the opening of a chapter says."""

    name: str = ""  # in the sidebar
    read: str = ""  # what of the paper could be read
    surprise: str = ""  # the finding in one sentence, without maths, since a shared link shows it too
    says: str = ""  # the paper says
    found: str = ""  # we found, beginning with what could be judged
    means: str = ""  # what it means for a reader


ENTRY = {  # of a new chapter, to be written by its author
    "read": "What of the paper could be read.",
    "surprise": "The finding in one sentence.",
    "says": "What the paper says.",
    "found": "What was found, beginning with what could be judged.",
    "means": "If you do X, do Y.",
}


class Part(yaml_io.Shape):
    """A part of the table of contents: pages of book/ by name, some with pages below; without any, the chapters."""

    caption: str
    pages: list[str | dict[str, list[str]]] = Field(default_factory=list)

    def tree(self) -> dict[str, list[str]]:
        """The pages of the part, each with those below it."""
        return {
            page: below
            for entry in self.pages
            for page, below in (entry.items() if isinstance(entry, dict) else [(entry, [])])
        }


class Contents(yaml_io.Shape):
    """The file book/chapters.yml; the order of ``chapters`` is that of the book."""

    chapters: dict[str, Words]
    parts: list[Part]
    sphere: str = ""


def read(root: Path) -> Contents:
    """Read book/chapters.yml; raise UserError, one line, for a shape, a name or a part that cannot be."""
    if not (root / FILE).is_file():
        raise UserError(f"{FILE} is not there")
    found = yaml_io.read(root / FILE, Contents)
    check(found.chapters, [found.sphere] if found.sphere else [], FILE)
    trees = [part.tree() for part in found.parts]
    pages = [page for tree in trees for name, below in tree.items() for page in (name, *below)]
    repeated = [page for page in pages if pages.count(page) > 1]
    if repeated:
        raise UserError(f"{FILE}: it names the page {repeated[0]} more than once")
    if sum(not part.pages for part in found.parts) != 1:
        raise UserError(f"{FILE}: exactly one part has no `pages`; there the chapters stand")
    return found


def check(chapters: Collection[str], slugs: Iterable[str], where: str) -> None:
    """Raise UserError for a slug that is no chapter of the book; the chapter may be absent from this build."""
    unknown = [slug for slug in slugs if slug not in chapters]
    if unknown:
        raise UserError(f"{where}: the book has no chapter {unknown[0]}; it has {', '.join(chapters)}")


def add(root: Path, slug: str) -> None:
    """Enter a chapter last; the rest of the file stays as it is written."""
    if slug in read(root).chapters:
        raise UserError(f"{FILE}: it names {slug} already; remove the entry, or take another name")
    before, parts, after = (root / FILE).read_text("utf-8").partition("\nparts:")
    if not parts:
        raise UserError(f"{FILE}: write `parts:` on a separate line below the chapters")
    entry = "\n".join([f"  {slug}:", *(f"    {name}: {text}" for name, text in ENTRY.items())])
    write_whole(root / FILE, f"{before.rstrip()}\n{entry}\n{parts}{after}")
