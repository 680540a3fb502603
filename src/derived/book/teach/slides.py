"""Makes slides of a chapter's lectures from its built page; proofs go on the board.

thing   what a label shows, in parts (derived.book.teach.things)
atom    parts that belong together: a sentence with its formula, a list with the line that leads to it
fault   why a deck cannot be shown; the press stops at it

Checked: each label is there, and once; a statement or figure that a slide refers to is shown before, or in the same
step; no statement or figure that uses a symbol of the setup's table stands before it; no slide holds one short
sentence. An equation from elsewhere is quoted at the foot of the slide that first refers to it, so none is missing; a
reference in parentheses to what is not shown is left out. Not checked: symbols that text or a statement defines as it
goes.
"""

import copy
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bs4 import BeautifulSoup, NavigableString, Tag

from derived.book.page import pages
from derived.book.source.lectures import Step
from derived.book.teach.things import Thing, claims, heading_of, plain_words, things

ROOM = 760  # characters on a slide, formulas as they are written
ORPHAN = 140  # a single sentence shorter than this does not fill a slide
AGAIN = ", continued"
ROWS = 9  # of the table of symbols on a slide
_ATOM = re.compile(r"\\(?:mathrm|rm|mathcal|mathbb|operatorname|mathbf|tilde|hat|bar)\s*\{?\\?[A-Za-z]+|\\?[A-Za-z]+")
_RANGE = re.compile(r"([^#]+)#(\d+)(?:-(\d+))?")


class Atom(NamedTuple):
    """Parts that stay together, the thing that they belong to, and the room that they take."""

    thing: Thing
    parts: list[Tag]
    size: int


class Slide(NamedTuple):
    """A heading and the parts under it, its step, and the speaker's notes."""

    heading: str
    parts: list[Tag]
    step: int
    notes: str

    @property
    def text(self) -> str:
        return " ".join(part.get_text(" ") for part in self.parts)


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


class DeckError(Exception):
    """A lecture that cannot be shown; one line per fault."""


def make(chapter: pages.Chapter, page: BeautifulSoup, paths: dict[int, list[Step]]) -> list[Lecture]:
    """Make the lectures of a chapter from its built page, which is consumed; DeckError has one line per fault."""
    known = things(page, claims(chapter))
    made, wrong = [], []
    for minutes, steps in paths.items():
        try:
            made.append(_lecture(minutes, steps, known))
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


def _lecture(minutes: int, steps: Sequence[Step], known: dict[str, Thing]) -> Lecture:
    wrong = list(_unknown(steps, known))
    if wrong:
        raise DeckError("\n".join(wrong))
    slides, plan = [], []
    for number, step in enumerate(steps):
        those = list(_of_step(number, step, known))
        names = [known[label.split("#")[0]].name for label in step.show]
        name = step.name or "; ".join(dict.fromkeys(names))
        again = bool(plan) and plan[-1].name.removesuffix(AGAIN) == name
        plan.append(Planned(step, name + AGAIN * again, None))
        slides += those
    slides = _with_symbols(_follow(slides), known)
    plan = [each._replace(slide=_first(slides, number)) for number, each in enumerate(plan)]
    wrong = [*_quote(slides, known), *_orphans(slides)]
    if wrong:
        raise DeckError("\n".join(wrong))
    return Lecture(minutes, slides, plan)


def _follow(slides: list[Slide]) -> list[Slide]:
    """Put figures under the heading of the statement or section to which they belong."""
    found: list[Slide] = []
    stated = ""
    for slide in slides:
        drawn = slide.parts[0].name == "figure"
        if not drawn:
            stated = slide.heading if "admonition" in slide.parts[-1].get("class", []) else ""
        found.append(slide._replace(heading=stated) if drawn and stated else slide)
    return found


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


