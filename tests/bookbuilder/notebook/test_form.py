"""What a chapter must have: each fault is seen, in one line."""

import copy
import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookbuilder.notebook import form

ROOT = Path(__file__).parents[3]
THEOREM = "```{prf:theorem}\n:label: toy-one\n:class: paper\nIt is so.\n```\n\n```{prf:proof}\nClear.\n```"


def whole() -> nbformat.NotebookNode:
    """A notebook without a fault."""
    cells = [new_markdown_cell(f"## {heading}\n\nWords.") for heading in form.SECTIONS]
    cells[2:2] = [new_markdown_cell("## The step"), new_markdown_cell(THEOREM), new_code_cell("check()")]
    cells.insert(0, new_code_cell("show(f)", metadata={"tags": ["opening"]}))
    return new_notebook(cells=cells, metadata={"derived": {"edition": 3}})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tests/papers/toy").mkdir(parents=True)
    (tmp_path / "tests/papers/toy/test_one.py").write_text("# `toy-one`\ndef test_it():\n    pass\n")
    return tmp_path


def test_a_whole_chapter_has_no_fault(root):
    assert form.faults(root, "toy", whole()) == []


def without(notebook, words: str):
    notebook.cells = [cell for cell in notebook.cells if words not in cell.source]


def swap(notebook):
    notebook.cells[1], notebook.cells[2] = notebook.cells[2], notebook.cells[1]


def edit(old: str, new: str):
    def change(notebook):
        for cell in notebook.cells:
            cell.source = cell.source.replace(old, new)

    return change


DEFINITION = "toy: definition toy-one lacks its badge"
FAULTS = [
    (lambda n: without(n, "Take-away"), "toy: it lacks the section Take-away"),
    (swap, "toy: its sections are not in the order In short, The question"),
    (lambda n: n.cells.pop(0), "toy: 0 cells before its first section are tagged opening; one is wanted"),
    (lambda n: n.cells.insert(0, n.cells[0]), "toy: 2 cells before its first section are tagged opening"),
    (
        lambda n: n.cells.extend(new_code_cell("x = 1\n" * 6) for _ in range(3)),
        "toy: the median cell has 6 lines of code, over 5",
    ),
    (
        lambda n: n.cells.extend([new_code_cell("x"), new_code_cell("x\n" * 26)]),
        "toy: cell 10 has 26 lines of code, over 25",
    ),
    (edit(":class: paper\n", ""), "toy: theorem toy-one lacks its badge"),
    (edit(":label: toy-one\n", ""), "toy: theorem without a label lacks its label, proof, test"),
    (edit("{prf:proof}", "{note}"), "toy: theorem toy-one lacks its proof"),
    (edit("{prf:theorem}\n:label: toy-one\n:class: paper", "{prf:definition}\n:label: toy-one"), DEFINITION),
    (edit("{prf:theorem}\n:label: toy-one", "{prf:definition}"), "toy: definition without a label lacks its label"),
    (lambda n: without(n, "check()"), "toy: theorem toy-one lacks its check cell"),
    (edit("toy-one", "toy-two"), "toy: theorem toy-two lacks its test"),
    (
        lambda n: n.cells[5].metadata.update(mystnb={"figure": {"name": "fig-my_Line"}}),
        "toy: figure fig-my_Line has another address on the page; call it fig-my-line",
    ),
]


@pytest.mark.parametrize(("change", "words"), FAULTS, ids=[words for _, words in FAULTS])
def test_each_fault_is_named_in_one_line(root, change, words):
    notebook = whole()
    change(notebook)
    (line,) = form.faults(root, "toy", notebook)
    assert line.startswith(words)
    assert "\n" not in line


def test_a_notebook_without_an_edition_is_left_alone(root):
    notebook = copy.deepcopy(whole())
    notebook.cells, notebook.metadata["derived"] = [], {}
    assert form.faults(root, "toy", notebook) == []


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_source_of_each_chapter_keeps_the_form(path):
    found = form.faults(ROOT, path.stem, json.loads(path.read_text("utf-8")))
    assert not found
