"""A chapter on paper: everything open, nothing cut, solutions at its end; and what takes too long is named."""

import re

import pytest
from pypdf import PdfReader

from bookbuilder.export import pdf
from bookbuilder.paths import UserError

pytestmark = pytest.mark.browser

# What is wider than the paper, or hidden in a box that would have to be scrolled.
CUT = """() => {
  const unseen = "[aria-hidden=true], .visually-hidden, mjx-container *";
  const every = [...document.querySelectorAll("article.bd-article *")];
  const seen = every.filter((e) => e.checkVisibility() && !e.closest(unseen));
  const wide = seen.filter((e) => e.getBoundingClientRect().right > innerWidth + 1);
  const scrolls = (e) => ["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowX);
  const cut = seen.filter((e) => scrolls(e) && e.clientWidth && e.scrollWidth > e.clientWidth + 1);
  return [...wide, ...cut].map((e) => e.outerHTML.slice(0, 160));
}"""
UNSEEN = """() => {
  const must = "article.bd-article :is(.proof, .solution, tr.claim, figure img, .explorer-plot)";
  const there = (e) => e.checkVisibility() && (!e.matches("img") || e.naturalWidth);
  return [...document.querySelectorAll(must)].filter((e) => !there(e)).map((e) => e.outerHTML.slice(0, 160));
}"""
UNTYPESET = """() => [...document.querySelectorAll("article.bd-article .math")]
  .filter((e) => e.checkVisibility() && !e.querySelector("mjx-math")).map((e) => e.outerHTML.slice(0, 160))"""


@pytest.fixture(scope="module")
def chapter(chapters):
    """The chapter with the least to print."""
    return min(chapters, key=lambda page: len(page.article.get_text()))


@pytest.fixture(scope="module")
def printed(site, chapter, tmp_path_factory) -> PdfReader:
    """What `derived pdf` makes of it."""
    name = chapter.name.removesuffix(".html")
    own, book = pdf.write(site, [name], tmp_path_factory.mktemp("pdf"))
    assert len(PdfReader(book).pages) == len(PdfReader(own).pages)
    return PdfReader(own)


def letters(text: str) -> str:
    """The letters and digits of a text, since a line of print may end anywhere."""
    return re.sub(r"[\W_]", "", text)


@pytest.fixture(scope="module")
def texts(printed) -> list[str]:
    return [letters(page.extract_text()) for page in printed.pages]


def test_on_paper_nothing_is_cut_or_folded(browser, site, chapter):
    with pdf.laid_out(browser, site / chapter.name) as tab:
        assert tab.evaluate(CUT) == []
        assert tab.evaluate(UNSEEN) == []
        assert tab.evaluate(UNTYPESET) == []


def test_the_file_has_every_claim_proof_and_figure_and_its_solutions_last(chapter, printed, texts):
    whole, article = "".join(texts), chapter.article
    said = [row["data-claim"] for row in article.select("tr.claim")]
    said += [number.get_text() for number in article.select("figure .caption-number")]
    said += [title.get_text() for title in article.select("div.proof .admonition-title > .caption-number")]
    assert [words for words in said if letters(words) not in whole] == []
    tail = whole[whole.rindex("Solutions") :]
    begins = [str(next(iter(each.contents), "")) for each in article.select("div.solution p:not(.admonition-title)")]
    solved = [letters(words) for words in begins if len(words.split()) > 3 and "<" not in words]
    assert solved
    assert [words for words in solved if words not in tail] == []
    fonts = [font.get_object() for page in printed.pages for font in page["/Resources"].get("/Font", {}).values()]
    names = {str(font["/FontDescriptor"]["/FontName"]) for font in fonts if "/FontDescriptor" in font}
    assert any("MathJax" in name for name in names), "no formula is set"


def test_no_page_of_paper_is_nearly_empty_or_names_the_machine(printed, texts):
    """But for the last ones, of the chapter and before its solutions."""
    pages = zip(printed.pages, texts, strict=True)
    few = [number for number, (page, text) in enumerate(pages, 1) if len(text) < 200 and not page.images]
    assert len(few) <= 2, few
    links = [note.get_object() for page in printed.pages for note in page.get("/Annots", [])]
    addresses = [str(note["/A"].get("/URI", "")) for note in links if "/A" in note]
    assert not [address for address in addresses if address.startswith("file:")]


def test_a_page_that_takes_too_long_is_named(site, chapter, tmp_path):
    with pytest.raises(UserError, match=r"\.html was not printed in 0\.5 s, so Chromium was stopped"):
        pdf.write(site, [chapter.name.removesuffix(".html")], tmp_path, limit=0.5)
    with pytest.raises(UserError, match=r"no_such_page\.html was not printed: .*ERR_FILE_NOT_FOUND"):
        pdf.write(site, ["notebooks/no_such_page"], tmp_path)