def _of_step(number: int, step: Step, known: dict[str, Thing]) -> Iterator[Slide]:
    """Make the slides of a step: boxes and text share one while there is room, a figure has its own."""
    shown = [(known[label.split("#")[0]], [copy.copy(part) for part in _chosen(label, known)]) for label in step.show]
    held = [Atom(thing, atom, sum(map(weight, atom))) for thing, parts in shown for atom in _atoms(parts)]
    said = f"<p>{pages.typeset(step.say)}</p>" if step.say else ""
    told: set[str] = set()
    for group in _packed(held):
        met = {atom.thing.name: atom.thing for atom in group}
        notes = "".join(str(note) for name, thing in met.items() if name not in told for note in thing.notes)
        told |= set(met)
        yield _slide(list(met.values()), [part for atom in group for part in atom.parts], number, said + notes)
        said = ""


def _slide(met: list[Thing], parts: list[Tag], number: int, notes: str) -> Slide:
    """Make a slide with the name of its thing as heading; a single box does not repeat that name."""
    boxes = [part for part in parts if part.get("id") and part.select_one(".admonition-title")]
    if len(boxes) == 1 and len(parts) == 1:
        boxes[0].select_one(".admonition-title").extract()
    heading = met[0].heading if len(met) == 1 else " · ".join(str(pages.typeset(each.name)) for each in met)
    return Slide(heading, parts, number, notes)


def _atoms(parts: list[Tag]) -> Iterator[list[Tag]]:
    held: list[Tag] = []
    for part in parts:
        if held and not (_unfinished(held[-1]) or "math" in part.get("class", [])):
            yield held
            held = []
        held.append(part)
    if held:
        yield held


def _unfinished(part: Tag) -> bool:
    """Tell whether a sentence continues after a part."""
    if "math" not in part.get("class", []):
        return part.name == "p" and part.get_text().rstrip()[-1:] not in ".!?)”"
    text = re.sub(r"(\\\]|\\end\{\w+\*?\}|[\s}$])+$", "", part.get_text().split("\\[")[-1])
    return not text.endswith((".", "!", "?"))


def weight(part: Tag) -> int:
    """Estimate how much of a slide's room a part takes."""
    if part.name == "figure" or part.select_one("figure"):
        return ROOM
    if _lists_symbols(part):  # shown without the rows that a deck does not use
        return ROOM // 2
    rows, lines = (
        len(part.select("tr")),
        part.get_text().strip().count("\n") if "highlight-python" in part.get("class", []) else 0,
    )
    text = " ".join(part.get_text().split())
    return max(len(text), 55 * rows, 45 * lines, 120 if "math" in part.get("class", []) else 0)


def _packed(held: list[Atom]) -> list[list[Atom]]:
    """Pack atoms on as few slides as have room for them, about equally full."""
    fewest = len(_greedy(held, ROOM))
    limit = next(limit for limit in range(20, ROOM + 20, 20) if len(_greedy(held, limit)) <= fewest)
    return _greedy(held, limit)


def _greedy(held: list[Atom], limit: int) -> list[list[Atom]]:
    slides: list[list[Atom]] = []
    for atom in held:
        if not slides or sum(each.size for each in slides[-1]) + atom.size > limit:
            slides.append([])
        slides[-1].append(atom)
    return slides


# Checks -------------------------------------------------------------------------------------------------------------


def _quote(slides: list[Slide], known: dict[str, Thing]) -> Iterator[str]:
    """Quote equations from elsewhere where they are first referred to; yield references to what is not shown."""
    seen: set[str] = set()
    for slide in slides:
        step = [part for other in slides if other.step == slide.step for part in other.parts]
        seen |= {name for part in step for name in _ids(part)}
        told = [part for part in slide.parts if not _lists_symbols(part)]
        for link in [link for part in told for link in part.select('a[href^="#"]')]:
            target = link["href"][1:]
            label = target.removeprefix("equation-")
            if target in seen or label not in known or known[label].parts[:1] == [] or _is_section(known[label]):
                continue
            if target == label and not _drop(link):
                yield f"{plain_words(slide.heading)} refers to {known[label].name}, which is not shown before"
            elif target != label:
                quoted = copy.copy(known[label].parts[0])
                del quoted["id"]
                quoted["class"] = [*quoted.get("class", []), "quoted"]
                slide.parts.append(quoted)
                seen.add(target)


_PARENTHESES = ((r"\s*\($", r"^\)"), (r"(?<=\()$", r"^, "), (r", $", r"^(?=\))"))


