"""Writes the glossary: words with their meanings and the places that set them out, from book/glossary.yml."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from pydantic import Field, StringConstraints

from bookbuilder import contents, yaml_io


class Term(yaml_io.Shape):
    """An entry of book/glossary.yml; ``at`` names statements as slug#label, and a word of the book itself has none."""

    term: str
    means: str
    at: list[Annotated[str, StringConstraints(pattern="^[^#]+#[^#]+$")]] = Field(default_factory=list)


def glossary(root: Path, slugs: Iterable[str]) -> str:
    """Write the terms of chapters in this build, and of the book, alphabetically, each with the statements that define
    it; raise UserError for an unknown chapter. MyST."""
    path, there, lines = root / "book/glossary.yml", set(slugs), []
    for one in sorted(yaml_io.read(path, list[Term]), key=lambda one: one.term.lower()):
        where = f"{path.name}: {one.term}"
        found = [at.split("#") for at in one.at]
        contents.check(contents.read(root).chapters, [slug for slug, _ in found], where)
        places = [label for slug, label in found if slug in there]
        if places or not found:
            refs = ", ".join(f"{{prf:ref}}`{label}`" for label in places)
            lines += [one.term, f"  {one.means} {refs}".rstrip(), ""]
    return "\n".join(["```{glossary}", *lines, "```"]) if lines else ""
