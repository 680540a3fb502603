"""Makes homework: the exercises of a chapter as a notebook that starts in seconds and that nbgrader can grade.

answer  the cell of an exercise where a student writes: the last code cell above its solution
check   a code cell of the exercise behind its solution; if it prints "right" for each answer that is, it has points,
        one for each five minutes that the exercise says it takes, which its parts share equally
setup   the lines of the chapter that these cells need, and no other (bookbuilder.teach.slicing)
cited   each statement, equation and table to which an exercise or its hints refer, and what these refer to: printed
        once, folded, at the head of the sheet, behind the chapter's table of symbols
facts   of an exercise: kind, minutes, difficulty and importance, its first line; the points of its rubric, in its
        solution's box
hints   two folded boxes below the exercise, in its own cell: a nudge, then the first step

Cells that are tagged ``solution`` give the solution: all their code is in the answer's cell of the tutors'
version, between nbgrader's marks. There each check has a hidden test as well, since a check leaves a wrong answer
without an error: its value is the points of those parts that are right to a fresh copy of the exercises, whatever is
printed. A file of otter-grader's reads what the check prints. An exercise with a rubric gets a cell for words below
it, which is graded by hand.
"""

import ast
import itertools
import pprint
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from bookbuilder.notebook import statements
from bookbuilder.paths import UserError, cell_name
from bookbuilder.teach import slicing

SECTION = "## Exercises"
MINUTES = 5  # of an exercise for each point of its check
_EXERCISE = re.compile(r"^[`:]{3,}\{exercise\}[^\n]*\n(?:[ \t]*:[\w-]+:[^\n]*\n)*?[ \t]*:label:[ \t]*(\S+)", re.M)
_FACTS = re.compile(
    r"^\*(Derive|Implement|Judge|Project), (\d+) minutes, (easy|medium|hard|open), (core|useful|extra)\.\*", re.M
)
_HINT = re.compile(r"^```\{admonition\} (A nudge|The first step)\n:class: hint dropdown\n\n(.*?)\n```$", re.M | re.S)
_POINTS = re.compile(r"^- (\d+) points?:", re.M)
_REFUSED = re.compile(r"^(\([a-z]\) )?(not right|no answer yet)", re.M)
_RIGHT = r"(?m)^(?:\([a-z]\) )?right\b"  # at the head of a line, where no answer can put it
_TABLE = "Reading the paper's numbers"  # the section whose table exercises judge
_CITES = re.compile(rf"\{{(?:prf:ref|eq)\}}`(?:[^`<]*<)?([^`<>]+)>?`|\*({_TABLE})\*")
_LABEL = re.compile(r"^\$\$ \(([\w-]+)\)$", re.M)  # of an equation
_FOLD = "::::::{{admonition}} {}\n:class: dropdown\n\n{}\n::::::"
_HIDDEN = """
### BEGIN HIDDEN TESTS
import importlib, sys
_kept = {{_name: sys.modules.pop(_name) for _name in [*sys.modules] if _name.split(".")[0] == "derived"}}
_exercises, _lab = map(importlib.import_module, ("derived.papers.{slug}.exercises", "derived.lab.exercises"))
sys.modules.update(_kept)
round({points} * _lab.share(_exercises.EXERCISES, {arguments}), 2)
### END HIDDEN TESTS"""
_OTTER = """>>> import contextlib, io
>>> with contextlib.redirect_stdout(io.StringIO()) as _said:
{check}
>>> print(_said.getvalue().splitlines()[{line}])
{said}
"""


class Facts(NamedTuple):
    """An exercise's own facts, and the points of its rubric, 0 without one."""

    label: str
    kind: str
    minutes: int
    difficulty: str
    importance: str
    rubric: int


class Check(NamedTuple):
    """A check worth points: name, exercise, code, points, and its output for the solution, by line."""

    name: str
    label: str
    source: str
    points: int
    said: dict[int, str]


def is_solution(cell: dict[str, Any]) -> bool:
    """Tell whether a cell is for tutors only."""
    return "solution" in cell["metadata"].get("tags", [])


