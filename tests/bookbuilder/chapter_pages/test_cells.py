"""What the site shows in place of a cell's bare output, and the code of a solution inside its box."""

import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from bookbuilder.chapter_pages import cells
from derived.lab.page import at_most, check, confirm, refute


def shown(text: str) -> nbformat.NotebookNode:
    notebook = new_notebook(cells=[new_code_cell("x", outputs=[new_output("stream", name="stdout", text=text)])])
    cells.tidy(notebook)
    return notebook.cells[0].outputs[0]


def words(output) -> str:
    return re.sub(r"<[^>]+>", " ", output.data["text/html"])


def test_a_check_is_a_line_in_words(capsys):
    """What `lab.page.check` prints is what is read here, so the two cannot drift apart."""
    check([1e-3, 1e-4], [2e-3, 1.0])
    assert words(shown(capsys.readouterr().out)).strip() == "worst gap of 2: 1.0e-03, 0.5 of its bound"
    check([0.0], [1.0])
    assert words(shown(capsys.readouterr().out)).strip() == "no gap at all"
    check([1e-3], [2e-3])  # one mean over thousands of paths is not one path
    assert words(shown(capsys.readouterr().out)).strip() == "gap 1.0e-03, 0.5 of its bound"
    check([0.0, 0.0], [1.0, 1.0])
    assert words(shown(capsys.readouterr().out)).strip() == "no gap at all in 2 numbers"


def test_several_checks_fold_under_the_tightest(capsys):
    for gap in (0.1, 0.9, 0.0):
        check([gap], [1.0])
    output = shown(capsys.readouterr().out)
    assert output.data["text/html"].count("<li>") == 3
    assert "3 checks, the tightest at 0.9 of its bound" in words(output)
    check([0.0], [1.0])
    check([0.0], [1.0])
    assert "2 checks, all exact" in words(shown(capsys.readouterr().out))


def test_a_stream_that_the_kernel_sent_in_pieces_is_one(capsys):
    check([0.1], [1.0])
    said = capsys.readouterr().out
    pieces = [new_output("stream", name="stdout", text=text) for text in (said[:-1], "\n", said)]
    notebook = new_notebook(cells=[new_code_cell("x", outputs=pieces)])
    cells.tidy(notebook)
    (output,) = notebook.cells[0].outputs
    assert "2 checks, the tightest at 0.1 of its bound" in words(output)


def test_an_inequality_is_a_line_in_words_and_is_exact_in_no_sum(capsys):
    at_most([1.0, 0.5], 2.0)
    assert words(shown(capsys.readouterr().out)).strip() == "at most 0.5 of its bound in 2 numbers"
    at_most([1.0], [2.0])
    assert words(shown(capsys.readouterr().out)).strip() == "at most 0.5 of its bound"
    check([0.0], [1.0])
    at_most([0.0], [1.0])
    assert "2 checks, the tightest at 0 of its bound" in words(shown(capsys.readouterr().out))


def test_a_check_that_decides_names_its_claim_and_a_refutation_is_no_share_of_a_bound(capsys):
    check([1e-3, 1e-4], [2e-3, 1.0], "T-1")
    assert words(shown(capsys.readouterr().out)).strip() == "worst gap of 2: 1.0e-03, 0.5 of its bound (T-1)"
    refute([0.5, 2.0], [1.0], "T-2")
    assert words(shown(capsys.readouterr().out)).strip() == "refuted by 2 times its limit (T-2)"
    check([0.5], [1.0])
    refute([2.0], [1.0], "T-2")
    assert "2 checks, the tightest at 0.5 of its bound" in words(shown(capsys.readouterr().out))


def test_a_fact_is_a_line_in_words_and_is_exact(capsys):
    confirm([True, True], "x < y in both")
    assert words(shown(capsys.readouterr().out)).strip() == "true: x &lt; y in both"
    check([0.0], [1.0])
    confirm(True, "so it is")
    assert "2 checks, all exact" in words(shown(capsys.readouterr().out))
    confirm(True, "so it is")
    at_most([1.0], [2.0])
    assert "2 checks, the tightest at 0.5 of its bound" in words(shown(capsys.readouterr().out))


@pytest.mark.parametrize("text", ["worst gap 1e-3, 0.5 of its bound, n = 2\nand more\n", "0.3 right\n", "\n", "other"])
def test_other_outputs_stay(text):
    assert shown(text).text == text


def test_an_exercise_does_not_say_right_before_the_reader_has_answered():
    assert "solution passes" in words(shown("right right\n"))
    assert "solution passes" in words(shown("(a) right\n(b) right\n"))
    assert shown("(a) right\n(b) not right: yours is 3\n").text == "(a) right\n(b) not right: yours is 3\n"


BOX = "```{solution} ex\n:label: sol\n:class: dropdown\n\nBecause.\n```"


def solved(box: str, tags: list[str], outputs=()) -> nbformat.NotebookNode:
    code = new_code_cell("answer = 0.5", metadata={"tags": tags}, outputs=list(outputs))
    notebook = new_notebook(cells=[new_markdown_cell(box), code])
    cells.tidy(notebook)
    return notebook


@pytest.mark.parametrize("fence", ["```", "::::"])
def test_the_code_of_a_solution_stands_in_its_box(fence):
    notebook = solved(f"Words.\n\n{BOX.replace('```', fence)}", ["solution", "hide-cell"])
    lines = notebook.cells[0].source.splitlines()
    assert lines[:3] == ["Words.", "", "``````{solution} ex"]
    assert lines[3:7] == BOX.splitlines()[1:5]
    assert lines[7:] == ["", "```python", "answer = 0.5", "```", "``````"]
    assert "remove-cell" in notebook.cells[1].metadata.tags


@pytest.mark.parametrize(
    ("box", "tags", "outputs"),
    [
        ("Only words.", ["solution", "hide-cell"], ()),
        (BOX, ["solution"], ()),
        (BOX, ["solution", "hide-cell"], (new_output("stream", text="shown"),)),
        (BOX + "\n\nMore.", ["solution", "hide-cell"], ()),
    ],
)
def test_any_other_cell_stays_where_it_is(box, tags, outputs):
    notebook = solved(box, tags, outputs)
    assert notebook.cells[0].source == box
    assert "remove-cell" not in notebook.cells[1].metadata.tags
