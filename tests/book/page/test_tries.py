"""*Try it* takes its place at the end of the chapter's mechanism."""

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from derived.book.house import UserError
from derived.book.page import tries

PROGRAM = (
    '"""It counts.\n\n- Try four.\n"""\n\nfrom my_paper import n\nfrom picture import plot\n\nprint(n)\nresult = [n]\n'
)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "pencil").mkdir()
    files = {"try_my_paper": PROGRAM, "my_paper": "n = 3\n", "picture": "shown = []\nplot = shown.append\n"}
    for name, text in files.items():
        (tmp_path / f"pencil/{name}.py").write_text(text, "utf-8")
    return tmp_path


def _notebook(*texts: str):
    return new_notebook(
        cells=[*map(new_markdown_cell, texts[:2]), new_code_cell("## Experiments"), *map(new_markdown_cell, texts[2:])]
    )


def test_it_ends_the_mechanism(root):
    notebook = _notebook("# One", "(m)=\n## Mechanism\n", "(e)=\n## Experiments", "## Claims")
    tries.add(root, "my_paper", notebook)
    assert [cell.source.split("\n")[0] for cell in notebook.cells[2:5]] == ["## Experiments", "### Try it", "(e)="]
    shown = notebook.cells[3].source
    assert f"It counts.\n\n{tries.ASK}\n\n- Try four." in shown
    assert '<pre class="try-output" aria-live="polite" tabindex="0">3</pre>' in shown
    assert '{"curves": [], "result": [3]}' in shown


def test_curves_keep_their_order_and_with_it_their_colours(root):
    program = PROGRAM.replace("print(n)", 'plot({"x": [1], "curves": {"two": [1], "one": [2]}, "label": ""})')
    (root / "pencil/try_my_paper.py").write_text(program, "utf-8")
    notebook = _notebook("# One", "## Mechanism")
    tries.add(root, "my_paper", notebook)
    shown = notebook.cells[-1].source
    assert shown.index('"two"') < shown.index('"one"')


def test_a_cell_that_ends_the_mechanism_and_begins_what_follows_is_cut_in_two(root):
    notebook = _notebook("# One", "## Mechanism", "its last words\n\n(e)=\n## Experiments\nmore", "## Claims")
    tries.add(root, "my_paper", notebook)
    assert [cell.source.split("\n")[0] for cell in notebook.cells[3:6]] == ["its last words", "### Try it", "(e)="]
    assert notebook.cells[3].source == "its last words"
    assert notebook.cells[5].source == "(e)=\n## Experiments\nmore"


def test_a_chapter_without_a_program_stays_as_it_is(root):
    notebook = _notebook("# One", "## Mechanism")
    tries.add(root, "another", notebook)
    assert len(notebook.cells) == 3


def test_a_program_without_a_place_is_named(root):
    with pytest.raises(UserError, match="needs the section '## Mechanism'"):
        tries.add(root, "my_paper", _notebook("# One", "## Setup"))


EXERCISE = (
    '"""mp-ex: three more.\n"""\n\n\ndef more(n): ...\n\n\nprint("no answer yet" if more(1) is None else "right")\n'
)
ASKED = "```{exercise} Three more\n:label: mp-ex\n\n*Implement.* Write it.\n```"


def test_an_exercise_stands_beside_the_mechanism_and_its_text_links_to_it(root):
    (root / "pencil/exercise_my_paper.py").write_text(EXERCISE, "utf-8")
    notebook = _notebook("# One", "## Mechanism", "## Exercises", f"Before.\n\n{ASKED}\n\nAfter.")
    tries.add(root, "my_paper", notebook)
    shown, asked = notebook.cells[3].source, notebook.cells[-1].source
    assert '<option value="1">Exercise: Three more</option>' in shown
    assert '"text": "no answer yet"' in shown
    assert "def more(n): ..." in shown
    assert asked == f"Before.\n\n{ASKED[:-3]}\n{tries.ANSWER}\n```\n\nAfter."


def test_an_exercise_that_the_chapter_does_not_have_is_named(root):
    (root / "pencil/exercise_my_paper.py").write_text(EXERCISE, "utf-8")
    with pytest.raises(UserError, match="begins with 'mp-ex', which is no exercise of my_paper"):
        tries.add(root, "my_paper", _notebook("# One", "## Mechanism"))
