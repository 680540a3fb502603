"""What a reader may hide, and what links show, in the built site."""

import pytest
from test_browser import opened

pytestmark = pytest.mark.browser

SEEN = """(css) => [...document.querySelectorAll(`article :is(${css})`)]
  .filter((element) => !element.parentElement.closest("details:not([open])") && element.checkVisibility()).length"""
PARTS = {"code": ".cell > .cell_input", "checks": ".checked", "proofs": ".proof-fold"}


@pytest.mark.parametrize("mode", PARTS)
def test_the_switch_hides_and_the_address_keeps_it(browser, address, site, chapters, mode):
    with opened(browser, address + chapters[0].name, typeset=False) as page:
        assert page.evaluate(SEEN, PARTS[mode]) > 0
        page.locator(".modes summary").click()
        page.locator(f".modes input[name={mode}]").uncheck()
        assert page.evaluate(SEEN, PARTS[mode]) == 0
        assert page.url.endswith(f"?hide={mode}")
        for other in PARTS.keys() - {mode}:
            assert page.evaluate(SEEN, PARTS[other]) > 0
        page.emulate_media(media="print")
        assert page.evaluate(SEEN, PARTS[mode]) == 0, "print follows"
        page.goto(address + chapters[-1].name)
        assert page.evaluate(SEEN, PARTS[mode]) == 0, "kept on the machine"
        page.goto(f"{address}{chapters[-1].name}?hide=")
        page.emulate_media(media="screen")
        assert page.evaluate(SEEN, PARTS[mode]) > 0, "the address wins"
    with opened(browser, f"{(site / chapters[0].name).as_uri()}?hide={mode}", typeset=False) as page:
        assert page.evaluate(SEEN, PARTS[mode]) == 0, "from a disk"
        assert not page.locator(f".modes input[name={mode}]").is_checked()


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


@pytest.mark.parametrize(
    ("css", "shown"),
    [
        ("a.reference[href^='#']:not([href^='#equation-'])", ".caption-number, figcaption, .admonition-title"),
        ("a.reference[href^='#equation-']", "mjx-container"),
        ("a.reference[href*='bibliography.html#']", "p"),
    ],
)
@pytest.mark.parametrize("from_disk", [False, True])
def test_a_link_shows_where_it_leads(browser, address, site, chapters, css, shown, from_disk):
    chapter, href = first(chapters, css)
    url = (site / chapter.name).as_uri() if from_disk else address + chapter.name
    with opened(browser, url) as page:
        link = page.locator(f"article a.reference[href='{href}']:not(details a)").first
        preview = page.locator("#preview")
        link.scroll_into_view_if_needed()
        link.hover()
        preview.wait_for(state="visible")
        assert preview.locator(shown).count() > 0
        assert link.get_attribute("aria-describedby") == "preview"
        typeset = "[...document.querySelectorAll('#preview .math')].every((e) => e.querySelector('mjx-math'))"
        page.wait_for_function(typeset)
        box = preview.bounding_box()
        assert 0 <= box["x"] <= 1280 - box["width"]
        assert 0 <= box["y"] <= 900 - box["height"]
        page.keyboard.press("Escape")
        assert not preview.is_visible()
        assert link.get_attribute("aria-describedby") is None
        page.mouse.move(2, 2)
        link.evaluate("(link) => link.focus({ focusVisible: true })")
        preview.wait_for(state="visible")
        page.keyboard.press("Tab")
        page.wait_for_function("(link) => link.getAttribute('aria-describedby') === null", arg=link.element_handle())


def test_a_preview_repeats_no_anchor(browser, address, chapters):
    chapter, href = first(chapters, "a.reference[href^='#']:not([href^='#equation-'])")
    with opened(browser, address + chapter.name) as page:
        page.locator(f"article a.reference[href='{href}']:not(details a)").first.hover()
        page.locator("#preview").wait_for(state="visible")
        assert page.evaluate("(id) => document.querySelectorAll(`[id='${id}']`).length", href[1:]) == 1
