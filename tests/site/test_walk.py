"""A reader on a phone, with a book that lies on it and no network: three taps from a claim to all that decides it."""

import random

import pytest

pytestmark = pytest.mark.browser

PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True, "offline": True}
PLACE = "details.evidence[data-claim='{}']"
# What the reader asks for: the link that the place of a claim has for it, and what must be seen at its end.
ASKED = {
    "statement": ("dt:text-is('rests on') + dd a.both", "div.proof.admonition"),
    "proof": ("a:text-is('its proof')", "details[open] div.proof"),
    "record": (
        "dt:text-is('found') + dd a:is(:text-is('recorded'), :text-is('its record'), :text-is('live'))",
        "td, th",
    ),
    "experiment": ("dt:is(:text-is('experiment'), :text-is('decided by')) + dd a", "div.cell_input"),
    "test": ("dt:text-is('tested by') + dd a", "pre"),
}
# Whether what the address names, or holds, or stands in, is such a thing, unfolded and
# in sight.
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


def tap(page, there) -> None:
    """A tap on what can be seen and touched; a page that comes from it is waited for."""
    there.scroll_into_view_if_needed()
    there.tap()
    page.wait_for_load_state("load")


def way(page, claim: str, link: str, css: str) -> int:
    """Taps from the place of a claim to what is asked, which must come into sight; then the reader is back."""
    tap(page, page.locator(f"{PLACE.format(claim)} {link}").first)
    page.wait_for_function(IN_SIGHT, arg=css)
    page.go_back(wait_until="load")
    page.locator(f"{PLACE.format(claim)}[open]").wait_for()
    return 1


def test_three_taps_lead_from_a_claim_of_each_chapter_to_all_that_decides_it(browser, site, every_page, seen, walked):
    """Walked again where the chapter or its evidence has changed; each page of them has a check of its own."""
    trodden = [f"claims/{walked}.html", f"notebooks/{walked}.html"]
    if not any(seen.changed("walk", name) for name in trodden):
        return
    claim = drawn(next(page for page in every_page if page.name == trodden[0]))
    context = browser.new_context(**PHONE)
    context.set_default_timeout(120_000)
    page = context.new_page()
    page.goto((site / "book/ledger.html").as_uri())
    row = page.locator(f"tr.claim[data-claim='{claim}']")
    folds = page.locator("details.storey:not([open])", has=row)
    for fold in folds.all():
        tap(page, fold.locator("> summary"))  # not counted: this is the way to the row
    row.scroll_into_view_if_needed()
    verdict = row.locator("th .verdict").bounding_box()
    assert verdict["x"] >= 0
    assert verdict["x"] + verdict["width"] <= 390
    assert row.locator("summary").first.inner_text().strip()
    tap(page, row.locator(".claim-name a"))
    page.locator(f"{PLACE.format(claim)}[open] > summary .verdict").wait_for()
    taps = {asked: 1 + way(page, claim, link, css) for asked, (link, css) in ASKED.items()}
    assert max(taps.values()) <= 3, (claim, taps)
    context.close()
    for name in trodden:
        seen.passed("walk", name)
