"""Homework: what the exercises of a chapter need and nothing else, ready for nbgrader."""

import ast
import contextlib
import doctest
import io
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookbuilder.paths import UserError
from bookbuilder.teach.homework import facts, homework, otter, roles, section
from bookbuilder.teach.slicing import names
from derived.papers.task_ecologies import exercises

ROOT = Path(__file__).parents[3]

EXERCISES = """Before.

## Exercises

```{exercise} One
:class: easy
:label: toy-one
Which number?
```"""
WORDS = """```{exercise} Two
:label: toy-two

*Judge, 20 minutes, medium, useful.* Is it?
```"""
RUBRIC = """```{solution} toy-two
:label: toy-sol-two

It is.

**Rubric.**

- 2 points: says so.
- 1 point: says why.
```"""
SECOND = "```{exercise} Two\n:label: toy-two\nProve it.\n```"
TAGS = {"tags": ["solution"]}


def chapter(
    *before: str, check: str = 'print("right" if answer == table[0] else "not right")'
) -> nbformat.NotebookNode:
    """A chapter with setup cells of the given sources, one exercise with a check, and one without."""
    said = [new_output("stream", name="stdout", text="right\n")]
    cells = [
        new_markdown_cell("# Toy"),
        new_code_cell("import derived"),
        *[new_code_cell(source) for source in before],
        new_markdown_cell(EXERCISES, id="text"),
        new_code_cell("answer = ...  # a number", id="stub"),
        new_markdown_cell("```{solution} toy-one\nIt is two.\n```", metadata=TAGS),
        new_code_cell("half = 1\nanswer = 2 * half", metadata=TAGS, id="solution"),
        new_code_cell(check, outputs=said, id="check"),
        new_code_cell("2 + 2", id="after"),
        new_markdown_cell(SECOND),
        new_code_cell("proof = ..."),
        new_markdown_cell("## Take-away"),
        new_code_cell("unused = 1"),
    ]
    return new_notebook(cells=cells)


BEFORE = (
    "import math, os\ntable = [2]  # the table\nother = 1",
    "table[0] = math.floor(2.5)",
    "studies = unrelated = 3",
)


def test_a_student_gets_imports_what_is_needed_and_the_exercises():
    notebook = chapter(*BEFORE)
    found = homework("toy", notebook, notebook, solved=False)
    nbformat.validate(found)
    assert [cell.source for cell in found.cells] == [
        "# Homework: Toy",
        "import derived",
        "import math, os",
        "table = [2]  # the table\ntable[0] = math.floor(2.5)",
        EXERCISES.removeprefix("Before.\n\n"),
        "answer = ...  # a number",
        'print("right" if answer == table[0] else "not right")',
        "2 + 2",
        SECOND,
        "proof = ...",
    ]


def test_nbgrader_knows_answers_and_checks():
    notebook = chapter(*BEFORE)
    for solved in (True, False):
        cells = homework("toy", notebook, notebook, solved=solved).cells
        about = {
            cell.metadata.nbgrader.grade_id: cell.metadata.nbgrader for cell in cells if "nbgrader" in cell.metadata
        }
        assert list(about) == ["toy-one", "toy-one-check1"], "a cell that says nothing of right has no points"
        answer, check = about.values()
        assert (answer.solution, answer.grade, answer.locked) == (True, False, False)
        assert (check.solution, check.grade, check.locked, check.points) == (False, True, True, 1)


PARTS = 'print("(a)", "right" if answer == table[0] else "not right: yours is right?")\nprint("(b) right")'


