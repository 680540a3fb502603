"""Writes the welcome page: the question beside moving tokens, a line for each chapter, counts of verdicts.

picture   a figure of an executed chapter: the one that book/chapters.yml names, else the first of "In ten minutes", or
          the first of all
cards     pictures as PNG files for links that are shared
sphere    the places of the explorer that plays, as bytes: right, up and front from -1 to 1
"""

import base64
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import resvg_py
from markupsafe import Markup
from nbformat import NotebookNode
from PIL import Image

from bookbuilder import contents, format
from bookbuilder.chapter_pages import pages
from bookbuilder.chapter_pages.explorer import PLOTLY
from bookbuilder.contents import Contents
from bookbuilder.notebook import reading
from bookbuilder.paths import Repo, UserError

SVG = "image/svg+xml"
FOLDER = "cards"  # of the site
SHARED = (1200, 630)  # pixels of a picture for shared links, as the networks ask for it
MARGIN = 0.035  # of the width, on each side
COLOURS = 128
DPI = 96  # matplotlib gives the sizes of its figures in points
PAPER = "#ffffff"
RADIUS = 93  # of a sphere in its box of 200 by 200
OUTCOMES = {  # of a claim, by the verdict keys that count as such
    "hold": ("holds",),
    "fail": ("fails", "retold"),
    "tried, undecided": ("undecided",),
    "only measured": ("reported",),
    "not run here": ("not-run",),
}


class Picture(NamedTuple):
    """A figure and its alt text."""

    svg: str
    alt: str


class Card(NamedTuple):
    """A chapter on the welcome page."""

    number: int
    chapter: pages.Chapter
    heading: str
    name: str
    surprise: str
    picture: Picture | None


def card_words(written: Contents, slug: str) -> dict[str, str]:
    """Find what a chapter's card says of its claim."""
    words = written.chapters[slug]
    named = {"claim": words.claims or words.says, "holds": words.holds}
    if words.read:
        named |= words.model_dump(include={"read", "surprise", "says", "found", "means"})
    return {name: text for name, text in named.items() if text}


def figures(notebook: NotebookNode) -> Iterator[tuple[str, str, Picture]]:
    """Yield each figure of an executed notebook with its name and its section."""
    section = ""
    for cell in notebook.cells:
        section = (reading.sections(cell) or [section])[-1]
        for output in cell.get("outputs", []):
            alt = output.get("metadata", {}).get(SVG, {}).get("alt", "")
            if alt:
                name = cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "")
                yield name, section, Picture("".join(output["data"][SVG]), " ".join(alt.split()))


def picture(slug: str, notebook: NotebookNode, wanted: str = "") -> Picture | None:
    """Choose the figure that represents a chapter; raise UserError if ``wanted`` names none."""
    found = list(figures(notebook))
    if wanted and wanted not in [name for name, *_ in found]:
        raise UserError(f"{contents.FILE}: {slug} has no figure {wanted}")
    chosen = [each for name, _, each in found if name == wanted]
    chosen += [each for _, section, each in found if section in reading.SHORT]
    chosen += [each for *_, each in found]
    return chosen[0] if chosen else None


def cards(root: Path, chapters: Sequence[pages.Chapter], notebooks: dict[str, NotebookNode]) -> list[Card]:
    """Make the cards of the chapters, numbered as in the whole book."""
    by_hand = contents.read(root).chapters
    found = []
    for chapter in chapters:
        notebook, words = notebooks[chapter.slug], by_hand[chapter.slug]
        shown = picture(chapter.slug, notebook, words.picture)
        surprise = words.surprise or chapter.facts["claim"]
        heading = reading.heading(notebook)
        found.append(Card(Repo(root).number(chapter.slug), chapter, heading, words.name or heading, surprise, shown))
    return found


def draw(card: Card, folder: Path) -> None:
    """Draw a card's picture as a PNG file."""
    folder.mkdir(parents=True, exist_ok=True)
    room = [round(side - 2 * MARGIN * SHARED[0]) for side in SHARED]
    import matplotlib  # for its letters; a book that has not changed does without

    letters = [str(file) for file in (Path(matplotlib.get_data_path()) / "fonts/ttf").glob("DejaVuSans*.ttf")]
    svg = {"svg_string": card.picture.svg, "skip_system_fonts": True, "font_files": letters}
    made = resvg_py.svg_to_bytes(**svg, width=room[0], dpi=DPI, background=PAPER)
    drawn = Image.open(io.BytesIO(bytes(made))).convert("RGB")
    drawn.thumbnail(room, Image.Resampling.LANCZOS)
    sheet = Image.new("RGB", SHARED, PAPER)
    sheet.paste(drawn, tuple((side - part) // 2 for side, part in zip(SHARED, drawn.size, strict=True)))
    few = sheet.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(folder / f"{card.chapter.slug}.png", optimize=True)


def first(root: Path, found: Sequence[Card], notebooks: dict[str, NotebookNode]) -> str:
    """Write the first screen: the question, and the tokens that move. MyST."""
    return pages.raw(pages.html("first.html", cards=found, sphere=Markup(sphere(root, notebooks))))


def shelf(found: Sequence[Card]) -> str:
    """Write a line for each chapter. MyST."""
    return pages.raw(pages.html("shelf.html", cards=found))


def counts(found: Sequence[Card]) -> str:
    """Write what became of the papers' claims, counted by group and outcome. MyST."""
    shown = [row for card in found for row in theirs(card.chapter.rows)]
    finding = {name: outcomes([row for row in shown if pages.group(row) == name]) for name in pages.THEIRS}
    finding = {name: counted for name, counted in finding.items() if counted["total"]}
    return pages.raw(pages.html("counts.html", finding=finding, outcomes=OUTCOMES))


def theirs(rows: Sequence[pages.Row]) -> list[pages.Row]:
    """Select the claims of the paper, of its code and of its summaries."""
    return [row for row in rows if row["headline"] and pages.group(row) in pages.THEIRS]


def outcomes(rows: Sequence[pages.Row]) -> dict[str, int]:
    """Count claims by outcome, and in all."""
    keys = [pages.verdict_key(row) for row in rows]
    return {"total": len(keys)} | {words: sum(key in those for key in keys) for words, those in OUTCOMES.items()}


def shared(root: Path, found: Sequence[Card]) -> dict[str, dict[str, Any]]:
    """List the sentence and picture that a shared link to a chapter or to the book shows, by the name of its page."""
    shown = {f"notebooks/{card.chapter.slug}": _shared(card, card.surprise) for card in found}
    asked = f"Do {format.spelt(len(found))} new results about transformers hold?"
    for card in found:
        if card.chapter.slug == contents.read(root).sphere:
            shown["book/intro"] = _shared(card, f"{asked} Each is derived, checked and run, and judged claim by claim.")
    return shown


def _shared(card: Card, words: str) -> dict[str, Any]:
    image, alt = (f"{FOLDER}/{card.chapter.slug}.png", card.picture.alt) if card.picture else ("", "")
    return {"description": words, "image": image, "alt": alt, "size": SHARED}


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
