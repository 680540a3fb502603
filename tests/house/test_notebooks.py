"""What no notebook's code may hold, and how it is stored."""

import ast
import json

import pytest
from jupytext.cli import jupytext

from bookbuilder.paths import find_repo
from bookbuilder.run.driver import cells_code

REPO = find_repo()


@pytest.mark.parametrize("slug", [*REPO.chapters(), *REPO.essays()])
def test_no_step_is_a_bare_assert_which_a_flag_of_python_drops(slug):
    notebook = json.loads(REPO.notebook(slug).read_text("utf-8"))
    code = ast.parse(cells_code(slug, notebook))
    bare = [ast.unparse(node) for node in ast.walk(code) if isinstance(node, ast.Assert)]
    assert not bare, "say it with check, at_most or confirm of lab.page"


@pytest.mark.parametrize("slug", REPO.chapters())
def test_a_way_through_markdown_and_back_leaves_an_untouched_notebook_as_it_is(slug, tmp_path):
    """The loop of CONTRIBUTING; its diff would show what nobody edited."""
    stored = REPO.notebook(slug).read_bytes()
    notebook, text = tmp_path / f"{slug}.ipynb", str(tmp_path / "chapter.md")
    notebook.write_bytes(stored)
    jupytext(["--to", "md:myst", str(notebook), "-o", text, "--quiet"])
    jupytext(["--to", "ipynb", "--update", text, "-o", str(notebook), "--quiet"])
    assert notebook.read_bytes() == stored, "store the notebook as the loop leaves it"