@pytest.mark.parametrize(
    ("answer", "points"),
    [
        ("excess_of_two, price_of_two = ..., ...", 0.0),
        ("price_of_two = lambda x: 0.0", 0.5),
        ("exercises.check = lambda *given: print('right\\n' * 9)\nexcess_of_two = price_of_two = abs", 0.0),
        ("exercises.EXERCISES['te-ex-hand'] = ()", 1.0),
    ],
)
def test_the_hidden_test_gives_each_part_its_share_whatever_is_printed(answer, points, monkeypatch):
    monkeypatch.setattr(exercises, "check", exercises.check)  # what an answer overwrites is put back
    monkeypatch.setitem(exercises.EXERCISES, "te-ex-hand", exercises.EXERCISES["te-ex-hand"])
    notebook = nbformat.read(ROOT / "notebooks/task_ecologies.ipynb", as_version=4)
    executed = nbformat.from_dict(notebook)
    check = next(cell for cell in executed.cells if 'check("te-ex-hand"' in cell.source)
    check.outputs = [new_output("stream", name="stdout", text="(a) right\n(b) right\n")]
    cells = [cell for cell in homework("task_ecologies", notebook, executed, solved=True).cells]
    own = next(cell for cell in cells if cell.id == check.id)
    before = [cell.source for cell in cells[: cells.index(own)] if cell.cell_type == "code"]
    assert graded("\n".join([*before, answer]), own.source) == points


