"""Reads the parts of a chapter's built page that slides can show, by label.

thing   what a label shows: a statement, a figure, an exercise, an equation, or the parts of a section
part    of a section: text, a formula, a table, an admonition, source code or an explorer; statements, figures and
        exercises have labels of their own, and a sentence that only leads to something that is not shown is left out;
        so is one that points elsewhere on the page, and of a caption what is too long for a wall
"""

import copy
import re
from collections.abc import Iterator
from typing import NamedTuple

from bs4 import BeautifulSoup, NavigableString, PageElement, Tag

from bookbuilder.chapter_pages import pages

NARROW = 555  # pixels of a figure as it is drawn that leave room for text beside it
TALL = 400  # and of one that leaves none for its caption
_PANEL = re.compile(r"\s*(Left|Middle|Right|Above|Below|Top|Bottom)\b")
CAPTION = 150  # characters of a caption on a slide; the rest goes to the notes
POINTS = re.compile(
    r"\berrata\b|\bsliders?\b|\bfurther (?:down|up)\b|\b(?:below|above)(?=[,:;.)])"
    r"|\b(?:see|shown?|checks?|figures?|tables?|statements|proofs|cells?|explorer) (?:\w+ )?(?:below|above)\b"
)  # words for a place on the page
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|(?<=[.!?])\s*$")
_ASIDE = re.compile(r"\s*\([^()]*\)")
_CLAIM = re.compile(r"claims/\w+\.html#(.+)")

TEXT = ("p", "ul", "ol", "dl", "div", "blockquote", "figure")
BOXES = ("proof", "exercise", "solution")  # admonitions that have labels of their own, or belong to one that has


class Slide(NamedTuple):
    """A heading and the parts under it, its step, and the speaker's notes."""

    heading: str
    parts: list[Tag]
    step: int
    notes: str

    @property
    def text(self) -> str:
        return " ".join(part.get_text(" ") for part in self.parts)

    @property
    def picture(self) -> Tag | None:
        """Find the figure or explorer on the slide."""
        return next((part for part in self.parts if is_picture(part)), None)

    @property
    def kind(self) -> str:
        """Choose how the parts lie: under each other, or text beside a picture that is not wide."""
        if self.picture is None:
            return ""
        maths = [part for each in self.parts if each is not self.picture for part in displays(each)]
        narrow = len(self.parts) > 1 and drawn(self.picture)[0] <= NARROW and not maths
        return "pictured beside" if narrow else "pictured"


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
    for extra in classed(article, "statement-links", "evidence-of"):
        box = extra.find_parent(["figure", "div"], id=True)
        if box is not None and (bears := claims_of(extra)):
            box["data-claims"] = " ".join(sorted(bears))
    for extra in classed(article, "statement-links", "provenance", "evidence-of"):
        extra.extract()
    for text in article.find_all(["p", "li"]):
        if not text.find_parent(["figure", "details"]):  # a note may point
            cut(text)
    for lifted in classed(article, "explorer-lifted"):  # the live one has a slide of its own
        picture = lifted.noscript.img.extract()
        picture["alt"] = lifted.select_one(".explorer")["aria-label"]
        lifted.clear()
        lifted.append(picture)
        lifted.name = "figure"
    found = {}
    for head in article.find_all(["h1", "h2", "h3", "h4"]):
        section, heading = head.parent, heading_of(head)
        heading = {"in-ten-minutes": "In short", "going-further": "Explore"}.get(section.get("id"), heading)
        if section.name != "section" or not section.get("id"):
            continue
        parts = judged if section["id"] == "claims" else list(_parts(section))
        found[section["id"]] = Thing(plain_words(heading), heading, parts, [])
        for box in section.find_all(True, recursive=False):
            title = box.select_one(".admonition-title") if of_class(box, "admonition") else None
            if title and box.get("id") and "solution" not in box["class"]:
                whole = title.decode_contents().strip()
                found[box["id"]] = Thing(_title(title), whole, [box], list(_proofs(box)))
        cells = [child for child in section.find_all(True, recursive=False) if "cell" in child.get("class", ())]
        for figure in (figure for cell in cells for figure in cell.find_all("figure", id=True)):
            number = figure.select_one(".caption-number")
            name = number.get_text().strip() if number else "Figure"
            found[figure["id"]] = Thing(name, heading, [figure], list(_rest(figure)))
        for explorer in (box for cell in cells for box in classed(cell, "explorer") if box.get("id")):
            found[explorer["id"]] = Thing("Explorer", "The explorer, live", [explorer], [])
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


def of_class(tag: Tag, name: str) -> bool:
    """Tell whether an element has a class."""
    return name in tag.get("class", [])


