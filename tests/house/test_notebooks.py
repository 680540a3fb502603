"""What no notebook's code may hold."""

import ast
import json

import pytest

from derived.book.house import this_house
from derived.book.run.driver import cells_code

HOUSE = this_house()


@pytest.mark.parametrize("slug", [*HOUSE.chapters(), *HOUSE.essays()])
def test_no_step_is_a_bare_assert_which_a_flag_of_python_drops(slug):
    notebook = json.loads(HOUSE.notebook(slug).read_text("utf-8"))
    code = ast.parse(cells_code(slug, notebook))
    bare = [ast.unparse(node) for node in ast.walk(code) if isinstance(node, ast.Assert)]
    assert not bare, "say it with check, at_most or confirm of lab.page"
