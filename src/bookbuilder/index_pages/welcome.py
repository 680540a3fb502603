"""Writes the welcome page: moving tokens, counts of verdicts, a line for each chapter.

sphere    the places of the explorer that plays, as bytes: right, up and front from -1 to 1
"""

import base64
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from markupsafe import Markup
from nbformat import NotebookNode

from bookbuilder import contents, format
from bookbuilder.chapter_pages import pages
from bookbuilder.chapter_pages.explorer import PLOTLY
from bookbuilder.contents import Contents
from bookbuilder.notebook import reading
from bookbuilder.paths import Repo

RADIUS = 93  # of a sphere in its box of 200 by 200
OUTCOMES = {  # of a claim, by the verdict keys that count as such
    "hold": ("holds",),
    "fail": ("fails", "retold"),
    "tried, undecided": ("undecided",),
    "only measured": ("reported",),
    "not run here": ("not-run",),
}


class Card(NamedTuple):
    """A chapter on the welcome page."""

    number: int
    chapter: pages.Chapter
    heading: str
    name: str
    surprise: str


def card_words(written: Contents, slug: str) -> dict[str, str]:
    """What a chapter's opening says, from book/chapters.yml."""
    return written.chapters[slug].model_dump(include={"read", "surprise", "says", "found", "means"})


def cards(root: Path, chapters: Sequence[pages.Chapter], notebooks: dict[str, NotebookNode]) -> list[Card]:
    """Make the cards of the chapters, numbered as in the whole book."""
    by_hand = contents.read(root).chapters
    found = []
    for chapter in chapters:
        words, heading = by_hand[chapter.slug], reading.heading(notebooks[chapter.slug])
        found.append(Card(Repo(root).number(chapter.slug), chapter, heading, words.name or heading, words.surprise))
    return found


def first(root: Path, found: Sequence[Card], notebooks: dict[str, NotebookNode]) -> str:
    """Write the first screen: the tokens that move, and what became of all claims. MyST."""
    moving = Markup(sphere(root, notebooks))
    return pages.raw(pages.html("first.html", sphere=moving, found=outcomes(theirs(found)), outcomes=OUTCOMES))


def shelf(found: Sequence[Card]) -> str:
    """Write a line for each chapter. MyST."""
    return pages.raw(pages.html("shelf.html", cards=found))


def counts(found: Sequence[Card]) -> str:
    """Write what became of the papers' claims, counted by group and outcome. MyST."""
    finding = {name: outcomes([row for row in theirs(found) if pages.group(row) == name]) for name in pages.THEIRS}
    finding = {name: counted for name, counted in finding.items() if counted["total"]}
    return pages.raw(pages.html("counts.html", finding=finding, outcomes=OUTCOMES))


def theirs(found: Sequence[Card]) -> list[pages.Row]:
    """Select the claims of the papers, of their code and of their summaries."""
    return [row for card in found for row in card.chapter.rows if row["headline"] and pages.group(row) in pages.THEIRS]


def outcomes(rows: Sequence[pages.Row]) -> dict[str, int]:
    """Count claims by outcome, and in all."""
    keys = [pages.verdict_key(row) for row in rows]
    return {"total": len(keys)} | {words: sum(key in those for key in keys) for words, those in OUTCOMES.items()}


def shared(found: Sequence[Card]) -> dict[str, str]:
    """List the sentence that a shared link to a chapter or to the book shows, by the name of its page."""
    asked = f"Do {format.spelt(len(found))} new results about transformers hold?"
    return {f"notebooks/{card.chapter.slug}": card.surprise for card in found} | {
        "book/intro": f"{asked} Each is derived, checked and run, and judged claim by claim."
    }


# The sphere ---------------------------------------------------------------------------------------------------------


def sphere(root: Path, notebooks: dict[str, NotebookNode]) -> str:
    """Write the moving tokens of the welcome page from the explorer that plays in the chapter that
    book/chapters.yml names; empty if this build lacks it."""
    slug = contents.read(root).sphere
    for cell in notebooks[slug].cells if slug in notebooks else []:
        for output in cell.get("outputs", []):
            figure = output.get("data", {}).get(PLOTLY)
            if figure and "places" in figure["layout"].get("meta", {}).get("given", {}):
                return pages.html("sphere.html", slug=slug, **_spheres(figure))
    return ""


def _spheres(figure: dict[str, Any]) -> dict[str, Any]:
    """Encode the places of an explorer of spheres as bytes, and the last of them as circles for a page without
    scripts."""
    layout, given = figure["layout"], figure["layout"]["meta"]["given"]
    layers, places = given["layers"], given["places"]
    names = [note["text"] for note in layout["annotations"][: len(places)]]
    dots = [trace["marker"]["color"] for trace in figure["data"] if trace.get("mode") == "markers"]
    ends = [
        [[each / 1000 for each in panel[-1][at : at + 3]] for at in range(0, len(panel[-1]), 3)] for panel in places
    ]
    overlaps = [sum(fmean(axis) ** 2 for axis in zip(*end, strict=True)) for end in ends]
    circles = [_circles(end, colours) for end, colours in zip(ends, dots, strict=True)]
    return {
        "alt": layout["meta"]["alt"],
        "layers": layers,
        "radius": RADIUS,
        "panels": list(zip(names, [f"{each:.2f}" for each in overlaps], circles, strict=True)),
        "tokens": len(ends[0]),
        "data": base64.b64encode(
            bytes(_byte(at / 1000) for frame in range(len(layers)) for panel in places for at in panel[frame])
        ).decode(),
    }


def _byte(value: float) -> int:
    """Encode a number from -1 to 1 as a byte."""
    return min(255, max(0, round(127.5 * (value + 1))))


def _circles(end: Sequence[Sequence[float]], colours: Sequence[str]) -> list[tuple[float, float, float, str]]:
    """Place circles in a box of 200 by 200 with their opacities and colours, as the script of the page does."""
    return [
        (round(100 + RADIUS * x, 1), round(100 - RADIUS * y, 1), 1 if z > 0 else 0.3, colour)
        for (x, y, z), colour in zip(end, colours, strict=True)
    ]
