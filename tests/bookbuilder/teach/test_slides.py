"""Decks of a chapter, from a small built page."""

import pytest
from bs4 import BeautifulSoup
from test_pages import chapter, row

from bookbuilder.chapter_pages import explorer
from bookbuilder.notebook.lectures import LENGTHS, Step
from bookbuilder.teach import slide_blocks, slides

LONG = "Words of a sentence that goes on. " * 14
PAGE = """<html><head><link rel="stylesheet" href="../_static/a.css"/><script src="../_static/other.js"></script>
<script defer="defer" src="../_static/mathjax/tex-chtml.js"></script></head><body><article><section id="toy">
<h1><span class="section-number">2. </span>A toy<a class="headerlink" href="#toy">#</a></h1>
<section id="the-question"><h2><span class="section-number">2.1. </span>The question</h2>
<p>LONG</p><p>LONG</p>
<div class="cell docutils container"><div class="cell_input">1 + 1</div></div>
<p>It is</p><div class="math notranslate" id="equation-one"><span class="eqno">(2.1)</span>\\[ 2 + 2 = 4 \\]</div>
<p>A line that leads to a cell:</p>
<div class="cell docutils container"><div class="cell_output"><div class="output stream"><pre>7</pre></div></div></div>
<p>Short.</p>
</section>
<section id="setup"><h2>Setup</h2><div><table><thead><tr><th>symbol</th><th>meaning</th></tr></thead><tbody>
<tr><td><span class="math">\\(\\delta\\ge0\\)</span></td><td>budget</td></tr>
<tr><td><span class="math">\\(V_+\\)</span></td><td>count</td></tr></tbody></table></div></section>
<section id="derivation"><h2>Derivation</h2><p>Prose.</p>
<section id="step"><h3>A step</h3>
<div class="proof definition admonition" id="d"><p class="admonition-title">Definition 2.1 (It)
<a class="headerlink">#</a></p>
<p>It is what it is, for <span class="math">\\(\\delta\\)</span>.</p><p class="statement-links">tested</p></div>
<div class="proof theorem admonition" id="t"><p class="admonition-title"><span class="caption-number">Theorem 2.1</span>
(All <span class="math">\\(x\\)</span>)<span class="whose">ours</span></p><p>By <a href="#equation-one">(2.1)</a> and
<a href="#d">Definition 2.1</a>.</p>
<p class="statement-links">bears on <a href="../claims/toy.html#T-2">T-2</a></p></div>
<details class="proof-fold" id="proof-t"><summary>Proof</summary><div class="proof admonition"><p>Clear.</p></div>
</details>
<div class="ours admonition"><p>Our words.</p></div>
</section></section>
<section id="mechanism"><h2>Mechanism</h2><p>This much code:</p>
<div class="cell"><div class="cell_output"><div class="highlight-python"><pre>def f(): pass</pre></div></div></div>
</section>
<section id="experiments"><h2>Experiments</h2>
<div class="cell"><div class="cell_output"><figure id="f"><img src="f.svg" alt="a line"/>
<figcaption>
<span class="caption-number">Fig. 2.1 </span>By
<a href="#t">Theorem 2.1</a>.</figcaption></figure></div></div>
<div class="cell"><div class="cell_output"><div class="explorer" aria-label="DIAL"><script>{}</script></div></div></div>
</section>
<section id="claims"><h2>Claims</h2><table><tr><td>the ledger</td></tr></table></section>
<section id="exercises"><h2>Exercises</h2>
<div class="exercise admonition" id="e"><p class="admonition-title">Exercise 2.1</p><p>Do it.</p></div>
<div class="solution dropdown admonition" id="s"><p>Done.</p></div></section>
<section id="take-away"><h2>Take-away</h2><p>It holds (<a href="#t">Theorem 2.1</a>), and more is to be said about it
than fits into this sentence, which is long enough to fill a slide by itself.</p>
<ul><li>See <a href="#d">Definition 2.1</a>.</li><li>Or not.</li></ul></section>
</section></article></body></html>""".replace("LONG", LONG).replace("DIAL", LONG)


