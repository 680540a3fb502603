"""The page "The package": what each paper's package offers, from its docstrings, by Sphinx's own autodoc."""

from collections.abc import Sequence
from pathlib import Path

ENTRY = """## {title}

[The chapter](../notebooks/{slug}.ipynb). `from derived.papers.{slug} import …`

```{{eval-rst}}
.. automodule:: derived.papers.{slug}
   :members:
   :member-order: alphabetical
```
"""


def page(root: Path, chapters: Sequence[tuple[str, str]]) -> str:
    """The public names of each chapter's package, given its slug and title, as MyST; a chapter may have no package."""
    papers = root / "src/derived/papers"
    there = [(slug, title) for slug, title in chapters if (papers / slug / "__init__.py").is_file()]
    return "\n".join(ENTRY.format(slug=slug, title=title) for slug, title in there)
