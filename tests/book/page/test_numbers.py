"""The role {claim}: numbers of the ledger in a chapter's text."""

import nbformat
import pytest

from derived.book.house import UserError
from derived.book.page import numbers

ROW = {"id": "T-1.a", "headline": True, "value": -0.12345, "low": -0.2, "high": None, "n": 1200, "verdict": "holds"}
ROWS = [
    ROW | {"headline": False, "value": 9.0},
    ROW,
    ROW | {"id": "T-2", "value": None, "low": None, "verdict": "not run"},
]


def filled(text: str) -> str:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(text)])
    numbers.fill("toy", notebook, ROWS)
    return notebook.cells[0].source


@pytest.mark.parametrize(
    ("role", "words"),
    [
        ("{claim}`T-1.a`", "−0.123"),
        ("{claim}`T-1.a:.0%`", "−12%"),
        ("{claim}`T-1.a interval:.2f`", "[−0.20, ∞]"),
        ("{claim}`T-1.a n`", "1,200"),
    ],
)
def test_a_role_prints_value_interval_or_count_of_the_headline_row(role, words):
    assert filled(f"It is {role}, and") == f"It is {words}, and"


@pytest.mark.parametrize(
    ("role", "error"),
    [("{claim}`T-9`", "no claim is called so"), ("{claim}`T-2`", r"whose row has no value \(not run\)")],
)
def test_a_claim_without_the_number_is_an_error(role, error):
    with pytest.raises(UserError, match=error):
        filled(role)


def test_captions_are_filled_too():
    cell = nbformat.v4.new_code_cell("show(f)", metadata={"mystnb": {"figure": {"caption": "At {claim}`T-1.a`."}}})
    numbers.fill("toy", nbformat.v4.new_notebook(cells=[cell]), ROWS)
    assert cell.metadata["mystnb"]["figure"]["caption"] == "At −0.123."
