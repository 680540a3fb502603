"""The search in a browser, from a disk: names, numbers and ids are found, and each result lands where it should."""

import pytest

pytestmark = pytest.mark.browser
RESULTS = "() => [...document.querySelectorAll('.found-list li')].map((e) => e.innerText)"


def search(page, site, words: str) -> None:
    page.goto(f"{site.as_uri()}/search.html")
    page.fill(".found-form input", words)
    page.wait_for_function("document.querySelector('.found-count').textContent")


@pytest.fixture(params=[1280, 390])
def page(browser, request):
    context = browser.new_context(viewport={"width": request.param, "height": 900})
    yield context.new_page()
    context.close()


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("hat matrix", "hat matrix"),
        ("Theorem 1.4", "Theorem 1.4"),
        ("CAC-5.a", "CAC-5.a"),
        ("sinkhorn_plan", "sinkhorn_plan"),
    ],
)
def test_names_numbers_and_ids_come_first_and_land_at_their_anchor(page, site, words, first):
    search(page, site, words)
    shown = page.evaluate(RESULTS)
    assert first in shown[0], shown[0]
    assert not [text for text in shown if "\\" in text and "package" not in text], "raw TeX"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".found-list a").first.click()
    page.wait_for_function("CSS.highlights.get('found')?.size > 0")
    ranges = "[...CSS.highlights.get('found')]"
    assert page.evaluate(f"{ranges}.some((r) => r.toString().toLowerCase() === '{words.lower()}')")
    seen = "({ top, bottom }) => top >= 0 && bottom <= innerHeight"
    page.wait_for_function(f"{ranges}.map((r) => r.getBoundingClientRect()).some({seen})")


def test_a_word_is_not_looked_for_inside_of_others(page, site):
    search(page, site, "hat")
    assert page.evaluate("[...document.querySelectorAll('mark')].every((m) => /^hats?$/i.test(m.textContent))")


def test_a_slip_of_the_pen_is_forgiven_and_nonsense_is_not_found(page, site):
    search(page, site, "sinkhron")
    assert any("Sinkhorn" in text for text in page.evaluate(RESULTS))
    search(page, site, "xyzzyplugh")
    assert page.evaluate(RESULTS) == []


def test_the_field_of_every_page_leads_to_the_search(page, site):
    page.goto(f"{site.as_uri()}/book/ledger.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("hat matrix")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=hat+matrix")
    page.wait_for_selector(".found-list li")
