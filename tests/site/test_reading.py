"""What a reader may hide, and what links show, in the built site."""

import io

import numpy as np
import pytest
from PIL import Image
from test_browser import CONTRAST, STICKS_OUT, opened

pytestmark = pytest.mark.browser

SEEN = """(css) => [...document.querySelectorAll(`article :is(${css})`)]
  .filter((element) => !element.parentElement.closest("details:not([open])") && element.checkVisibility()).length"""
PARTS = {"code": ".cell > .cell_input", "checks": ".checked", "proofs": ".proof-fold"}


def seen_parts(page) -> set[str]:
    """Those of the parts of a chapter that can be seen."""
    return {mode for mode, css in PARTS.items() if page.evaluate(SEEN, css)}


def test_the_switch_hides_and_the_address_keeps_it(browser, address, site, first_drafts):
    with opened(browser, address + first_drafts[0].name) as page:
        assert seen_parts(page) == {*PARTS}
        page.locator(".modes summary").click()
        for mode in PARTS:
            box = page.locator(f".modes input[name={mode}]")
            box.uncheck()
            assert seen_parts(page) == PARTS.keys() - {mode}
            assert page.url.endswith(f"?hide={mode}")
            page.emulate_media(media="print")
            assert seen_parts(page) == PARTS.keys() - {mode}, "print follows"
            page.emulate_media(media="screen")
            box.check()
        for mode in PARTS:
            page.locator(f".modes input[name={mode}]").uncheck()
        page.goto(address + first_drafts[-1].name)
        assert seen_parts(page) == set(), "kept on the machine"
        page.goto(f"{address}{first_drafts[-1].name}?hide=")
        assert seen_parts(page) == {*PARTS}, "the address wins"
    with opened(browser, f"{(site / first_drafts[0].name).as_uri()}?hide={','.join(PARTS)}") as page:
        assert seen_parts(page) == set(), "from a disk"
        assert not any(page.locator(f".modes input[name={mode}]").is_checked() for mode in PARTS)


def test_a_link_to_something_hidden_shows_it(browser, address, first_drafts):
    check = first_drafts[0].soup.select_one("div.cell[id^=check-]:has(.checked)")["id"]
    with opened(browser, f"{address}{first_drafts[0].name}?hide=code,checks#{check}") as page:
        assert page.locator(f"[id='{check}']").is_visible()
        assert page.locator(".modes input[name=checks]").evaluate("(box) => box.checked")


DERIVED = "section[id^=derivation] .cell > .cell_input"
LEFT_OUT = [DERIVED, ".provenance", "#exercises .exercise", "#races table", "#mechanism .cell_input"]
READ = ["div.proof.admonition", "#experiments figure", "#the-question .cell_input", "#claims tr.claim", "#take-away p"]


def test_a_chapter_opens_in_the_readers_view_and_the_address_keeps_another(browser, address, first_drafts):
    name = first_drafts[0].name
    with opened(browser, f"{address}{name}?view=reader", typeset=True) as page:
        assert [css for css in LEFT_OUT if page.evaluate(SEEN, css)] == []
        assert [css for css in READ if not page.evaluate(SEEN, css)] == []
        assert page.evaluate(STICKS_OUT) == []
        assert page.evaluate(CONTRAST) == []
        page.emulate_media(media="print")
        assert page.evaluate(SEEN, DERIVED) > 0, "paper has all"
        assert not page.locator(".view-note").is_visible()
        page.emulate_media(media="screen")
        page.locator(".modes summary").click()
        page.locator(".modes input[value=all]").check()
        assert [css for css in LEFT_OUT if not page.evaluate(SEEN, css)] == []
        assert page.url.endswith("?view=all")
        page.goto(address + first_drafts[-1].name)
        assert page.evaluate(SEEN, DERIVED) > 0, "kept on the machine"
    fresh = browser.new_context()
    page = fresh.new_page()
    page.goto(address + name)
    assert page.evaluate(SEEN, DERIVED) == 0, "the reader's view comes first"
    fresh.close()


TALLEST = 30_000  # pixels of a chapter as a reader sees it
# The plain claims and those that fail that no link or row of the page shows, where the statement itself is told.
UNTOLD = """() => [...document.querySelectorAll("tr.claim:is(.claims-first *, :has(.verdict-fails, .verdict-retold))")]
  .map(({ id }) => id.replace("claim-", ""))
  .filter((id) => [...document.querySelectorAll(`section a[href*="/claims/"][href$="#${id}"]`)]
    .filter((link) => link.closest("section[id^=derivation] > section, #experiments > section"))
    .some((link) => link.closest(".view-folded")))"""


def test_a_chapter_in_the_readers_view_is_short_and_folds_no_claim_that_is_plain_or_fails(browser, address, walked):
    with opened(browser, f"{address}notebooks/{walked}.html?view=reader", typeset=True) as page:
        assert page.evaluate("document.documentElement.scrollHeight") <= TALLEST
        assert page.evaluate(UNTOLD) == []
        assert page.locator("div.proof.admonition:visible").count() > 2


def test_without_scripts_a_chapter_is_whole(browser, address, first_drafts):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + first_drafts[0].name)
    for css in ("section[id^=derivation] .cell_input", "#exercises .exercise"):
        assert page.locator(css).first.is_visible(), css
    context.close()