def _drop(link: Tag) -> bool:
    """Drop a list item, or a parenthesis, that refers to something not shown; the sentence reads without it."""
    point = link.find_parent("li")
    if point and (point.parent is None or len(point.parent.find_all("li", recursive=False)) > 1):
        point.extract()
        return True
    before, after = link.previous_sibling, link.next_sibling
    if not (isinstance(before, NavigableString) and isinstance(after, NavigableString)):
        return False
    for left, right in _PARENTHESES:
        if re.search(left, before) and re.search(right, after):
            before.replace_with(re.sub(left, "", before))
            after.replace_with(re.sub(right, "", after))
            link.extract()
            return True
    return False


def _is_section(thing: Thing) -> bool:
    return not thing.parts[0].get("id")


def _ids(part: Tag) -> set[str]:
    return {tag["id"] for tag in [part, *part.find_all(id=True)] if tag.get("id")}


def _orphans(slides: list[Slide]) -> Iterator[str]:
    for slide in slides:
        text = " ".join(slide.text.split())
        alone = len(slide.parts) == 1 and slide.parts[0].name == "p" and not slide.parts[0].select_one(".verdict")
        if alone and len(text) < ORPHAN:
            yield f"one short sentence alone on a slide: {text}"


# Symbols ------------------------------------------------------------------------------------------------------------


def letters(formula: str) -> list[str]:
    """Extract the symbols of a formula, without sizes, spaces and signs."""
    return [each for each in _ATOM.findall(formula) if each not in ("\\", "\\ ")]


def defined(row: Tag) -> set[str]:
    """Extract the symbols that a row of a table of symbols defines: the first of each formula in its first column."""
    found = set()
    for formula in row.find("td").select(".math") if row.find("td") else []:
        inside = formula.get_text().removeprefix("\\(").removesuffix("\\)")
        left = re.split(r"=|\\[gl]e\b|\\in\b|\\sim\b|[<>|]|\\\|", inside)[0]
        found |= {names[0] for piece in re.split(r"[,;]", left) if (names := letters(piece))}
    return found


def _used(slides: Sequence[Slide]) -> set[str]:
    maths = [formula for slide in slides for part in slide.parts for formula in _formulas(part)]
    return {name for formula in maths for name in letters(formula)}


def _formulas(part: Tag) -> list[str]:
    found = [part] if "math" in part.get("class", []) else part.select(".math")
    return [formula.get_text() for formula in found]


def _with_symbols(slides: list[Slide], known: dict[str, Thing]) -> list[Slide]:
    """Remove rows of the table of symbols that a deck does not use; DeckError if the table comes too late."""
    at = next((place for place, slide in enumerate(slides) if any(map(_lists_symbols, slide.parts))), None)
    listed = {name for row in _rows(known.get("setup")) for name in defined(row)}
    early = [slide for slide in slides[:at] if any(_needs_setup(part) for part in slide.parts)]
    late = [f"{plain_words(slide.heading)} uses symbols before the setup shows them" for slide in early]
    if listed and late and _used(early) & listed:
        raise DeckError("\n".join(late))
    if at is None:
        return slides
    slide, used = slides[at], _used([*slides[:at], *slides[at + 1 :]])
    table = next(part for part in slide.parts if _lists_symbols(part))
    rows = [row for row in table.select("tbody tr") if defined(row) & used]
    rest = [part for part in slide.parts if part is not table]
    made = []
    for first in range(0, len(rows), ROWS):
        some = copy.copy(table)
        for row in some.select("tbody tr"):
            if row not in rows[first : first + ROWS]:
                row.extract()
        made.append(slide._replace(parts=[some], notes=slide.notes if not first else ""))
    if rest:
        made[-1].parts.extend(rest)
    return [*slides[:at], *made, *slides[at + 1 :]]


def _rows(setup: Thing | None) -> list[Tag]:
    table = next((part for part in setup.parts if part.select_one("tr")), None) if setup else None
    return table.select("tbody tr") if table else []


def _lists_symbols(part: Tag) -> bool:
    first = part.select_one("th")
    return first is not None and first.get_text().strip() == "symbol"


def _needs_setup(part: Tag) -> bool:
    return part.name == "figure" or ("admonition" in part.get("class", []) and bool(part.get("id")))
