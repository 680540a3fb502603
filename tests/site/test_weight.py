"""Scripts, icons and figures come only where and when they are of use; what a page weighs: `test_browser.py`."""

import re

import pytest

from bookbuilder.sphinx_site.slim_html import THEME

# Scripts, and what they serve.
USES = {
    "tex-chtml.js": ".math",
    "explorer.js": ".explorer",
    "filters.js": ".ledger, .theorems",
    "evidence.js": ".copy-link",
    "copybutton.js": ".highlight",
    "togglebutton.js": ".dropdown, .toggle",
}


@pytest.mark.parametrize("script", USES)
def test_a_script_is_loaded_where_it_is_of_use_and_nowhere_else(every_page, script):
    use = USES[script]
    pages = [page for page in every_page if page.article]
    wrong = [p.name for p in pages if bool(p.soup.select(f"script[src*='{script}']")) != bool(p.article.select(use))]
    assert not wrong


def test_no_page_loads_the_theme_s_icons_or_the_index_of_sphinx(site, every_page):
    for page in every_page:
        loaded = [tag["src"] for tag in page.soup.select("script[src]")]
        assert not [url for url in loaded if "fontawesome" in url or "searchindex" in url or "searchtools" in url]
    assert not list(site.rglob("fontawesome.js*"))


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
