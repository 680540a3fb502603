"""Convert a notebook for any Jupyter: MyST directives become plain Markdown.

place   where a label is on the built site: its words ("Theorem 8.5", "(8.8)", "Fig. 8.1"), its page, its anchor
work    an entry of the bibliography: authors, year, and where to read it
value   what ``{glue:text}`` shows, from the executed notebook
box     a statement, proof, exercise, solution or admonition, from the directive that sets it

Formulas stay as they are written; only in a block quote are their lines joined, since Jupyter would take the quote's
signs for a part of them.
"""

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import pybtex.database
from bs4 import BeautifulSoup
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from nbformat import NotebookNode

from bookbuilder.chapter_pages.pages import BADGES
from bookbuilder.notebook.statements import STATED
from bookbuilder.paths import UserError

CARD, ERRATA = "<!-- at a glance -->", "<!-- errata -->"
PARSER = create_md_parser(MdParserConfig(enable_extensions={"amsmath", "colon_fence", "dollarmath"}), RendererHTML)
_BLOCKS = ("fence", "colon_fence", "code_block", "math_block", "math_block_label", "amsmath", "myst_target")
_INLINE = re.compile(r"\{([a-z:]+)\}`([^`]+)`|(?<!!)\[([^\]]*)\]\((#[^)\s]+)\)")
_FORMULA = re.compile(r"\$\$.+?\$\$|(?<![\\$])\$[^$]+\$", re.S)
_BLOCK = re.compile(r"\$\$|[-*+>|] |\d+\. |```|#")  # how Markdown begins that is no line of text


class Place(NamedTuple):
    """The name of a label on the built site, and its address."""

    words: str
    page: str
    anchor: str


class Work(NamedTuple):
    """A cited work and its address."""

    authors: str
    year: str
    url: str


def places(page: BeautifulSoup, name: str) -> dict[str, Place]:
    """Find the labels of a built page: of boxes, figures, equations and headings."""
    found = {}
    named = page.article.find_all(id=True)  # selectors would take ten times as long
    for thing in (tag for tag in named if tag.name == "figure" or {"admonition", "math"} & {*tag.get("class", ())}):
        number = thing.select_one(".caption-number, .eqno")
        if number is not None:
            words = number.get_text().strip(" #")
            found[thing["id"].removeprefix("equation-")] = Place(words, name, thing["id"])
    for target in (tag for tag in named if tag.name == "span" and not tag.contents):
        heading = target.find_next_sibling(re.compile("^h[1-6]$"))
        if heading is not None:
            number = heading.select_one(".section-number")
            words = heading.get_text().removeprefix(number.get_text() if number else "").strip(" #")
            found[target["id"]] = Place(words, name, target["id"])
    return found


def works(bibliography: Path) -> dict[str, Work]:
    """Read the entries of a BibTeX file by their keys."""
    found = {}
    for key, entry in pybtex.database.parse_file(str(bibliography)).entries.items():
        people = entry.persons.get("author") or entry.persons.get("editor") or []
        names = [" ".join(map(str, person.rich_prelast_names + person.rich_last_names)) for person in people]
        authors = " and ".join(names) if len(names) < 3 else f"{names[0]} *et al.*"
        url = entry.fields.get("url") or ""
        for field, before in (("eprint", "https://arxiv.org/abs/"), ("doi", "https://doi.org/")):
            url = url or (before + entry.fields[field] if field in entry.fields else "")
        found[key] = Work(authors, entry.fields.get("year", ""), url)
    return found


def values(executed: NotebookNode) -> dict[str, str]:
    """Read the glued values of an executed notebook by name, as Python writes them."""
    found = {}
    for output in (output for cell in executed.cells for output in cell.get("outputs", [])):
        glued = output.get("metadata", {}).get("scrapbook", {})
        if "name" in glued:
            found[glued["name"]] = output["data"][f"{glued['mime_prefix']}text/plain"]
    return found


@dataclass(frozen=True)
class Known:
    """What the text of one chapter may refer to; ``site`` is the site's address, or empty."""

    slug: str
    places: dict[str, Place]
    works: dict[str, Work]
    values: dict[str, str]
    site: str = ""

    def look_up(self, kind: str, name: str) -> Any:
        """Find a place, work or value; raise UserError if it is unknown."""
        try:
            return getattr(self, kind)[name]
        except KeyError:
            raise UserError(
                f"{self.slug}: its text refers to {name}, which is not among the {kind} of the site"
            ) from None


def plain(notebook: NotebookNode, known: Known) -> NotebookNode:
    """Copy a notebook whose Markdown then needs no extension, with each caption below its figure's cell."""
    copy, cells = nbformat.from_dict(notebook), []
    facts = copy.metadata.get("derived", {})
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            cell.source = _comments(markdown(cell.source, known), facts, known)
        cells.append(cell)
        figure = cell.metadata.get("mystnb", {}).get("figure", {})
        if cell.cell_type == "code" and figure.get("name"):
            number = known.look_up("places", figure["name"]).words
            caption = f"**{number}.** {_inline(figure['caption'], known)}"
            cells.append(nbformat.v4.new_markdown_cell(caption, id=f"{cell.id[:56]}-caption"))
    copy.cells = cells
    return copy


def markdown(text: str, known: Known) -> str:
    """Convert MyST to plain Markdown."""
    lines, parts, end = text.split("\n"), [], 0
    for token in PARSER.parse(text):
        if token.type not in _BLOCKS:
            continue
        start, after = token.map
        if start > end:
            parts.append(_inline("\n".join(lines[end:start]), known))
        own = "\n".join(lines[start:after])
        indent = re.match(r"\s*", own)[0]
        parts.append(textwrap.indent(_block(token, textwrap.dedent(own), known), indent))
        end = after
    if end < len(lines):
        parts.append(_inline("\n".join(lines[end:]), known))
    return "\n".join(parts)