def paths(*shown: str) -> dict[int, list[Step]]:
    """The same path for each length: the steps, each a string of labels; the one with a proof proves it."""
    ways = ["prove" if "t" in show.split() else "" for show in shown]
    steps = [Step(tuple(show.split()), "", 10, False, "", way) for show, way in zip(shown, ways, strict=True)]
    return dict.fromkeys(LENGTHS, steps)


@pytest.fixture(autouse=True)
def shapeless(monkeypatch):
    """Small decks need no pictures."""
    monkeypatch.setattr(slides.checks, "shape", lambda *_: iter(()))


def deck(*shown: str) -> slides.Lecture:
    return slides.make(chapter(row("T-1")), BeautifulSoup(PAGE, "html.parser"), paths(*shown))[0]


def words(lecture: slides.Lecture) -> list[tuple[str, str]]:
    heads = [" ".join(BeautifulSoup(each.heading, "html.parser").get_text().split()) for each in lecture.slides]
    return [(head, " ".join(each.text.split())[:30]) for head, each in zip(heads, lecture.slides, strict=True)]


def refused(*shown: str) -> str:
    with pytest.raises(slides.DeckError) as caught:
        deck(*shown)
    return str(caught.value).splitlines()[0]


def test_text_fills_slides_evenly_and_a_sentence_keeps_its_formula():
    made = deck("the-question#1-4")
    assert [len(each.parts) for each in made.slides] == [1, 3]
    assert "It is" in made.slides[1].text
    assert "2 + 2 = 4" in made.slides[1].text


def test_a_sentence_that_leads_to_nothing_is_left_out():
    known = slide_blocks.things(BeautifulSoup(PAGE, "html.parser"), [])
    assert [part.get_text()[:5] for part in known["the-question"].parts] == [
        "Words",
        "Words",
        "It is",
        "(2.1)",
        "Short",
    ]


def test_a_statement_is_the_heading_and_its_proof_the_note():
    made = deck("setup", "the-question#1-4", "d", "t", "f")
    assert words(made)[-3:] == [
        ("Definition 2.1 (It)", "It is what it is, for \\(\\delta"),
        ("Theorem 2.1 (All \\(x\\))ours", "By (2.1) and Definition 2.1 ."),
        ("Experiments", "Fig. 2.1 By Theorem 2.1 ."),
    ]
    assert "Clear." in made.slides[-2].notes
    assert "<summary>" not in made.slides[-2].notes
    assert not any("Clear." in each.text or "tested" in each.text for each in made.slides)
    assert [each.name for each in made.plan][-2:] == ["Theorem 2.1 (All $x$)", "Fig. 2.1"]
    assert made.plan[-1].slide == len(made.slides) - 1


def test_a_figure_shares_the_slide_of_its_statement_or_its_heading():
    made = deck("setup", "d", "t f")
    assert words(made)[-1][0] == "Theorem 2.1 (All \\(x\\))ours"
    assert made.slides[-1].kind.startswith("pictured")
    assert made.slides[-1].picture["id"] == "f"


def test_a_step_that_goes_on_with_a_section_says_so():
    assert [each.name for each in deck("the-question#1", "the-question#2").plan] == [
        "The question",
        "The question, continued",
    ]


def test_two_statements_share_a_slide_under_both_numbers():
    made = deck("setup", "d t")
    assert words(made)[-1][0] == "Definition 2.1 · Theorem 2.1"


def test_a_slide_of_words_and_a_figure_has_the_names_of_all_its_words():
    made = deck("setup", "d", "t the-question#5 f")
    assert words(made)[-1][0] == "Theorem 2.1 · The question"
    assert made.slides[-1].picture["id"] == "f"


def test_an_equation_from_elsewhere_is_quoted_where_it_is_first_referred_to():
    made = deck("setup", "d", "t")
    assert "quoted" in made.slides[-1].parts[-1]["class"]
    assert "2 + 2 = 4" in made.slides[-1].text
    assert "quoted" not in str(deck("setup", "the-question#1-4", "d", "t").slides[-1].parts)


