"""Scripts, icons and figures come only where and when they are of use; what a page weighs: `test_browser.py`."""

import re

import pytest

from bookbuilder.sphinx_site.slim_html import THEME, size


@pytest.mark.parametrize(
    ("script", "use"),
    [
        ("tex-chtml.js", ".math"),
        ("explorer.js", ".explorer"),
        ("filters.js", ".ledger, .theorems"),
        ("evidence.js", ".copy-link"),
        ("copybutton.js", ".highlight"),
        ("togglebutton.js", ".dropdown, .toggle"),
    ],
)
def test_a_script_is_loaded_where_it_is_of_use_and_nowhere_else(every_page, script, use):
    pages = [page for page in every_page if page.article]
    wrong = [p.name for p in pages if bool(p.soup.select(f"script[src*='{script}']")) != bool(p.article.select(use))]
    assert not wrong


def test_no_page_loads_the_theme_s_icons_or_the_index_of_sphinx(site, every_page):
    for page in every_page:
        loaded = [tag["src"] for tag in page.soup.select("script[src]")]
        assert not [url for url in loaded if "fontawesome" in url or "searchindex" in url or "searchtools" in url]
    assert not list(site.rglob("fontawesome.js*"))


def test_every_icon_has_its_shape(site, every_page):
    rules = (site / "_static/icons.css").read_text("utf-8")
    sizes = {"fa-solid", "fa-regular", "fa-brands", "fa-lg"}
    names = {name for page in every_page for tag in page.soup.select("[class*='fa-']") for name in tag["class"]}
    assert names & {"fa-magnifying-glass"}
    assert not [name for name in names - sizes if name.startswith("fa-") and f".{name} {{ --icon: url(" not in rules]


def test_figures_below_the_first_wait_and_keep_their_room(site, chapters):
    for page in chapters:
        figures = page.article.select("figure img[src*='_images/']")
        assert len(figures) >= 3
        for image in figures:
            wide, high = size(site / "_images" / image["src"].rsplit("/", 1)[1])
            assert (image["width"], image["height"]) == (f"{wide:.0f}", f"{high:.0f}"), image["src"]
        assert [image for image in figures if image.get("loading") != "lazy"] == figures[:1]


def test_the_theme_s_sheet_keeps_each_rule_of_a_class_that_a_page_has(site, every_page):
    """A class by itself, ``.name{`` or ``.name,``, has as many rules as in the theme; most others are gone."""
    name = "styles/pydata-sphinx-theme.css"
    whole, kept = (
        re.findall(r"(?<![\w)*>+~ ])(\.[a-z][-\w]+)(?=[,{])", (folder / name).read_text("utf-8"))
        for folder in (THEME, site / "_static")
    )
    given = {f".{each}" for page in every_page for tag in page.soup.select("[class]") for each in tag["class"]}
    assert len(given & {*whole}) > 20
    icons = {each for each in given if each.startswith(".fa-")}
    assert not [each for each in (given & {*whole}) - icons if whole.count(each) != kept.count(each)]
    assert len({*kept}) < len({*whole}) / 2
