"""Writes the search of the book: terms, sections, statements, figures, exercises, functions and claims by anchor.

The finished pages are cut into entries, which `search/index.js` holds as plain text; MiniSearch, a small and
well-kept library, searches them in the browser. The index is a script, so it also works where the site is opened from a
disk: Pagefind, the other candidate, fetches its index, which browsers refuse for file://. Sphinx's own search knows
whole pages only and shows raw TeX.

Formulas become a line of text, `\\frac{a}{b + c}` is a/(b + c); solutions and code are left out.
"""

import functools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bs4 import BeautifulSoup, PageElement, Tag
from pylatexenc.latex2text import LatexNodes2Text, MacroTextSpec, get_default_latex_context_db

LIBRARY = Path(__file__).parents[1] / "templates"
# Separate entries, or no text of the page: the section around them leaves them out. So are headed sections.
SILENT = {"figure", "script", "style", "nav"}
UNREAD = {"headerlink", "eqno", "statement-links", "whose", "ledger"}
APART = {
    "div": {"proof", "exercise", "solution", "cell"},
    "tr": {"claim"},
    "dl": {"py", "glossary"},
    "details": {"test", "quick"},
}
LEDGER = "book/ledger.html"  # where each claim is found
HEADS = ("h1", "h2", "h3", "h4", "h5", "h6")
BLOCKS = ("p", "li", "div", "th", "td", "dd", "dt", "small", "summary", "br")


class Entry(NamedTuple):
    """A search result: its address, kind and place, title and text."""

    url: str
    kind: str
    page: str
    title: str
    text: str


def plain(tex: str) -> str:
    """A formula as a line of text.

    >>> plain(r"y = \\frac{1}{n+1}\\sum_{i} \\sqrt{\\beta_i}")
    'y = 1/(n+1)∑_i √(β_i)'
    """
    tex = re.sub(r"\\(?:label|tag)\{[^}]*\}|\\(?:left|right|[bB]ig+[lr]?)(?![a-z])", "", tex)
    tex = re.sub(r"\\[td]frac", r"\\frac", tex).replace(r"\|", "‖")
    return " ".join(_text().latex_to_text(tex).split())


@functools.cache
def _text() -> LatexNodes2Text:
    """pylatexenc's converter, with fractions whose parts keep together."""
    known = get_default_latex_context_db()
    known.add_context_category("fractions", macros=[MacroTextSpec("frac", simplify_repl=_fraction)], prepend=True)
    return LatexNodes2Text(known, math_mode="text", strict_latex_spaces=False)


def _fraction(node: Any, l2tobj: LatexNodes2Text) -> str:
    parts = [l2tobj.nodelist_to_text([each]).strip() for each in node.nodeargd.argnlist]
    return "/".join(part if re.fullmatch(r"\w+|[\d.]+", part) else f"({part})" for part in parts)


def _is_number(part: PageElement) -> bool:
    return isinstance(part, Tag) and "eqno" in part.get("class", ())


def words(tag: Tag) -> str:
    """Extract the text of an element, formulas included, without its separate entries."""
    parts: list[str] = []

    def walk(node: Tag) -> None:
        for child in node.children:
            if not isinstance(child, Tag):
                if type(child).__name__ == "NavigableString":
                    parts.append(str(child))
            elif "math" in child.get("class", []):
                tex = plain("".join(part.get_text() for part in child.children if not _is_number(part)))
                parts.append(f" {tex} " if child.name == "div" else tex)
            elif not _is_silent(child):
                walk(child)
                if child.name in BLOCKS or "verdict" in child.get("class", []):
                    parts.append(" ")

    walk(tag)
    return re.sub(r"\s+([.,;:)])(?=\s|$)", r"\1", " ".join("".join(parts).split()))


def _is_silent(tag: Tag) -> bool:
    kinds = UNREAD | APART.get(tag.name, set())
    headed = tag.name == "section" and _head(tag) is not None
    return tag.name in SILENT or headed or not kinds.isdisjoint(tag.get("class", ()))


def _head(section: Tag) -> Tag | None:
    return next((child for child in section.children if isinstance(child, Tag) and child.name in HEADS), None)


def entries(article: Tag, name: str) -> Iterator[Entry]:
    """List everything on a page that search can find."""
    page = _heading(article.h1) if article.h1 else name
    named = article.find_all(id=True)  # all of it has an anchor; selectors would take ten times as long
    for section in (tag for tag in named if tag.name == "section"):
        if heading := _head(section):
            anchor = "" if heading.name == "h1" else f"#{section['id']}"
            text = words(section).removeprefix(_heading(heading)).strip()
            yield Entry(name + anchor, "Section" if anchor else "Page", page, _heading(heading), text)
    for box in (tag for tag in named if tag.name == "div" and {"proof", "exercise"}.intersection(tag.get("class", ()))):
        title = box.select_one(".admonition-title")
        if "solution" not in box["class"] and title is not None:
            kind = "Exercise" if "exercise" in box["class"] else "Statement"
            yield Entry(
                f"{name}#{box['id']}", kind, page, _heading(title), words(box).removeprefix(words(title)).strip()
            )
    for figure in (tag for tag in named if tag.name == "figure"):
        number, caption = figure.select_one(".caption-number"), figure.select_one("figcaption")
        if number is not None:
            title = number.get_text().strip()
            yield Entry(f"{name}#{figure['id']}", "Figure", page, title, words(caption).removeprefix(title).strip())
    for thing in (tag for tag in named if tag.name == "dt" and "py" in tag.parent.get("class", ())):
        title = thing["id"].rsplit(".", 1)[-1]
        yield Entry(
            f"{name}#{thing['id']}", "Function", page, title, f"{thing['id']} {words(thing.find_next_sibling('dd'))}"
        )
    for box in (tag for tag in named if tag.name == "div" and "math" in tag.get("class", ())):
        if number := box.select_one(".eqno"):
            tex = "".join(part.get_text() for part in box.children if not _is_number(part))
            title = number.get_text().strip("()#\uf0c1 ").partition(")")[0]
            yield Entry(f"{name}#{box['id']}", "Formula", page, f"Equation {title}", plain(tex))
    for term in (tag for tag in named if tag.name == "dt" and "glossary" in tag.parent.get("class", ())):
        yield Entry(f"{name}#{term['id']}", "Term", page, _heading(term), words(term.find_next_sibling("dd")))
    rows = (tag for tag in named if tag.name == "tr" and "claim" in tag.get("class", ()))
    for row in rows if name == LEDGER else ():
        text = " ".join(words(cell) for cell in row.find_all(["th", "td"]))
        yield Entry(f"{name}#{row['id']}", "Claim", page, row["id"], text)


def _heading(tag: Tag) -> str:
    """Extract a heading's words, without its link."""
    return words(tag).removesuffix("#").strip()


def write(html: Path, pages: dict[str, BeautifulSoup]) -> None:
    """Write the files of the search page: the library, its script, and the index of these pages by name."""
    folder = html / "search"
    folder.mkdir()
    found = [
        entry
        for name, page in pages.items()
        if (article := page.select_one("article.bd-article"))
        for entry in entries(article, name)
    ]
    text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    (folder / "index.js").write_text(f"window.ENTRIES = {text};\n", "utf-8")
    for script in ("minisearch.js", "search.js"):
        shutil.copyfile(LIBRARY / script, folder / script)
