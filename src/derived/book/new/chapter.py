"""Starts a chapter from the folder ``template/``: a small chapter that runs, whose name is ``new_paper``."""

import keyword
import re
from pathlib import Path

from derived.book.house import House, UserError, write_whole

SLUG, TITLE = "new_paper", "New paper"  # in the names and texts of the template


def new(house: House, slug: str) -> list[Path]:
    """Write the files of a new chapter and enter it last in the table of contents; refuse a name in use."""
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", slug) or keyword.iskeyword(slug):
        raise UserError(
            f"{slug!r} is no slug: use small letters, digits and single underscores, like ols_attention, "
            "and no word of Python"
        )
    title, template = slug.replace("_", " ").capitalize(), house.root / "template"
    files = {
        house.root / str(path.relative_to(template)).replace(SLUG, slug): path.read_text("utf-8")
        for path in sorted(template.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
    existing = [path.relative_to(house.root) for path in files if path.exists()]
    if existing:
        raise UserError(f"there is a chapter {slug} already: {existing[0]}; remove it, or take another name")
    toc = house.root / "book" / "_toc.yml"
    lines = toc.read_text("utf-8").splitlines()
    last = max(number for number, line in enumerate(lines) if "notebooks/" in line)
    lines.insert(last + 1, lines[last].split("notebooks/")[0] + f"notebooks/{slug}")
    for path, text in files.items():
        write_whole(path, text.replace(SLUG, slug).replace(TITLE, title))
    write_whole(toc, "\n".join(lines) + "\n")
    return [path.relative_to(house.root) for path in [*files, toc]]
