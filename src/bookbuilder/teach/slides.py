"""Makes slides of a chapter's lectures from its built page; proofs go on the board.

thing   what a label shows, in parts (bookbuilder.teach.slide_blocks)
atom    parts that belong together: a sentence with its formula, a list with the line that leads to it
fault   why a deck cannot be shown; the builder stops at it

What is checked is in bookbuilder.teach.checks. An equation from elsewhere is quoted at the foot of the slide that
first refers to it, so none is missing; a reference in parentheses to what is not shown is left out. Objectives and
claims are those that the lecture covers.
"""

import copy
import math
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag

from bookbuilder import format
from bookbuilder.chapter_pages import pages
from bookbuilder.notebook.lectures import Step
from bookbuilder.teach import checks
from bookbuilder.teach.slide_blocks import (
    Slide,
    Thing,
    claims,
    claims_of,
    drawn,
    heading_of,
    is_picture,
    of_class,
    things,
    trained,
)

ROOM = 940  # characters on a slide, formulas as they are written
PICTURED = 760  # where there is a picture
CLAIMS = 500  # of the room, for the claims
AGAIN = ", continued"
ROWS = 14  # of the table of symbols on a slide
_RANGE = re.compile(r"([^#]+)#(\d+)(?:-(\d+))?")


class Atom(NamedTuple):
    """Parts that stay together, the thing that they belong to, and the room that they take."""

    thing: Thing
    parts: list[Tag]
    size: int


class Planned(NamedTuple):
    """A step in the plan of a lecture: its name, and the number of its first slide if it has one."""

    step: Step
    name: str
    slide: int | None


class Lecture(NamedTuple):
    """A lecture with its slides and its plan."""

    minutes: int
    slides: list[Slide]
    plan: list[Planned]
    objectives: Sequence[str] = ()

    @property
    def explores(self) -> bool:
        """Tell whether a slide has a live explorer."""
        return any(of_class(part, "explorer") for slide in self.slides for part in slide.parts)


class DeckError(Exception):
    """A lecture that cannot be shown; one line per fault."""


def make(chapter: pages.Chapter, page: BeautifulSoup, paths: dict[int, list[Step]]) -> list[Lecture]:
    """Make the lectures of a chapter from its built page, which is consumed; DeckError has one line per fault."""
    known = things(page, claims(chapter))
    made, wrong = [], []
    for minutes, steps in paths.items():
        try:
            lecture = _lecture(minutes, steps, known, chapter.facts["objectives"])
            if faults := list(checks.shape(minutes, steps, lecture.slides, known, trained(chapter))):
                raise DeckError("\n".join(faults))
            made.append(lecture)
        except DeckError as error:
            wrong += [f"{chapter.slug}: lecture of {minutes} minutes: {line}" for line in str(error).splitlines()]
    if wrong:
        raise DeckError("\n".join(wrong))
    return made


def write(
    html: Path, chapter: pages.Chapter, page: BeautifulSoup, paths: dict[int, list[Step]], *, notes: bool = True
) -> list[Lecture]:
    """Write ``slides/<slug>-<minutes>.html`` of a built site, using the images, styles and MathJax of the chapter's
    page, which is consumed."""
    name = f"notebooks/{chapter.slug}.html"
    head = page.head.select('link[rel=stylesheet], link[rel=icon], script[src*="mathjax/"]')
    values = {"chapter": chapter, "title": heading_of(page.select_one("article h1")), "with_notes": notes}
    values |= {"head": "\n".join(map(str, head))}
    lectures = make(chapter, page, paths)
    if not lectures:
        return []
    folder = html / "slides"
    folder.mkdir(exist_ok=True)
    for file in ("slides.css", "slides.js"):
        shutil.copyfile(Path(__file__).parents[1] / "templates" / file, folder / file)
    for lecture in lectures:
        text = pages.html("slides.html", **values, lecture=lecture, others=[one.minutes for one in lectures])
        text = re.sub(r'href="#(?!s\d)', f'href="../{name}#', text)
        text = text.replace("<pre>", '<pre tabindex="0">')  # code may scroll, so a keyboard must reach it
        (folder / f"{chapter.slug}-{lecture.minutes}.html").write_text(text, "utf-8")
    return lectures


