"""Checks the form of a chapter of the second edition, one line per fault.

A notebook whose metadata says ``derived.edition: 2`` is held to all of it. Any other is built as it is.
"""

import itertools
import re
import statistics
from pathlib import Path
from typing import Any

from docutils.nodes import make_id

from derived.book.source import evidence, measured
from derived.book.source.reading import sections
from derived.book.source.statements import RESULTS, proved, statements, tests

SECTIONS = ("In ten minutes", "The question", "Setup", "Derivation", "Mechanism", "Experiments")
SECTIONS += ("What breaks it", "Claims", "Exercises", "Take-away")
SECOND_DRAFT = ("In short", "The question", "The paper's claims", "Take-away")  # sections of edition 3
BOXES = 3  # results in "In ten minutes"
FIRST = 8  # claims in plain words
MEDIAN_LINES, MOST_LINES = 5, 25


def is_strict(notebook: dict[str, Any]) -> bool:
    """Tell whether a notebook declares the second edition."""
    return notebook["metadata"].get("derived", {}).get("edition", 1) >= 2


def is_second_draft(notebook: dict[str, Any]) -> bool:
    """Tell whether a notebook has the shape of the second draft: an opening, a summary, and one story."""
    return notebook["metadata"].get("derived", {}).get("edition", 1) >= 3


def faults(root: Path, slug: str, notebook: dict[str, Any], rows: list[dict[str, Any]] | None = None) -> list[str]:
    """One line per fault of a strict chapter's source notebook and rows of the ledger, of the source alone before it
    ran."""
    if not is_strict(notebook):
        return []
    found = [*_sections(notebook), *_facts(notebook), *_cells(notebook), *_figures(notebook)]
    found += _statements(root, slug, notebook)
    if is_second_draft(notebook):
        found += _opening(notebook)
    else:
        found += _boxes(notebook)
        found += evidence.known(notebook, measured.bare(root, slug)) if rows is None else _first_claims(rows)
    return [f"{slug}: {fault}" for fault in found]


def check(root: Path, slug: str, notebook: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """One line per fault of a strict chapter, and per claim that rests on nothing."""
    resting = evidence.faults(notebook, rows) if is_strict(notebook) and not is_second_draft(notebook) else []
    return faults(root, slug, notebook, rows) + [f"{slug}: {fault}" for fault in resting]


def _sections(notebook: dict[str, Any]) -> list[str]:
    """Check sections and their order; a heading may be longer, such as "Derivation: the layer", and others may come
    between."""
    there = [heading for cell in notebook["cells"] for heading in sections(cell)]
    wanted = SECOND_DRAFT if is_second_draft(notebook) else SECTIONS
    places = [next((at for at, words in enumerate(there) if words.startswith(name)), None) for name in wanted]
    missing = [name for name, place in zip(wanted, places, strict=True) if place is None]
    if missing:
        return [f"it lacks the section{'s' if len(missing) > 1 else ''} {', '.join(missing)}"]
    return [] if places == sorted(places) else [f"its sections are not in the order {', '.join(wanted)}"]


def _opening(notebook: dict[str, Any]) -> list[str]:
    """Check that a cell before the first section shows the opening's picture."""
    before = itertools.takewhile(lambda cell: not sections(cell), notebook["cells"])
    shown = [cell for cell in before if "opening" in cell["metadata"].get("tags", [])]
    return [] if len(shown) == 1 else [f"{len(shown)} cells before its first section are tagged opening; one is wanted"]


def _boxes(notebook: dict[str, Any]) -> list[str]:
    text = "\n\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    short = re.search(r"^## +In ten minutes *$(.*?)(?=^## |\Z)", text, re.S | re.M)
    boxes = len(re.findall(r"^[`:]{3,}\{admonition\}", short[1], re.M)) if short else 1
    return [] if 1 <= boxes <= BOXES else [f'"In ten minutes" has {boxes} boxed results; one to three are wanted']


def _facts(notebook: dict[str, Any]) -> list[str]:
    known = notebook["metadata"]["derived"]
    return ["its minutes are computed: take minutes_to_read from its metadata"] if "minutes_to_read" in known else []


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


def _first_claims(rows: list[dict[str, Any]]) -> list[str]:
    first = [row for row in rows if row["headline"] and row["plain"]]
    found = [
        f"claim {row['id']} has a value and no unit" for row in first if row["value"] is not None and not row["unit"]
    ]
    if not 1 <= len(first) <= FIRST:
        found.append(f"{len(first)} claims are told in plain words; one to {FIRST} are wanted")
    return found
