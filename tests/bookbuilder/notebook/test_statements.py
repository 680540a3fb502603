"""Whose a statement is, where it is checked, and which test bears its label."""

from nbformat.v4 import new_code_cell, new_markdown_cell

from bookbuilder.notebook import statements


def theorem(label: str, kind: str = "theorem", whose: str = "paper") -> str:
    return f"```{{prf:{kind}}} A title\n:label: {label}\n:class: {whose} dropdown\nIt is so.\n```\n"


def found(*cells) -> list[tuple[str, int | None]]:
    return [(each.label, each.check) for each in statements.statements({"cells": list(cells)})]


def test_the_check_is_the_first_code_before_the_next_statement():
    code, text = new_code_cell("check()"), new_markdown_cell("Words.")
    first, second = new_markdown_cell(theorem("a")), new_markdown_cell(theorem("b", "definition"))
    assert found(first, text, code, second, code) == [("a", 2), ("b", 4)]
    assert found(first, second, code) == [("a", None), ("b", 2)]
    assert found(new_markdown_cell(theorem("a") + "\n" + theorem("b")), code) == [("a", None), ("b", 1)]


def test_the_source_below_an_algorithm_is_no_check_of_it():
    assert found(new_markdown_cell(theorem("a", "algorithm")), new_code_cell("source(f)")) == [("a", None)]


def test_a_cell_may_name_what_it_checks():
    named = new_code_cell("check()", metadata={"derived": {"checks": ["a"]}})
    assert found(new_markdown_cell(theorem("a")), new_code_cell("x = 1"), named) == [("a", 2)]


def test_a_cell_that_nobody_sees_checks_nothing():
    hidden = new_code_cell("glue()", metadata={"tags": ["remove-cell"], "derived": {"checks": ["a"]}})
    assert found(new_markdown_cell(theorem("a")), hidden, new_code_cell("check()")) == [("a", 2)]
    assert found(new_markdown_cell(theorem("a")), hidden) == [("a", None)]


def test_a_badge_is_one_of_the_words_of_the_ledger():
    cells = [new_markdown_cell(theorem(label, whose=whose)) for label, whose in (("a", "retold"), ("b", "ought"))]
    assert [each.whose for each in statements.statements({"cells": cells})] == ["retold", ""]


def test_a_statement_without_options_is_a_statement_still():
    (each,) = statements.statements({"cells": [new_markdown_cell(":::{prf:lemma}\nIt is so.\n:::")]})
    assert (each.kind, each.label, each.whose) == ("lemma", "", "")


def test_a_label_is_borne_by_the_test_in_whose_words_it_stands(tmp_path):
    path = tmp_path / "tests/papers/toy/test_one.py"
    path.parent.mkdir(parents=True)
    path.write_text('''"""Module: `not-borne`? It is."""

def helper():
    """`of-no-test`"""

# `above` this one
def test_first():
    """`inside`, and `both`."""

def test_second():
    assert True  # `both`
''')
    borne = {label: [test.name for test in each] for label, each in statements.tests(tmp_path, "toy").items()}
    assert borne == {"above": ["test_first"], "inside": ["test_first"], "both": ["test_first", "test_second"]}
    assert statements.tests(tmp_path, "toy")["above"][0][::2] == ("tests/papers/toy/test_one.py", 7)
