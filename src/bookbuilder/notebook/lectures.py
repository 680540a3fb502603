"""Read lectures: the statements and figures of a chapter for 50, 90 and 180 minutes, with their minutes.

``book/lectures/<slug>.yml`` is one list of steps, in the order of all three lectures:

show     labels of statements, figures, equations, exercises and sections; of a section some parts (``setup#1-2``)
name     what the step is called; it can be left out where something is shown
minutes  in the lectures of 50, 90 and 180 minutes: 0 where the step is left out, ``5?`` where it can be dropped
way      prove, sketch or quote, where a statement with a proof is shown: one word, or one for each length
say      what the speaker should not forget
ask      a question to the class, with ``wrong``, a wrong answer to expect and what it overlooks
aims     which of the chapter's objectives the step serves, counted from 1
where    what the slide's symbols mean that no slide before has shown

The minutes of a lecture must sum to its length: a pause and time for questions are steps too.
"""

import re
from pathlib import Path
from typing import NamedTuple

from bookbuilder import yaml_io
from bookbuilder.paths import UserError

LENGTHS = (50, 90, 180)
FOLDER = "book/lectures"
WAYS = ("prove", "sketch", "quote")
_ASKS = re.compile(r"\?|\b[Aa]sk\b|\b[Ll]et (?:the|half of the) class\b|\bvote\b")
_MINUTES = re.compile(r"\d+\??( \d+\??){2}")


class Entry(yaml_io.Shape):
    """A step as written in the file."""

    show: str = ""
    name: str = ""
    minutes: str
    way: str = ""
    say: str = ""
    ask: str = ""
    wrong: str = ""
    aims: int | str = ""
    where: str = ""


class Step(NamedTuple):
    """A step of a lecture, its minutes, and whether it can be dropped when time runs short."""

    show: tuple[str, ...]
    name: str
    minutes: int
    optional: bool
    say: str
    way: str = ""
    ask: str = ""
    wrong: str = ""
    aims: tuple[int, ...] = ()
    where: str = ""


def path(root: Path, slug: str) -> Path:
    """Return the file of a chapter's lectures."""
    return root / FOLDER / f"{slug}.yml"


def read(root: Path, slug: str) -> dict[int, list[Step]]:
    """Read the lectures of a chapter by their lengths, empty if it has none; raise UserError for a faulty file."""
    file = path(root, slug)
    if not file.is_file():
        return {}
    entries = yaml_io.read(file, list[Entry])
    for number, entry in enumerate(entries, 1):
        if fault := _fault(entry):
            raise UserError(f"{file.name}, entry {number}: {fault}")
    lectures = {length: [step for entry in entries if (step := _step(entry, at))] for at, length in enumerate(LENGTHS)}
    totals = {length: sum(step.minutes for step in steps) for length, steps in lectures.items()}
    wrong = [
        f"{file.name}: the steps of the lecture of {length} minutes take {total}"
        for length, total in totals.items()
        if total != length
    ]
    if wrong:
        raise UserError("\nderived: ".join(wrong))
    return lectures


def _fault(entry: Entry) -> str:
    """Return what is wrong with a step by itself."""
    if not entry.show and not entry.name:
        return "a step has show or name"
    if not _MINUTES.fullmatch(entry.minutes):
        return f'minutes are three numbers, such as "5 8? 10"; found {entry.minutes!r}'
    if len(entry.way.split()) not in (0, 1, len(LENGTHS)) or not {*entry.way.split()} <= {*WAYS}:
        return f"way is {', '.join(WAYS)}, one for all lengths or three; found {entry.way!r}"
    if bool(entry.ask) != bool(entry.wrong):
        return "ask needs wrong, the answer to expect, and wrong needs ask"
    if _ASKS.search(entry.say):
        return f"say has a question for the class; put it into ask, with wrong; found {entry.say!r}"
    if not re.fullmatch(r"[\d ]*", str(entry.aims)):
        return f"aims are numbers of objectives; found {entry.aims!r}"
    return ""


def _step(entry: Entry, at: int) -> Step | None:
    minutes = entry.minutes.split()[at]
    if minutes == "0":
        return None
    show = tuple(entry.show.split())
    ways, aims = entry.way.split(), tuple(map(int, str(entry.aims).split()))
    way = ways[at % len(ways)] if ways else ""
    return Step(
        show,
        entry.name,
        int(minutes.rstrip("?")),
        minutes.endswith("?"),
        entry.say,
        way,
        entry.ask,
        entry.wrong,
        aims,
        entry.where,
    )
