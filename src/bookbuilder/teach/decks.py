"""Makes decks: ``book/teach/<slug>/slides.md`` becomes ``teach/<slug>/slides.html``, which needs no network.

slides   divided by lines of ``---``; those whose heading ends in ``★`` are the lecture of 50 minutes (slides.html?50)
Note:    what follows on a slide is for the speaker (key S)
![](x)   a figure of the chapter by its label, an explorer by its anchor, or a drawing x.svg beside slides.md
roles    {prf:ref}, {eq}, {numref}, {claim} and {glue:text} become numbers, as in the chapter

teach/<slug>/   slides.html, which holds the Markdown: change it there and reload; slides.md for pandoc; figures
teach/reveal/   reveal.js with its licence
"""

import importlib.resources
import re
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bs4 import BeautifulSoup
from markupsafe import Markup
from nbformat.v4 import new_markdown_cell, new_notebook

from bookbuilder.chapter_pages import numbers, pages, plain
from bookbuilder.export import figures
from bookbuilder.paths import UserError

FOLDER = "book/teach"
Rows = list[dict[str, Any]]  # of a chapter's findings
_IMAGE = re.compile(r"!\[([^\]]*)\]\(([\w-]+)\)")
_NOTE = re.compile(r"^Note:[ \t]*(.*?)(?=^---$|\Z)", re.M | re.S)


class Taught(NamedTuple):
    """A chapter with slides: its built page, what the slides may refer to, and the rows of its findings."""

    page: BeautifulSoup
    known: plain.Known
    rows: Rows


def source(root: Path, slug: str, name: str = "slides.md") -> Path:
    """Return the file of a chapter's slides, or of its plan."""
    return root / FOLDER / slug / name


def write(root: Path, html: Path, taught: Mapping[str, Taught]) -> list[str]:
    """Write the decks of a built site; one line per deck that shows or names what is not there."""
    with importlib.resources.as_file(importlib.resources.files("bookbuilder") / "teach/reveal") as reveal:
        shutil.copytree(reveal, html / "teach/reveal")
    faults = []
    for slug, chapter in taught.items():
        try:
            _write(root, html, slug, chapter)
        except UserError as error:
            faults.append(f"{FOLDER}/{slug}: {error}")
    return faults


def _write(root: Path, html: Path, slug: str, chapter: Taught) -> None:
    folder, (page, known, rows) = html / "teach" / slug, chapter
    folder.mkdir()
    for file in source(root, slug).parent.glob("*.svg"):
        shutil.copy(file, folder)
    for figure in figures.found(html / f"notebooks/{slug}.html", page):
        (folder / f"{Path(figure.name).name}.svg").write_text(figure.svg, "utf-8")
    live = {box["id"]: box for box in page.select(".explorer[id]")}
    for name, box in live.items():
        box["data-plotly"], box["data-figure"] = (f"../{box[key]}" for key in ("data-plotly", "data-figure"))
        (folder / f"{name}.html").write_text(pages.html("deck_explorer.html", box=box), "utf-8")
    if source(root, slug, "plan.md").is_file():
        (folder / "plan.md").write_text(filled(source(root, slug, "plan.md"), known, rows), "utf-8")
    text = filled(source(root, slug), known, rows)
    for _, name in _IMAGE.findall(text):
        if name not in live and not (folder / f"{name}.svg").is_file():
            raise UserError(
                f"slides.md shows {name}, which is no figure or explorer of the chapter and no {name}.svg there"
            )
    (folder / "slides.md").write_text(for_pandoc(text, live), "utf-8")
    shown = _IMAGE.sub(lambda image: _shown(*image.groups(), image[2] in live), text)
    slides = Markup(shown.replace("&", "&amp;").replace("<", "&lt;"))  # nothing else, so that it can be edited there
    (folder / "slides.html").write_text(pages.html("deck.html", title=page.title.get_text(), slides=slides), "utf-8")


def _shown(words: str, name: str, live: bool) -> str:
    return (
        f'<div class="live"><iframe data-src="{name}.html" title="{words}"></iframe></div>'
        if live
        else f"![{words}]({name}.svg)"
    )


def filled(path: Path, known: plain.Known, rows: Rows) -> str:
    """Read a file and put in numbers of statements and values of claims."""
    notebook = new_notebook(cells=[new_markdown_cell(path.read_text("utf-8"))])
    numbers.fill(path.name, notebook, rows)
    return plain.markdown(notebook.cells[0].source, known)


def for_pandoc(text: str, live: Collection[str] = ()) -> str:
    """Write notes and heights of figures as pandoc reads them, without the mark of the shorter lecture. Of ``live``
    ones, the explorers, it gets a link.

    >>> for_pandoc("## One ★\\n\\n![A cat](fig-cat)\\n\\nNote:\\nSay it.\\n\\n---\\n\\n## Two\\n")
    '## One\\n\\n![A cat](fig-cat){height=60%}\\n\\n::: notes\\nSay it.\\n:::\\n\\n---\\n\\n## Two\\n'
    """
    text = _NOTE.sub(lambda note: f"::: notes\n{note[1].strip()}\n:::\n\n", text)
    text = _IMAGE.sub(lambda image: _linked(*image.groups(), image[2] in live), text)
    return text.replace(" ★\n", "\n")


def _linked(words: str, name: str, live: bool) -> str:
    return f"[{words}]({name}.html)" if live else f"![{words}]({name}){{height=60%}}"


def without_notes(text: str) -> str:
    """Leave out what is for the speaker, of slides.html or slides.md."""
    return re.sub(r"^(Note:|::: notes$).*?(?=^---$|</textarea>|\Z)", "", text, flags=re.M | re.S)
