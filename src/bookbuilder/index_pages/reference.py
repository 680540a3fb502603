"""Writes the page "The package", the public names of each paper's package, and below it a page for each paper, where
Sphinx's autodoc documents them."""

import ast
from collections.abc import Sequence
from pathlib import Path

FOLDER = "packages"  # of the stage and of the site
ENTRY = """## {title}

[What each name does](../packages/{slug}.md) · [the chapter](../notebooks/{slug}.ipynb)

{names}
"""
PAGE = """# The package: {title}

`from derived.papers.{slug} import …`, for [this chapter](../notebooks/{slug}.ipynb).

```{{eval-rst}}
.. automodule:: derived.papers.{slug}
   :members:
   :member-order: alphabetical
```
"""


def offered(root: Path, slugs: Sequence[str]) -> list[str]:
    """List the chapters whose package offers names."""
    return [slug for slug in slugs if _face(root, slug).is_file()]


def page(root: Path, chapters: Sequence[tuple[str, str]]) -> str:
    """Write the public names of each chapter's package (slug and title) as links. MyST."""
    entries = []
    for slug, title in chapters:
        if offered(root, [slug]):
            links = (f"{{py:obj}}`~derived.papers.{slug}.{name}`" for name in public(_face(root, slug)))
            entries.append(ENTRY.format(slug=slug, title=title, names=" · ".join(links)))
    return "\n".join(entries)


def write(root: Path, stage: Path, chapters: Sequence[tuple[str, str]]) -> None:
    """Write a page for each chapter's package (slug and title) into the stage."""
    for slug, title in chapters:
        if offered(root, [slug]):
            (stage / FOLDER).mkdir(exist_ok=True)
            (stage / FOLDER / f"{slug}.md").write_text(PAGE.format(slug=slug, title=title), "utf-8")


def _face(root: Path, slug: str) -> Path:
    return root / "src/derived/papers" / slug / "__init__.py"


def public(face: Path) -> list[str]:
    """Read the names that a package's ``__init__.py`` offers (``lab.face``)."""
    found = [node for node in ast.walk(ast.parse(face.read_text("utf-8"))) if isinstance(node, ast.keyword)]
    offered = [ast.literal_eval(node.value) for node in found if node.arg == "submod_attrs"]
    return sorted((name for each in offered for names in each.values() for name in names), key=str.lower)