def test_what_letters_mean_stands_above_a_picture_and_below_words():
    """An opened picture stays whole on its slide; words are read first."""
    labels, place = ("setup", "d", "t", "f"), {"d": -1, "f": 0}
    for label, at in place.items():
        steps = [step._replace(where="$h$: height" * (label in step.show)) for step in paths(*labels)[50]]
        made = slides.make(chapter(row("T-1")), BeautifulSoup(PAGE, "html.parser"), dict.fromkeys(LENGTHS, steps))[0]
        shown = next(each for each in made.slides if "height" in each.text)
        assert len(shown.parts) > 1
        assert [part.get("class") == ["quoted"] for part in shown.parts].index(True) == at % len(shown.parts), label


def test_what_was_not_shown_is_not_referred_to():
    assert refused("setup", "t").startswith("toy: lecture of 50 minutes: Theorem 2.1")
    assert "refers to Definition 2.1 (It), which is not shown before" in refused("setup", "t")
    assert "refers to Theorem 2.1" in refused("setup", "d", "f")


def test_a_pointer_to_evidence_that_is_not_shown_is_left_out():
    text = deck("take-away").slides[0].text
    assert "It holds , and" in " ".join(text.split())
    assert "Definition" not in text
    assert "Or not." in text
    assert "Theorem 2.1" in deck("setup", "d t", "take-away").slides[-1].text


def test_a_table_of_symbols_leaves_room_on_its_slide_however_long_it_is():
    row = "<tr><td>x</td><td>tokens</td></tr>"
    head = "<div><table><thead><tr><th>symbol</th><th>meaning</th></tr></thead><tbody>"
    table = BeautifulSoup(f"{head}{50 * row}</tbody></table></div>", "html.parser").div
    assert (
        slides.weight(table)
        < slides.ROOM
        < slides.weight(BeautifulSoup(str(table).replace("symbol", "x"), "html.parser").div)
    )


def test_symbols_stand_in_the_setup_before_they_are_used_and_only_those_that_are():
    shown = deck("setup", "d").slides[0].text
    assert "budget" in shown
    assert "count" not in shown
    assert "uses symbols before the setup shows them" in refused("d", "setup")
    assert "uses symbols before" in refused("d")


@pytest.mark.parametrize(
    ("shown", "fault"),
    [
        ("nowhere", "nothing on the page is called nowhere"),
        ("the-question#9", "the-question#9 shows nothing: it has 5 parts"),
        ("the-question#5", "one short sentence alone on a slide: Short."),
        ("the-question the-question#1", "the-question#1 was shown before"),
    ],
)
def test_a_path_that_cannot_be_shown_is_refused(shown, fault):
    assert refused(shown) == f"toy: lecture of 50 minutes: {fault}"


def test_source_and_explorers_are_parts_and_solutions_and_plain_output_are_not():
    made = deck("mechanism", "experiments", "e")
    text = " ".join(each.text for each in made.slides)
    assert "def f(): pass" in text
    assert made.explores
    assert "Done." not in text
    assert "7" not in text


def test_claims_are_those_that_the_lecture_covers_and_show_whose_they_are():
    rows = [row("T-1"), row("T-2", "fails", statement="All $x$."), row("T-3", plain="Plainly.")]
    shown = paths("setup", "d t", "claims")
    made = slides.make(chapter(*rows), BeautifulSoup(PAGE, "html.parser"), shown)[0]
    text = " ".join(made.slides[-1].text.split())
    assert "the paper: All" in text
    assert "Plainly." not in text
    assert "ledger" not in text


def test_claims_of_the_paper_are_counted_apart_from_ours():
    rows = [row("T-1"), row("T-2", "fails"), row("T-3", source="ours"), row("T-4", "refuted", source="ours")]
    counted = slide_blocks.claims(chapter(*rows))[0]
    assert " ".join(counted.get_text(" ").split()) == (
        "the paper: ✓ 1 holds ✗ 1 fails this book: ✓ 1 holds ≠ 1 refuted"
    )
    found = [link["href"].partition("#")[2] for link in counted.select("a")]
    assert found[1] == "paper=toy&source=paper&verdict=fails"
    assert found[2] == "paper=toy&source=ours&verdict=holds"


