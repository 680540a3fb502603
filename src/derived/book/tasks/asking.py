"""Puts quick questions into a chapter's page: a few at the end of each section that states what they ask, the others
below the program that tries the pencil.

of    the label of the statement to which a quantity belongs (``book/teach/<slug>.yml``)
end   of a section: the cell with the next heading, and the place of that heading in its text
"""

import re
from pathlib import Path

from nbformat import NotebookNode

from derived.book.house import UserError
from derived.book.page import pages, tries
from derived.book.tasks import quick, tasks

_HEADING = re.compile(r"^(?:\([\w-]+\)=\n)?#{2,3} ", re.M)


def ask(root: Path, slug: str, notebook: NotebookNode) -> None:
    """Add folds of questions to a chapter's cells; no cell moves."""
    bank = tasks.bank(root, slug)
    left = quick.questions(bank.source, bank.exact, bank.mutants)
    below = next(cell for cell in notebook.cells if cell.source.startswith(tries.HEADING))
    ends: dict[tuple[int, int], list[quick.Question]] = {}
    for each in left:
        if label := bank.of.get(each.subject.words):
            ends.setdefault(_end(slug, notebook, label), []).append(each)
    for (place, at), mine in sorted(ends.items(), key=lambda end: end[0], reverse=True):
        shown, cell = quick.chosen(mine), notebook.cells[place]
        left = [each for each in left if each not in shown]
        cell.source = f"{cell.source[:at]}{pages.raw(quick.fold(shown))}\n\n{cell.source[at:]}"
    below.source += "\n\n" + pages.raw(quick.fold(left))


def _end(slug: str, notebook: NotebookNode, label: str) -> tuple[int, int]:
    """Find the end of the section that has a statement; UserError if no section has it."""
    at = -1
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type != "markdown":
            continue
        if at < 0:
            at = cell.source.find(f":label: {label}\n")
        if at >= 0:
            if found := _HEADING.search(cell.source, at):
                return place, found.start()
            at = 0
    raise UserError(f"{slug}: its tasks name {label}, which no section states")
