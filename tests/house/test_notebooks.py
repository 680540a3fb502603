"""What every chapter shows, and what no notebook's code may hold."""

import ast
import json
import re

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


def edition(slug: str) -> int:
    return json.loads(REPO.notebook(slug).read_text("utf-8"))["metadata"]["derived"]["edition"]


@pytest.mark.parametrize("slug", [slug for slug in REPO.chapters() if edition(slug) >= 3])
def test_a_way_through_markdown_and_back_leaves_an_untouched_notebook_as_it_is(slug, tmp_path):
    """The loop of CONTRIBUTING; its diff would show what nobody edited."""
    stored = REPO.notebook(slug).read_bytes()
    notebook, text = tmp_path / f"{slug}.ipynb", str(tmp_path / "chapter.md")
    notebook.write_bytes(stored)
    jupytext(["--to", "md:myst", str(notebook), "-o", text, "--quiet"])
    jupytext(["--to", "ipynb", "--update", text, "-o", str(notebook), "--quiet"])
    assert notebook.read_bytes() == stored, "store the notebook as the loop leaves it"


FIRST_DRAFTS = [slug for slug in REPO.chapters() if edition(slug) < 3]


@pytest.mark.parametrize("slug", FIRST_DRAFTS)
def test_the_mechanism_begins_with_an_algorithm_in_numbered_steps(slug):
    cells = json.loads(REPO.notebook(slug).read_text("utf-8"))["cells"]
    text = "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    box = re.search(r"^## Mechanism\n\n```\{prf:algorithm\} \w[^\n]+\n(.*?)\n```$", text, re.M | re.S)
    assert box, "no algorithm"
    assert re.search(r"^\*\*Input:\*\* .+ \*\*Output:\*\* ", box[1], re.M)
    steps = [int(step) for step in re.findall(r"^(\d+)\. ", box[1], re.M)]
    assert steps == [*range(1, len(steps) + 1)]
    assert len(steps) > 1