def claims(chapter: pages.Chapter) -> list[Tag]:
    """Count the claims of each verdict, the paper's apart; then list those that fail or have plain words."""
    rows = [row for row in pages.headlines(chapter.rows) if row["plain"] or row["verdict"] == "fails"]
    values = {"chapter": chapter, "groups": pages.grouped(chapter.rows), "rows": rows}
    return BeautifulSoup(pages.html("slide_claims.html", **values), "html.parser").find_all(True, recursive=False)


def trained(chapter: pages.Chapter) -> set[str]:
    """Find the claims that are judged on trained networks, real weights or real data."""
    learns = lambda row: any(key.startswith("rate") for key in row.get("configuration") or {})  # noqa: E731
    return {row["id"] for row in chapter.rows if row.get("made_of", "synthetic") != "synthetic" or learns(row)}


def _parts(section: Tag) -> Iterator[Tag]:
    """Read the parts of a section, without sentences that only lead to something not shown."""
    children = [child for child in section.find_all(True, recursive=False) if child.name in (*TEXT, "section")]
    shown = [_of(child) for child in children]
    for child, parts, following in zip(children, shown, [*shown, []][1:], strict=True):
        if not (child.name == "p" and child.get_text().rstrip().endswith(":") and not following):
            yield from parts


def _of(child: Tag) -> list[Tag]:
    kinds = child.get("class", [])
    if "cell" in kinds:
        found = child.select(".cell_output table, .cell_output .highlight-python, .explorer")
        return [_tabled(part) for part in found if not part.find_parent("table")]
    hidden = child.name == "section" or ("admonition" in kinds and set(BOXES) & set(kinds))
    return [] if hidden or not (child.get_text().strip() or child.find("img")) else [child]


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


def is_picture(part: Tag) -> bool:
    """Tell whether a part is a figure or an explorer."""
    return part.name == "figure" or of_class(part, "explorer")


def displays(part: Tag) -> list[Tag]:
    """Find the displayed formulas of a part."""
    return [each for each in [part, *part.select("div.math")] if each.name == "div" and of_class(each, "math")]


def drawn(picture: Tag) -> tuple[float, float]:
    """Return width and height in pixels of a figure as it is drawn; an explorer fills a slide."""
    image = picture.img if picture.name == "figure" else None
    if image is None or not image.get("width"):
        return 710.0, 360.0
    return float(image["width"]), float(image["height"])


def claims_of(tag: Tag) -> set[str]:
    """Find the claims on which a part of the page bears: those to which it links, and those of a statement's foot."""
    links = {found[1] for link in tag.find_all("a", href=True) if (found := _CLAIM.search(link["href"]))}
    feet = [tag, *tag.find_all(attrs={"data-claims": True})]
    return links.union(*(foot.get("data-claims", "").split() for foot in feet))


def cut(text: Tag) -> None:
    """Remove the parentheses and sentences of a text that point elsewhere on its page."""
    for words in list(text.find_all(string=POINTS)):
        aside = _ASIDE.sub(lambda found: "" if POINTS.search(found[0]) else found[0], words)
        if aside != words:
            words.replace_with(aside)
    for sentence in sentences(text):
        if POINTS.search("".join(each.get_text() for each in sentence)):
            for each in sentence:
                each.extract()


def sentences(text: Tag) -> list[list[PageElement]]:
    """Divide the children of a text into sentences: strings are split where one ends, and before that of a panel one
    may end in a formula."""
    found: list[list[PageElement]] = [[]]
    for child in list(text.children):
        pieces, before = [child], child.previous_sibling
        stops = isinstance(before, Tag) and before.get_text().rstrip().endswith((".", "!", "?"))
        if stops and _PANEL.match(child.get_text()):
            found.append([])
        if type(child) is NavigableString and len(ends := _END.split(child)) > 1:
            pieces = [NavigableString(f"{piece} " if piece != ends[-1] else piece) for piece in ends]
            child.replace_with(*pieces)
        for number, piece in enumerate(pieces):
            if number:
                found.append([])
            found[-1].append(piece)
    return [sentence for sentence in found if "".join(each.get_text() for each in sentence).strip()]


def _rest(figure: Tag) -> Iterator[Tag]:
    """Shorten a caption to the sentences for which a slide has room, one a panel at least; the rest is a note."""
    caption = figure.select_one(".caption-text")
    if caption is None:
        return
    told, rest = 0, []
    for number, sentence in enumerate(sentences(caption)):
        text = "".join(each.get_text() for each in sentence)
        told += len(text)
        needed = number == 0 or _PANEL.match(text)
        if drawn(figure)[1] > TALL or (told > CAPTION and not needed):
            rest += [each.extract() for each in sentence]
    if drawn(figure)[1] > TALL:
        figure.figcaption.extract()
    if rest:
        note = BeautifulSoup("<p></p>", "html.parser").p
        note.extend(rest)
        yield note


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
    """Extract the text of some HTML, with formulas between dollars."""
    text = BeautifulSoup(html, "html.parser").get_text().replace("\\(", "$").replace("\\)", "$")
    return " ".join(text.split())