def section(notebook: NotebookNode) -> list[int]:
    """List the places of the exercises' cells: the section Exercises, heading first, or without one each exercise where
    it stands, up to its check or to the next text that is neither exercise nor solution."""
    heads = [
        (place, line)
        for place, cell in enumerate(notebook.cells)
        if cell.cell_type == "markdown"
        for line in cell.source.splitlines()
        if line.startswith("## ")
    ]
    ends = [place for place, _ in heads[1:]] + [len(notebook.cells)]
    found = [range(at, end) for (at, line), end in zip(heads, ends, strict=True) if line.startswith(SECTION)]
    if found:
        return [*found[0]]
    places, inside, solved = [], False, False
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "markdown":
            begins = bool(_EXERCISE.search(cell.source))
            inside, solved = begins or (inside and is_solution(cell)), solved and not begins
        elif not (solved or is_solution(cell) or re.search(r"= \.\.\.", cell.source)):
            inside = False  # an exercise in words has no cell for an answer
        places += [place] if inside else []
        solved = solved or (inside and is_solution(cell))
        if cell.cell_type == "code" and solved and not is_solution(cell):
            inside = solved = False
    return places


def roles(notebook: NotebookNode) -> dict[int, tuple[str, str]]:
    """Map places in the section to ``answer`` or ``check`` and the exercise's label."""
    found, label, answer, solved = {}, "", None, False
    for place in section(notebook):
        cell = notebook.cells[place]
        if cell.cell_type == "markdown" and (labels := _EXERCISE.findall(cell.source)):
            label, answer, solved = labels[-1], None, False
        elif cell.cell_type == "code" and is_solution(cell):
            solved = solved or answer is not None
            if answer is not None:
                found[answer] = ("answer", label)
        elif cell.cell_type == "code" and solved:
            found[place] = ("check", label)
        elif cell.cell_type == "code":
            answer = place
    return found


def facts(notebook: NotebookNode) -> list[Facts]:
    """Read kind, minutes, difficulty and importance of the exercises that state them, in order."""
    cells = [notebook.cells[place] for place in section(notebook)]
    boxes = "\n".join(cell.source for cell in cells if is_solution(cell) and cell.cell_type == "markdown")
    found = []
    for cell in cells:
        labels, said = _EXERCISE.findall(cell.source), _FACTS.search(cell.source)
        if cell.cell_type == "markdown" and not is_solution(cell) and labels and said:
            box = re.search(rf"^([`:]{{3,}})\{{solution\}} {re.escape(labels[-1])}$(.*?)^\1$", boxes, re.M | re.S)
            points = sum(map(int, _POINTS.findall(box[2]))) if box else 0
            found.append(Facts(labels[-1], said[1], int(said[2]), said[3], said[4], points))
    return found


def hints(notebook: NotebookNode) -> dict[str, dict[str, str]]:
    """Read the hints of each exercise by their titles."""
    cells = [notebook.cells[place] for place in section(notebook)]
    return {labels[-1]: dict(_HINT.findall(cell.source)) for cell in cells if (labels := _labels(cell))}


