"""Reads the parts of a chapter's built page that slides can show, by label.

thing   what a label shows: a statement, a figure, an exercise, an equation, or the parts of a section
part    of a section: text, a formula, a table, an admonition, or source code; statements, figures and exercises have
        labels of their own, and a sentence that only leads to something that is not shown is left out
"""

import copy
import re
from collections.abc import Iterator
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag

from derived.book.page import pages

TEXT = ("p", "ul", "ol", "dl", "div", "blockquote", "figure")
BOXES = ("proof", "exercise", "solution")  # admonitions that have labels of their own, or belong to one that has


class Thing(NamedTuple):
    """A labelled thing: its name, the heading of its slide, its parts, and the speaker's notes."""

    name: str
    heading: str
    parts: list[Tag]
    notes: list[Tag]


def things(page: BeautifulSoup, judged: list[Tag]) -> dict[str, Thing]:
    """Read the labelled things of a built page; ``judged`` replaces the table in the section of claims."""
    article = page.article
    for title in classed(article, "admonition-title"):
        for link in classed(title, "headerlink"):
            link.extract()
    for extra in classed(article, "statement-links", "provenance"):
        extra.extract()
    for lifted in classed(article, "explorer-lifted"):  # a wall has no sliders
        picture = lifted.noscript.img.extract()
        picture["alt"] = lifted.select_one(".explorer")["aria-label"]
        lifted.clear()
        lifted.append(picture)
        lifted.name = "figure"
    found = {}
    for head in article.find_all(["h1", "h2", "h3", "h4"]):
        section, heading = head.parent, heading_of(head)
        if section.name != "section" or not section.get("id"):
            continue
        parts = judged if section["id"] == "claims" else list(_parts(section))
        found[section["id"]] = Thing(plain_words(heading), heading, parts, [])
        for box in section.find_all(True, recursive=False):
            title = box.select_one(".admonition-title") if "admonition" in box.get("class", []) else None
            if title and box.get("id") and "solution" not in box["class"]:
                whole = title.decode_contents().strip()
                found[box["id"]] = Thing(_title(title), whole, [box], list(_proofs(box)))
        cells = [child for child in section.find_all(True, recursive=False) if "cell" in child.get("class", ())]
        for figure in (figure for cell in cells for figure in cell.find_all("figure", id=True)):
            number = figure.select_one(".caption-number")
            found[figure["id"]] = Thing(number.get_text().strip() if number else "Figure", heading, [figure], [])
    for formula in article.find_all("div", id=re.compile("^equation-")):
        heading = heading_of(formula.find_previous(["h1", "h2", "h3", "h4"]))
        number = formula.select_one(".eqno")
        name = f"Equation {number.get_text().strip(' #')}" if number else "Equation"
        found[formula["id"].removeprefix("equation-")] = Thing(name, heading, [formula], [])
    return found


def classed(tag: Tag, *names: str) -> list[Tag]:
    """Find the elements below with one of these classes, ten times faster than a selector."""
    below = (child for child in tag.descendants if isinstance(child, Tag))
    return [child for child in below if not set(names).isdisjoint(child.get("class", ()))]


def claims(chapter: pages.Chapter) -> list[Tag]:
    """Count the claims of each verdict, the paper's apart; then list those that fail or have plain words."""
    rows = [row for row in pages.headlines(chapter.rows) if row["plain"] or row["verdict"] == "fails"]
    values = {"chapter": chapter, "groups": pages.grouped(chapter.rows), "rows": rows}
    return BeautifulSoup(pages.html("slide_claims.html", **values), "html.parser").find_all(True, recursive=False)


def _parts(section: Tag) -> Iterator[Tag]:
    """Read the parts of a section, without sentences that only lead to something not shown."""
    children = [child for child in section.find_all(True, recursive=False) if child.name in (*TEXT, "section")]
    shown = [_of(child) for child in children]
    for child, parts, following in zip(children, shown, [*shown[1:], []], strict=True):
        if not (child.name == "p" and child.get_text().rstrip().endswith(":") and not following):
            yield from parts


def _of(child: Tag) -> list[Tag]:
    kinds = child.get("class", [])
    if "cell" in kinds:
        for words in classed(child, "explorer"):
            words.replace_with(_explorer(words))
        found = child.select(".cell_output table, .cell_output .highlight-python, .explorer-words")
        return [_tabled(part) for part in found if not part.find_parent("table")]
    hidden = child.name == "section" or ("admonition" in kinds and set(BOXES) & set(kinds))
    return [] if hidden or not (child.get_text().strip() or child.find("img")) else [child]


def _explorer(box: Tag) -> Tag:
    """Replace an explorer by words with a link, since its data would make each deck as heavy as the chapter."""
    section = box.find_previous(["h2", "h3"]).parent["id"]
    text = f'<p class="explorer-words"><a href="#{section}">Open the explorer</a>. {box["aria-label"]}</p>'
    return BeautifulSoup(text, "html.parser").p


def _tabled(part: Tag) -> Tag:
    """Return a table as wide as its columns, without the frame of its cell."""
    part.attrs.pop("style", None)
    return part


def _proofs(box: Tag) -> Iterator[Tag]:
    """Find the proofs that follow a statement, out of their folds."""
    for after in box.find_next_siblings(True):
        kinds = after.get("class", [])
        if kinds == ["proof", "admonition"]:
            yield after
        elif "proof-fold" in kinds:
            yield from after.select(".proof.admonition")
        elif "admonition" in kinds and "proof" in kinds:
            return


def heading_of(tag: Tag) -> str:
    """Return the inside of a heading without its number and its link."""
    for extra in tag.select(".section-number, .headerlink"):
        extra.extract()
    return tag.decode_contents().strip()


def _title(title: Tag) -> str:
    """Return the title of a box as plain text, without its badge."""
    words = copy.copy(title)
    for badge in words.select(".whose"):
        badge.extract()
    return plain_words(words.decode_contents())


def plain_words(html: str) -> str:
    text = BeautifulSoup(html, "html.parser").get_text().replace("\\(", "$").replace("\\)", "$")
    return " ".join(text.split())