def test_a_section_that_is_folded_opens_by_its_button_and_by_a_link_into_it(browser, address, first_drafts):
    inside = first_drafts[0].soup.select_one("#exercises .exercise[id]")["id"]
    with opened(browser, f"{address}{first_drafts[0].name}?view=reader") as page:
        page.locator("#what-breaks-it > .view-more").click()
        assert page.locator("#what-breaks-it > p").first.is_visible()
        assert not page.locator("#what-breaks-it > .view-more").is_visible()
        assert page.evaluate(SEEN, DERIVED) == 0
        page.evaluate("(id) => (location.hash = id)", inside)
        page.wait_for_function("(id) => document.getElementById(id).checkVisibility()", arg=inside)
        page.locator(".view-note button").click()
        assert page.evaluate(SEEN, DERIVED) > 0


def test_a_link_to_a_cell_shows_its_code_in_the_readers_view(browser, address, first_drafts):
    check = first_drafts[0].soup.select_one("section[id^=derivation] div.cell[id^=check-]")["id"]
    with opened(browser, f"{address}{first_drafts[0].name}?view=reader#{check}") as page:
        assert page.locator(f"[id='{check}'] .cell_input").is_visible()
        assert page.evaluate("localStorage.view") == "all", "the test's own choice stays"


def first(chapter, css: str) -> str:
    """Where the first such link leads that is not folded and leads elsewhere or to a box or a formula."""
    for link in chapter.article.select(css):
        target = chapter.article.find(id=link["href"][1:])
        shown = target is None or {"proof", "math"} & set(target.get("class", []))
        if shown and not link.find_parent("details"):
            return link["href"]
    pytest.fail(f"{chapter.name} has no {css}")


# Links and what their previews hold.
LINKS = {
    "a.reference[href^='#']:not([href^='#equation-'])": ".caption-number, figcaption, .admonition-title",
    "a.reference[href^='#equation-']": "mjx-container",
    "a.reference[href*='bibliography.html#']": "p",
}


@pytest.mark.parametrize("from_disk", [False, True])
def test_a_link_shows_where_it_leads(browser, address, site, first_drafts, from_disk):
    chapter = first_drafts[0]
    url = (site / chapter.name).as_uri() if from_disk else address + chapter.name
    with opened(browser, url, typeset=True) as page:  # so that no formula moves a link from under the pointer
        for css, shown in LINKS.items():
            shows_where_it_leads(page, first(chapter, css), shown)


def shows_where_it_leads(page, href: str, css: str) -> None:
    """Hovered or focused, a link has a preview, typeset, inside the window, that repeats no anchor; Escape ends it."""
    link = page.locator(f"article a.reference[href='{href}']:not(details a)").first
    preview = page.locator("#preview")
    page.keyboard.press("Escape")  # ends the preview of the link to which the last Tab led
    link.scroll_into_view_if_needed()
    link.hover()
    preview.wait_for(state="visible")
    assert preview.locator(css).count() > 0
    assert link.get_attribute("aria-describedby") == "preview"
    page.wait_for_function("[...document.querySelectorAll('#preview .math')].every((e) => e.querySelector('mjx-math'))")
    box = preview.bounding_box()
    assert 0 <= box["x"] <= 1280 - box["width"]
    assert 0 <= box["y"] <= 900 - box["height"]
    assert page.evaluate("(id) => document.querySelectorAll(`[id='${id}']`).length", href[1:]) <= 1
    page.keyboard.press("Escape")
    assert not preview.is_visible()
    assert link.get_attribute("aria-describedby") is None
    page.mouse.move(2, 2)
    link.evaluate("(link) => link.focus({ focusVisible: true })")
    preview.wait_for(state="visible")
    page.keyboard.press("Tab")
    page.wait_for_function("(link) => link.getAttribute('aria-describedby') === null", arg=link.element_handle())


def test_the_id_of_a_claim_shows_its_verdict_and_sentence(browser, address, first_drafts):
    claims = "#in-ten-minutes a.reference[href*='/claims/']"
    chapter = next(each for each in first_drafts if each.article.select(claims))
    href = first(chapter, claims)
    with opened(browser, address + chapter.name) as page:
        page.locator(f"#in-ten-minutes a[href='{href}']").first.hover()
        preview = page.locator("#preview")
        preview.wait_for(state="visible")
        page.mouse.move(2, 2)
        preview.wait_for(state="hidden")
        page.locator(f"#in-ten-minutes a[href='{href}']").first.evaluate("(link) => link.focus({ focusVisible: true })")
        preview.wait_for(state="visible")
        assert preview.locator(".verdict").count() == 1
        row = chapter.article.find(id=f"claim-{href.split('#')[1]}")
        assert len(preview.locator("p").inner_text()) > 10
        assert preview.locator(".verdict").inner_text().split()[-1] == row.select_one(".verdict").get_text().split()[-1]


@pytest.mark.parametrize(("theme", "least", "most"), [("light", 200, 255), ("dark", 0, 80)])
def test_a_figure_has_the_ground_and_the_ink_of_its_page(browser, address, first_drafts, theme, least, most):
    with opened(browser, address + first_drafts[0].name) as page:
        page.emulate_media(color_scheme=theme)
        figure = page.locator("#experiments figure img").first
        figure.scroll_into_view_if_needed()
        page.wait_for_function("(image) => image.complete", arg=figure.element_handle())
        seen = np.asarray(Image.open(io.BytesIO(figure.screenshot())).convert("L"))
        assert least <= np.median(seen) <= most
        assert seen.max() - seen.min() > 100, "the ink is seen"


def test_every_exercise_has_two_folded_hints(first_drafts):
    for page in first_drafts:
        exercises = page.article.select("div.exercise.admonition:not(.solution)")
        assert len(page.article.select("div.hint.dropdown.admonition")) == 2 * len(exercises) > 0, page.name


def test_the_mechanism_begins_with_its_algorithm(first_drafts):
    for page in first_drafts:
        (box,) = page.article.select("#mechanism > div.algorithm")
        assert len(box.select("ol > li")) > 1, page.name
