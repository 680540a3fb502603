"""Fills the page for teachers from lectures and built chapters.

lessons     of a chapter: for each lecture a table of minutes, each step with its slide
needs       of a chapter: which of its sections refer to statements and equations of which others, and so need them
courses     which section fits which course (``book/lectures/courses.yml``: name and sections, ``slug#section``)
syllabus    a plan for some weeks (``book/lectures/syllabus.yml``: weeks, each a lecture, ``slug minutes``, or a
            name)

A ``<div data-fill="…">`` of the page is filled with each.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bs4 import BeautifulSoup, Tag

from bookbuilder import contents, yaml_io
from bookbuilder.chapter_pages import pages
from bookbuilder.notebook.lectures import FOLDER, LENGTHS, Step
from bookbuilder.paths import UserError
from bookbuilder.teach.slides import Lecture

ROW = 30  # pixels of a line in the drawing of what needs what
_RESULT = re.compile(r"(?:Theorem|Proposition|Corollary) [\d.]+ \((.+)\)")


class Other(yaml_io.Shape):
    """A week of the syllabus without a lecture."""

    name: str


class Section(NamedTuple):
    """A section with statements, and the places of the earlier sections that it refers to."""

    anchor: str
    heading: str
    needs: tuple[int, ...]


class Week(NamedTuple):
    """A week of a course: a lecture with its chapter and results, or only a name."""

    name: str
    chapter: pages.Chapter | None
    lecture: Lecture | None
    results: list[str]


def needs(page: BeautifulSoup) -> list[Section]:
    """Find the sections of a built chapter that hold statements, each with its direct prerequisites."""
    holders: list[Tag] = []
    owner: dict[str, int] = {}
    for thing in page.select("article .proof.admonition[id], article div.math[id^=equation-]"):
        section = thing.find_parent(_headed)
        if section not in holders and thing.select_one(".admonition-title"):
            holders.append(section)
        if section in holders:
            owner[thing["id"]] = holders.index(section)
    direct = [_referred(section, owner) - {*range(at, len(holders))} for at, section in enumerate(holders)]
    every: list[set[int]] = []
    for some in direct:
        every.append(some.union(*(every[one] for one in some)))
    found = []
    for section, some in zip(holders, direct, strict=True):
        nearest = {one for one in some if not any(one in every[other] for other in some - {one})}
        heading = section.find(re.compile("^h[1-6]$"))
        words = heading.get_text().removeprefix(getattr(heading.select_one(".section-number"), "text", "")).strip(" #")
        found.append(Section(section["id"], words.replace("\\(", "$").replace("\\)", "$"), tuple(sorted(nearest))))
    return found


def _headed(tag: Tag) -> bool:
    return tag.name == "section" and tag.find(re.compile("^h[1-6]$"), recursive=False) is not None


def _referred(section: Tag, owner: dict[str, int]) -> set[int]:
    links = [link for link in section.select('a[href^="#"]') if link.find_parent(_headed) is section]
    return {owner[link["href"][1:]] for link in links if link["href"][1:] in owner}


def _arcs(sections: Sequence[Section]) -> list[str]:
    """Draw a curve from each section to one that it needs, left of the list; wider where it spans more."""
    found = []
    for at, section in enumerate(sections):
        for one in section.needs:
            top, bottom, bow = ROW * (one + 0.5), ROW * (at + 0.5), 96 - min(90, 14 + 9 * (at - one))
            found.append(f"M96 {top} C{bow} {top} {bow} {bottom} 96 {bottom}")
    return found


def fill(
    root: Path,
    html: Path,
    chapters: Sequence[pages.Chapter],
    lectures: dict[str, list[Lecture]],
    sections: dict[str, list[Section]],
) -> None:
    """Fill in the built page for teachers, leaving out chapters that this site lacks."""
    path = html / "book/teaching.html"
    page = BeautifulSoup(path.read_text("utf-8"), "html.parser")
    known = {chapter.slug: chapter for chapter in chapters}
    fragments = {
        "courses": pages.html("teach_courses.html", courses=courses(root, known, sections)),
        "syllabus": pages.html("teach_syllabus.html", plans=syllabus(root, known, lectures)),
    }
    for chapter in chapters:
        timed = [(lecture, minutes(lecture)) for lecture in lectures[chapter.slug]]
        values = {"chapter": chapter, "lectures": timed, "row": ROW}
        values |= {"sections": sections[chapter.slug], "arcs": _arcs(sections[chapter.slug])}
        fragments[f"lectures-{chapter.slug}"] = pages.html("teach_lectures.html", **values)
    for place in page.select("[data-fill]"):
        place.replace_with(BeautifulSoup(fragments[place["data-fill"]], "html.parser"))
    path.write_text(str(page), "utf-8")


def courses(
    root: Path, known: dict[str, pages.Chapter], sections: dict[str, list[Section]]
) -> list[tuple[str, list[tuple[pages.Chapter, Section]]]]:
    """Read courses and the sections that fit them; raise UserError for an unknown chapter or section."""
    found, file = [], root / FOLDER / "courses.yml"
    for name, entries in yaml_io.read(file, dict[str, list[str]]).items():
        those = []
        for slug, anchor in (yaml_io.parted(entry, "#", file.name) for entry in entries):
            contents.check_chapters(root, [slug], file.name)
            if slug in known:
                there = {section.anchor: section for section in sections[slug]}
                if anchor not in there:
                    raise UserError(f"courses.yml: {slug} has no section {anchor} that states something")
                those.append((known[slug], there[anchor]))
        found.append((name, those))
    return found


def syllabus(
    root: Path, known: dict[str, pages.Chapter], lectures: dict[str, list[Lecture]]
) -> list[tuple[int, list[Week]]]:
    """Read plans by their number of weeks, each week with its lecture and core results; raise UserError for an
    unknown chapter or lecture."""
    found, file = [], root / FOLDER / "syllabus.yml"
    for weeks, entries in yaml_io.read(file, dict[int, list[str | Other]]).items():
        those = []
        for entry in entries:
            if isinstance(entry, Other):
                those.append(Week(entry.name, None, None, []))
                continue
            slug, length = yaml_io.parted(entry, None, file.name)
            contents.check_chapters(root, [slug], file.name)
            lecture = next((one for one in lectures.get(slug, []) if str(one.minutes) == length), None)
            if length not in map(str, LENGTHS) or (slug in known and not lecture):
                raise UserError(f"{file.name}: {slug} has no lecture of {length} minutes")
            if lecture:
                core = [name for each in lecture.plan if not each.step.optional for name in each.name.split("; ")]
                those.append(Week("", known[slug], lecture, [m[1] for name in core if (m := _RESULT.fullmatch(name))]))
        if any(week.lecture for week in those):
            found.append((weeks, those))
    return found


def minutes(lecture: Lecture) -> list[tuple[int, Any]]:
    """Return the steps of a lecture with the minute at which each begins."""
    return [(sum(one.step.minutes for one in lecture.plan[:at]), each) for at, each in enumerate(lecture.plan)]


def asked(step: Step) -> str:
    """Write the question of a step with the wrong answer to expect, if it has one."""
    return f"**Ask:** {step.ask} **Expect:** {step.wrong}" if step.ask else ""


def plan(chapter: pages.Chapter, lectures: Sequence[Lecture], points: int) -> str:
    """Write the lesson plans of a chapter, a table of minutes for each lecture. Markdown."""
    facts = chapter.facts
    lines = [
        f"# Lesson plans: {chapter.title}\n\n{facts['paper']['authors']}. {facts['claim']}\n",
        f"Students need {'; '.join(facts['prerequisites'])}.\n\nAfterwards they can\n",
        *(f"- {objective}" for objective in facts["objectives"]),
        f"\nTo read, the chapter takes {chapter.minutes.whole} minutes. The homework has {points} "
        f"point{'s' if points != 1 else ''}: the sheet says for what.\n",
        "What is optional can be dropped when time runs short; all else is the core. Each proof is given in full,",
        "sketched or quoted; all of them are in the speaker's window of each deck (key `n`).\n",
    ]
    for lecture in lectures:
        lines.append(f"## {lecture.minutes} minutes\n\n| from | min | what | slide | | proof | say |\n|{7 * '---|'}")
        for start, each in minutes(lecture):
            slide = "" if each.slide is None else str(each.slide + 3)
            mark = "optional" if each.step.optional else "core" if each.step.show else ""
            said = " ".join(filter(None, (each.step.say, asked(each.step))))
            lines.append(
                f"| {start} | {each.step.minutes} | {each.name} | {slide} | {mark} | {each.step.way} | {said} |"
            )
        lines.append("")
    return "\n".join(lines)
