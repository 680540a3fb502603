"""Slides of a chapter, from a small built page."""

import pytest
from bs4 import BeautifulSoup
from test_pages import chapter, row

from derived.book import slides

PAGE = """<html><head><link rel="stylesheet" href="../_static/a.css"/><script src="../_static/other.js"></script>
<script defer="defer" src="../_static/mathjax/tex-chtml.js"></script></head><body><article><section id="toy">
<h1><span class="section-number">2. </span>A toy<a class="headerlink" href="#toy">#</a></h1>
<p>The card.</p>
<section id="the-question">
<h2><span class="section-number">2.1. </span>The question<a class="headerlink" href="#q">#</a></h2>
<p>Why?</p>
<div class="cell docutils container"><div class="cell_input">1 + 1</div></div>
<p>LONG</p>
<p>The route:</p>
<ol><li>LONG</li></ol>
<p>It is</p>
<div class="math notranslate">2 + 2 = 4</div>
</section>
<section id="derivation"><h2>Derivation</h2><p>Prose.</p>
<section id="step"><h3>A step</h3><p>More prose.</p>
<div class="proof theorem admonition" id="t"><p class="admonition-title">Theorem <a class="headerlink">#</a></p>
<p>Statement, see <a href="#s">there</a>.</p><p class="statement-links">tested</p></div>
<div class="proof admonition"><p>Proof.</p></div>
<div class="paper admonition"><p>Their words.</p></div>
</section></section>
<section id="mechanism"><h2>Mechanism</h2><div class="ours admonition"><p>Code.</p></div></section>
<section id="experiments"><h2>Experiments</h2><p>We ran it.</p>
<div class="cell"><div class="cell_output"><figure id="f"><img src="f.svg" alt="a line"/></figure></div></div>
<div class="ours admonition"><p>After the figure.</p></div>
</section>
<section id="exercises"><h2>Exercises</h2><div class="exercise admonition"><p>Do it.</p></div>
<div class="solution dropdown admonition"><p>Done.</p></div></section>
</section></article></body></html>""".replace("LONG", "word " * (slides.ROOM // 5 - 4))


@pytest.fixture
def deck() -> list[slides.Slide]:
    return list(slides.slides(BeautifulSoup(PAGE, "html.parser"), "../notebooks/toy.html"))


def words(deck: list[slides.Slide]) -> list[tuple[str, str]]:
    return [(s.heading, " ".join(BeautifulSoup(s.body, "html.parser").get_text(" ").split())[:25]) for s in deck]


def test_text_stands_in_whole_sections_only_and_boxes_share_a_slide(deck):
    assert words(deck) == [
        ("The question", "Why? word word word word "),
        ("The question", "The route: word word word"),
        ("The question", "It is 2 + 2 = 4"),
        ("A step", "Theorem Statement, see th"),
        ("Experiments", ""),
        ("Experiments", "After the figure."),
        ("Exercises", "Do it."),
    ]
    assert "Their words." in deck[3].body


def test_no_proof_no_solution_no_code(deck):
    shown = " ".join(slide.body for slide in deck)
    assert not any(word in shown for word in ("Proof.", "Done.", "1 + 1", "Code.", "prose", "card"))


def test_no_link_of_a_statement_is_on_a_slide(deck):
    assert not any("statement-links" in slide.body or "headerlink" in slide.body for slide in deck)


def test_a_figure_has_a_slide_of_its_own_and_references_lead_to_the_page(deck):
    assert deck[4].body.startswith("<figure")
    assert deck[4].body.endswith("</figure>")
    assert 'href="../notebooks/toy.html#s"' in deck[3].body


def test_the_written_deck_names_paper_verdicts_and_what_failed(tmp_path):
    rows = [row("T-1"), row("T-2", "fails", statement="All $x$."), row("T-3", "fails", source="digest")]
    slides.write(tmp_path, chapter(*rows), BeautifulSoup(PAGE, "html.parser"))
    text = (tmp_path / "slides/toy.html").read_text()
    assert {path.name for path in (tmp_path / "slides").iterdir()} == {"toy.html", "slides.css", "slides.js"}
    soup = BeautifulSoup(text, "html.parser")
    assert soup.h1.get_text() == "A toy"
    assert soup.cite.get_text() == "A toy"
    failed = soup.select(".slide")[-1].get_text(" ", strip=True)
    assert "fails as retold" in failed
    assert "All" in failed
    assert "T-1" not in failed
    assert "other.js" not in text
    assert "mathjax/tex-chtml.js" in text
