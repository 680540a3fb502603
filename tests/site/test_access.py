"""The site by keyboard: a short way by Tab. What axe finds stands in `test_browser.py`, page by page."""

import pytest

pytestmark = pytest.mark.browser


def test_the_keyboard_goes_through_a_chapter_in_less_than_a_hundred_stops(browser, site, chapters):
    """Tab to the link that skips to the next section, Enter, and again, to the last section."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{site.as_uri()}/{chapters[0].name}")
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
    page.close()