@pytest.mark.parametrize("notes", [True, False])
def test_the_written_deck_has_its_notes_and_leads_to_the_page(tmp_path, notes):
    page = BeautifulSoup(PAGE, "html.parser")
    slides.write(tmp_path, chapter(row("T-1")), page, paths("setup", "d t"), notes=notes)
    assert {path.name for path in (tmp_path / "slides").iterdir()} == {
        *("slides.css", "slides.js"),
        *(f"toy-{length}.html" for length in LENGTHS),
    }
    text = (tmp_path / "slides/toy-50.html").read_text()
    soup = BeautifulSoup(text, "html.parser")
    assert soup.h1.get_text() == "A toy"
    assert ("Clear." in text) == notes
    assert 'href="../notebooks/toy.html#d"' in text
    assert [slide["id"] for slide in soup.select(".slide")] == ["s0", "s1", "s2", "s3"]
    assert "other.js" not in text
    assert "mathjax/tex-chtml.js" in text


def test_a_lifted_explorer_is_its_picture_on_a_slide():
    dial = explorer.placeholder({"layout": {"meta": {"alt": "Two bars."}}}, "../p.js", "explorer-1", "../explorers/toy")
    lifted = explorer.again(str(dial))
    page = f'<article><section><section id="in-ten-minutes"><h2>In ten minutes</h2><p>Why?</p>{lifted}<p>So.</p>'
    found = slide_blocks.things(BeautifulSoup(f"{page}</section></section></article>", "html.parser"), [])
    image = next(part for part in found["in-ten-minutes"].parts if part.name == "figure").img
    assert (image["src"], image["alt"]) == ("../explorers/toy.svg", "Two bars.")
    assert "data-plotly" not in "".join(map(str, found["in-ten-minutes"].parts))


def test_a_small_figure_lies_beside_a_paragraph_and_has_a_slide_without_words_to_itself():
    page = BeautifulSoup('<figure><img width="300" height="200"/></figure><p>It falls.</p>', "html.parser")
    assert slide_blocks.Slide("", [page.p, page.figure], 1, "").kind == "pictured beside"
    assert slide_blocks.Slide("", [page.figure], 1, "").kind == "pictured"


def test_a_section_may_be_a_heading_alone():
    page = "<article><section><section id='empty'><h2>Empty</h2></section></section></article>"
    assert slide_blocks.things(BeautifulSoup(page, "html.parser"), [])["empty"].parts == []


def test_a_chapter_without_lectures_has_no_deck(tmp_path):
    assert slides.write(tmp_path, chapter(row("T-1")), BeautifulSoup(PAGE, "html.parser"), {}) == []
    assert not (tmp_path / "slides").exists()


def test_a_caption_keeps_a_sentence_for_each_panel_and_what_is_too_long_goes_to_the_notes():
    words = f"Left: {'a curve ' * 20}rises. Right: it falls. Dashed: the theory."
    caption = f'<figcaption><span class="caption-text">{words}</span></figcaption>'
    figure = BeautifulSoup(f'<figure><img width="600" height="300"/>{caption}</figure>', "html.parser").figure
    (note,) = slide_blocks._rest(figure)
    assert figure.get_text().rstrip().endswith("Right: it falls.")
    assert note.get_text().strip() == "Dashed: the theory."


def test_a_sentence_may_end_in_a_formula_and_the_panel_behind_it_is_kept():
    words = f"Left: {'a curve ' * 20}rises to <span>\\(x\\).</span> Right: it falls."
    caption = f'<figcaption><span class="caption-text">{words}</span></figcaption>'
    figure = BeautifulSoup(f'<figure><img width="600" height="300"/>{caption}</figure>', "html.parser").figure
    assert list(slide_blocks._rest(figure)) == []
    figure.figcaption.span.contents[0].replace_with("Left: a curve. The line, at about")
    assert [len(each) for each in slide_blocks.sentences(figure.figcaption.span)] == [1, 2, 1]