def _block(token: Any, own: str, known: Known) -> str:
    """Convert a block of the parser; ``own`` is its text."""
    if token.type in ("fence", "colon_fence") and token.info.startswith("{"):
        return _directive(token.info, token.content, known)
    if token.type == "math_block_label":
        return _display(textwrap.dedent(token.content.strip("\n")), token.info, known)
    return "" if token.type == "myst_target" else own


def _directive(info: str, content: str, known: Known) -> str:
    """Convert a box, formula or tab; raise UserError for an unknown directive."""
    name, title = re.match(r"\{([\w:-]+)\}[ \t]*(.*)", info).groups()
    options, lines = {}, content.strip("\n").split("\n")
    while option := re.match(r"[ \t]*:([\w-]+):[ \t]*(.*?)[ \t]*$", lines[0] if lines else ""):
        options[option[1]] = option[2]
        del lines[0]
    body, title = "\n".join(lines).strip("\n"), _inline(title.strip(), known)
    if name == "math":
        return _display(body, options["label"], known) if "label" in options else f"$$\n{body}\n$$"
    words = markdown(body, known)
    kind, _, stated = name.partition(":")
    if name == "prf:proof":
        return _joined("*Proof.*", words + ("\n\n∎" if words.endswith(("$$", "```", "|")) else " ∎"))
    if name == "exercise" or (kind == "prf" and stated in STATED):
        label = options.get("label")
        head = known.look_up("places", label).words if label else (stated or name).capitalize()
        badges = [f" *[{BADGES[word]}]*" for word in options.get("class", "").split() if word in BADGES]
        return _joined(f"**{head}{f' ({title})' if title else ''}.**{''.join(badges)}", words)
    if name == "solution":
        return _joined(f"**Solution to {known.look_up('places', title).words}.**", words)
    if name == "admonition" and "dropdown" in options.get("class", "").split():
        return f"<details><summary>{title}</summary>\n\n{words}\n\n</details>"
    if name == "admonition":
        return _quote(f"**{title}**\n\n{words}")
    raise UserError(f"{known.slug}: a downloaded notebook has no plain words for the directive {{{name}}}")


def _display(body: str, label: str, known: Known) -> str:
    return f"$$\n{body.strip()}\n\\tag{{{known.look_up('places', label).words.strip('()')}}}\n$$"


def _joined(head: str, words: str) -> str:
    """Join a bold beginning with its text, on one line if the text is one line."""
    return f"{head}\n\n{words}" if _BLOCK.match(words) else f"{head} {words}"


def _quote(text: str) -> str:
    lines = _FORMULA.sub(lambda formula: " ".join(formula[0].split("\n")), text).split("\n")
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _inline(text: str, known: Known) -> str:
    """Fill references, citations and values into a text."""

    def filled(found: re.Match[str]) -> str:
        role, content, words, anchor = found.groups()
        if anchor:
            return _link(words, known.places.get(anchor[1:]), known)
        if role not in _ROLES:
            raise UserError(f"{known.slug}: a downloaded notebook has no plain words for the role {{{role}}}")
        return _ROLES[role](content, known)

    return _INLINE.sub(filled, text)


def _link(words: str, place: Place | None, known: Known) -> str:
    return f"[{words}]({known.site}/{place.page}#{place.anchor})" if known.site and place else words


def _reference(content: str, known: Known) -> str:
    words, name = re.fullmatch(r"(?:(.*?)\s*<)?([^<>]+?)>?", content, re.S).groups()
    place = known.look_up("places", name)
    return _link(words or place.words, place, known)


def _value(content: str, known: Known) -> str:
    from myst_nb.core.variables import format_plain_text  # loads a database, which an unchanged book does without

    name, _, form = content.partition(":")
    return format_plain_text(known.look_up("values", name), form or "s")


def _cited(content: str, known: Known) -> list[Work]:
    return [known.look_up("works", key.strip()) for key in content.split(",")]


def _to(work: Work, words: str) -> str:
    return f"[{words}]({work.url})" if work.url else words


_ROLES: dict[str, Callable[[str, Known], str]] = {
    **dict.fromkeys(("prf:ref", "eq", "numref", "ref"), _reference),
    "glue:text": _value,
    "cite:t": lambda content, known: ", ".join(f"{w.authors} ({_to(w, w.year)})" for w in _cited(content, known)),
    **dict.fromkeys(
        ("cite", "cite:p"),
        lambda content, known: f"({'; '.join(_to(w, f'{w.authors}, {w.year}') for w in _cited(content, known))})",
    ),
}


def _comments(text: str, facts: dict[str, Any], known: Known) -> str:
    """Replace the card by the paper, and the table of errata by a list."""
    paper = facts.get("paper", {})
    arxiv = f" [arXiv:{paper['arxiv']}](https://arxiv.org/abs/{paper['arxiv']})" if paper.get("arxiv") else ""
    said = f"*{paper['title']}*. {paper['authors']}.{arxiv}" if paper else ""
    wrong = [
        f"- *Said* ({one['where']}): {one['said']}\n  *Right:* {one['right']}\n"
        f"  *Found by* {one['who']}. *Checked:* {one['checked']}."
        for one in facts.get("errata", [])
    ]
    return text.replace(CARD, said).replace(ERRATA, _inline("\n".join(wrong), known))
