"""Takes figures from built pages for the slides and papers of others.

svg      the figure with the colours of the light page in it, letters as text
pdf, png the same, printed by Chromium at its own size
credit   a line to paste under it: number, caption, chapter, licence
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup

LICENCE = "CC BY 4.0, https://creativecommons.org/licenses/by/4.0/"
_DAY = re.compile(r"(--c\d+):(#[0-9a-f]{6});")


class Named(NamedTuple):
    """A figure: chapter and label, its drawing and its credit."""

    name: str
    svg: str
    credit: str


def plain(svg: str) -> str:
    """A figure in the colours of the light page, for programs that know no variables of CSS.

    >>> night = "@media (x:y){svg{--c0:#d6dde3;}}"
    >>> plain(f"<svg><style>svg{{fill:var(--c0);--c0:#000000;}}{night}</style><g style='fill: var(--c0)'/>")
    "<svg><style>svg{fill:#000000;}</style><g style='fill: #000000'/>"
    """
    day: dict[str, str] = {}
    for name, colour in _DAY.findall(svg):
        day.setdefault(name, colour)  # the first is the light page's
    svg = _DAY.sub("", re.sub(r"@media \([^)]*\)\{svg\{[^}]*\}\}", "", svg))
    return re.sub(r"var\((--c\d+)\)", lambda found: day[found[1]], svg)


def found(path: Path, page: BeautifulSoup) -> Iterator[Named]:
    """Find the figures of a built chapter, which is parsed already."""
    title = page.select_one("article h1")
    for part in title.select(".section-number, .headerlink"):
        part.decompose()
    for figure in page.select("article figure[id]"):
        image, number = figure.select_one('img[src$=".svg"]'), figure.select_one(".caption-number")
        if image and number:
            words = figure.select_one(".caption-text").get_text().split(". ")[0].strip().rstrip(".")
            chapter = f"“{title.get_text().strip()}”, *Transformers, Derived*"
            credit = f"{number.get_text().strip()}. {words}. {chapter}, {LICENCE}"
            svg = (path.parent / image["src"]).resolve().read_text("utf-8")
            yield Named(f"{path.stem}/{figure['id']}", plain(svg), credit)


def printed(drawings: Sequence[str]) -> Iterator[dict[str, bytes]]:
    """Print drawings, each at its own size, by the endings of the files."""
    from bookbuilder.export.pdf import chromium  # needs playwright, which a reader who builds the site lacks

    with chromium() as browser:
        tab = browser.new_page(device_scale_factor=2)
        for svg in drawings:
            width, height = size(svg)
            sheet = f"<style>@page{{size:{width}pt {height}pt;margin:0}}body{{margin:0}}svg{{display:block}}</style>"
            tab.set_content(f"<!doctype html><title>figure</title>{sheet}{svg[svg.index('<svg') :]}")
            pdf = tab.pdf(prefer_css_page_size=True, print_background=True, page_ranges="1")
            yield {".pdf": pdf, ".png": tab.locator("svg").first.screenshot()}


def size(svg: str) -> tuple[float, float]:
    """Width and height of a drawing in points.

    >>> size('<svg width="360pt" height="216pt" viewBox="0 0 360 216">')
    (360.0, 216.0)
    """
    tag = re.search(r"<svg [^>]*>", svg)[0]
    return tuple(float(re.search(rf'\b{side}="([\d.]+)pt"', tag)[1]) for side in ("width", "height"))
