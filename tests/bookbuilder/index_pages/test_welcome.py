"""The welcome page: a line for each chapter, its counts, and the spheres."""

import base64

import nbformat
import pytest
from bs4 import BeautifulSoup
from test_pages import chapter, row
from toybook import ROOT

from bookbuilder import contents
from bookbuilder.chapter_pages import explorer
from bookbuilder.index_pages import welcome
from bookbuilder.paths import Repo


def notebook(*cells: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A title\n\nwords"), *cells])


def repo(root, front: str):
    (root / "book").mkdir()
    (root / "book/chapters.yml").write_text(f"{front}\nparts: [{{caption: Chapters}}]\n")
    return root


FRONT = """
chapters: {other: {}, toy: {surprise: It surprises.}, absent: {}}
"""


def cards(root, *rows: dict) -> list[welcome.Card]:
    one = chapter(*rows, short=7)
    return welcome.cards(repo(root, FRONT), [one], {"toy": notebook()})


def test_a_line_says_what_surprises_and_what_it_takes(tmp_path):
    line = BeautifulSoup(welcome.shelf(cards(tmp_path)), "html.parser").select_one("ol.shelf > li")
    assert line["value"] == "2", "the number in the whole book"
    assert line.a["href"] == "../notebooks/toy.html"
    assert line.select_one(".shelf-surprise").get_text() == "It surprises."
    assert line.select_one(".shelf-time").get_text() == "45 min"


def counted(root, *rows: dict) -> BeautifulSoup:
    return BeautifulSoup(welcome.counts(cards(root, *rows)), "html.parser")


def test_the_welcome_page_counts_what_became_of_papers_code_and_retellings(tmp_path):
    rows = [
        row("A"),
        row("B", "undecided"),
        row("C", "not run"),
        row("D", "reported"),
        row("E", "fails", source="repo"),
    ]
    rows += [row("F", "fails", source="digest"), row("G", source="ours"), row("H", source="prior")]
    rows += [row("A", "fails", tier="cpu", headline=False)]
    lines = [
        [cell.get_text() for cell in line.select("th, td")] for line in counted(tmp_path, *rows).select("tbody tr")
    ]
    assert lines == [
        ["4 claims of the papers", "1", "–", "1", "1", "1"],
        ["1 claim of their authors' code", "–", "1", "–", "–", "–"],
        ["1 claim of the papers, from a summary", "–", "1", "–", "–", "–"],
    ]


def test_a_shared_link_shows_the_surprise(tmp_path):
    said = welcome.shared(cards(tmp_path))
    assert said["notebooks/toy"] == "It surprises."
    assert said["book/intro"].startswith("Do one new results")


def spheres() -> nbformat.NotebookNode:
    """Two tokens on one sphere over three layers, at last one on the right and in front, one at the top and behind."""
    first, last = [0, 0, 1000] * 2, [999, 0, 10, 0, 995, -100]
    given = {"layers": [0, 6, 12], "places": [[first, first, last]]}
    layout = {"meta": {"alt": "Tokens.", "given": given}, "annotations": [{"text": "prompt A"}]}
    data = [{"mode": "lines"}, {"mode": "markers", "marker": {"color": ["#000001", "#000002"]}}]
    output = nbformat.v4.new_output("display_data", {explorer.PLOTLY: {"data": data, "layout": layout}})
    return notebook(nbformat.v4.new_code_cell("explorer(e)", outputs=[output]))


def test_the_spheres_show_their_end_without_scripts_and_hold_every_layer(tmp_path):
    root = repo(tmp_path, "sphere: toy\nchapters: {toy: {}}")
    soup = BeautifulSoup(welcome.sphere(root, {"toy": spheres()}), "html.parser")
    near, far = soup.select("circle.token")
    places = [(float(token["cx"]), float(token["cy"]), float(token["opacity"])) for token in (near, far)]
    assert places == [pytest.approx(at, abs=0.6) for at in ((192.9, 100, 1), (100, 7.5, 0.3))]
    assert [token["fill"] for token in (near, far)] == ["#000001", "#000002"]
    assert soup.select_one("output").get_text() == "layer 12"
    assert soup.select_one("b").get_text() == "0.50", "the length squared of the mean of the two"
    assert "2 tokens, a dot each, pass 12 untrained layers" in soup.select_one(".spheres-words").get_text()
    data = base64.b64decode(soup.script.get_text().split('atob("')[1].split('"')[0])
    assert list(data) == [128, 128, 255] * 4 + [255, 128, 129, 128, 254, 115]
    assert welcome.sphere(root, {"other": spheres()}) == ""


def test_each_chapter_of_the_book_has_a_sentence_without_maths():
    written, slugs = contents.read(ROOT), Repo(ROOT).chapters()
    for slug, words in written.chapters.items():
        assert words.surprise.endswith("."), slug
        assert not set("$\\{}`") & set(words.surprise), slug
    assert written.sphere in slugs
