"""Homework: the exercises of a chapter with its imports, ready for nbgrader."""

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookbuilder.paths import UserError
from bookbuilder.teach.homework import homework

TAGS = {"tags": ["solution"]}
ONE = "```{exercise} One\n:label: toy-one\n\n*Derive, 15 minutes, easy, core.* Which number, and why?\n```"
TWO = "```{exercise} Two\n:label: toy-two\n\n*Judge, 20 minutes, medium, useful.* Is it?\n```"
CHECK = 'exercises.check("toy-one", answer)'


def chapter(said: str = "right\n") -> nbformat.NotebookNode:
    """A chapter with an exercise that has a check and a rubric, and one in words."""
    cells = [
        new_markdown_cell("# Toy"),
        new_code_cell("import derived"),
        new_code_cell("import math, os\nfrom toys import (\n    exercises,\n)\nrun = studies()"),
        new_markdown_cell(ONE),
        new_code_cell("answer = ...  # a number"),
        new_markdown_cell("```{solution} toy-one\nTwo.\n\n- 2 points: says why.\n```", metadata=TAGS),
        new_code_cell("half = 1\nanswer = 2 * half", metadata=TAGS),
        new_code_cell(CHECK, id="check", outputs=[new_output("stream", name="stdout", text=said)]),
        new_code_cell("2 + 2"),
        new_markdown_cell(TWO),
        new_markdown_cell("```{solution} toy-two\nIt is.\n\n- 1 point: says so.\n```", metadata=TAGS),
        new_markdown_cell("## Take-away"),
    ]
    return new_notebook(cells=cells)


def test_a_student_gets_imports_and_exercises_and_the_tutors_solutions_between_marks():
    found = {solved: homework("toy", chapter(), chapter(), solved=solved) for solved in (False, True)}
    for notebook in found.values():
        nbformat.validate(notebook)
    words = "*Your answer in words here.*"
    head = ["# Homework: Toy", "import derived", "import math, os\nfrom toys import (\n    exercises,\n)", ONE, words]
    stub = "answer = ...  # a number"
    assert [cell.source for cell in found[False].cells] == [*head, stub, CHECK, TWO, words]
    assert [cell.source for cell in found[True].cells[5:7]] == [
        f"{stub}\n### BEGIN SOLUTION\nhalf = 1\nanswer = 2 * half\n### END SOLUTION",
        f"{CHECK}\n### BEGIN HIDDEN TESTS\nexercises.check('toy-one', answer, points=3)\n### END HIDDEN TESTS",
    ]


def test_nbgrader_knows_answers_checks_and_words_with_their_points():
    cells = homework("toy", chapter(), chapter(), solved=True).cells
    about = [cell.metadata.nbgrader for cell in cells if "nbgrader" in cell.metadata]
    assert [(a.grade_id, a.grade, a.solution, a.locked, a.get("points")) for a in about] == [
        ("toy-one-words", True, True, False, 2),
        ("toy-one", False, True, False, None),
        ("toy-one-check", True, False, True, 3),
        ("toy-two-words", True, True, False, 1),
    ]


def test_an_exercise_of_two_kinds_has_the_points_of_its_minutes():
    notebook = chapter()
    notebook.cells[3].source = ONE.replace("*Derive, 15", "*Implement and train, 25")
    points = {
        c.id: c.metadata.nbgrader.points
        for c in homework("toy", notebook, notebook, solved=False).cells
        if c.id == "check"
    }
    assert points == {"check": 5}


def test_a_solution_that_its_own_check_refuses_is_named():
    with pytest.raises(UserError, match=r"^toy: the solution of toy-one does not pass its own check: \(b\) not right"):
        homework("toy", chapter(), chapter("(b) not right: yours is 3\n"), solved=False)


def test_without_a_check_there_is_no_homework():
    notebook = new_notebook(cells=[new_markdown_cell(TWO)])
    assert homework("toy", notebook, notebook, solved=True) is None