# Slides -------------------------------------------------------------------------------------------------------------


def _lecture(minutes: int, steps: Sequence[Step], known: dict[str, Thing], objectives: list[str]) -> Lecture:
    if wrong := [*_unknown(steps, known), *checks.pace(steps, known, len(objectives))]:
        raise DeckError("\n".join(wrong))
    covered = {
        claim for step in steps for label in step.show for part in _chosen(label, known) for claim in claims_of(part)
    }
    slides, plan = [], []
    for number, step in enumerate(steps):
        those = list(_of_step(number, step, known, covered))
        names = [known[label.split("#")[0]].name for label in step.show]
        name = step.name or "; ".join(dict.fromkeys(names))
        again = bool(plan) and plan[-1].name.removesuffix(AGAIN) == name
        plan.append(Planned(step, name + AGAIN * again, None))
        slides += those
    if wrong := list(checks.late(slides, known)):
        raise DeckError("\n".join(wrong))
    slides = _with_symbols(slides)
    plan = [each._replace(slide=_first(slides, number)) for number, each in enumerate(plan)]
    if wrong := [*checks.quote(slides, known), *checks.orphans(slides), *checks.undefined(slides)]:
        raise DeckError("\n".join(wrong))
    aims = sorted({aim for step in steps for aim in step.aims})
    return Lecture(minutes, slides, plan, [objectives[aim - 1] for aim in aims])


def _first(slides: list[Slide], step: int) -> int | None:
    return next((place for place, slide in enumerate(slides) if slide.step == step), None)


def _unknown(steps: Sequence[Step], known: dict[str, Thing]) -> Iterator[str]:
    seen = set()
    for label in (label for step in steps for label in step.show):
        name, _, some = label.partition("#")
        if name not in known:
            yield f"nothing on the page is called {name}"
        elif not (found := _chosen(label, known)):
            yield f"{label} shows nothing" + (f": it has {len(known[name].parts)} parts" if some else "")
        elif seen & {*map(id, found)}:
            yield f"{label} was shown before"
        else:
            seen |= {*map(id, found)}


def _chosen(label: str, known: dict[str, Thing]) -> list[Tag]:
    """Select the parts that a label with a range names; empty if the range is too long."""
    if not (found := _RANGE.fullmatch(label)):
        return known[label].parts
    parts, first, last = known[found[1]].parts, int(found[2]), int(found[3] or found[2])
    return parts[first - 1 : last] if last <= len(parts) else []


def _of_step(number: int, step: Step, known: dict[str, Thing], covered: set[str]) -> Iterator[Slide]:
    """Make the slides of a step: what it shows shares one while there is room."""
    shown = []
    for label in step.show:
        some = _told([part for part in _chosen(label, known) if part.get("data-claim", "") in {"", *covered}])
        shown.append((known[label.split("#")[0]], [copy.copy(part) for part in some]))
    held = [Atom(thing, atom, sum(map(weight, atom))) for thing, parts in shown for atom in _atoms(parts)]
    if step.where and held:
        line = BeautifulSoup(f'<p class="quoted">{format.typeset(step.where)}</p>', "html.parser").p
        first = held[0]
        parts = [line, *first.parts] if is_picture(first.parts[0]) else [*first.parts, line]
        held[0] = Atom(first.thing, parts, first.size + weight(line))
    said = pages.html("slide_said.html", step=step, board=checks.board(step, known))
    told: set[str] = set()
    stated = next((thing for thing, parts in shown if _is_statement(parts)), None)
    for group in _packed(held):
        met = {atom.thing.name: atom.thing for atom in group}
        notes = "".join(str(note) for name, thing in met.items() if name not in told for note in thing.notes)
        told |= set(met)
        parts = [part for atom in group for part in atom.parts]
        alone = stated is not None and all(map(is_picture, parts))
        yield _slide([stated] if alone else list(met.values()), parts, number, said + notes)
        said = ""


def _told(parts: list[Tag]) -> list[Tag]:
    """Keep as many claims as one slide has room for, those that fail first; other parts are kept."""
    claims = [part for part in parts if part.get("data-claim")]
    room, kept = CLAIMS, []
    for claim in sorted(claims, key=lambda part: part.select_one(".verdict-fails") is None):
        if weight(claim) <= room:
            kept.append(claim)
            room -= weight(claim)
    return [part for part in parts if part not in claims or part in kept]


