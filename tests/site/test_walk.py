"""A reader on a phone, with a book that lies on it and no network: three taps from a claim to all that decides it."""

import random

import pytest

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "offline": True}
PLACE = "details.evidence[data-claim='{}']"
# What the place of a claim leads to: links, and what must be seen at their end.
ASKED = {
    "a:text-is('its proof')": "details[open] div.proof",
    "dt:text-is('rests on') + dd a.both": "div.proof.admonition",
    "dt:text-is('found') + dd a:is(:text-is('recorded'), :text-is('its record'), :text-is('live'))": "td, th",
    "dt:is(:text-is('experiment'), :text-is('decided by')) + dd a": "div.cell_input, figure",
    "dt:text-is('tested by') + dd a": "pre",
}
# Whether what the address names, or holds, or stands in, is such a thing, unfolded and in sight.
IN_SIGHT = """(css) => {
  const there = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!there) return false;
  const boxes = [there, there.parentElement], within = boxes.flatMap((box) => [...box.querySelectorAll(css)]);
  const seen = [...boxes, ...within].find((e) => e.matches(css) && e.checkVisibility());
  if (!seen) return false;
  const { top, bottom, left, right } = seen.getBoundingClientRect();
  return bottom > 0 && top < innerHeight && left >= 0 && right <= innerWidth + 1 && seen.innerText.trim().length > 0;
}"""


def drawn(page) -> str:
    """A claim of a chapter, drawn among those that were run and rest on what the chapter proves."""
    unseen = ".verdict-not-run, .verdict-reported"
    places = [place for place in page.soup.select("details.evidence") if not place.summary.select(unseen)]
    names = [place["data-claim"] for place in places if place.select_one('a[href*="#proof-"]')]
    assert names, page.name
    return random.Random(f"three taps, {page.name}").choice(sorted(names))


@pytest.fixture
def page(browser):
    """A tab of the phone."""
    context = browser.new_context(**PHONE)
    context.set_default_timeout(120_000)
    yield context.new_page()
    context.close()


def tap(page, there) -> None:
    """A tap on what can be seen and touched; a page that comes from it is waited for."""
    there.scroll_into_view_if_needed()
    there.tap()
    page.wait_for_load_state("load")


def leads(there) -> str:
    """Where a link leads that can be seen and touched."""
    there.scroll_into_view_if_needed()
    there.tap(trial=True)
    return there.evaluate("(link) => link.href")


def test_taps_lead_from_a_row_of_the_ledger_to_all_that_decides_a_claim(page, site, every_page):
    """That links of every claim lead to what they name, `test_evidence.py` reads in the files.

    What stands on one page is come to by a tap for the first, a fold, and by its address alone for the others.
    """
    name = "claims/sinkhorn.html"
    claim = drawn(next(page for page in every_page if page.name == name))
    page.goto((site / "book/ledger.html").as_uri())
    tap(page, page.locator(f"tr.claim[data-claim='{claim}'] .claim-name a"))
    page.wait_for_url(f"{(site / name).as_uri()}#{claim}")
    place = page.locator(f"{PLACE.format(claim)}[open]")
    place.locator("> summary .verdict").wait_for()
    ways = {}
    for link, css in ASKED.items():
        there = place.locator(link).first
        ways.setdefault(leads(there).split("#")[0], []).append((there, leads(there), css))
    for (there, _, first), *others in ways.values():
        tap(page, there)
        page.wait_for_function(IN_SIGHT, arg=first)
        for _, address, css in others:
            page.evaluate("(address) => { location.href = address; }", address)
            page.wait_for_function(IN_SIGHT, arg=css)
        page.goto(f"{(site / name).as_uri()}#{claim}")
        place.wait_for()
