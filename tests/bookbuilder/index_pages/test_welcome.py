"""The welcome page: pictures of the chapters, their cards, the paths, and the spheres."""

import base64

import nbformat
import pytest
from bs4 import BeautifulSoup
from PIL import Image
from test_pages import chapter, row
from toybook import ROOT

from bookbuilder import contents
from bookbuilder.chapter_pages import explorer
from bookbuilder.index_pages import welcome
from bookbuilder.paths import Repo, UserError

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" width="{}pt" height="{}pt" viewBox="0 0 {} {}">'
DRAWING = HEAD + '<rect width="100%" height="100%" fill="#14537d"/></svg>'


def drawing(width: int, height: int) -> str:
    return DRAWING.format(width, height, width, height)


def shown(name: str, alt: str) -> nbformat.NotebookNode:
    about = {welcome.SVG: {"alt": alt}}
    output = nbformat.v4.new_output("display_data", {welcome.SVG: drawing(400, 200)}, metadata=about)
    return nbformat.v4.new_code_cell("show(f)", outputs=[output], metadata={"mystnb": {"figure": {"name": name}}})


def notebook(*cells: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# A title\n\nwords"), *cells])


def test_the_picture_is_the_first_one_unless_another_is_named():
    chapter = notebook(shown("a", "first"), shown("b", "b"), shown("c", "c"))
    assert welcome.picture("toy", chapter).alt == "first"
    assert welcome.picture("toy", chapter, "c").alt == "c"
    assert welcome.picture("toy", notebook()) is None
    with pytest.raises(UserError, match="toy has no figure fig-x"):
        welcome.picture("toy", chapter, "fig-x")


@pytest.mark.parametrize(("width", "height"), [(400, 100), (200, 400)])
def test_a_picture_is_drawn_whole_within_its_margins(tmp_path, width, height):
    card = welcome.Card(1, chapter(), "A title", "Title", "So.", welcome.Picture(drawing(width, height), "alt"))
    welcome.draw(card, tmp_path)
    with Image.open(tmp_path / "toy.png") as file:
        image = file.convert("RGB")
    assert image.size == welcome.SHARED
    wide, high = image.size
    left, top, right, bottom = Image.eval(image.convert("L"), lambda value: 255 * (value < 128)).getbbox()
    assert (right - left) / (bottom - top) == pytest.approx(width / height, rel=0.02)
    assert min(left, top, wide - right, high - bottom) == pytest.approx(welcome.MARGIN * wide, abs=1)
    assert left + right == pytest.approx(wide, abs=2)


def repo(root, front: str):
    (root / "book").mkdir()
    (root / "book/chapters.yml").write_text(f"{front}\nparts: [{{caption: Chapters}}]\n")
    return root


FRONT = """
chapters: {other: {}, toy: {surprise: It surprises.}, absent: {}}
"""


def cards(root, *rows: dict) -> list[welcome.Card]:
    one = chapter(*rows, short=7)
    return welcome.cards(repo(root, FRONT), [one], {"toy": notebook(shown("a", "What it shows."))})


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


def test_a_shared_link_shows_the_surprise_and_the_picture(tmp_path):
    said = welcome.shared(tmp_path, cards(tmp_path))["notebooks/toy"]
    picture = {"image": "cards/toy.png", "alt": "What it shows.", "size": (1200, 630)}
    assert said == {"description": "It surprises.", **picture}


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
    assert "2 tokens of a prompt pass 12 layers" in soup.select_one(".spheres-words").get_text()
    data = base64.b64decode(soup.script.get_text().split('atob("')[1].split('"')[0])
    assert list(data) == [128, 128, 255] * 4 + [255, 128, 129, 128, 254, 115]
    assert welcome.sphere(root, {"other": spheres()}) == ""


def test_each_chapter_of_the_book_has_a_sentence_without_maths():
    written, slugs = contents.read(ROOT), Repo(ROOT).chapters()
    for slug, words in written.chapters.items():
        assert words.surprise.endswith("."), slug
        assert not set("$\\{}`") & set(words.surprise), slug
    assert written.sphere in slugs
