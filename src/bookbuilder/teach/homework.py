"""Makes homework: the exercises of a chapter as a notebook that starts in seconds and that nbgrader can grade.

answer  the cell of an exercise where a student writes: the last code cell above its solution
check   the code cell behind the solution; it has a point for each five minutes that the exercise says it takes
words   a cell below an exercise whose solution has a rubric; a tutor grades it by the rubric's points

Before the exercises stand the title, the cell that asks for the package, and the chapter's imports: a cell of an
exercise needs no other. The tutors' version has each solution between nbgrader's marks, and a hidden test whose value
is the points of the parts that are right.
"""

import ast
import itertools
import re
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from bookbuilder.paths import UserError

MINUTES = 5  # of an exercise for each point of its check
_EXERCISE = re.compile(r"^[`:]{3,}\{exercise\}[^\n]*\n(?:[ \t]*:[\w-]+:[^\n]*\n)*?[ \t]*:label:[ \t]*(\S+)", re.M)
_MINUTES = re.compile(r"^\*[\w ]+, (\d+) minutes, ", re.M)
_SOLUTION = re.compile(r"^([`:]{3,})\{solution\} (\S+)$(.*?)^\1$", re.M | re.S)
_POINTS = re.compile(r"^- (\d+) points?:", re.M)
_REFUSED = re.compile(r"^(?:\([a-z]\) )?(?:not right|no answer yet).*", re.M)


def is_solution(cell: dict[str, Any]) -> bool:
    """Tell whether a cell is for tutors only."""
    return "solution" in cell["metadata"].get("tags", [])


def section(notebook: NotebookNode) -> list[int]:
    """List the places of the exercises' cells: each up to its check, or to text that is no exercise or solution."""
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
    """Map places of cells to ``answer`` or ``check`` and the exercise's label."""
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


def homework(slug: str, notebook: NotebookNode, executed: NotebookNode, *, solved: bool) -> NotebookNode | None:
    """Make the homework of a chapter, with solutions or for students; None if nothing can be checked.

    UserError if a check of the executed chapter refuses the chapter's own solution.
    """
    parts = roles(notebook)
    if not parts:
        return None
    outputs = {cell.id: "".join(each.get("text", "") for each in cell.get("outputs", [])) for cell in executed.cells}
    rubrics = {label: sum(map(int, _POINTS.findall(box))) for _, label, box in _SOLUTION.findall(_text(notebook))}
    copy, points = nbformat.from_dict(notebook), 0
    copy.cells = _head(copy)
    for place in section(notebook):
        cell, (part, label) = nbformat.from_dict(notebook.cells[place]), parts.get(place, ("", ""))
        if part == "answer":
            cell.metadata["nbgrader"] = _metadata(label, solution=True)
            code = [each.source for each in _solutions(notebook, place)]
            if solved:
                cell.source = "\n".join([cell.source, "### BEGIN SOLUTION", *code, "### END SOLUTION"])
        elif part == "check":
            if refused := _REFUSED.search(outputs.get(cell.id, "")):
                raise UserError(f"{slug}: the solution of {label} does not pass its own check: {refused[0]}")
            cell.metadata["nbgrader"] = _metadata(f"{label}-check", points=points, locked=True)
            cell.source += _hidden(cell.source, points) if solved else ""
        if not is_solution(cell):
            copy.cells.append(cell)
            for name in _EXERCISE.findall(cell.source) if cell.cell_type == "markdown" else []:
                points = max(1, int(_MINUTES.search(cell.source)[1]) // MINUTES) if _MINUTES.search(cell.source) else 1
                copy.cells += [_for_words(name, rubrics[name])] if rubrics.get(name) else []
    return copy


def _text(notebook: NotebookNode) -> str:
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def _hidden(check: str, points: int) -> str:
    """Write a hidden test: the check once more, whose value nbgrader takes for its points."""
    call = ast.parse(check).body[-1].value
    call.keywords.append(ast.keyword("points", ast.Constant(points)))
    return f"\n### BEGIN HIDDEN TESTS\n{ast.unparse(call)}\n### END HIDDEN TESTS"


def _for_words(label: str, points: int) -> NotebookNode:
    """Make the answer cell that a tutor grades by the exercise's rubric."""
    about = _metadata(f"{label}-words", points=points, solution=True)
    return new_markdown_cell("*Your answer in words here.*", id=f"{label}-words", metadata={"nbgrader": about})


def _solutions(notebook: NotebookNode, answer: int) -> list[NotebookNode]:
    """Find the code cells of a solution, which follow the cell of its answer."""
    behind = itertools.takewhile(is_solution, notebook.cells[answer + 1 :])
    return [cell for cell in behind if cell.cell_type == "code"]


def _metadata(name: str, *, solution: bool = False, points: int | None = None, locked: bool = False) -> dict[str, Any]:
    """Make a cell's metadata for nbgrader."""
    about = {"schema_version": 3, "grade_id": name, "grade": points is not None, "solution": solution, "locked": locked}
    return about | {"task": False} | ({"points": points} if points is not None else {})


def _head(notebook: NotebookNode) -> list[NotebookNode]:
    """Make a title, the cell that asks for the package, and the imports of the chapter's other cells."""
    title = next((line for line in _text(notebook).splitlines() if line.startswith("# ")), "# ")
    asks, *code = [cell for cell in notebook.cells if cell.cell_type == "code" and not is_solution(cell)]
    imports = dict.fromkeys(line for cell in code for line in _imports(cell.source))
    found = [new_markdown_cell(f"# Homework: {title[2:]}", id="homework"), asks]
    found += [new_code_cell("\n".join(imports), id="imports")] if imports else []
    tagged = [cell for cell in code if "homework" in cell.metadata.get("tags", [])]  # what answers build on
    settings = [cell for cell in code if tagged and "parameters" in cell.metadata.get("tags", [])]
    return found + [new_code_cell(cell.source, id=cell.id) for cell in (*settings, *tagged)]


def _imports(source: str) -> list[str]:
    """Return the import statements of a cell as they are written, without those of magics and of blocks."""
    source = re.sub(r"^[%!].*", "", source, flags=re.M)
    lines = [line for line in ast.parse(source).body if isinstance(line, ast.Import | ast.ImportFrom)]
    return [ast.get_source_segment(source, line) for line in lines]