def graded(before: str, cell: str) -> float:
    """The value of the last line of a cell, which nbgrader takes for its points."""
    body, known = ast.parse(cell).body, {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(before, known)
        exec(compile(ast.Module(body[:-1], []), "cell", "exec"), known)
        return eval(compile(ast.Expression(body[-1].value), "cell", "eval"), known)


PARTS = 'print("(a)", "right" if answer == table[0] else "not right: yours is right?")\nprint("(b) right")'


@pytest.mark.parametrize(("answer", "passes"), [(2, [True, True]), (3, [False, True])])
def test_otter_grader_has_a_case_with_its_points_for_each_part(answer, passes):
    notebook = with_words(check=PARTS)
    next(cell for cell in notebook.cells if cell.id == "check").outputs[0].text = "(a) right\n(b) right\n"
    files = otter("toy", notebook, notebook)
    assert list(files) == ["toy-one-check1.py"]
    test: dict = {}
    exec(files["toy-one-check1.py"], test)
    assert test["OK_FORMAT"]
    cases = test["test"]["suites"][0]["cases"]
    assert [case["points"] for case in cases] == [1.5, 1.5]
    found = []
    for case in cases:
        tried = doctest.DocTestParser().get_doctest(case["code"], {"table": [2], "answer": answer}, "case", None, None)
        found.append(doctest.DocTestRunner(verbose=False).run(tried, out=lambda text: None).failed == 0)
    assert found == passes


def test_exercises_that_need_a_run_are_refused_with_the_cell():
    run = "run = studies(tier, seed, device)"
    notebook = chapter(run, "rows = run(Study)\ntable = [rows.x]")
    with pytest.raises(UserError, match=r"^toy: its exercises need cell 4 \(rows = run\(Study\)\), which takes a run"):
        homework("toy", notebook, notebook, solved=False)
    assert homework("toy", chapter(run, "table = [2]"), notebook, solved=False)


def test_cells_that_are_no_python_are_named():
    with pytest.raises(UserError, match=r"^toy: homework needs cells of plain Python: .*%time"):
        homework("toy", chapter("%time table = 1"), chapter(), solved=False)


def test_without_a_check_there_is_no_homework():
    notebook = new_notebook(cells=[new_markdown_cell(EXERCISES), new_code_cell("x = ...")])
    assert roles(notebook) == {}
    assert homework("toy", notebook, notebook, solved=True) is None
    assert section(new_notebook(cells=[new_markdown_cell("## Other")])) == []


@pytest.mark.parametrize(
    ("source", "bound", "read"),
    [
        ("for x in y:\n    z = x + w", "x z", "y w"),
        ("a[0] = b", "a", "a b"),
        ("a.b.c = d", "a", "a d"),
        ("c += 1", "c", "c"),
        ("f = lambda u: u + v", "f", "v"),
        ("g = [k for k in ks if k > l]", "g", "ks l"),
        ("g = {k for k in {k: l for k, l in [m for m in ms]}}", "g", "ms"),
        ("def g(h=i):\n    m = 1\n    return j + h + m", "g", "i j"),
        ("def g(h):\n    h[0] = 1\n    i[0] = 2", "g", "i"),
        ("with p() as q:\n    r = q", "q r", "p"),
        ("if s:\n    t = 1\n    t[0] = 2", "t", "s"),
        ("class K(B):\n    def m(self):\n        return self.n + o", "K", "B o"),
        ("p, q = q, p", "p q", "p q"),
        ("import numpy as np, os.path", "np os", ""),
        ("x = 1\ny = x", "x y", ""),
    ],
)
def test_names_that_a_statement_binds_and_reads(source, bound, read):
    assert names(ast.parse(source).body) == ({*bound.split()}, {*read.split()})


def with_words(**check: str) -> nbformat.NotebookNode:
    """A chapter whose second exercise asks for words, and whose first says its minutes."""
    notebook = chapter(*BEFORE, **check)
    for cell in notebook.cells:
        cell.source = cell.source.replace("Which number?", "\n*Derive, 15 minutes, easy, core.* Which number?")
    place = next(at for at, cell in enumerate(notebook.cells) if cell.source == SECOND)
    notebook.cells[place : place + 2] = [new_markdown_cell(WORDS), new_markdown_cell(RUBRIC, metadata=TAGS)]
    return notebook


def test_an_exercise_says_its_kind_minutes_difficulty_importance_and_the_points_of_its_rubric():
    assert facts(with_words()) == [
        ("toy-one", "Derive", 15, "easy", "core", 0),
        ("toy-two", "Judge", 20, "medium", "useful", 3),
    ]


def test_words_have_a_cell_that_is_graded_by_hand_and_a_check_a_point_for_five_minutes():
    notebook = with_words()
    for solved in (True, False):
        cells = homework("toy", notebook, notebook, solved=solved).cells
        place = next(at for at, cell in enumerate(cells) if cell.source == WORDS)
        about = cells[place + 1].metadata.nbgrader
        assert cells[place + 1].source == "*Your answer in words here.*"
        assert (about.grade_id, about.points, about.grade, about.solution, about.locked) == (
            "toy-two-words",
            3,
            True,
            True,
            False,
        )
        assert next(c for c in cells if c.id == "check").metadata.nbgrader.points == 3
        assert not [cell for cell in cells if "Rubric" in cell.source]


def test_an_exercise_that_asks_for_a_number_and_a_reason_has_points_for_both():
    notebook = with_words()
    box = next(cell for cell in notebook.cells if "{solution} toy-one" in cell.source)
    box.source = "```{solution} toy-one\nIt is two.\n\n- 2 points: says why.\n```"
    cells = homework("toy", notebook, notebook, solved=False).cells
    points = {
        c.metadata.nbgrader.grade_id: c.metadata.nbgrader.get("points") for c in cells if "nbgrader" in c.metadata
    }
    assert points == {"toy-one-words": 2, "toy-one": None, "toy-one-check1": 3, "toy-two-words": 3}


def test_a_solution_that_its_own_check_refuses_is_named():
    executed = chapter(*BEFORE)
    next(cell for cell in executed.cells if cell.id == "check").outputs[0].text = "(b) not right: yours is 3\n"
    with pytest.raises(UserError, match=r"^toy: the solution of toy-one does not pass its own check: \(b\) not right"):
        homework("toy", chapter(*BEFORE), executed, solved=False)


STATED = "```{prf:lemma} One\n:label: toy-one-lemma\n\nBy {eq}`toy-eq`.\n```\n\nA sum:\n\n$$\n1+1\n$$ (toy-eq)"


def test_what_an_exercise_cites_is_printed_with_what_that_cites_and_the_unknown_is_named():
    notebook = chapter(*BEFORE)
    notebook.cells.insert(1, new_markdown_cell(STATED))
    text = next(cell for cell in notebook.cells if cell.id == "text")
    text.source = text.source.replace("Which number?", "Which number, by {prf:ref}`toy-one-lemma`?")
    cells = homework("toy", notebook, notebook, solved=False).cells
    (printed,) = (cell.source for cell in cells if cell.id == "cited")
    assert "By {eq}`toy-eq`." in printed
    assert printed.endswith("{eq}`toy-eq`\n:class: dropdown\n\nA sum:\n\n$$\n1+1\n$$ (toy-eq)\n::::::")
    text.source = text.source.replace("toy-one-lemma", "toy-two-lemma")
    with pytest.raises(UserError, match="homework cannot print toy-two-lemma, to which an exercise refers"):
        homework("toy", notebook, notebook, solved=False)
