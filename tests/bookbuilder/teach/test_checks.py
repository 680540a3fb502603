"""What a class could not follow and a wall cannot show, in small slides."""

import pytest
from bs4 import BeautifulSoup, Tag

from bookbuilder.notebook.lectures import Step
from bookbuilder.teach import checks
from bookbuilder.teach.slide_blocks import Slide, Thing, cut, sentences

FIGURE = '<figure id="f" data-claims="T-1"><img width="500" height="300"/></figure>'
LIVE = '<div class="explorer" id="explorer-1"></div>'


def tag(html: str) -> Tag:
    return BeautifulSoup(html, "html.parser").find(True)


def slide(*html: str) -> Slide:
    return Slide("Head", list(map(tag, html)), 0, "")


def step(minutes: int, way: str = "", show: str = "t", aims: tuple[int, ...] = ()) -> Step:
    return Step((show,), "", minutes, False, "", way, aims=aims)


def thing(*html: str, notes: tuple[str, ...] = ()) -> Thing:
    return Thing("It", "It", list(map(tag, html)), list(map(tag, notes)))


PROOF = '<div class="proof admonition"><p>' + "word " * 300 + '<span class="math">\\(x\\)</span>' * 6 + "</p></div>"
KNOWN = {"t": thing("<div></div>", notes=(PROOF,)), "f": thing(FIGURE), "explorer-1": thing(LIVE)}


def test_a_proof_takes_time_by_its_words_and_formulas():
    assert checks.board(step(5), KNOWN) == pytest.approx(4.0)
    assert checks.board(step(5, show="f"), KNOWN) == 0


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (step(4, "prove"), ""),
        (step(3, "prove"), "to prove it takes about 4.0 minutes, it has 3"),
        (step(1, "sketch"), ""),
        (step(0, "sketch"), "to sketch it takes about 1.3 minutes, it has 0"),
        (step(0, "quote"), ""),
        (step(9), "say as way: prove, sketch or quote"),
        (step(9, "prove", "f"), "there is no proof, so no way"),
        (step(9, "prove", aims=(3,)), r"the chapter has 2 objectives, aims are (3,)"),
    ],
)
def test_a_step_says_what_to_do_with_a_proof_and_has_time_for_it(given, fault):
    found = list(checks.pace([given], KNOWN, 2))
    assert (fault in found[0]) if fault else found == []


def test_a_lecture_has_slack_few_slides_pictures_an_explorer_and_a_trained_result():
    text, drawn, live = slide("<p>Words.</p>"), slide(FIGURE), slide(LIVE)
    fine = [drawn, text, live]
    assert list(checks.shape(50, [step(45)], fine, KNOWN, {"T-1"})) == []
    assert list(checks.shape(50, [step(46)], fine, KNOWN, {"T-1"})) == [
        "its core takes 46 minutes, at most 45 leave room for questions"
    ]
    assert "it has 23 slides, at most 22" in list(checks.shape(50, [], [*[text] * 11, *[live] * 10], KNOWN, set()))
    assert "1 of 4 slides have a picture, at least 2 should" in list(
        checks.shape(50, [], [text, text, text, drawn], KNOWN, set())
    )
    opens = "it opens without a picture: the first step shows one"
    assert list(checks.shape(180, [], [text, drawn, live, text], KNOWN, {"T-1"})) == [opens]
    assert list(checks.shape(50, [], [drawn], KNOWN, {"T-1"})) == ["no slide has an explorer"]
    assert list(checks.shape(50, [], [live], KNOWN, {"T-1"})) == ["no slide has a figure of something trained or real"]
    assert list(checks.shape(50, [], [text], {}, set())) == [], "a chapter that has no picture needs none"


@pytest.mark.parametrize(
    ("html", "unknown"),
    [
        (r"<p><span class='math'>\(a+\omega\)</span></p>", r"\omega"),
        (r"<p>a factor <span class='math'>\(\omega\)</span>, <span class='math'>\(a+\omega\)</span></p>", ""),
        (r"<div class='math'>\[ \tau=a+F(x) \]</div>", "F"),
        (r"<div class='math'>(4.1)#\[ \begin{aligned} &\sum_T T,\\ W_Q&=\hat v^\top \end{aligned} \]</div>", ""),
        (r"<p><span class='math'>\((M,B)\)</span> and <span class='math'>\(M+\mathcal N(0,I)\)</span></p>", ""),
    ],
)
def test_a_symbol_is_introduced_before_a_formula_needs_it(html, unknown):
    found = list(checks.undefined([slide(html)]))
    assert found == ([f"Head uses what no slide has introduced: {unknown}"] if unknown else [])


def test_a_table_of_symbols_and_earlier_slides_introduce_symbols():
    table = r"<div><table><tr><th>symbol</th></tr><tr><td><span class='math'>\(\omega\)</span></td></tr></table></div>"
    use = slide(r"<p><span class='math'>\(a+\omega\)</span></p>")
    assert list(checks.undefined([slide(table), use, use])) == []


@pytest.mark.parametrize("words", ["The figure below.", "Move the sliders.", "As above, so.", "See the errata."])
def test_words_that_point_to_what_is_not_there_are_found(words):
    assert "points to what is not there" in next(checks.orphans([slide(f"<p>{words} {'More. ' * 40}</p>")]))
    assert list(checks.orphans([slide(f"<p>{words} {'More. ' * 40}</p>", LIVE)])) == []
    assert list(checks.orphans([slide(f"<p>It lies below the line. {'More. ' * 40}</p>")])) == []


@pytest.mark.parametrize(("words", "faults"), [("Left: a.", 1), ("Left: a. Right: b.", 0), ("To the left of it.", 0)])
def test_a_caption_that_tells_the_left_panel_alone_is_found(words, faults):
    figure = f"<figure><img/><figcaption>{words}</figcaption></figure>"
    assert len([each for each in checks.orphans([slide(figure)]) if "left panel alone" in each]) == faults


def test_a_sentence_or_parenthesis_that_points_elsewhere_is_cut():
    text = tag("<p>It counts twice (errata below); so <b>what</b>. The table below lists it. Fig. 3 stays.</p>")
    cut(text)
    assert " ".join(text.get_text().split()) == "It counts twice; so what. Fig. 3 stays."
    assert len(sentences(text)) == 2


def test_what_stands_inside_of_something_shown_was_shown():
    """A link may lead to a part of an earlier slide; one to what no slide has is named."""
    known = {"t": thing('<div id="t"></div>')}
    link = slide('<p>It is so by <a href="#t">It</a>.</p>')
    assert list(checks.quote([slide('<div><p id="t">So.</p></div>'), link], known)) == []
    assert list(checks.quote([slide("<div><p>So.</p></div>"), link], known)) == [
        "Head refers to It, which is not shown before"
    ]
