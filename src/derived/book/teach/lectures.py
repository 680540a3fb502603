"""Lectures as data: what a chapter shows in 50, 90 and 180 minutes, and for how long.

``book/lectures/<slug>.yml`` is one list of steps, in the order of all three lectures:

show     labels of statements, figures, equations, exercises and sections; of a section some parts (``setup#1-2``)
name     what the step is called; it can be left out where something is shown
minutes  in the lectures of 50, 90 and 180 minutes: 0 where the step is left out, ``5?`` where it can be dropped
say      what the speaker should not forget

The minutes of a lecture must sum to its length: a pause and time for questions are steps too.
"""

import re
from pathlib import Path
from typing import NamedTuple

from derived.book import written
from derived.book.house import UserError

LENGTHS = (50, 90, 180)
FOLDER = "book/lectures"
_KEYS = {"show", "name", "minutes", "say"}
_MINUTES = re.compile(r"\d+\??( \d+\??){2}")


class Step(NamedTuple):
    """What a lecture shows next, how long it takes, and whether it can be dropped when time runs short."""

    show: tuple[str, ...]
    name: str
    minutes: int
    optional: bool
    say: str


def path(root: Path, slug: str) -> Path:
    """The file of a chapter's lectures."""
    return root / FOLDER / f"{slug}.yml"


def read(root: Path, slug: str) -> dict[int, list[Step]]:
    """The lectures of a chapter by their lengths, empty where it has none; UserError names every fault."""
    file = path(root, slug)
    if not file.is_file():
        return {}
    entries = written.read(file, list)
    wrong = [
        fault for number, entry in enumerate(entries, 1) for fault in _faults(f"{file.name}: step {number}", entry)
    ]
    if wrong:
        raise UserError("\nderived: ".join(wrong))
    lectures = {length: [step for entry in entries if (step := _step(entry, at))] for at, length in enumerate(LENGTHS)}
    for length, steps in lectures.items():
        if (total := sum(step.minutes for step in steps)) != length:
            wrong.append(f"{file.name}: the steps of the lecture of {length} minutes take {total}")
    if wrong:
        raise UserError("\nderived: ".join(wrong))
    return lectures


def _faults(where: str, entry: dict[str, str]) -> list[str]:
    if not isinstance(entry, dict) or set(entry) - _KEYS or not {"show", "name"} & set(entry):
        return [f"{where}: a step has show or name, minutes, and may have say; found {entry}"]
    if not _MINUTES.fullmatch(str(entry.get("minutes"))):
        return [f'{where}: minutes are three numbers, such as "5 8? 10"; found {entry.get("minutes")!r}']
    return []


def _step(entry: dict[str, str], at: int) -> Step | None:
    minutes = entry["minutes"].split()[at]
    if minutes == "0":
        return None
    show = tuple(str(entry.get("show", "")).split())
    return Step(show, entry.get("name", ""), int(minutes.rstrip("?")), minutes.endswith("?"), entry.get("say", ""))
