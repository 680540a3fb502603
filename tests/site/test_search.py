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
    ("words", "place"),  # the place of one of the first three results begins so
    [
        ("GT-7.a", "book/ledger"),
        ("DeltaNet", "notebooks/in_place_ttt"),
        ("Lorenz", "notebooks/geometric_tax"),
        ("attention sink", "notebooks/sinkhorn"),
        ("test time training", "notebooks/in_place_ttt"),
        ("TTT", "notebooks/in_place_ttt"),
        ("why do tokens collapse", "notebooks/homogenized"),
        ("oversmoothing", "notebooks/homogenized"),
        ("rank collapse", "notebooks/homogenized"),
        ("mutual information", "notebooks/task_ecologies"),
        ("optimal transport", "notebooks/sinkhorn"),
        ("is cactus faster", "notebooks/cactus"),
        ("how much faster", "notebooks/cactus"),
        ("speculative decoding", "notebooks/cactus"),
        ("least squares", "notebooks/ols_attention"),
        ("linear regression", "notebooks/ols_attention"),
        ("in-context learning", "notebooks/ols_attention"),
        ("LayerNorm", "notebooks/signal_propagation"),
        ("gradient explosion", "notebooks/signal_propagation"),
        ("vocabulary size", "notebooks/cactus"),
        ("hierarchical attention", "notebooks/hierarchical_kernel"),
        ("Robbins-Monro", "notebooks/stochastic_approximation"),
        ("world model", "notebooks/task_ecologies"),
        ("KV cache", "notebooks/in_place_ttt"),
        ("how do I cite", "book/how_to_read"),
        ("what does undecided mean", "book/words"),
        ("null arm", "book/words"),
        ("reproduce", "book/running"),
    ],
)
def test_words_as_a_reader_types_them_find_their_place(page, words, place):
    search(page, words)
    ways = page.eval_on_selector_all(".found-list a", "(links) => links.slice(0, 3).map((link) => link.href)")
    assert any(f"/{place}" in way for way in ways), ways


def test_where_no_place_has_all_words_the_count_says_so(page):
    search(page, "attention xyzzyplugh")
    assert page.inner_text(".found-count").startswith("No place has all of these words")


def test_the_field_of_every_page_leads_to_the_search(page, site):
    page.goto(f"{site.as_uri()}/book/ledger.html")
    page.keyboard.press("Control+k")
    page.wait_for_url("**/search.html")
    page.keyboard.type("hat matrix")
    page.wait_for_url("**/search.html?q=hat%20matrix")
    page.wait_for_selector(".found-list li")
