"""Light pages: what is done to the HTML of a page before it is written."""

import pandas as pd
import pytest

from derived.book.site import light


def heads(table: pd.DataFrame) -> list[list[str]]:
    """The rows of heads of a table's page, each a list of words."""
    context = {"body": table.to_html()}
    light.join_heads(None, "", "", context, None)
    return [light.HEAD_CELL.findall(row) for row in context["body"].split("</thead>")[0].split("</tr>")[:-1]]


def test_names_of_an_index_stand_in_the_row_of_the_other_heads():
    rows = pd.DataFrame({"V": [2, 4], "rule": ["a", "b"], "KL": [0.5, 1.0], "": [1, 2]})
    assert heads(rows.set_index("V")) == [["V", "rule", "KL", ""]]
    assert heads(rows.set_index(["V", "rule"])) == [["V", "rule", "KL", ""]]
    assert heads(rows) == [["", "V", "rule", "KL", ""]]


@pytest.mark.parametrize("columns", ["measure", ["measure", "of"]])
def test_heads_that_a_name_would_hide_keep_their_rows(columns):
    rows = pd.DataFrame([[1, 2]], index=pd.Index([0], name="V"))
    if isinstance(columns, list):
        rows.columns = pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")], names=columns)
    rows = rows.rename_axis(columns=columns)
    assert len(heads(rows)) == 1 + rows.columns.nlevels
