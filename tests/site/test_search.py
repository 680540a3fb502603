"""The search in a browser, from a disk: names, numbers and ids are found, and each result lands where it should."""

import pytest

pytestmark = pytest.mark.browser
RESULTS = "() => [...document.querySelectorAll('.found-list li')].map((e) => e.innerText)"

# Words as a reader types them, by their place: one of the first three results leads there.
QUERIES = {
    "book/ledger": "GT-7.a",
    "notebooks/in_place_ttt": "DeltaNet; test time training; TTT; KV cache",
    "notebooks/geometric_tax": "Lorenz",
    "notebooks/sinkhorn": "attention sink; optimal transport",
    "notebooks/homogenized": "why do tokens collapse; oversmoothing; rank collapse",
    "notebooks/task_ecologies": "mutual information; world model",
    "notebooks/cactus": "is cactus faster; how much faster; speculative decoding; vocabulary size",
    "notebooks/ols_attention": "least squares; linear regression; in-context learning",
    "notebooks/signal_propagation": "LayerNorm; gradient explosion",
    "notebooks/hierarchical_kernel": "hierarchical attention",
    "notebooks/stochastic_approximation": "Robbins-Monro",
    "book/how_to_read": "how do I cite",
    "book/words": "what does undecided mean; null arm",
    "book/running": "reproduce",
}


def search(page, words: str) -> list[str]:
    """What is found, after whatever was looked for before."""
    page.fill(".found-form input", "")
    page.wait_for_function("!document.querySelector('.found-count').textContent")
    page.fill(".found-form input", words)
    page.wait_for_function("document.querySelector('.found-count').textContent")
    return page.evaluate(RESULTS)


@pytest.fixture(scope="module")
def page(browser, site):
    """The page of the search, on a phone."""
    page = browser.new_page(viewport={"width": 390, "height": 900})
    page.goto(f"{site.as_uri()}/search.html")
    yield page
    page.close()


def test_words_as_a_reader_types_them_find_their_place(page):
    lost = []
    for place, words in ((place, words) for place, each in QUERIES.items() for words in each.split("; ")):
        search(page, words)
        ways = page.eval_on_selector_all(".found-list a", "(links) => links.slice(0, 3).map((link) => link.href)")
        lost += [] if any(f"/{place}" in way for way in ways) else [(words, ways)]
    assert not lost


def test_where_no_place_has_all_words_the_count_says_so(page):
    search(page, "attention xyzzyplugh")
    assert page.inner_text(".found-count").startswith("No place has all of these words")


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


def test_the_field_of_every_page_leads_to_the_search(page, site):
    page.goto(f"{site.as_uri()}/book/ledger.html")
    page.keyboard.press("Control+k")
    page.wait_for_url("**/search.html")
    page.keyboard.type("hat matrix")
    page.wait_for_url("**/search.html?q=hat%20matrix")
    page.wait_for_selector(".found-list li")
