"""Prints a handout of a chapter for a reading group: two sides, from the built page.

sides    "In ten minutes" with its picture, the paper's first theorem, verdicts on the paper's claims, questions to ask
         from the lectures, and what to run
fit      the text becomes smaller until two sides hold it
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser
from pypdf import PdfReader

from derived.book.deliver.pdf import chromium, laid_out
from derived.book.house import UserError
from derived.book.source import lectures

SIDES = 2
QUESTIONS = 3
SIZES = tuple(size / 100 for size in range(106, 54, -4))
MARGINS = {"top": "11mm", "bottom": "11mm", "left": "14mm", "right": "14mm"}
STYLE = """
html, body, .bd-article { font-size: 15px !important; line-height: 1.35 !important; padding: 0 !important; margin: 0; }
.bd-article h1 { font-size: 1.5rem !important; margin: 0 0 0.2rem; }
.bd-article h2 { font-size: 1.1rem !important; margin: 0.7rem 0 0.2rem; }
.bd-article p, .bd-article li, .bd-article .admonition { margin-block: 0.3rem; }
.bd-article figure { margin: 0.3rem auto; width: 60%; } figcaption, .bd-article table { font-size: 0.82rem !important; }
.headerlink, .cite, .copybtn, button, .toggle-button, .stated { display: none !important; }
.handout-foot { font-size: 0.78rem; color: #55626d; border-top: 1px solid #ccd3d9; padding-top: 0.2rem; }
"""
KEEP = """([questions, run, style]) => {
  const article = document.querySelector("article");
  const title = article.querySelector("h1");
  const part = (id) => article.querySelector(`section#${id}`);
  const made = document.createElement("div");
  const add = (tag, html) => {
    const each = Object.assign(document.createElement(tag), { innerHTML: html });
    made.append(each);
    return each;
  };
  made.append(title, ...article.querySelectorAll(".glance-claim"));
  const ten = part("in-ten-minutes");
  for (const each of ten.querySelectorAll("div.cell_input, details.admonition, .explorer")) each.remove();
  for (const each of [...ten.querySelectorAll("figure")].slice(1)) (each.closest(".cell") ?? each).remove();
  made.append(ten);
  const boxes = [...article.querySelectorAll("div.proof.admonition:is(.theorem, .proposition)")];
  const theirs = boxes.filter((each) => each.querySelector(".whose-paper, .whose-retold"));
  const theorem = theirs.find((each) => each.classList.contains("theorem")) ?? theirs[0] ?? boxes[0];
  if (theorem) { add("h2", "The statement"); made.append(theorem); }
  const table = part("claims")?.querySelector("table");
  if (table) {
    add("h2", "What was found");
    for (const row of [...table.rows].slice(5)) row.remove();
    for (const fold of table.querySelectorAll("details")) fold.replaceWith(...fold.querySelector("summary").childNodes);
    made.append(table);
  }
  add("h2", "To discuss");
  add("ol", questions.map((each) => `<li>${each}</li>`).join(""));
  add("p", run).className = "handout-foot";
  article.replaceChildren(made);
  for (const each of document.querySelectorAll(".bd-header-article, .prev-next-footer, footer, aside")) each.remove();
  const sheet = document.createElement("style");
  sheet.textContent = style;
  document.head.append(sheet);
  for (const image of article.querySelectorAll("img")) image.loading = "eager";
  return article.textContent.length;
}"""


class Handout(NamedTuple):
    """A printed handout: the file, its sides, and the size of its text."""

    file: Path
    sides: int
    size: float


def asked(root: Path, slug: str) -> list[str]:
    """The first questions of the longest lecture that need no formula."""
    steps = lectures.read(root, slug)[max(lectures.LENGTHS)]
    return sorted((step.ask for step in steps if step.ask), key=lambda ask: "$" in ask)[:QUESTIONS]


def handouts(root: Path, site: Path, slugs: Sequence[str], into: Path) -> list[Handout]:
    """Print the handouts of built chapters; UserError for one that two sides do not hold."""
    into.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        return [one(browser, root, site, slug, into / f"{slug}.pdf") for slug in slugs]


def one(browser: Browser, root: Path, site: Path, slug: str, file: Path) -> Handout:
    """Print one handout at the largest size that two sides hold."""
    run = (
        f"Run it: <code>derived run {slug}</code>. The chapter: notebooks/{slug}.html. "
        "Text and figures from <em>Transformers, Derived</em>, CC BY 4.0."
    )
    with laid_out(browser, site / f"notebooks/{slug}.html") as tab:
        tab.evaluate(KEEP, [asked(root, slug), run, STYLE])
        tab.evaluate("() => Promise.all([...document.images].map((each) => each.decode().catch(() => null)))")
        for size in SIZES:
            tab.evaluate("(size) => { document.querySelector('article').style.zoom = size }", size)
            raw = tab.pdf(format="A4", margin=MARGINS, print_background=True)
            sides = len(PdfReader(io.BytesIO(raw)).pages)
            if sides <= SIDES:
                file.write_bytes(raw)
                return Handout(file, sides, size)
    raise UserError(f"{slug}: two sides do not hold its handout; shorten In ten minutes")
