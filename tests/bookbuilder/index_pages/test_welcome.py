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


def section(heading: str) -> nbformat.NotebookNode:
    return nbformat.v4.new_markdown_cell(f"## {heading}")


def test_the_picture_is_the_first_of_the_short_path_unless_another_is_named():
    short, more = section("In ten minutes"), section("More")
    chapter = notebook(shown("a", "first"), short, shown("b", "short"), more, shown("c", "c"))
    assert welcome.picture("toy", chapter).alt == "short"
    assert welcome.picture("toy", chapter, "c").alt == "c"
    assert welcome.picture("toy", notebook(short, more, shown("c", "late"))).alt == "late"
    assert welcome.picture("toy", notebook()) is None
    with pytest.raises(UserError, match="toy has no figure fig-x"):
        welcome.picture("toy", chapter, "fig-x")


@pytest.mark.parametrize(("width", "height"), [(400, 100), (200, 400)])
def test_a_picture_is_drawn_whole_within_its_margins(tmp_path, width, height):
    card = welcome.Card(1, chapter(), "A title", "So.", welcome.Picture(drawing(width, height), "alt"))
    welcome.draw(card, tmp_path)
    for name, size in (("toy.png", welcome.SHARED), ("toy-small.png", welcome.SMALL)):
        with Image.open(tmp_path / name) as file:
            image = file.convert("RGB")
        assert image.size == size
        left, top, right, bottom = Image.eval(image.convert("L"), lambda value: 255 * (value < 128)).getbbox()
        assert (right - left) / (bottom - top) == pytest.approx(width / height, rel=0.02)
        margin = round(welcome.MARGIN * size[0])
        assert min(left, top, size[0] - right, size[1] - bottom) == pytest.approx(margin, abs=1)
        assert left + right == pytest.approx(size[0], abs=2)


def repo(root, front: str):
    (root / "book").mkdir()
    (root / "book/chapters.yml").write_text(f"{front}\nparts: [{{caption: Chapters}}]\n")
    return root


FRONT = """
chapters: {other: {}, toy: {surprise: It surprises.}, absent: {}}
paths:
  - {name: Short, words: Some., short: true, chapters: [toy, absent]}
  - {name: Long, words: All., chapters: [toy], then: {page: teaching.html, words: Teach it}}
  - {name: Elsewhere, words: None., chapters: [absent]}
"""


def cards(root, *rows: dict) -> list[welcome.Card]:
    one = chapter(*rows, short=7)
    return welcome.cards(repo(root, FRONT), [one], {"toy": notebook(shown("a", "What it shows."))})


def test_a_card_says_what_surprises_what_it_takes_and_what_became_of_the_papers_claims(tmp_path):
    rows = [row("A"), row("B", "fails"), row("C", "fails", source="digest"), row("D", source="ours")]
    found = cards(tmp_path, *rows)
    card = BeautifulSoup(welcome.shelf(found), "html.parser").select_one("ul.shelf > li")
    assert card.select_one(".shelf-number").get_text() == "2", "the number in the whole book"
    assert card.select_one(".shelf-surprise").get_text() == "It surprises."
    assert card.img["alt"] == "What it shows."
    text = " ".join(card.get_text(" ").split())
    assert "7 min for the short path, 45 min for all of it" in text
    assert [" ".join(pill.get_text(" ").split()) for pill in card.select(".verdict")] == [
        *("✓ 1 holds", "✗ 1 fails", "(✗) 1 fails, from a summary"),
    ]


def first(root, *rows: dict) -> BeautifulSoup:
    return BeautifulSoup(welcome.first(root, cards(root, *rows)), "html.parser")


def test_the_first_screen_counts_what_became_of_papers_code_and_retellings(tmp_path):
    rows = [
        row("A"),
        row("B", "undecided"),
        row("C", "not run"),
        row("D", "reported"),
        row("E", "fails", source="repo"),
    ]
    rows += [row("F", "fails", source="digest"), row("G", source="ours"), row("H", source="prior")]
    rows += [row("A", "fails", tier="cpu", headline=False)]
    lines = [[cell.get_text() for cell in line.select("th, td")] for line in first(tmp_path, *rows).select("tbody tr")]
    assert lines == [
        ["4 claims of the papers", "1", "–", "2", "1"],
        ["1 claim of their authors' code", "–", "1", "–", "–"],
        ["1 claim of the papers, from a summary", "–", "1", "–", "–"],
    ]


