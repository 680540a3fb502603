"""Checks the form of a chapter, one line per fault.

A notebook whose metadata says ``derived.edition: 3`` is held to all of it. Any other is built as it is.
"""

import itertools
import statistics
from pathlib import Path
from typing import Any

from docutils.nodes import make_id

from bookbuilder.notebook.reading import sections
from bookbuilder.notebook.statements import RESULTS, proved, statements, tests

SECTIONS = ("In short", "The question", "The paper's claims", "Take-away")
MEDIAN_LINES, MOST_LINES = 5, 25


def is_strict(notebook: dict[str, Any]) -> bool:
    """Tell whether a notebook declares the shape of the book's chapters: an opening, a summary, and one story."""
    return notebook["metadata"].get("derived", {}).get("edition", 1) >= 3


def faults(root: Path, slug: str, notebook: dict[str, Any]) -> list[str]:
    """One line per fault of a strict chapter's source notebook."""
    if not is_strict(notebook):
        return []
    found = [*_sections(notebook), *_opening(notebook), *_cells(notebook), *_figures(notebook)]
    return [f"{slug}: {fault}" for fault in found + _statements(root, slug, notebook)]


def _sections(notebook: dict[str, Any]) -> list[str]:
    """Check sections and their order; a heading may be longer, such as "Derivation: the layer", and others may come
    between."""
    there = [heading for cell in notebook["cells"] for heading in sections(cell)]
    places = [next((at for at, words in enumerate(there) if words.startswith(name)), None) for name in SECTIONS]
    missing = [name for name, place in zip(SECTIONS, places, strict=True) if place is None]
    if missing:
        return [f"it lacks the section{'s' if len(missing) > 1 else ''} {', '.join(missing)}"]
    return [] if places == sorted(places) else [f"its sections are not in the order {', '.join(SECTIONS)}"]


def _opening(notebook: dict[str, Any]) -> list[str]:
    """Check that a cell before the first section shows the opening's picture."""
    before = itertools.takewhile(lambda cell: not sections(cell), notebook["cells"])
    shown = [cell for cell in before if "opening" in cell["metadata"].get("tags", [])]
    return [] if len(shown) == 1 else [f"{len(shown)} cells before its first section are tagged opening; one is wanted"]


def _cells(notebook: dict[str, Any]) -> list[str]:
    sizes = {
        place: len("".join(cell["source"]).splitlines())
        for place, cell in enumerate(notebook["cells"], start=1)
        if cell["cell_type"] == "code"
    }
    found = [
        f"cell {at} has {size} lines of code, over {MOST_LINES}" for at, size in sizes.items() if size > MOST_LINES
    ]
    median = statistics.median(sizes.values()) if sizes else 0
    if median > MEDIAN_LINES:
        found.append(f"the median cell has {median:g} lines of code, over {MEDIAN_LINES}")
    return found


def _figures(notebook: dict[str, Any]) -> list[str]:
    """Check that the name of each figure is its address on the page, where Sphinx writes small letters and hyphens."""
    named = [cell["metadata"].get("mystnb", {}).get("figure", {}).get("name", "") for cell in notebook["cells"]]
    return [
        f"figure {name} has another address on the page; call it {made}"
        for name in named
        if (made := make_id(name)) != name
    ]


def _statements(root: Path, slug: str, notebook: dict[str, Any]) -> list[str]:
    tested, there = tests(root, slug), proved(notebook["cells"])
    found = []
    for each in statements(notebook):
        lacks = [] if each.label else ["label"]
        lacks += [] if each.whose else ["badge (:class: paper, retold, code, earlier or ours)"]
        if each.kind in RESULTS:
            lacks += [] if each.label in there else ["proof"]
            lacks += [] if each.check is not None else ["check cell"]
            lacks += [] if each.label in tested else ["test"]
        if lacks:
            found.append(f"{each.name} lacks its {', '.join(lacks)}")
    return found
