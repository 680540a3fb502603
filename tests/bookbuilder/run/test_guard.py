"""What no page may hold is found and named, and what looks like it is let through."""

import nbformat
import pytest
import toybook

from bookbuilder.run import guard


def page(*markdown: str, tags: tuple[str, ...] = ()) -> dict:
    cells = [nbformat.v4.new_markdown_cell(text, metadata={"tags": list(tags)}) for text in markdown]
    return nbformat.v4.new_notebook(cells=cells)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("words\n```python\nx = 1", "cell 1 (words): line 2: ``` is opened and not closed"),
        (":::{note}\nwords\n::", "cell 1 (:::{note}): line 1: ::: is opened and not closed"),
        ("````{exercise}\n```python\nx\n````", "cell 1 (````{exercise}): line 1: ```` is opened and not closed"),
        ("a $$x = 1$$ and\n$$\ny", "cell 1 (a $$x = 1$$ and): line 2: $$ is opened and not closed"),
        (":::{note}\n$$\nx\n:::", "cell 1 (:::{note}): line 2: $$ is opened and not closed"),
        (
            "```{solution} ex\nwords\n```",
            "cell 1 (```{solution} ex): a {solution} outside of a cell with the tag `solution` stays in the students' "
            "notebook",
        ),
    ],
)
def test_a_fault_of_the_source_is_named(text, fault):
    assert guard.source_faults(page(text)) == [fault]


@pytest.mark.parametrize(
    "text",
    [
        "$$\nx\n$$\nand $$y$$",
        "`$$` opens a display",
        "```python\ncost = '$$'\n```",
        "::::{note}\n:::{prf:proof}\n$$x$$\n:::\n::::",
        "````{exercise}\n```python\nx\n```\n````",
        "~~~\n```\n~~~",
        "a line\n::: of colons",
        "an inline ``` fence ```",
    ],
)
def test_what_is_closed_is_let_through(text):
    assert guard.source_faults(page(text)) == []


def test_a_solution_with_its_tag_is_let_through():
    assert guard.source_faults(page("```{solution} ex\nwords\n```", tags=("solution",))) == []


def output(**changes) -> dict:
    stream = {"output_type": "stream", "name": "stdout", "text": ""} | changes
    return {"cells": [{"cell_type": "code", "source": "x\ny", "metadata": {}, "outputs": [stream]}]}


MACHINE = {"/home/anna/": "the home directory", "node-17": "the name of this machine"}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        (
            {"text": f"Traceback\n {'x' * 90} in /home/anna/book\nKeyError"},
            f"its output shows the home directory (/home/anna/); do not print it: {'x' * 76} in /home/anna/book",
        ),
        (
            {"data": {"text/html": "<p>node-17"}},
            "its output shows the name of this machine (node-17); do not print it: <p>node-17",
        ),
        (
            {"name": "stderr", "text": "/tmp/ipykernel_1/2.py:1: UserWarning: overflow\n  x"},
            "it warns: UserWarning: overflow; mend what it warns of",
        ),
    ],
)
def test_a_fault_of_an_output_is_named(changes, fault):
    assert guard.output_faults(output(**changes), MACHINE) == [f"cell 1 (x): {fault}"]


@pytest.mark.parametrize(
    "changes",
    [{"text": "UserWarning: no"}, {"text": "my-node-17"}, {"data": {"image/png": "/home/anna/"}}, {"name": "stderr"}],
)
def test_other_outputs_are_let_through(changes):
    assert guard.output_faults(output(**changes), MACHINE) == []


def test_an_output_too_large_for_a_page_is_named_before_the_page_is_made():
    [fault] = guard.output_faults(output(output_type="stream", name="stdout", text="x" * 50_000_000), MACHINE)
    assert fault == "cell 1 (x): its output has 50 MB, and no page shows over 2; show less"


def test_the_name_of_the_machine_counts_only_where_it_is_no_word(monkeypatch):
    for host, counts in {"node-17": True, "h100": False, "attention": False}.items():
        monkeypatch.setattr(guard.socket, "gethostname", lambda host=host: host)
        assert (host in guard.private()) == counts


def test_the_home_directory_is_nobodys_business(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", "/home/anna")
    assert guard.private(tmp_path).items() >= {
        *{"/home/anna/": "the home directory", f"{tmp_path}/": "the working directory"}.items()
    }


def test_a_proof_that_is_not_on_the_page_is_named():
    rows = [{"id": "T-1", "proof": "thm-there"}, {"id": "T-2", "proof": "thm-gone"}, {"id": "T-3", "proof": ""}]
    notebook = page("```{prf:theorem} A title\n:label: thm-there\n$1 = 1$.\n```")
    assert guard.proof_faults(notebook, rows) == ["claim T-2 rests on 'thm-gone', a label that the page has not"]


def test_no_chapter_of_the_book_has_a_fault():
    for path in sorted((toybook.ROOT / "notebooks").glob("*.ipynb")):
        assert guard.source_faults(nbformat.read(path, as_version=4)) == [], path.name
