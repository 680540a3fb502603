"""Reads the numbered statements of a chapter: the author of each, its check cell, and the tests that name its label.

statement  a directive ``{prf:theorem}``, ``{prf:lemma}``, … with its ``:label:`` and its ``:class: paper`` (or another
           badge of BADGES), which says whose statement it is
check      the code cell whose metadata ``derived: {"checks": ["label", …]}`` names the label; without one, the first
           code cell after the statement and before the next; a cell that the page does not show checks nothing, and
           nothing checks an algorithm by its place alone
proof      a directive ``{prf:proof}``, of the last result before it that is not proved yet
test       a function ``test_…`` of tests/papers/<slug> that names the label in backticks
"""

import ast
import functools
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

# Source of a statement: the class of its badge, in which it counts, the words of its badge, and who states it.
SOURCES = {
    "paper": ("paper", "paper", "the paper"),
    "repo": ("code", "code", "the authors' code"),
    "digest": ("retold", "from a summary", "a summary of the paper"),
    "prior": ("earlier", "earlier", "earlier work"),
    "ours": ("ours", "ours", "this book"),
}
BADGES = {badge: words for badge, words, _ in SOURCES.values()}

RESULTS = ("theorem", "lemma", "proposition", "corollary")  # what is proved, and so checked and tested
STATED = (*RESULTS, "definition", "assumption", "axiom", "conjecture", "algorithm", "criterion", "property")
_DIRECTIVE = re.compile(rf"^[`:]{{3,}}\{{prf:({'|'.join(STATED)})\}}[ \t]*([^\n]*)\n((?:[ \t]*:[^\n]*\n)*)", re.M)
_TEXT = re.compile(
    rf"^([`:]{{3,}})\{{prf:(?:{'|'.join(STATED)})\}}[^\n]*\n((?:[ \t]*:[^\n]*\n)*)(.*?)^\1[ \t]*$", re.M | re.S
)
_BOX = re.compile(r"^[`:]{3,}\{prf:(\w+)\}[^\n]*\n(?:[ \t]*:(?!label)[^\n]*\n)*(?:[ \t]*:label:[ \t]*(\S+))?", re.M)


class Defined(NamedTuple):
    """A test or an experiment, in a file of the repository."""

    file: str
    name: str
    line: int

    @property
    def anchor(self) -> str:
        """The anchor of its source on the page of evidence."""
        return ".".join(filter(None, [Path(self.file).stem, self.name]))


@dataclass(frozen=True)
class Statement:
    """One numbered statement of a chapter."""

    kind: str
    title: str
    label: str
    whose: str  # a badge, or empty
    check: int | None  # place of its check cell in the notebook

    @property
    def name(self) -> str:
        return f"{self.kind} {self.label or self.title or 'without a label'}"


def statements(notebook: dict[str, Any]) -> list[Statement]:
    """List the statements of a notebook in order."""
    cells = notebook["cells"]
    named = {label: place for place, cell in enumerate(cells) for label in checks(cell)}
    found = []
    for place, cell in enumerate(cells):
        directives = list(_directives(cell))
        for index, (kind, title, options) in enumerate(directives):
            label = _option(options, "label")
            badges = [word for word in _option(options, "class").split() if word in BADGES]
            last = index == len(directives) - 1
            check = named.get(label, _next_code(cells, place) if last and kind != "algorithm" else None)
            found.append(Statement(kind, title, label, badges[0] if badges else "", check))
    return found


def texts_of(notebook: dict[str, Any]) -> dict[str, str]:
    """The text of each statement by its label, as Markdown."""
    pages = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    return {_option(found[2], "label"): found[3] for page in pages for found in _TEXT.finditer(page)}


def proofs(boxes: Iterable[tuple[str, str]]) -> list[str]:
    """Match each proof with the label of the last result that is not yet proved, empty if none is left.

    ``boxes`` are kind and label of the results and proofs of a page, in order.
    """
    found, waiting = [], []
    for kind, label in boxes:
        if kind == "proof":
            found.append(waiting.pop() if waiting else "")
        elif kind in RESULTS:
            waiting.append(label)
    return found


def proved(cells: Sequence[dict[str, Any]]) -> set[str]:
    """Collect the labels of the results that a notebook proves."""
    texts = ("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return {*proofs(box for text in texts for box in _BOX.findall(text))} - {""}


def checks(cell: dict[str, Any]) -> list[str]:
    """Read the labels of the statements that a code cell declares to check."""
    return cell["metadata"].get("derived", {}).get("checks", []) if shown_code(cell) else []


def shown_code(cell: dict[str, Any]) -> bool:
    """Whether it is a code cell that the page shows."""
    return cell["cell_type"] == "code" and "remove-cell" not in cell["metadata"].get("tags", [])


def _directives(cell: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    if cell["cell_type"] == "markdown":
        yield from (match.groups() for match in _DIRECTIVE.finditer("".join(cell["source"]) + "\n"))


def _option(options: str, name: str) -> str:
    match = re.search(rf"^[ \t]*:{name}:[ \t]*(.*?)[ \t]*$", options, re.M)
    return match[1] if match else ""


def _next_code(cells: Sequence[dict[str, Any]], place: int) -> int | None:
    for later in range(place + 1, len(cells)):
        if shown_code(cells[later]):
            return later
        if any(_directives(cells[later])):
            return None
    return None


def tests(root: Path, slug: str) -> dict[str, list[Defined]]:
    """Group a paper's tests by the labels in backticks in their code or in comments right above."""
    found: dict[str, list[Defined]] = {}
    for test, text in _tests(root, slug):
        for label in dict.fromkeys(re.findall(r"`([\w:.-]+)`", text)):
            found.setdefault(label, []).append(test)
    return found


def tests_naming(root: Path, slug: str, names: Sequence[str]) -> dict[str, list[Defined]]:
    """Group a paper's tests by these names if their text contains them."""
    found: dict[str, list[Defined]] = {}
    for test, text in _tests(root, slug):
        for name in dict.fromkeys(word for word in re.findall(r"\w+", text) if word in names):
            found.setdefault(name, []).append(test)
    return found


def texts(root: Path, slug: str, wanted: Set[Defined]) -> dict[Defined, str]:
    """Read the source of each of these tests, or of the whole file where no test is named."""
    whole = {test: (root / test.file).read_text("utf-8") for test in sorted(wanted) if not test.name}
    return {test: text for test, text in _tests(root, slug) if test in wanted} | whole


def _tests(root: Path, slug: str) -> Iterator[tuple[Defined, str]]:
    """Yield a paper's tests with their source and the comments above."""
    for path in sorted(root.glob(f"tests/papers/{slug}/test_*.py")):
        for name, line, text in _cut(path.read_text("utf-8")):
            yield Defined(str(path.relative_to(root)), name, line), text


@functools.cache  # a page asks several times for the tests of its paper
def _cut(source: str) -> list[tuple[str, int, str]]:
    """Cut a source into name, line and text of each test."""
    found, lines, end = [], source.splitlines(), 0
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            found.append((node.name, node.lineno, "\n".join(lines[end : node.end_lineno])))
        end = node.end_lineno
    return found
