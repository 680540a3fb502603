"""Lays out how a chapter opens: title, surprise, picture, three lines; its set-up is folded under them.

Only the staged copy is laid out so. Cells have been executed in the order of the notebook, and what people download
keeps that order.
"""

import nbformat
from nbformat import NotebookNode

from bookbuilder.chapter_pages import pages
from bookbuilder.notebook.reading import cut, sections


def arrange(notebook: NotebookNode) -> None:
    """Lay out the opening of a staged chapter, unchanged without a cell that is tagged as its picture."""
    cells = [piece for cell in notebook.cells for piece in _pieces(cell)]
    start = next((place for place, cell in enumerate(cells) if sections(cell)), len(cells))
    if any("opening" in cell.metadata.get("tags", []) for cell in cells[:start]):
        notebook.cells = [*_opened(cells[:start]), *cells[start:]]


def _opened(cells: list[NotebookNode]) -> list[NotebookNode]:
    """The cells before the summary: title and surprise, the picture, three lines, and the set-up in a fold."""
    at = next(place for place, cell in enumerate(cells) if pages.PICTURE in cell.source)
    above, below = cells[at].source.split(pages.PICTURE)
    shown = [cell for cell in cells if "opening" in cell.metadata.get("tags", [])]
    rest = [cell for cell in cells if cell not in shown and cell is not cells[at]]
    folded = [cell for cell in rest if _is_setup(cell)]
    others = [cell for cell in rest if cell not in folded]
    for cell in shown:
        cell.metadata["tags"] = [*cell.metadata["tags"], "remove-input"]
    return [
        *_texts(cells[at], [above]),
        *shown,
        nbformat.v4.new_markdown_cell(below.strip()),
        *others,
        *_folded(folded),
    ]


def _pieces(cell: NotebookNode) -> list[NotebookNode]:
    """Cut a cell of text before each heading of the second level; the first piece keeps the cell's id."""
    if len(found := cut(cell)) == 1:
        return [cell]
    return _texts(cell, [piece for piece in found if piece.strip()])


def _texts(cell: NotebookNode, texts: list[str]) -> list[NotebookNode]:
    cell.source = texts[0].rstrip()
    return [cell, *[nbformat.v4.new_markdown_cell(text.strip(), metadata=cell.metadata) for text in texts[1:]]]


def _is_setup(cell: NotebookNode) -> bool:
    tags = cell.metadata.get("tags", [])
    return cell.cell_type == "code" and "remove-cell" not in tags and not any(_kinds(cell))


def _kinds(cell: NotebookNode) -> list[str]:
    """List the kinds of output that a code cell shows, ignoring numbers glued for the text."""
    outputs = cell.get("outputs", [])
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    shown = [kind for kind in kinds if not kind.startswith("application/papermill")]
    return shown + ["text" for output in outputs if output.output_type == "stream"]


def _folded(setup: list[NotebookNode]) -> list[NotebookNode]:
    if not setup:
        return []
    for cell in setup:
        cell.metadata["tags"] = [tag for tag in cell.metadata.get("tags", []) if tag not in ("hide-input", "hide-cell")]
    words = f"Set-up: {len(setup)} cell{'s' if len(setup) > 1 else ''} of code that ran before all others"
    opened = pages.raw(f'<details class="setup-fold"><summary>{words}</summary>')
    return [nbformat.v4.new_markdown_cell(opened), *setup, nbformat.v4.new_markdown_cell(pages.raw("</details>"))]
