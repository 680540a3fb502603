"""The page "One block": the changes as differences of sources, and the table of what composes. It imports no torch.

The table is computed by ``derived.book.block.compose`` in a process of its own, and kept in the build's folder under
the hash of all files that this imports.
"""

import ast
import contextlib
import difflib
import json
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from derived.book.house import UserError, write_whole
from derived.book.page import pages
from derived.lab.sources import PACKAGE_ROOT, file_hash, imported_files

COMPOSE = "derived.book.block.compose"
HERE = Path(__file__).parent
KEPT = "one_block.json"


def fragments(build: Path, headings: dict[str, tuple[int, str]]) -> dict[str, str]:
    """What stands for the placeholders of the page; ``headings`` are number and title of the chapters by slug."""
    table = compositions(build)
    plain, changes = _classes(HERE / "plain.py")["Plain"], _changes()
    properties = {each.name: ast.get_docstring(each) for each in _functions(HERE / "properties.py")}
    alone = {made["slugs"][0]: made for made in table["alone"]}
    parts = []
    for slug, change in changes.items():
        number, title = headings.get(slug, (0, ""))
        name = f"[{number}. {title}](../notebooks/{slug}.ipynb)" if title else slug
        gap, allowed = alone[slug]["gaps"][slug]
        difference = "\n".join(diff(plain, change))
        found = f"It is off by {_rounded(gap)}, where {_rounded(allowed)} is allowed." if gap else "It is so exactly."
        checked = f"**Checked:** {properties[slug]} {found}"
        parts.append(f"### {name}\n\n{ast.get_docstring(change)}\n\n```diff\n{difference}\n```\n\n{checked}\n")
    return {
        "<!-- plain block -->": f"```python\n{_source(plain)}\n```",
        "<!-- changes -->": "\n".join(parts),
        "<!-- compositions -->": pages.raw(pages.html("compositions.html", **_values(table, changes, headings))),
    }


def _rounded(value: float) -> str:
    return f'<span class="nobreak">{pages.number(float(f"{value:.1e}"))}</span>'


def _values(table: dict[str, Any], changes: Sequence[str], headings: dict[str, tuple[int, str]]) -> dict[str, Any]:
    pairs = {frozenset(made["slugs"]): made for made in table["pairs"]}
    places = {slug: place for place, slug in enumerate(changes, start=1)}
    names = {slug: headings[slug][1] if slug in headings else slug for slug in changes}
    alone = {made["slugs"][0]: made for made in table["alone"]}
    return {"places": places, "names": names, "pairs": pairs, "alone": alone, "largest": table["largest"]}


def compositions(build: Path) -> dict[str, Any]:
    """The table of ``compose``, made anew where a file that it imports has changed; UserError if it cannot be."""
    key, kept = file_hash(imported_files(f"import {COMPOSE}"), PACKAGE_ROOT), build / KEPT
    with contextlib.suppress(OSError, ValueError, TypeError, KeyError):  # what cannot be read is made anew
        found = json.loads(kept.read_text("utf-8"))
        if found["key"] == key:
            return found["table"]
    done = subprocess.run([sys.executable, "-P", "-m", COMPOSE], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"one block: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    table = json.loads(done.stdout)
    write_whole(kept, json.dumps({"key": key, "table": table}))
    return table


def diff(plain: ast.ClassDef, change: ast.ClassDef) -> list[str]:
    """The methods of a change beside those of the plain block, line by line, without what both say in words."""
    theirs = [each for each in change.body if isinstance(each, ast.FunctionDef)]
    before = {each.name: _source(each) for each in plain.body if isinstance(each, ast.FunctionDef)}
    settings = [
        ast.unparse(each) for each in change.body if isinstance(each, ast.Assign) and each.targets[0].id != "slug"
    ]
    old = "\n\n".join(before[each.name] for each in theirs)
    new = "\n\n".join([*settings, *(_source(each) for each in theirs)])
    return list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=len(old), lineterm=""))[3:]


def _source(node: ast.ClassDef | ast.FunctionDef) -> str:
    """What runs of a class or a method: without docstrings, comments and annotations."""
    bare = ast.parse(ast.unparse(node))
    for each in ast.walk(bare):
        if isinstance(each, ast.arg):
            each.annotation = None
        if isinstance(each, ast.ClassDef | ast.FunctionDef):
            each.returns = None
            if ast.get_docstring(each) is not None:
                each.body = each.body[1:] or [ast.Pass()]
    return textwrap.dedent(ast.unparse(bare))


def _changes() -> dict[str, ast.ClassDef]:
    """The changes by their slugs, in the order of the book."""
    found = {}
    for change in _classes(HERE / "changes.py").values():
        settings = {each.targets[0].id: each.value for each in change.body if isinstance(each, ast.Assign)}
        found[ast.literal_eval(settings["slug"])] = change
    return found


def _classes(path: Path) -> dict[str, ast.ClassDef]:
    return {each.name: each for each in ast.parse(path.read_text("utf-8")).body if isinstance(each, ast.ClassDef)}


def _functions(path: Path) -> list[ast.FunctionDef]:
    return [each for each in ast.parse(path.read_text("utf-8")).body if isinstance(each, ast.FunctionDef)]
