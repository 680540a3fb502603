"""A page is opened again when it may look otherwise, and only then."""

from pathlib import Path

import pytest
from seen import Seen


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """A small site whose one page has passed a check."""
    monkeypatch.delenv("CHECK_ALL", raising=False)
    for name in (
        "_static/styles/book.css",
        "_images/named.svg",
        "_images/other.svg",
        "explorers/one.js",
        "search/index.js",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("old")
    (tmp_path / "page.html").write_text(
        '<img src="_images/named.svg"><div data-figure="explorers/one.js"><script src="search/index.js">'
    )
    found = Seen(tmp_path, tmp_path / "notes", "130")
    found.passed("open-390", "page.html")
    assert not found.changed("open-390", "page.html")
    return found


@pytest.mark.parametrize(
    "name", ["page.html", "_static/styles/book.css", "_images/named.svg", "explorers/one.js", "search/index.js"]
)
def test_a_page_is_opened_again_when_it_or_what_it_loads_has_changed(seen, name):
    with (seen.site / name).open("a") as file:
        file.write("new")
    assert seen.changed("open-390", "page.html")
    seen.passed("open-390", "page.html")
    assert not seen.changed("open-390", "page.html")


def test_a_picture_of_another_page_opens_nothing(seen):
    (seen.site / "_images/other.svg").write_text("new")
    assert not seen.changed("open-390", "page.html")


def test_the_version_of_the_wheel_opens_nothing_and_another_link_does(seen):
    page = seen.site / "page.html"
    text = page.read_text("utf-8")
    page.write_text(f'{text}<a href="../downloads/book-0.1+0123abcd-py3-none-any.whl">')
    seen.passed("open-390", "page.html")
    page.write_text(f'{text}<a href="../downloads/book-0.1+ffff0000-py3-none-any.whl">')
    assert not seen.changed("open-390", "page.html")
    page.write_text(f'{text}<a href="../downloads/look-0.1+ffff0000-py3-none-any.whl">')
    assert seen.changed("open-390", "page.html")


def test_another_check_another_browser_and_whoever_asks_for_all_open_every_page(seen, monkeypatch):
    assert seen.changed("open-1280", "page.html")
    assert Seen(seen.site, seen.notes, "131").changed("open-390", "page.html")
    monkeypatch.setenv("CHECK_ALL", "1")
    assert seen.changed("open-390", "page.html")


def test_a_changed_test_opens_every_page(seen, monkeypatch, tmp_path):
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr("seen.__file__", str(tmp_path / "tests/seen.py"))
    (tmp_path / "tests/test_browser.py").write_text("one")
    seen.passed("open-390", "page.html")
    (tmp_path / "tests/test_browser.py").write_text("another")
    assert seen.changed("open-390", "page.html")


def test_a_check_of_pages_is_made_until_it_passes_and_when_one_of_them_has_changed(seen):
    (seen.site / "other.html").write_text("other")
    pages, made = ["page.html", "other.html"], []

    def check(red: bool = False) -> None:
        made.append(red)
        assert not red

    with pytest.raises(AssertionError):
        seen.once("two", pages, lambda: check(red=True))
    for _ in range(2):
        seen.once("two", pages, check)
    assert made == [True, False]
    (seen.site / "other.html").write_text("else")
    seen.once("two", pages, check)
    assert made == [True, False, False]
