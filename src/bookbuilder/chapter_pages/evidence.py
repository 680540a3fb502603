"""Writes the evidence of a chapter's claims: its page, and links to it from checks, runs and figures.

Links go both ways and come from the same data.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from bookbuilder.chapter_pages import pages
from bookbuilder.notebook import evidence, notebook_claims, statements
from bookbuilder.notebook.evidence import Cells, Evidence, explored, seen


def write(
    root: Path, target: Path, chapter: pages.Chapter, notebook: NotebookNode, address: str
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Write the page of a chapter's evidence, and the staged notebook with links to it.

    Returns the badges and feet of the chapter's statements with the ids of its claims, and the statements for the
    index.
    """
    slug = chapter.slug
    source = nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4)
    whole = {"cells": notebook["cells"], "metadata": source["metadata"]}
    rows, tested = pages.headlines(chapter.rows), statements.tests(root, slug)
    found = evidence.gather(root, slug, whole, pages.entries_of(chapter.rows), chapter.finding["records"])
    resting = evidence.resting(whole, rows)
    proved, said, index = statements.proved(notebook["cells"]), {}, []
    for each in statements.statements(notebook):
        claims = [row for row in rows if row["id"] in resting.get(each.label, [])]
        said[each.label] = pages.statement(
            each.whose, each.label, each.label in proved, each.check is not None, tested, claims, slug
        )
        index.append({"slug": slug, "claims": claims, **asdict(each)})
    mark_cells(slug, notebook["cells"], found)
    nbformat.write(notebook, target / f"notebooks/{slug}.ipynb")
    entry = evidence.bibtex((root / "book/references.bib").read_text("utf-8"), chapter.facts["paper"]["bibkey"])
    named = {test for each in found for test in each.tests}.union(*(tested.get(each, []) for each in said))
    shown = statements.texts(root, slug, named)
    text = pages.evidence(chapter, found, proved, shown, entry, address)
    (target / f"claims/{slug}.md").write_text(text, "utf-8")
    return {"statements": said, "claims": [row["id"] for row in rows]}, index


def of_experiment(found: Sequence[Evidence]) -> dict[str, list[str]]:
    """Group the claims by the experiment that decides them."""
    claims: dict[str, list[str]] = {}
    for each in found:
        if each.row["experiment"]:
            claims.setdefault(each.row["experiment"], []).append(each.row["id"])
    return claims


def mark_cells(slug: str, cells: Cells, found: Sequence[Evidence]) -> None:
    """Put anchors, feet and captions into the metadata of cells: links from checks, runs, figures and explorers to
    the statements and claims that they support."""
    claims = of_experiment(found)
    shown = {experiment: where for experiment, where in seen(cells).items() if experiment in claims}
    checked: dict[int, list[str]] = {}
    for each in statements.statements({"cells": cells}):
        if each.check is not None:
            checked.setdefault(each.check, []).append(each.label)
    drawn_from, decides = explored(cells), notebook_claims.claims_of(cells)
    for place, cell in enumerate(cells):
        runs = {name: claims[name] for name, where in shown.items() if where.run == place}
        read = {name: claims[name] for name in drawn_from.get(place, []) if name in claims}
        if runs or read or place in checked or place in decides:
            labels = checked.get(place, [])
            cell["metadata"]["derived_anchors"] = [f"check-{label}" for label in labels] + [
                f"run-{name}" for name in runs
            ]
            cell["metadata"]["derived_foot"] = pages.cell_foot(slug, labels, decides.get(place, []), runs | read)
        settings = cell["metadata"].get("mystnb", {}).get("figure", {})
        drawn = [
            claim for name, where in shown.items() if settings.get("name") in where.figures for claim in claims[name]
        ]
        if drawn and settings.get("caption"):
            settings["caption"] += f" [Evidence of {', '.join(drawn)}]{{.evidence-of}}"


# The built site -------------------------------------------------------------------------------------------------------
