"""The welcome page, how chapters open, and what shared links show, in the built site."""

import posixpath
import re

import pytest
from bs4 import BeautifulSoup
from PIL import Image
from test_browser import opened

from bookbuilder.index_pages.welcome import SHARED

INTRO = "book/intro.html"


@pytest.fixture(scope="session")
def intro(pages):
    return next(page for page in pages if page.name == INTRO)


def test_each_chapter_has_a_line_with_its_sentence_and_its_time(intro, chapters):
    lines = intro.article.select("ol.shelf > li")
    assert sorted(line.a["href"] for line in lines) == sorted(f"../{page.name}" for page in chapters)
    for line in lines:
        assert len(line.select_one(".shelf-surprise").get_text()) > 40
        assert re.fullmatch(r"(\d+ h )?\d+ min", line.select_one(".shelf-time").get_text())


def meta(page) -> dict[str, str]:
    tags = page.soup.select("meta[property^='og:'], meta[name=description]")
    return {tag.get("property") or tag["name"]: tag["content"] for tag in tags}


def test_a_shared_chapter_shows_plain_words_and_its_picture(site, chapters):
    for page in chapters:
        said = meta(page)
        assert said["og:site_name"] == "Transformers, Derived"
        assert said["og:description"] == said["description"]
        assert not re.search(r"[$\\{}\[\]]", said["description"]), page.name
        if "://" not in said["og:image"]:
            picture = posixpath.normpath(posixpath.join(posixpath.dirname(page.name), said["og:image"]))
            with Image.open(site / picture) as image:
                assert image.size == SHARED
        assert said["og:image:alt"]
    assert len({meta(page)["og:description"] for page in chapters}) == len(chapters)


def test_no_shared_address_is_without_a_host(every_page):
    assert not [page.name for page in every_page if "://" not in meta(page).get("og:url", "http://")]


def test_the_address_of_the_site_itself_has_the_icon_and_what_a_shared_link_shows(site, intro):
    root = BeautifulSoup((site / "index.html").read_text("utf-8"), "html.parser")
    assert (site / root.select_one("link[rel=icon]")["href"]).is_file()
    said = {tag["property"]: tag["content"] for tag in root.select("meta[property^='og:']")}
    assert said["og:description"] == meta(intro)["og:description"]
    assert "://" in said["og:image"] or (site / said["og:image"]).is_file()
    assert root.select_one("meta[http-equiv=refresh]")["content"].endswith(f"url={INTRO}")


def test_a_chapter_opens_with_what_was_read_a_surprise_and_a_picture(chapters):
    for page in chapters:
        surprise, lines = page.article.select_one(".opening-surprise"), page.article.select_one(".opening-lines")
        assert surprise.find_previous(class_="opening-read") is not None, page.name
        shown = {*surprise.find_all_next(["figure", "div"])} - {*lines.find_all_next(["figure", "div"])}
        assert [each for each in shown if each.name == "figure" or "explorer" in each.get("class", ())], page.name
        assert len(lines.select("dt")) == 3, page.name


def test_set_up_folds_between_opening_and_summary(chapters):
    for page in chapters:
        fold = page.article.select_one("details.setup-fold")
        assert fold.find_previous(class_="glance") is not None
        assert fold.find_next("h2").parent["id"] == "in-short", page.name
        assert fold.select("div.cell_input")
        above = fold.find_next("h2").find_all_previous("div", class_="cell")
        above = [cell for cell in above if "tag_opening" not in cell.get("class", ())]
        assert all(fold in cell.parents for cell in above), page.name


@pytest.mark.browser
def test_the_tokens_wait_for_a_reader_who_wants_no_motion_and_play_when_asked(browser, address):
    with opened(browser, f"{address}{INTRO}") as page:  # with reduced motion
        where = "[...document.querySelectorAll('.token')].map((token) => token.getAttribute('cx')).join()"
        first, still = page.evaluate(where), page.locator(".spheres output").inner_text()
        page.wait_for_timeout(300)
        assert page.evaluate(where) == first
        button = page.locator(".spheres button")
        assert button.inner_text() == "Play"
        button.click()
        page.wait_for_function("(said) => document.querySelector('.spheres output').textContent !== said", arg=still)
        assert page.evaluate(where) != first
        button.click()
        paused = page.evaluate(where)
        page.wait_for_timeout(200)
        assert page.evaluate(where) == paused
        page.locator(".spheres input").fill("0")
        assert page.locator(".spheres output").inner_text() == "layer 0"
        begun, ball = page.evaluate(where), page.locator(".spheres svg").first.bounding_box()
        page.mouse.move(ball["x"] + 50, ball["y"] + 50)
        page.mouse.down()
        page.mouse.move(ball["x"] + 90, ball["y"] + 50, steps=3)
        page.mouse.up()
        assert page.evaluate(where) != begun, "dragging turns the spheres"


@pytest.mark.browser
def test_the_tokens_end_gathered_where_a_reader_sees_them_and_the_sentence_agrees(browser, address):
    with opened(browser, f"{address}{INTRO}") as page:  # with reduced motion: at its end
        found = [float(each) for each in page.locator(".spheres-row b").all_inner_texts()]
        assert min(found) > 0.9, "the page says that they gather"
        middle = "(svg) => [...svg.querySelectorAll('.token')].map((each) => Number(each.getAttribute('opacity')))"
        for overlap, ball in zip(found, page.locator(".spheres svg").all(), strict=True):
            seen = ball.evaluate(middle)
            assert overlap < 0.9 or sum(seen) > 0.9 * len(seen), "a cluster faces the reader"


@pytest.mark.browser
def test_the_tokens_play_by_themselves_and_stand_without_scripts(browser, address):
    with_scripts = browser.new_context()
    page = with_scripts.new_page()
    page.goto(f"{address}{INTRO}")
    page.wait_for_function("document.querySelector('.spheres button').textContent === 'Pause'")
    with_scripts.close()
    without = browser.new_context(java_script_enabled=False)
    page = without.new_page()
    page.goto(f"{address}{INTRO}")
    assert page.locator(".token").count() > 100
    assert not page.locator(".spheres button").is_visible()
    without.close()


@pytest.mark.browser
def test_a_lifted_explorer_works_and_does_not_hold_its_data_twice(browser, address, chapters):
    lifted = [page for page in chapters if page.soup.select(".explorer-lifted .explorer")]
    if not lifted:
        pytest.skip("no chapter of this site opens with an explorer")
    with opened(browser, address + lifted[0].name) as page:
        again = page.locator(".explorer-lifted .explorer")
        again.scroll_into_view_if_needed()
        page.wait_for_selector(".explorer-lifted .explorer[data-ready]", timeout=60_000)
        slider = again.locator("input[type=range]").first
        before = again.locator("output").first.inner_text()
        slider.press("ArrowLeft")
        assert again.locator("output").first.inner_text() != before
        address_of = "boxes => boxes.map(box => box.dataset.figure)"
        figures = page.eval_on_selector_all(".explorer", address_of)
        assert figures.count(again.get_attribute("data-figure")) == 2
