"""What a reader may hide, and what links show, in the built site."""

import io

import numpy as np
import pytest
from PIL import Image
from test_browser import opened

pytestmark = pytest.mark.browser

SEEN = """(css) => [...document.querySelectorAll(`article :is(${css})`)]
  .filter((element) => !element.parentElement.closest("details:not([open])") && element.checkVisibility()).length"""
PARTS = {"code": ".cell > .cell_input", "checks": ".checked", "proofs": ".proof-fold"}


def seen_parts(page) -> set[str]:
    """Those of the parts of a chapter that can be seen."""
    return {mode for mode, css in PARTS.items() if page.evaluate(SEEN, css)}


def test_the_switch_hides_and_the_address_keeps_it(browser, address, chapters):
    with opened(browser, address + chapters[0].name) as page:
        assert seen_parts(page) == {*PARTS}
        page.locator(".modes summary").click()
        for mode in PARTS:
            box = page.locator(f".modes input[name={mode}]")
            box.uncheck()
            assert seen_parts(page) == PARTS.keys() - {mode}
            assert page.url.endswith(f"?hide={mode}")
            box.check()
        for mode in PARTS:
            page.locator(f".modes input[name={mode}]").uncheck()
        page.emulate_media(media="print")
        assert seen_parts(page) == set(), "print follows"
        page.emulate_media(media="screen")
        page.goto(address + chapters[-1].name)
        assert seen_parts(page) == set(), "kept on the machine"
        page.goto(f"{address}{chapters[-1].name}?hide=")
        assert seen_parts(page) == {*PARTS}, "the address wins"


def test_a_link_to_something_hidden_shows_it(browser, address, chapters):
    check = chapters[0].soup.select_one("div.cell[id^=check-]:has(.checked)")["id"]
    with opened(browser, f"{address}{chapters[0].name}?hide=code,checks#{check}") as page:
        assert page.locator(f"[id='{check}']").is_visible()
        assert page.locator(".modes input[name=checks]").evaluate("(box) => box.checked")


def test_the_keyboard_goes_through_a_chapter_in_less_than_a_hundred_stops(browser, address, chapters):
    """Tab to the link that skips to the next section, Enter, and again, to the last section."""
    with opened(browser, address + chapters[0].name) as page:
        page.wait_for_selector(".skip-section", state="attached")
        sections = page.locator(".skip-section").count()
        assert sections > 8
        stops, skipped = 0, 0
        while skipped < sections and stops < 100:
            page.keyboard.press("Tab")
            stops += 1
            here = page.evaluate("document.activeElement.className + document.activeElement.parentElement.className")
            if "skip-section" in here or "skip-link" in here:
                page.keyboard.press("Enter")
                skipped += "skip-section" in here
        assert skipped == sections, f"{skipped} of {sections} sections in {stops} stops"


def test_a_figure_has_one_sign_with_its_data_and_its_licence(browser, address, chapters):
    with opened(browser, address + chapters[0].name) as page:
        figure = page.locator("article figure:has(.caption-number)").first
        assert not page.locator("article .cite:visible, article .provenance:visible").count()
        figure.locator(".figure-sign").click()
        assert figure.locator(".cite").is_visible()


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


def test_a_link_shows_where_it_leads(browser, site, chapters):
    """And the id of a claim its verdict and sentence, also of claims that the chapter's own table does not show."""
    chapter = next(each for each in chapters if each.article.select(".statement-claims a[href*='/claims/']"))
    claim = chapter.article.select_one(".statement-claims a[href*='/claims/']")["href"]
    with opened(browser, (site / chapter.name).as_uri(), typeset=True) as page:  # or a formula moves a link
        for css, shown in LINKS.items():
            shows_where_it_leads(page, first(chapter, css), shown)
        page.locator(f".statement-claims a[href='{claim}']").first.evaluate("(a) => a.focus({ focusVisible: true })")
        preview = page.locator("#preview:has(.verdict)")
        preview.wait_for(state="visible")
        assert len(preview.inner_text()) > 20


def shows_where_it_leads(page, href: str, css: str) -> None:
    """Under the pointer a link has a preview, typeset, inside the window, that repeats no anchor; Escape ends it."""
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


def test_a_figure_has_the_ground_and_the_ink_of_its_page(browser, address, chapters):
    with opened(browser, address + chapters[0].name) as page:
        figure = page.locator("article figure img").first
        for theme, least, most in (("light", 200, 255), ("dark", 0, 80)):
            page.emulate_media(color_scheme=theme)
            figure.scroll_into_view_if_needed()
            page.wait_for_function("(image) => image.complete", arg=figure.element_handle())
            seen = np.asarray(Image.open(io.BytesIO(figure.screenshot())).convert("L"))
            assert least <= np.median(seen) <= most
            assert seen.max() - seen.min() > 100, "the ink is seen"
