"""The search in a browser, from a disk: names, numbers and ids are found, and each result lands where it should."""

import pytest

pytestmark = pytest.mark.browser
RESULTS = "() => [...document.querySelectorAll('.found-list li')].map((e) => e.innerText)"


def search(page, words: str) -> list[str]:
    """What is found, after whatever was looked for before."""
    page.fill(".found-form input", "")
    page.wait_for_function("!document.querySelector('.found-count').textContent")
    page.fill(".found-form input", words)
    page.wait_for_function("document.querySelector('.found-count').textContent")
    return page.evaluate(RESULTS)


@pytest.fixture(params=[1280, 390])
def page(browser, site, request):
    """The page of the search."""
    context = browser.new_context(viewport={"width": request.param, "height": 900})
    page = context.new_page()
    page.goto(f"{site.as_uri()}/search.html")
    yield page
    context.close()


def test_what_is_looked_for_comes_first_and_lands_at_its_anchor(page):
    """Names, numbers and ids; not inside of other words, in spite of a slip of the pen, and nonsense nowhere."""
    ways = {}
    for words in ("hat matrix", "Theorem 2.4", "CAC-7.g", "sinkhorn_plan"):
        shown = search(page, words)
        assert words in shown[0], shown[0]
        assert not [text for text in shown if "\\" in text and "package" not in text], "raw TeX"
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ways[words] = page.locator(".found-list a").first.evaluate("(link) => link.href")
    search(page, "hat")
    assert page.evaluate("[...document.querySelectorAll('mark')].every((m) => /^hats?$/i.test(m.textContent))")
    assert any("Sinkhorn" in text for text in search(page, "sinkhron"))
    assert search(page, "xyzzyplugh") == []
    for words, way in ways.items():
        page.goto(way)
        page.wait_for_function("CSS.highlights.get('found')?.size > 0")
        ranges = "[...CSS.highlights.get('found')]"
        assert page.evaluate(f"{ranges}.some((r) => r.toString().toLowerCase() === '{words.lower()}')")
        seen = "({ top, bottom }) => top >= 0 && bottom <= innerHeight"
        page.wait_for_function(f"{ranges}.map((r) => r.getBoundingClientRect()).some({seen})")


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("vanishing gradients", "gradient"),
        ("LayerNorm vs DyT", "LayerNorm"),
        ("what is a verdict", "verdict"),
        ("attention sink", "sink"),
        ("rank collapse", "collapse"),
        ("eq 2.11", "Equation 2.11"),
        ("how to cite", "How to cite"),
        ("citation", "How to cite"),
        ("license", "the licence"),
        ("rerun", "rerun"),
        ("KL divergence", "KL divergence"),
        ("speculative decoding", "speculative sampling"),
        ("homogenization", "Homogenized"),
        ("gradient explosion", "grow"),
        ("Nadaraya-Watson", "Softmax put back"),
        ("vocabulary size", "larger vocabularies"),
    ],
)
def test_words_as_a_reader_types_them_find_a_place_before_pages_of_evidence(page, words, title):
    shown = search(page, words)
    assert any(title.lower() in text.lower() for text in shown[:2]), shown[:2]
    assert not shown[0].startswith("Evidence")


def test_where_no_place_has_all_words_the_count_says_so(page):
    search(page, "attention xyzzyplugh")
    assert page.inner_text(".found-count").startswith("No place has all of these words")


def test_the_field_of_every_page_leads_to_the_search(page, site):
    page.goto(f"{site.as_uri()}/book/ledger.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("hat matrix")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=hat+matrix")
    page.wait_for_selector(".found-list li")
