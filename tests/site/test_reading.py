"""What a reader may hide, and what links show, in the built site."""

import pytest
from test_browser import opened

pytestmark = pytest.mark.browser

SEEN = """(css) => [...document.querySelectorAll(`article :is(${css})`)]
  .filter((element) => !element.parentElement.closest("details:not([open])") && element.checkVisibility()).length"""
PARTS = {"code": ".cell > .cell_input", "checks": ".checked", "proofs": ".proof-fold"}


def seen_parts(page) -> set[str]:
    """Those of the parts of a chapter that can be seen."""
    return {mode for mode, css in PARTS.items() if page.evaluate(SEEN, css)}


def test_the_switch_hides_and_the_address_keeps_it(browser, address, site, chapters):
    with opened(browser, address + chapters[0].name) as page:
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
        page.goto(address + chapters[-1].name)
        assert seen_parts(page) == set(), "kept on the machine"
        page.goto(f"{address}{chapters[-1].name}?hide=")
        assert seen_parts(page) == {*PARTS}, "the address wins"
    with opened(browser, f"{(site / chapters[0].name).as_uri()}?hide={','.join(PARTS)}") as page:
        assert seen_parts(page) == set(), "from a disk"
        assert not any(page.locator(f".modes input[name={mode}]").is_checked() for mode in PARTS)


def test_a_link_to_something_hidden_shows_it(browser, address, chapters):
    check = chapters[0].soup.select_one("div.cell[id^=check-]:has(.checked)")["id"]
    with opened(browser, f"{address}{chapters[0].name}?hide=code,checks#{check}") as page:
        assert page.locator(f"[id='{check}']").is_visible()
        assert page.locator(".modes input[name=checks]").evaluate("(box) => box.checked")


def first(chapters, css: str):
    """A chapter and the link that stands first in it, is not folded, and leads elsewhere or to a box or a formula."""
    for chapter in chapters:
        for link in chapter.article.select(css):
            target = chapter.article.find(id=link["href"][1:])
            shown = target is None or {"proof", "math"} & set(target.get("class", []))
            if shown and not link.find_parent("details"):
                return chapter, link["href"]
    pytest.fail(f"no chapter has {css}")


# Links and what their previews hold.
LINKS = {
    "a.reference[href^='#']:not([href^='#equation-'])": ".caption-number, figcaption, .admonition-title",
    "a.reference[href^='#equation-']": "mjx-container",
    "a.reference[href*='bibliography.html#']": "p",
}


@pytest.mark.parametrize("from_disk", [False, True])
def test_a_link_shows_where_it_leads(browser, address, site, chapters, from_disk):
    shown = {}
    for css in LINKS:
        chapter, href = first(chapters, css)
        shown.setdefault(chapter.name, []).append((href, LINKS[css]))
    for name, links in shown.items():
        with opened(browser, f"{site.as_uri()}/{name}" if from_disk else address + name) as page:
            for href, css in links:
                shows_where_it_leads(page, href, css)


def shows_where_it_leads(page, href: str, css: str) -> None:
    """Hovered or focused, a link has a preview, typeset, inside the window, that repeats no anchor; Escape ends it."""
    link = page.locator(f"article a.reference[href='{href}']:not(details a)").first
    preview = page.locator("#preview")
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