def checks(slug: str, notebook: NotebookNode, executed: NotebookNode) -> dict[int, Check]:
    """Find the checks worth points, by place; raise UserError if one refuses the chapter's own solution."""
    outputs = {cell.id: "".join(each.get("text", "") for each in cell.get("outputs", [])) for cell in executed.cells}
    minutes = {each.label: each.minutes for each in facts(notebook)}
    found: dict[int, Check] = {}
    for place, (part, label) in sorted(roles(notebook).items()):
        cell = notebook.cells[place]
        text = outputs.get(cell.id, "") if part == "check" else ""
        if refused := _REFUSED.search(text):
            raise UserError(f"{slug}: the solution of {label} does not pass its own check: {refused.string.strip()}")
        if said := {at: line for at, line in enumerate(text.splitlines()) if re.match(_RIGHT, line)}:
            number = 1 + sum(each.label == label for each in found.values())
            points = max(1, minutes.get(label, 0) // MINUTES)
            found[place] = Check(f"{label}-check{number}", label, cell.source, points, said)
    return found


def otter(slug: str, notebook: NotebookNode, executed: NotebookNode) -> dict[str, str]:
    """Write otter-grader's tests of the homework by file name, with one case per part of each check."""
    found = {}
    for check in checks(slug, notebook, executed).values():
        code = textwrap.indent(check.source, "...     ")
        cases = [
            {"code": _OTTER.format(check=code, line=at, said=said), "points": check.points / len(check.said)}
            for at, said in check.said.items()
        ]
        test = {"name": check.name, "suites": [{"type": "doctest", "cases": cases}]}
        found[f"{check.name}.py"] = f"OK_FORMAT = True\n\ntest = {pprint.pformat(test, width=110)}\n"
    return found


def homework(slug: str, notebook: NotebookNode, executed: NotebookNode, *, solved: bool) -> NotebookNode | None:
    """Make the homework of a chapter, with solutions or for students; None if nothing can be checked.

    UserError if the cells of an exercise need the result of a run.
    """
    parts, places = roles(notebook), section(notebook)
    if not parts:
        return None
    graded = checks(slug, notebook, executed)
    copy = nbformat.from_dict(notebook)
    cells = [notebook.cells[place] for place in places]
    copy.cells = [*_head(slug, notebook, cells), *_quoted(slug, notebook, executed, cells)]
    known = {each.label: each for each in facts(notebook)}
    for place in places:
        cell = nbformat.from_dict(notebook.cells[place])
        if cell.cell_type == "markdown" and place == places[0] and SECTION in cell.source:
            cell.source = cell.source[cell.source.index(SECTION) :]
        part, label = parts.get(place, ("", ""))
        if part == "answer":
            cell.metadata["nbgrader"] = _metadata(label, solution=True)
            if solved:
                code = [each.source for each in _solutions(notebook, place)]
                cell.source = "\n".join([cell.source, "### BEGIN SOLUTION", *code, "### END SOLUTION"])
        elif check := graded.get(place):
            cell.metadata["nbgrader"] = _metadata(check.name, points=check.points)
            if solved:
                cell.source += _HIDDEN.format(slug=slug, points=check.points, arguments=_arguments(check.source))
        if not is_solution(cell):
            copy.cells.append(cell)
            said_of = [known[name] for name in _labels(cell) if name in known]
            copy.cells += [_for_words(each.label, each.rubric) for each in said_of if each.rubric]
    return copy


def _arguments(source: str) -> str:
    """Return the arguments of a check as they are written."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return ", ".join(ast.unparse(each) for each in calls[0].args)


def _labels(cell: NotebookNode) -> list[str]:
    return _EXERCISE.findall(cell.source) if cell.cell_type == "markdown" else []


def _for_words(label: str, points: int) -> NotebookNode:
    """Make the answer cell that a tutor grades by the exercise's rubric."""
    name = f"{label}-words"
    about = _metadata(name, points=points) | {"solution": True, "locked": False}
    return new_markdown_cell("*Your answer in words here.*", id=name, metadata={"nbgrader": about})


def _solutions(notebook: NotebookNode, answer: int) -> list[NotebookNode]:
    """Find the code cells of a solution, which follow the cell of its answer."""
    behind = itertools.takewhile(is_solution, notebook.cells[answer + 1 :])
    return [cell for cell in behind if cell.cell_type == "code"]


def _metadata(name: str, *, solution: bool = False, points: int | None = None) -> dict[str, Any]:
    """Make a cell's metadata for nbgrader; checks are locked."""
    graded = points is not None
    about = {"schema_version": 3, "grade_id": name, "grade": graded, "solution": solution, "locked": graded}
    return about | {"task": False} | ({"points": points} if graded else {})


def _head(slug: str, notebook: NotebookNode, cells: Sequence[NotebookNode]) -> list[NotebookNode]:
    """Make the title, the cell that asks for the package, imports, and the set-up that the exercises need."""
    title = next((line for cell in notebook.cells for line in cell.source.splitlines() if line.startswith("# ")), "# ")
    asked = next(cell for cell in notebook.cells if cell.cell_type == "code")
    setup = _setup(slug, notebook, cells)
    texts = ["\n".join(each.text for each in setup if each.is_import is kind) for kind in (True, False)]
    code = [new_code_cell(text, id=name) for text, name in zip(texts, ("imports", "setup"), strict=True) if text]
    return [new_markdown_cell(f"# Homework: {title[2:]}", id="homework"), nbformat.from_dict(asked), *code]


def _quoted(
    slug: str, notebook: NotebookNode, executed: NotebookNode, cells: Sequence[NotebookNode]
) -> Iterator[NotebookNode]:
    """Make the cell of what the exercises cite."""
    found = {_titled(label, text): text for label, text in cited(slug, notebook, executed, cells).items()}
    texts = [part for cell in notebook.cells if cell.cell_type == "markdown" for part in cell.source.split("\n\n")]
    symbols = [("Symbols", part) for part in texts if part.startswith("| symbol |")][:1]
    if found:
        words = "To these the exercises refer; the chapter has the proofs."
        folds = [_FOLD.format(title, text) for title, text in [*symbols, *found.items()]]
        yield new_markdown_cell("\n\n".join(["## What the exercises cite", words, *folds]), id="cited")


def _titled(label: str, text: str) -> str:
    role = "eq" if f"$$ ({label})" in text and "{prf:" not in text else "prf:ref"
    return f"The table of {label}" if label == _TABLE else f"{{{role}}}`{label}`"


def cited(slug: str, notebook: NotebookNode, executed: NotebookNode, cells: Sequence[NotebookNode]) -> dict[str, str]:
    """Find what the exercises in some cells cite, and what this cites, by label; UserError for what cannot be printed.

    An equation of a statement is printed with it, any other with the words before it.
    """
    boxes, text = statements.boxes_of(notebook), "\n".join(c.source for c in cells if not is_solution(c))
    home = {equation: label for label, box in boxes.items() for equation in _LABEL.findall(box)}
    waiting, found = _names(text), {}
    while waiting:
        label = home.get(waiting[0], waiting[0])
        del waiting[0]
        if label not in found:
            found[label] = _table(executed) if label == _TABLE else boxes.get(label) or _display(notebook, label)
            if not found[label]:
                raise UserError(f"{slug}: homework cannot print {label}, to which an exercise refers")
            waiting += _names(found[label])
    return found


def _names(text: str) -> list[str]:
    return [label or table for label, table in _CITES.findall(text)]


def _display(notebook: NotebookNode, label: str) -> str:
    """Return an equation of the text with the paragraph before it; empty if there is none."""
    texts = [cell.source.split("\n\n") for cell in notebook.cells if cell.cell_type == "markdown"]
    found = ((text, at) for text in texts for at, part in enumerate(text) if label in _LABEL.findall(part))
    return next(("\n\n".join(text[max(0, at - 1) : at + 1]) for text, at in found), "")


def _table(executed: NotebookNode) -> str:
    """Return the first table below the heading of the section that reads the paper's numbers."""
    places = (at for at, cell in enumerate(executed.cells) if f"## {_TABLE}" in cell.source)
    outputs = (each for cell in executed.cells[next(places, len(executed.cells)) :] for each in cell.get("outputs", []))
    for data in (each.get("data", {}) for each in outputs):
        if found := re.search(r"<table.*</table>", data.get("text/html", ""), re.S):
            return found[0]
        if data.get("text/markdown", "").startswith("| "):
            return data["text/markdown"]
    return ""


def _setup(slug: str, notebook: NotebookNode, cells: Sequence[NotebookNode]) -> list[slicing.Statement]:
    first = section(notebook)[0]
    sources = [(at, cell.source) for at, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    try:
        before = slicing.statements([each for each in sources if each[0] < first])
        inside = slicing.statements([(first, cell.source) for cell in cells if cell.cell_type == "code"])
    except SyntaxError as error:
        raise UserError(
            f"{slug}: homework needs cells of plain Python: {error.msg}: {(error.text or '').strip()}"
        ) from None
    setup = slicing.needed(before, inside)
    runs = {name for each in [*setup, *inside] if "studies" in each.read for name in each.bound}
    for each in [*setup, *inside]:
        if runs & each.read:
            where = cell_name(each.cell + 1, each.text)
            raise UserError(f"{slug}: its exercises need {where}, which takes a run; homework must start in seconds")
    return setup