def _is_statement(parts: list[Tag]) -> bool:
    return len(parts) == 1 and bool(parts[0].get("id")) and "admonition" in parts[0].get("class", [])


def _slide(met: list[Thing], parts: list[Tag], number: int, notes: str) -> Slide:
    """Make a slide under the name of its thing, which a single box does not repeat, or the numbers of several."""
    boxes = [part for part in parts if part.get("id") and part.select_one(".admonition-title")]
    if len(boxes) == 1 and all(is_picture(part) or part is boxes[0] or of_class(part, "quoted") for part in parts):
        boxes[0].select_one(".admonition-title").extract()
    stated = [each for each in met if not is_picture(each.parts[0])] or met
    heading = (
        stated[0].heading
        if len(stated) == 1
        else " · ".join(str(format.typeset(each.name.split(" (")[0])) for each in stated)
    )
    return Slide(heading, parts, number, notes)


def _atoms(parts: list[Tag]) -> Iterator[list[Tag]]:
    held: list[Tag] = []
    for part in parts:
        if held and not (_unfinished(held[-1]) or of_class(part, "math")):
            yield held
            held = []
        held.append(part)
    if held:
        yield held


def _unfinished(part: Tag) -> bool:
    """Tell whether a sentence continues after a part."""
    if not of_class(part, "math"):
        return part.name == "p" and part.get_text().rstrip()[-1:] not in ".!?)”"
    text = re.sub(r"(\\\]|\\end\{\w+\*?\}|[\s}$])+$", "", part.get_text().split("\\[")[-1])
    return not text.endswith((".", "!", "?"))


def weight(part: Tag) -> int:
    """Estimate how much of a slide's room a part takes."""
    if part.name == "figure":  # at the least size that is legible, with a caption of two lines
        return min(ROOM, round(ROOM * (1.35 * drawn(part)[1] + 50) / 750))
    if is_picture(part) or part.select_one("figure"):
        return ROOM
    if checks.lists_symbols(part):  # shown without the rows that a deck does not use
        return ROOM // 2
    rows = len(part.select("tr"))
    lines = part.get_text().strip().count("\n") if of_class(part, "highlight-python") else 0
    text = " ".join(part.get_text().split())
    return max(len(text), 55 * rows, 45 * lines, 120 if of_class(part, "math") else 0)


def _packed(held: list[Atom]) -> list[list[Atom]]:
    """Pack atoms on as few slides as have room for them, about equally full."""
    room = PICTURED if any(is_picture(part) for atom in held for part in atom.parts) else ROOM
    fewest = len(_greedy(held, room))
    limit = next(limit for limit in range(20, room + 20, 20) if len(_greedy(held, limit)) <= fewest)
    return _greedy(held, limit)


def _greedy(held: list[Atom], limit: int) -> list[list[Atom]]:
    slides: list[list[Atom]] = []
    for atom in held:
        if not slides or sum(each.size for each in slides[-1]) + atom.size > limit:
            slides.append([])
        slides[-1].append(atom)
    return slides


def _with_symbols(slides: list[Slide]) -> list[Slide]:
    """Remove rows of the table of symbols that a deck does not use."""
    at = next((place for place, slide in enumerate(slides) if any(map(checks.lists_symbols, slide.parts))), None)
    if at is None:
        return slides
    slide, used = slides[at], checks.used([*slides[:at], *slides[at + 1 :]])
    table = next(part for part in slide.parts if checks.lists_symbols(part))
    rows = [row for row in table.select("tbody tr") if checks.defined(row) & used]
    rest = [part for part in slide.parts if part is not table]
    made = []
    size = math.ceil(len(rows) / math.ceil(len(rows) / ROWS)) if rows else ROWS  # as even as can be
    for first in range(0, len(rows), size):
        some = copy.copy(table)
        for row in some.select("tbody tr"):
            if row not in rows[first : first + size]:
                row.extract()
        made.append(slide._replace(parts=[some], notes=slide.notes if not first else ""))
    if rest:
        made[-1].parts.extend(rest)
    return [*slides[:at], *made, *slides[at + 1 :]]
