"""The site for those who use a keyboard or a screen reader: axe without a serious violation, a short way by Tab."""

import importlib.resources

import pytest

pytestmark = pytest.mark.browser
RUN = """() => axe.run(document, { resultTypes: ["violations"] })
  .then(({ violations }) => violations.map(({ id, impact, nodes }) => [id, impact, nodes[0].html.slice(0, 160)]))"""
MENDED = {"empty-table-header", "aria-required-children"}  # not all serious to axe, and right here all the same


@pytest.fixture(scope="session")
def axe() -> str:
    return (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_axe_finds_nothing_serious(browser, site, pages, chapters, axe, width, theme):
    """On every kind of page: one chapter stands for all, one page of evidence and one deck likewise."""
    kinds = [page.name for page in pages if page.name.startswith("book/")] + [chapters[0].name, "search.html"]
    kinds += [
        min(path.relative_to(site).as_posix() for path in (site / part).glob("*.html")) for part in ("claims", "slides")
    ]
    found = []
    for name in kinds:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
        page = context.new_page()
        page.goto(f"{site.as_uri()}/{name}")
        page.wait_for_timeout(500)
        page.evaluate(axe)
        found += [
            (name, *violation)
            for violation in page.evaluate(RUN)
            if violation[1] in ("serious", "critical") or violation[0] in MENDED
        ]
        context.close()
    assert not found


def test_the_keyboard_goes_through_a_chapter_in_less_than_a_hundred_stops(browser, site, chapters):
    """Tab to the link that skips to the next section, Enter, and again, to the last section."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{site.as_uri()}/{chapters[0].name}")
    page.wait_for_timeout(500)
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
    page.close()
