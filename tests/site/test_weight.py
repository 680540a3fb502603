"""What pages weigh and cost, and that scripts come only where they are of use."""

import pytest
from weigh import weigh

from derived.book.site.light import size

LIGHT = 2.0  # megabytes of a chapter before compression, without Plotly's script and MathJax
CPU = {"book/ledger.html": 1.0}  # seconds of the main thread; of a chapter 2
ROOM = 3.0  # how many times as slow a machine may be, or as busy with other tests; weigh.py measures on a quiet one


@pytest.mark.browser
def test_chapters_and_ledger_are_light(browser, site, chapters):
    """A page that took too long is visited once more: another process can only add."""
    for name in [*(page.name for page in chapters), *CPU]:
        allowed = ROOM * CPU.get(name, 2.0)
        size, cpu, _ = weigh(browser, site / name)
        assert size < LIGHT, f"{name}: {size:.2f} MB"
        assert cpu < allowed or (cpu := weigh(browser, site / name)[1]) < allowed, f"{name}: {cpu:.2f} s"


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
    pages = [page for page in every_page if page.article and not page.name.startswith("slides/")]
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
        assert len(figures) > 3
        for image in figures:
            wide, high = size(site / "_images" / image["src"].rsplit("/", 1)[1])
            assert (image["width"], image["height"]) == (f"{wide:.0f}", f"{high:.0f}"), image["src"]
        assert [image for image in figures if image.get("loading") != "lazy"] == figures[:1]