def test_a_count_leads_to_the_claims_that_it_counts(tmp_path):
    link = first(tmp_path, row("B", "undecided"), row("C", "not run")).select_one("table a")
    assert link["href"] == "ledger.html#source=paper&verdict=undecided,not-run"


def test_each_claim_of_a_paper_is_a_mark_with_a_sign_and_leads_to_its_evidence(tmp_path):
    rows = [
        row("A", "fails"),
        row("B"),
        row("C", "fails", source="digest"),
        row("D", source="repo"),
        row("O", source="ours"),
    ]
    marks = first(tmp_path, *rows).select("ol.verdict-map > li a.mark")
    assert [mark["href"] for mark in marks] == [f"../claims/toy.html#{claim}" for claim in "BADC"]
    assert [(mark["class"][1], mark.get_text(), mark["aria-label"]) for mark in marks] == [
        ("mark-paper", "✓", "B holds"),
        ("mark-paper", "✗", "A fails"),
        ("mark-code", "✓", "D holds"),
        ("mark-retold", "✗", "C fails, from a summary"),
    ]


def test_the_first_button_leads_to_the_short_path_and_says_what_it_takes(tmp_path):
    found = cards(tmp_path)
    button = BeautifulSoup(welcome.first(tmp_path, found), "html.parser").select_one("a.first-way")
    assert button.get_text() == "Start: one surprise in seven minutes"
    assert BeautifulSoup(welcome.paths(tmp_path, found), "html.parser").select_one(button["href"]).h3.text == "Short"


def test_what_a_card_says_of_the_claim_is_written_by_hand_where_it_is(tmp_path):
    written = contents.read(repo(tmp_path, "chapters: {toy: {claims: It is so., holds: It is.}, other: {}}"))
    assert welcome.card_words(written, "toy") == {"claim": "It is so.", "holds": "It is."}
    assert welcome.card_words(written, "other") == {}


def test_what_the_paper_says_is_its_claim_where_no_other_sentence_is(tmp_path):
    written = contents.read(repo(tmp_path, "chapters: {toy: {read: All., surprise: So., says: It is so.}}"))
    words = {"claim": "It is so.", "read": "All.", "surprise": "So.", "says": "It is so."}
    assert welcome.card_words(written, "toy") == words


def test_a_chapter_without_a_sentence_shows_its_claim(tmp_path):
    root = repo(tmp_path, "chapters: {toy: {}}")
    [card] = welcome.cards(root, [chapter()], {"toy": notebook()})
    assert card.surprise == card.chapter.facts["claim"]
    assert "<img" not in welcome.shelf([card])


def test_paths_lead_through_the_chapters_that_are_there_and_add_up_their_minutes(tmp_path):
    found = cards(tmp_path)
    short, long = BeautifulSoup(welcome.paths(tmp_path, found), "html.parser").select("ul.paths > li")
    assert [link["href"] for link in short.select("a")] == ["../notebooks/toy.html#in-ten-minutes"]
    assert "It surprises." in short.get_text()
    assert "It surprises." not in long.get_text()
    assert "7 min to read" in short.get_text()
    assert [link["href"] for link in long.select("a")] == ["../notebooks/toy.html", "teaching.html"]
    assert "45 min to read" in long.get_text()


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
    assert "the tokens gather, so far on 0 of these 1 spheres." in soup.select_one(".spheres-words").get_text()
    data = base64.b64decode(soup.script.get_text().split('atob("')[1].split('"')[0])
    assert list(data) == [128, 128, 255] * 4 + [255, 128, 129, 128, 254, 115]
    assert welcome.sphere(root, {"other": spheres()}) == ""


def test_each_chapter_of_the_book_has_a_sentence_without_maths_and_paths_name_chapters():
    written, slugs = contents.read(ROOT), Repo(ROOT).chapters()
    for slug, words in written.chapters.items():
        for sentence in (words.surprise, words.claims, words.holds):
            assert sentence.endswith("."), slug
            assert not set("$\\{}`") & set(sentence), slug
    assert written.sphere in slugs
    assert 3 <= len(written.paths) <= 4
    assert {slug for path in written.paths for slug in path.chapters} <= set(slugs)
    assert [len(path.chapters) for path in written.paths if path.short] == [3]
