"""Light pages: what is done to the HTML of a page before it is written."""

import re
from types import SimpleNamespace

import pandas as pd
import pytest

from bookbuilder.sphinx_site import slim_html


def heads(table: pd.DataFrame) -> list[list[str]]:
    """The rows of heads of a table's page, each a list of words."""
    context = {"body": table.to_html()}
    slim_html.join_heads(None, "", "", context, None)
    return [slim_html.HEAD_CELL.findall(row) for row in context["body"].split("</thead>")[0].split("</tr>")[:-1]]


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


def test_figures_have_their_size_wait_and_scroll_where_a_phone_would_make_letters_too_small(tmp_path):
    """A phone is 390 px wide, and letters shrink with a figure to it."""
    sizes = {"fits": (390, 300, 9), "small": (195, 150, 6), "shrunk": (780, 400, 13), "large": (780, 400, 18)}
    for name, (wide, high, letter) in sizes.items():
        words = f'<g style="font-size: {letter * 0.75}px"/>'
        (tmp_path / f"{name}.svg").write_text(f'<svg width="{wide * 0.75}pt" height="{high * 0.75}pt">{words}</svg>')
    images = {f"{name}.svg": f"{name}.svg" for name in sizes}
    app = SimpleNamespace(srcdir=tmp_path, builder=SimpleNamespace(images=images))
    context = {"body": "".join(f'<img alt="{name}" src="../_images/{name}.svg" style="width: 9%" />' for name in sizes)}
    slim_html.wait_for_figures(app, "", "", context, None)
    shown = re.findall(r"<img [^>]*>", context["body"])
    assert ["wide" in each for each in shown] == [False, False, True, False]
    assert re.findall(r'style="([^"]*)"', context["body"]) == ["--least: 648px"], "letters of 10.8 px"
    assert ["lazy" in each for each in shown] == [False, True, True, True]
    for each, (wide, high, _) in zip(shown, sizes.values(), strict=True):
        assert f'width="{wide}" height="{high}"' in each


@pytest.mark.parametrize(("error", "kind"), [(ValueError("no page"), "html"), (None, "latex")])
def test_icons_are_those_of_finished_pages_alone(error, kind, tmp_path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "index.html").write_text('<i class="fa-solid fa-bars"></i>')
    slim_html.write_icons(SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format=kind)), error)
    assert not any((tmp_path / "_static").iterdir())
