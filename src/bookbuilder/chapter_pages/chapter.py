"""Fills in a chapter's page: its card, its errata, and each output as the site shows it."""

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from bookbuilder.chapter_pages import cells, explorer, live_code, numbers, opening, pages
from bookbuilder.chapter_pages.plain import CARD, ERRATA
from bookbuilder.ledger.ledger import entered
from bookbuilder.notebook import reading
from bookbuilder.paths import Repo, UserError

REPORT = 'chapter-ledger"'  # class of the table that a chapter's report() shows in Jupyter
DRAWS = re.compile(r"(show|explorer|report)\([^\n]*\)")  # the whole of a cell that only shows: its call says nothing
SVG = "image/svg+xml"
CHAPTER_LINK = re.compile(r"\[(?P<text>[^]\n]+)\]\(\.\./notebooks/(?P<slug>\w+)\.ipynb\)")
FACTS = ("paper", "prerequisites", "objectives")
ERRATUM = ("said", "where", "right", "who", "checked")
PAPER_FACTS = ("title", "authors", "bibkey")


def fill(
    root: Path, build: Path, slug: str, links: dict[str, str], said: dict[str, str]
) -> tuple[pages.Chapter, NotebookNode]:
    """Fill in one executed notebook; return what other pages need of it, and the notebook.

    ``said`` has what the opening says.
    """
    notebook = nbformat.read(build / f"executed/notebooks/{slug}.ipynb", as_version=4)
    source = nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4)
    finding = json.loads((build / f"findings/{slug}.json").read_text("utf-8"))
    finding["rows"] = entered(Repo(root), finding["rows"])
    _show_parameters(notebook)
    facts = static(notebook, slug) | said
    exercises = sum(len(re.findall(r"^[`:]{3,}\{exercise(?:-start)?\}", c.source, re.M)) for c in notebook.cells)
    sections = tuple(heading for cell in notebook.cells for heading in reading.sections(cell))
    name = f"{Repo(root).number(slug)}. {reading.heading(source)}"
    chapter = pages.Chapter(slug, facts, finding, exercises, links, reading.minutes(source), sections, name)
    filled = _replace(notebook, CARD, pages.card(chapter))
    if filled != 1:
        raise UserError(f"{slug}: the line {CARD} must be in exactly one markdown cell, found {filled}")
    corrections = facts.get("errata", [])
    if _replace(notebook, ERRATA, pages.errata(corrections)) != bool(corrections):
        raise UserError(f"{slug}: the line {ERRATA} must be in one markdown cell if the metadata has errata")
    numbers.fill(slug, notebook, finding["rows"])
    live_code.add(root, slug, notebook)
    cells.tidy(notebook)
    _show_outputs(notebook, finding, build / "extra/explorers")
    opening.arrange(notebook)
    return chapter, notebook


def essay(build: Path, slug: str, chapters: Sequence[str]) -> NotebookNode:
    """Fill in one executed page of the book's own; its links to chapters that this build lacks become plain text."""
    notebook = nbformat.read(build / f"executed/book/{slug}.ipynb", as_version=4)
    _show_parameters(notebook)
    cells.tidy(notebook)
    for cell in notebook.cells:
        cell.source = CHAPTER_LINK.sub(lambda link: link[0] if link["slug"] in chapters else link["text"], cell.source)
    _show_outputs(notebook, {"chapter": slug}, build / "extra/explorers")
    return notebook


def _show_parameters(notebook: NotebookNode) -> None:
    """Show the values of this run in the parameters cell, and drop the cell that papermill injected."""
    tagged = {tag: cell for cell in notebook.cells for tag in cell.metadata.get("tags", [])}
    injected, parameters = tagged.get("injected-parameters"), tagged.get("parameters")
    if injected is not None:
        notebook.cells.remove(injected)
        if parameters is not None:
            parameters.source = injected.source.removeprefix("# Parameters\n").rstrip()


def static(notebook: Mapping[str, Any], slug: str) -> dict[str, Any]:
    """Read the static facts of a chapter's card from the notebook's metadata; UserError names missing ones."""
    facts = notebook["metadata"].get("derived") or {}
    missing = [name for name in FACTS if name not in facts]
    missing += [f"paper.{name}" for name in PAPER_FACTS if not facts.get("paper", {}).get(name)]
    missing += [
        f"errata[{place}].{name}"
        for place, entry in enumerate(facts.get("errata", []))
        for name in ERRATUM
        if not entry.get(name)
    ]
    if missing:
        raise UserError(f'{slug}: the notebook\'s metadata "derived" lacks {", ".join(missing)}')
    return facts


def _replace(notebook: NotebookNode, placeholder: str, fragment: str) -> int:
    """Replace a placeholder line by a fragment; return how many such lines there were."""
    filled = 0
    for cell in notebook.cells:
        lines = [line.rstrip() for line in cell.source.splitlines()]
        if cell.cell_type == "markdown" and placeholder in lines:
            filled += lines.count(placeholder)
            cell.source = "\n".join(fragment if line == placeholder else line for line in lines)
    return filled


def _show_outputs(notebook: NotebookNode, finding: pages.Finding, files: Path) -> None:
    """Convert each output for the site; files that explorers load go to the folder ``files``."""
    names = (f"explorer-{number}" for number in itertools.count(1))
    for position, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code":
            if DRAWS.fullmatch(cell.source):
                cell.metadata["tags"] = [*cell.metadata.get("tags", []), "remove-input"]
            try:
                cell.outputs = [_output(output, cell, finding, names, files) for output in cell.outputs]
            except ValueError as error:
                raise UserError(f"{finding['chapter']}: cell {position}: {error}") from error


def _output(
    output: NotebookNode, cell: NotebookNode, finding: pages.Finding, names: Iterator[str], files: Path
) -> NotebookNode:
    """Convert an output for the site. A figure's alt text and provenance go to its cell, where MyST-NB looks for
    them."""
    data = output.get("data", {})
    if explorer.PLOTLY in data:
        name = next(names)
        file = files / f"{finding['chapter']}-{name}"
        return nbformat.from_dict(explorer.replace(output, "../vendor/plotly.min.js", name, file))
    if REPORT in data.get("text/html", ""):
        output["data"] = {"text/html": pages.chapter_ledger(finding)}
    if SVG in data:
        from bookbuilder.chapter_pages import (
            pictures,  # loads matplotlib, which a book that has not changed does without
        )

        data[SVG] = pictures.light(data[SVG])
    for kind in (SVG, "image/png"):
        about = output.get("metadata", {}).get(kind, {})
        if kind in data and about.get("alt"):
            settings = cell.metadata.setdefault("mystnb", {})
            settings.setdefault("image", {})["alt"] = " ".join(about["alt"].split())
            if about.get("provenance") and settings.get("figure", {}).get("caption"):
                provenance = re.sub(r"([\[\]*_`$\\])", r"\\\1", about["provenance"])
                settings["figure"]["caption"] += f" [{provenance}]{{.provenance}}"
    return output
