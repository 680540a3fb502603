"""Writes quick questions: one-click questions on the quantities of a chapter, offline and without a script.

question   what a quantity is at a short input; three for each quantity as far as its mutants give them
wrong      the nearest values that a mutant returns there; a click says what was misread, in which function

They are a page of their own, and folds of the chapter's page.
"""

import html
import itertools
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from derived.book.tasks.mutants import Change, Mutant, called
from derived.lab.court import OFF, near
from derived.lab.subjects import Point, Subject, flat, pencil, told

EACH = 3  # questions on a quantity
OPTIONS = 4
STYLE = (
    "body{font:1.05rem/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}"
    "summary{cursor:pointer;padding:.2rem .5rem}details{border:1px solid #889;border-radius:4px;margin:.3rem 0}"
    "details p{margin:.2rem .7rem .4rem}code{overflow-wrap:anywhere}pre{overflow:auto}"
    "@media(prefers-color-scheme:dark){body{background:#12181d;color:#d6dde3}}"
)


class Option(NamedTuple):
    """A value to choose, and what leads to it if it is wrong."""

    value: str
    misread: Change | None = None

    def said(self) -> str:
        """What a click says."""
        if self.misread is None:
            return "Right."
        where, before, after = (f"<code>{html.escape(each)}</code>" for each in self.misread)
        return f"Not right: so it would be with {after} in place of {before} in {where}."


class Question(NamedTuple):
    """A quantity at a point, and the values to choose from."""

    subject: Subject
    point: Point
    options: tuple[Option, ...]


def questions(source: str, subjects: Sequence[Subject], found: Sequence[Mutant]) -> list[Question]:
    """Make the questions of a chapter, in the order of its quantities; the right value is computed by the pencil."""
    healthy, made = pencil(source), []
    broken = [(pencil(each.broken), each) for each in found]
    for at, subject in enumerate(subjects):
        needs = called(source, subject.call)
        mine = [(names, each.change) for names, each in broken if each.change.function in needs]
        points = [each.witness for each in found if each.subject == at and each.change.function in needs]
        points += [subject.point(random.Random(f"quick {number}")) for number in range(40)]
        different = {told(each): each for each in points}.values()
        fresh = (_question(subject, healthy, mine, point) for point in different)
        single = (each for each in fresh if each and len(flat(subject.value(healthy, each.point))) == 1)
        made += itertools.islice(single, EACH)
    return made


def _question(subject: Subject, healthy: dict, mine: Sequence[tuple[dict, Change]], point: Point) -> Question | None:
    """The question at a point; None where no two mutants differ from the right value and from each other."""
    right = subject.value(healthy, point)
    values, wrong = [right], []
    for names, change in mine:
        try:
            value = subject.value(names, point)
            if _may_be(subject, value) and not any(
                near(each, value, OFF) or _short(each) == _short(value) for each in values
            ):
                values.append(value)
                wrong.append((abs(flat(value)[0] - flat(right)[0]), Option(_short(value), change)))
        except (ArithmeticError, ValueError, LookupError, TypeError):
            continue
    if len(wrong) < 2:
        return None
    shown = [Option(_short(right)), *(each for _, each in sorted(wrong)[: OPTIONS - 1])]
    random.Random(f"{subject.words} {told(point)}").shuffle(shown)
    return Question(subject, point, tuple(shown))


def _may_be(subject: Subject, value: object) -> bool:
    """Whether a value could be right: finite, and for a probability not outside of 0 and 1, which tells at a glance."""
    numbers = flat(value)
    inside = all(0 <= each <= 1 for each in numbers) or not subject.words.startswith("the probability")
    return inside and all(map(math.isfinite, numbers))


def _short(value: object) -> str:
    return ", ".join(f"{each:.3g}" for each in flat(value))


def chosen(asked: Sequence[Question]) -> list[Question]:
    """Choose the questions of a section: of each quantity the first, then the second, until there are three."""
    turns = [sum(other.subject == each.subject for other in asked[:at]) for at, each in enumerate(asked)]
    places = sorted(range(len(asked)), key=lambda at: (turns[at], at))[:EACH]
    return [asked[at] for at in sorted(places)]


def page(title: str, source: str, asked: Sequence[Question]) -> str:
    """Write the questions, and the pencil that computes them, as a page of its own."""
    lines = [
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Quick questions: {html.escape(title)}</title>",
        f"<meta name=viewport content='width=device-width, initial-scale=1'><style>{STYLE}</style>",
        f"<h1>Quick questions: {html.escape(title)}</h1>",
        "<p>By hand or in the head; a click on a value says whether it is right, and if not what was misread. "
        "The functions are at the end.</p>",
        *_listed(asked),
    ]
    lines += [f"<details><summary>The functions</summary><pre>{html.escape(source)}</pre></details>", "</html>", ""]
    return "\n".join(lines)


def fold(asked: Sequence[Question]) -> str:
    """Write the questions as a fold of a chapter's page; empty if there are none."""
    if not asked:
        return ""
    plural = "s, one click each" if len(asked) > 1 else ", one click"
    return "\n".join(
        [
            f'<details class="quick"><summary>{len(asked)} quick question{plural}</summary>',
            '<p>By hand or in the head. A wrong value says what was misread in <a href="#try-it">the program</a>.</p>',
            *_listed(asked),
            "</details>",
        ]
    )


def _listed(asked: Sequence[Question]) -> list[str]:
    """Write the questions, those on one quantity below its words and its call."""
    lines, words = [], ""
    for each in asked:
        if each.subject.words != words:
            words, call = each.subject.words, html.escape(each.subject.call)
            lines.append(f"<p><strong>{html.escape(words[0].upper() + words[1:])}</strong>, <code>{call}</code></p>")
        lines.append(f"<p>What is it at <code>{html.escape(told(each.point))}</code>?</p>")
        lines += [
            f"<details><summary>{option.value}</summary><p>{option.said()}</p></details>" for option in each.options
        ]
    return lines
