"""What a chapter of the second edition must have: each fault is seen, in one line."""

import copy
import json
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from test_pages import row

from derived.book.source import edition

ROOT = Path(__file__).parents[3]
THEOREM = "```{prf:theorem}\n:label: toy-one\n:class: paper\nIt is so.\n```\n\n```{prf:proof}\nClear.\n```"
ROWS = [row("T-1", plain="It is so.", unit="nats", value=1.0), row("T-2")]


def whole() -> nbformat.NotebookNode:
    """A notebook without a fault."""
    cells = []
    for heading in edition.SECTIONS:
        cells.append(new_markdown_cell(f"## {heading}\n\nWords."))
    cells[0].source += "\n\n:::{admonition} A result\n:class: ours\nIt is so.\n:::"
    cells[3:4] = [new_markdown_cell("## Derivation: the step"), new_markdown_cell(THEOREM), new_code_cell("check()")]
    return new_notebook(cells=cells, metadata={"derived": {"edition": 2}})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "tests/papers/toy").mkdir(parents=True)
    (tmp_path / "tests/papers/toy/test_one.py").write_text("# `toy-one`\ndef test_it():\n    pass\n")
    return tmp_path


def test_a_whole_chapter_has_no_fault(root):
    assert edition.faults(root, "toy", whole(), ROWS) == []


def without(notebook, words: str):
    notebook.cells = [cell for cell in notebook.cells if words not in cell.source]


def swap(notebook):
    notebook.cells[0], notebook.cells[1] = notebook.cells[1], notebook.cells[0]


def edit(old: str, new: str):
    def change(notebook):
        for cell in notebook.cells:
            cell.source = cell.source.replace(old, new)

    return change


DEFINITION = "toy: definition toy-one lacks its badge"
FAULTS = [
    (lambda n: without(n, "Take-away"), "toy: it lacks the section Take-away"),
    (swap, "toy: its sections are not in the order In ten minutes, The question"),
    (edit(":::{admonition} A result", "::: no"), 'toy: "In ten minutes" has 0 boxed results; one to three are wanted'),
    (edit("Words.\n\n:::", "```{admonition} A\n```\n" * 3 + "\n:::"), 'toy: "In ten minutes" has 4 boxed results'),
    (lambda n: n.metadata.derived.update(minutes_to_read=5), "toy: its minutes are computed"),
    (edit("check()", "x = 1\n" * 6), "toy: the median cell has 6 lines of code, over 5"),
    (
        lambda n: n.cells.extend([new_code_cell("x"), new_code_cell("x\n" * 26)]),
        "toy: cell 14 has 26 lines of code, over 25",
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
    (line,) = edition.faults(root, "toy", notebook, ROWS)
    assert line.startswith(words)
    assert "\n" not in line


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row("T-1", plain="It is.", value=1.0)], "toy: claim T-1 has a value and no unit"),
        ([row("T-1")], "toy: 0 claims are told in plain words; one to 8 are wanted"),
        ([row(f"T-{n}", plain="It is.") for n in range(9)], "toy: 9 claims are told in plain words"),
    ],
)
def test_the_first_claims_are_few_and_have_units(root, rows, words):
    (line,) = edition.faults(root, "toy", whole(), rows)
    assert line.startswith(words)


def test_a_chapter_of_the_first_edition_is_left_alone(root):
    notebook = copy.deepcopy(whole())
    notebook.cells, notebook.metadata["derived"] = [], {}
    assert edition.faults(root, "toy", notebook, []) == []


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_the_source_of_each_chapter_keeps_its_edition(path):
    """Its claims are not looked at here: their rows need a run, and `derived site` judges them."""
    found = edition.faults(ROOT, path.stem, json.loads(path.read_text("utf-8")), ROWS)
    assert not found


def test_a_second_draft_has_its_own_sections_and_one_opening():
    notebook = whole()
    notebook.metadata.derived["edition"] = 3
    assert edition.faults(Path(), "toy", notebook)[0] == "toy: it lacks the sections In short, The paper's claims"
    edit("## In ten minutes", "## In short")(notebook)
    edit("## Claims", "## The paper's claims")(notebook)
    assert "toy: 0 cells before its first section are tagged opening; one is wanted" in edition.faults(
        Path(), "toy", notebook
    )
    notebook.cells.insert(0, new_code_cell("show(f)", metadata={"tags": ["opening"]}))
    assert not [fault for fault in edition.faults(Path(), "toy", notebook) if "section" in fault]
