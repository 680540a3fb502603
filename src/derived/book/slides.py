"""The slides of a chapter, from its built page: what is on the wall while proofs go on the board.

title         the chapter, its paper, and what a student can do afterwards
question      its whole text, as that of the short path, the setup and the take-away: some paragraphs a slide
derivation    definitions, statements, and the boxes that say whose words they are; no proofs
experiments   figures with their captions
claims        how many have which verdict, and each one that fails
exercises     without their solutions
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag

from derived.book import pages

WHOLE = ("in-ten-minutes", "the-question", "setup", "take-away")  # sections whose text is shown too
LEFT_OUT = ("mechanism", "claims")
TEXT = ("p", "ul", "ol", "dl", "div", "blockquote")
ROOM = 500  # characters on a slide


class Slide(NamedTuple):
    """A heading and what stands under it, as HTML."""

    heading: str
    body: str


def write(html: Path, chapter: pages.Chapter, page: BeautifulSoup) -> None:
    """Write ``slides/<slug>.html`` of a built site; its images, styles and MathJax are those of the chapter's page,
    which is used up."""
    name = f"notebooks/{chapter.slug}.html"
    head = page.head.select('link[rel=stylesheet], link[rel=icon], script[src*="mathjax/"]')
    title = _heading(page.select_one("article h1"))
    failing = [row for row in pages.headlines(chapter.rows) if row["verdict"] == "fails"]
    values = {"chapter": chapter, "title": title, "counts": pages.counts(chapter.rows), "failing": failing}
    values |= {"head": "\n".join(map(str, head)), "slides": list(slides(page, f"../{name}"))}
    folder = html / "slides"
    folder.mkdir(exist_ok=True)
    for name in ("slides.css", "slides.js"):
        shutil.copyfile(Path(__file__).parent / "templates" / name, folder / name)
    (folder / f"{chapter.slug}.html").write_text(pages.html("slides.html", **values), "utf-8")


def slides(page: BeautifulSoup, address: str) -> Iterator[Slide]:
    """The slides of a built page, in its order; references lead back to the page at ``address``."""
    for extra in page.select("article .statement-links, article .admonition-title .headerlink"):
        extra.extract()
    for link in page.select('article a[href^="#"]'):
        link["href"] = address + link["href"]
    for section in page.select("article > section > section"):
        if section["id"] not in LEFT_OUT:
            yield from _of_section(section, whole=section["id"] in WHOLE)


def _of_section(section: Tag, whole: bool) -> Iterator[Slide]:
    heading, held = _heading(section.find(["h2", "h3", "h4"])), []
    for part in _parts(section, whole):
        alone = "figure" in (part.name, *(each.name for each in held))
        if held and (alone or len("".join(each.get_text() for each in [*held, part])) > ROOM):
            leads = "math" in part.get("class", []) or held[-1].get_text().rstrip().endswith(":")
            ahead = [held.pop()] if leads and len(held) > 1 else []
            yield Slide(heading, "".join(map(str, held)))
            held = ahead
        held.append(part)
    if held:
        yield Slide(heading, "".join(map(str, held)))
    for inner in section.find_all("section", recursive=False):
        yield from _of_section(inner, whole)


def _parts(section: Tag, whole: bool) -> Iterator[Tag]:
    """What a section shows: boxes but for proofs and solutions, figures, and text if the section is whole."""
    for part in section.find_all(True, recursive=False):
        kinds = part.get("class", [])
        if "cell" in kinds:
            yield from part.select("figure")
        elif "admonition" in kinds:
            if kinds != ["proof", "admonition"] and "solution" not in kinds:
                yield part
        elif whole and part.name in TEXT:
            yield part


def _heading(tag: Tag) -> str:
    """The inside of a heading without its number and its link to itself."""
    for extra in tag.select(".section-number, .headerlink"):
        extra.extract()
    return tag.decode_contents().strip()
