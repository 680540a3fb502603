"""Writes the page "The package": the public names of each paper's package, documented by Sphinx's autodoc."""

import ast
from collections.abc import Sequence
from pathlib import Path

ENTRY = """## {title}

[The chapter](../notebooks/{slug}.ipynb). `from derived.papers.{slug} import …`

{names}

```{{eval-rst}}
.. automodule:: derived.papers.{slug}
   :members:
   :member-order: alphabetical
```
"""


def page(root: Path, chapters: Sequence[tuple[str, str]]) -> str:
    """Write the public names of each chapter's package (slug and title): first as links, then with their docstrings.
    MyST."""
    entries = []
    for slug, title in chapters:
        face = root / "src/derived/papers" / slug / "__init__.py"
        if face.is_file():
            links = (f"{{py:obj}}`~derived.papers.{slug}.{name}`" for name in public(face))
            entries.append(ENTRY.format(slug=slug, title=title, names=" · ".join(links)))
    return "\n".join(entries)


def public(face: Path) -> list[str]:
    """Read the names that a package's ``__init__.py`` offers (``lab.face``)."""
    found = [node for node in ast.walk(ast.parse(face.read_text("utf-8"))) if isinstance(node, ast.keyword)]
    offered = [ast.literal_eval(node.value) for node in found if node.arg == "submod_attrs"]
    return sorted((name for each in offered for names in each.values() for name in names), key=str.lower)
