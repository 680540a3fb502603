"""The welcome page and how chapters open, in the built site."""

import pytest
from bs4 import BeautifulSoup
from test_browser import opened

INTRO = "book/intro.html"


def test_the_address_of_the_site_itself_has_the_icon_and_what_a_shared_link_shows(site, pages):
    intro = next(page for page in pages if page.name == INTRO)
    root = BeautifulSoup((site / "index.html").read_text("utf-8"), "html.parser")
    assert (site / root.select_one("link[rel=icon]")["href"]).is_file()
    said = {tag["property"]: tag["content"] for tag in root.select("meta[property^='og:']")}
    assert said["og:description"] == intro.soup.select_one("meta[property='og:description']")["content"]
    assert root.select_one("meta[http-equiv=refresh]")["content"].endswith(f"url={INTRO}")


def test_a_chapter_opens_with_what_was_read_a_surprise_and_a_picture(chapters):
    for page in chapters:
        surprise, lines = page.article.select_one(".opening-surprise"), page.article.select_one(".opening-lines")
        assert surprise.find_previous(class_="opening-read") is not None, page.name
        shown = {*surprise.find_all_next(["figure", "div"])} - {*lines.find_all_next(["figure", "div"])}
        assert [each for each in shown if each.name == "figure" or "explorer" in each.get("class", ())], page.name
        assert len(lines.select("dt")) == 3, page.name


@pytest.mark.browser
def test_the_tokens_wait_for_a_reader_who_wants_no_motion_and_play_when_asked(browser, address):
    with opened(browser, f"{address}{INTRO}") as page:  # with reduced motion
        where = "[...document.querySelectorAll('.token')].map((token) => token.getAttribute('cx')).join()"
        first, still = page.evaluate(where), page.locator(".spheres output").inner_text()
        page.wait_for_timeout(300)
        assert page.evaluate(where) == first
        found = [float(each) for each in page.locator(".spheres-row b").all_inner_texts()]
        assert min(found) > 0.9, "the page says that they gather"
        button = page.locator(".spheres button")
        assert button.inner_text() == "Play"
        button.click()
        page.wait_for_function("(said) => document.querySelector('.spheres output').textContent !== said", arg=still)
        assert page.evaluate(where) != first
        button.click()
        page.locator(".spheres input").fill("0")
        assert page.locator(".spheres output").inner_text() == "layer 0"


@pytest.mark.browser
def test_the_tokens_stand_without_scripts(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}{INTRO}")
    assert page.locator(".token").count() > 100
    assert not page.locator(".spheres button").is_visible()
    context.close()
