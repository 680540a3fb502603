"""*Try it* takes its place at the end of the chapter's mechanism."""

import subprocess
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookbuilder.chapter_pages import live_code
from bookbuilder.paths import UserError

ROOT = Path(__file__).resolve().parents[3]
REFERENCES = sorted((ROOT / "src/derived/papers").glob("*/reference.py"))
PROGRAM = '''"""Three."""

n = 3
plot = globals().get("plot", print)

if __name__ == "__main__":
    # It counts.
    # - Try four.

    print(n)
    result = [n]
'''


@pytest.fixture
def path(tmp_path):
    path = live_code.reference(tmp_path, "my_paper")
    path.parent.mkdir(parents=True)
    path.write_text(PROGRAM, "utf-8")
    return path


def _notebook(*texts: str):
    return new_notebook(
        cells=[*map(new_markdown_cell, texts[:2]), new_code_cell("## Experiments"), *map(new_markdown_cell, texts[2:])]
    )


def test_it_ends_the_mechanism(path, tmp_path):
    notebook = _notebook("# One", "(m)=\n## The question\n", "(e)=\n## Experiments", "## Claims")
    live_code.add(tmp_path, "my_paper", notebook)
    assert [cell.source.split("\n")[0] for cell in notebook.cells[2:5]] == ["## Experiments", "### Try it", "(e)="]
    shown = notebook.cells[3].source
    assert f"It counts.\n\n{live_code.ASK}\n\n- Try four." in shown
    assert ">print(n)\nresult = [n]</textarea>" in shown
    assert '<pre class="try-output" aria-live="polite" tabindex="0">3</pre>' in shown
    assert '{"curves": [], "result": [3]}' in shown


def test_a_cell_that_ends_the_mechanism_and_begins_what_follows_is_cut_in_two(path, tmp_path):
    notebook = _notebook("# One", "## The question", "its last words\n\n(e)=\n## Experiments\nmore", "## Claims")
    live_code.add(tmp_path, "my_paper", notebook)
    assert [cell.source.split("\n")[0] for cell in notebook.cells[3:6]] == ["its last words", "### Try it", "(e)="]
    assert notebook.cells[3].source == "its last words"
    assert notebook.cells[5].source == "(e)=\n## Experiments\nmore"


def test_a_program_without_a_place_is_named(path, tmp_path):
    with pytest.raises(UserError, match="needs the section '## The question'"):
        live_code.add(tmp_path, "my_paper", _notebook("# One", "## Setup"))


@pytest.mark.parametrize("old", ["    # - Try four.\n", "    # It counts.\n", 'if __name__ == "__main__":\n'])
def test_a_program_without_words_or_without_a_beginning_is_named(path, old):
    path.write_text(PROGRAM.replace(old, ""), "utf-8")
    with pytest.raises(UserError, match=r"^my_paper: reference.py ends in 'if __name__"):
        live_code.read(path)


def test_a_program_that_fails_is_named_in_one_line(path):
    path.write_text("1 / 0\n", "utf-8")
    with pytest.raises(UserError, match=r"^my_paper: reference\.py: ZeroDivisionError: division by zero$"):
        live_code.run(path)


@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.parent.name)
def test_a_reference_program_runs_alone_and_prints_what_the_page_prints(path, tmp_path):
    done = subprocess.run([sys.executable, "-I", str(path)], cwd=tmp_path, capture_output=True, text=True, check=True)
    printed, recorded = live_code.run(path)
    assert done.stdout.startswith(printed)
    assert len(done.stdout.removeprefix(printed).strip().splitlines()) > 5  # its plot
    assert recorded["curves"]
    assert recorded["result"]
    parts = live_code.read(path)
    assert parts.lead[-1] in ".?"
    assert parts.things.count("- ") >= 2
    assert len(parts.program.splitlines()) <= 25
