"""Writes a tutor's grading sheet: points, hints, common mistakes, solutions and rubrics of a chapter's exercises.

The mistakes are those of the paper's ``exercises.py``, with what the check says to a student who makes one.
"""

import importlib.util
import re
from collections import Counter
from collections.abc import Iterator

from nbformat import NotebookNode

from bookbuilder.chapter_pages.plain import Known, markdown
from bookbuilder.teach import homework
from derived.lab.exercises import Derive, Exercise, judged


def sheet(slug: str, title: str, source: NotebookNode, graded: NotebookNode, known: Known) -> str:
    """Write each exercise of a chapter with its points in ``graded``, hints, mistakes and solution. Markdown."""
    points: Counter[str] = Counter()
    for about in (cell.metadata.get("nbgrader", {}) for cell in graded.cells):
        points[re.sub(r"-(check\d+|words)$", "", about.get("grade_id", ""))] += about.get("points", 0)
    facts, parts = homework.facts(source), _exercises(slug)
    core = sum(one.minutes for one in facts if one.importance == "core")
    rows = [
        f"| {known.look_up('places', one.label).words} | {one.kind} | {one.minutes} "
        f"| {one.difficulty} | {one.importance} "
        f"| {points[one.label]}{_split(one, points[one.label], len(parts.get(one.label, [])))} |"
        for one in facts
    ]
    head = ["| exercise | kind | minutes | difficulty | importance | points |", "|---|---|---|---|---|---|"]
    return "\n".join(
        [
            f"# Tutor's sheet: {title}\n",
            f"{sum(one.minutes for one in facts)} minutes, {core} core, {sum(points.values())} points. Judge",
            "and Project are graded",
            "by hand with the rubrics below, the others by their checks; where one asks for a reason as well, this has",
            "a rubric and a cell of its own.\n",
            *head,
            *rows,
            *(part for one in facts for part in _one(one.label, source, parts.get(one.label, []), known)),
            "",
        ]
    )


def _split(one: homework.Facts, points: int, parts: int) -> str:
    """Explain the points of an exercise that are not all for one answer."""
    words = [f"{one.rubric} for words"] if 0 < one.rubric < points else []
    each = [f"{(points - one.rubric) / parts:.3g} for each of {parts} answers"] if parts > 1 else []
    return f" ({', '.join([*each, *words])})" if words or each else ""


def _exercises(slug: str) -> dict[str, list[Exercise]]:
    """Import a paper's exercises by label, each as a list of its parts; empty without a file."""
    name = f"derived.papers.{slug}.exercises"
    if not (importlib.util.find_spec(f"derived.papers.{slug}") and importlib.util.find_spec(name)):
        return {}
    found = importlib.import_module(name).EXERCISES
    return {label: [each] if isinstance(each, Exercise) else [*each] for label, each in found.items()}


def _one(label: str, source: NotebookNode, parts: list[Exercise], known: Known) -> Iterator[str]:
    yield f"\n## {known.look_up('places', label).words}\n"
    for title, hint in homework.hints(source).get(label, {}).items():
        yield f"*{title}.* {markdown(hint, known)}\n"
    if any(part.mistakes for part in parts):
        yield "Common mistakes, and what the check says:\n"
    for letter, part in zip("abcdefgh", parts, strict=False):
        for words, mistake in part.mistakes.items():
            given = mistake() if isinstance(part, Derive) and part.draw is None and callable(mistake) else mistake
            said = judged(label, part, given).removesuffix(f"; {words}")
            yield f"- {f'({letter}) ' * (len(parts) > 1)}{words}: `{said}`"
    for cell in (source.cells[place] for place in homework.section(source)):
        if homework.is_solution(cell) and f"{{solution}} {label}\n" in cell.source:
            yield f"\n{markdown(cell.source, known)}"
