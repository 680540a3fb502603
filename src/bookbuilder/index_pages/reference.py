"""Writes the page "The package", the public names of each paper's package and its race against a peer, and below it a
page for each paper, where Sphinx's autodoc documents them."""

import ast
import json
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


def offers(root: Path, slug: str) -> bool:
    """Tell whether the package of a chapter offers names."""
    return _face(root, slug).is_file()


def page(root: Path, chapters: Sequence[tuple[str, str]]) -> str:
    """Write the public names of each chapter's package (slug and title) as links. MyST."""
    entries = []
    for slug, title in chapters:
        if offers(root, slug):
            links = (f"{{py:obj}}`~derived.papers.{slug}.{name}`" for name in public(_face(root, slug)))
            entries.append(ENTRY.format(slug=slug, title=title, names=" · ".join(links)))
    return "\n".join(entries)


def races(root: Path, chapters: Sequence[tuple[str, str]]) -> str:
    """Write the kept races of the chapters (slug and title) as a table, the one that we lose by most first. MyST."""
    files = {title: root / "results" / slug / "bench.json" for slug, title in chapters}
    found = [(title, json.loads(file.read_text("utf-8"))) for title, file in files.items() if file.is_file()]
    lines = ["| chapter | what is computed | ours against | threads: times as fast |", "|---|---|---|---|"]
    for title, race in sorted(found, key=lambda each: min(row["ratio"] for row in each[1]["measured"])):
        each = "{threads}: {ratio:.2f} [{ratio_low:.2f}, {ratio_high:.2f}]"
        speed = "; ".join(each.format(**row) for row in race["measured"])
        lines.append(f"| {title} | {race['name']}, {race['dtype']} | {race['peer']}. {race['note']} | {speed} |")
    return "\n".join(lines)


def write(root: Path, stage: Path, chapters: Sequence[tuple[str, str]]) -> None:
    """Write a page for each chapter's package (slug and title) into the stage."""
    for slug, title in chapters:
        if offers(root, slug):
            (stage / FOLDER).mkdir(exist_ok=True)
            (stage / FOLDER / f"{slug}.md").write_text(PAGE.format(slug=slug, title=title), "utf-8")


def _face(root: Path, slug: str) -> Path:
    return root / "src/derived/papers" / slug / "__init__.py"


def public(face: Path) -> list[str]:
    """Read the names that a package's ``__init__.py`` offers (``lab.face``)."""
    found = [node for node in ast.walk(ast.parse(face.read_text("utf-8"))) if isinstance(node, ast.keyword)]
    offered = [ast.literal_eval(node.value) for node in found if node.arg == "submod_attrs"]
    return sorted((name for each in offered for names in each.values() for name in names), key=str.lower)
