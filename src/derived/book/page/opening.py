"""Lays out how a chapter opens: its set-up folded under the card, and the summary with a picture first.

set-up   the code cells before the end of the summary that show nothing; what they do is done before the picture
picture  the figure of that section, moved up behind its first paragraph; without one, the chapter's first explorer
         once more, which takes its data from its own place

Only the staged copy is laid out so. Cells have been executed in the order of the notebook, and what people download
keeps that order.
"""

import re

import nbformat
from nbformat import NotebookNode

from derived.book.page import explorer, pages
from derived.book.source.reading import SHORT, cut, sections

_BLANK = re.compile(r"\n[ \t]*\n")


def arrange(notebook: NotebookNode) -> None:
    """Lay out the opening of a staged chapter, unchanged without a summary."""
    cells = [piece for cell in notebook.cells for piece in _pieces(cell)]
    start = next((place for place, cell in enumerate(cells) if {*SHORT} & {*sections(cell)}), None)
    if start is None:
        return
    rest = (place for place, cell in enumerate(cells) if place > start and sections(cell))
    end = next(rest, len(cells))
    if any("opening" in cell.metadata.get("tags", []) for cell in cells[:start]):
        notebook.cells = [*_opened(cells[:start]), *cells[start:]]
        return
    before, short, after = cells[:start], cells[start:end], cells[end:]
    setup = [cell for cell in before + short if _is_setup(cell)]
    before, short = ([cell for cell in part if not _is_setup(cell)] for part in (before, short))
    shown = next((cell for cell in short if _is_picture(cell)), None)
    if shown is None:
        shown = _again(cells)
    question = _first_paragraph(short[0])
    rest = [cell for cell in short[1:] if cell is not shown]
    lifted = [shown] if shown is not None else []
    notebook.cells = [*before, *_folded(setup), question[0], *lifted, *question[1:], *rest, *after]


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


def _first_paragraph(cell: NotebookNode) -> list[NotebookNode]:
    """Split a section's first cell after its heading and first paragraph."""
    parts = _BLANK.split(cell.source.strip(), maxsplit=2)
    if len(parts) < 3 or parts[1].startswith((":", "`")):  # a box is no paragraph
        return [cell]
    return _texts(cell, ["\n\n".join(parts[:2]), parts[2]])


def _is_setup(cell: NotebookNode) -> bool:
    tags = cell.metadata.get("tags", [])
    return cell.cell_type == "code" and "remove-cell" not in tags and not any(_kinds(cell))


def _kinds(cell: NotebookNode) -> list[str]:
    """List the kinds of output that a code cell shows, ignoring numbers glued for the text."""
    outputs = cell.get("outputs", [])
    kinds = [kind for output in outputs for kind in output.get("data", {})]
    shown = [kind for kind in kinds if not kind.startswith("application/papermill")]
    return shown + ["text" for output in outputs if output.output_type == "stream"]


def _is_picture(cell: NotebookNode) -> bool:
    return "image/svg+xml" in _kinds(cell) or any('class="explorer' in part for part in _htmls(cell))


def _htmls(cell: NotebookNode) -> list[str]:
    return [output["data"]["text/html"] for output in cell.get("outputs", []) if "text/html" in output.get("data", {})]


def _folded(setup: list[NotebookNode]) -> list[NotebookNode]:
    if not setup:
        return []
    for cell in setup:
        cell.metadata["tags"] = [tag for tag in cell.metadata.get("tags", []) if tag not in ("hide-input", "hide-cell")]
    words = f"Set-up: {len(setup)} cell{'s' if len(setup) > 1 else ''} of code that ran before all others"
    opened = pages.raw(f'<details class="setup-fold"><summary>{words}</summary>')
    return [nbformat.v4.new_markdown_cell(opened), *setup, nbformat.v4.new_markdown_cell(pages.raw("</details>"))]


def _again(cells: list[NotebookNode]) -> NotebookNode | None:
    """Repeat the chapter's first explorer, with a link to its original place."""
    found = (part for cell in cells if cell.cell_type == "code" for part in _htmls(cell) if 'class="explorer' in part)
    first = next(found, None)
    return nbformat.v4.new_markdown_cell(pages.raw(explorer.again(first))) if first else None
