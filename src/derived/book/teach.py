"""The packs of a course: for the class a site without solutions, for tutors all that the class does not get.

class.zip    ``class/``: the site built anew from chapters without solutions, student notebooks, slides, homework
tutors.zip   ``tutors/``: for each chapter the notebook with solutions (and the rubrics in them), the homework with
             nbgrader's solution regions, and a lesson plan; and the package
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from derived.book import downloads, homework, pages, reading, render
from derived.book.house import House, UserError
from derived.book.plain import Known, markdown
from derived.book.statements import STATED

FOR_CLASS = ("student", "homework")
FOR_TUTORS = {"whole": "{}.ipynb", "solved": "{}-homework.ipynb"}
_HEADING = re.compile(r"^(?=#{2,3} )", re.M)
_LABEL = re.compile(
    rf"^[`:]{{3,}}\{{(?:exercise|prf:(?:{'|'.join(STATED)}))\}}[^\n]*\n(?:[ \t]*:[\w-]+:[^\n]*\n)*", re.M
)


def packs(house: House, slugs: list[str]) -> tuple[Path, Path]:
    """Write both packs from the executed chapters; each is whole or is not there."""
    work = house.build / ".teach"
    shutil.rmtree(work, ignore_errors=True)
    for_class, tutors = work / "class", work / "tutors"
    tutors.mkdir(parents=True)
    try:
        for slug in slugs:
            _without_solutions(house, slug, work / "build")
        made = render.make(house.root, work / "build", slugs, work / "draft", solutions=False)
        for chapter in made.chapters:
            found = render.versions(house.root, house.build, chapter.slug, made)
            for kind in FOR_CLASS:
                if kind in found:
                    nbformat.write(found[kind], made.html / "downloads" / downloads.PUBLIC[kind].format(chapter.slug))
            for kind, name in FOR_TUTORS.items():
                if kind in found:
                    nbformat.write(found[kind], tutors / name.format(chapter.slug))
            source = nbformat.read(house.notebook(chapter.slug), as_version=4)
            known = render.known(house.build, chapter.slug, made)
            graded = found["solved"].cells if "solved" in found else []
            points = sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in graded)
            (tutors / f"{chapter.slug}-plan.md").write_text(plan(chapter, source, known, points), "utf-8")
        made.html.rename(for_class)
        shutil.copy(for_class / "downloads" / made.extra["wheel"], tutors)
        return _zipped(for_class, house.build / "class.zip"), _zipped(tutors, house.build / "tutors.zip")
    except (downloads.BuildError, render.RenderError) as error:
        raise UserError(str(error)) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _zipped(folder: Path, pack: Path) -> Path:
    """A zip that holds the folder; renamed when it is whole."""
    return Path(shutil.make_archive(str(folder), "zip", folder.parent, folder.name)).replace(pack)


def _without_solutions(house: House, slug: str, build: Path) -> None:
    """Put an executed chapter where a site is made from it, without solutions and without what their checks said."""
    notebook = nbformat.read(house.executed(slug), as_version=4)
    for place in homework.roles(notebook):
        notebook.cells[place].outputs = []
    (build / "executed/notebooks").mkdir(parents=True, exist_ok=True)
    (build / "findings").mkdir(exist_ok=True)
    nbformat.write(downloads.student(notebook), build / f"executed/notebooks/{slug}.ipynb")
    shutil.copy(house.findings(slug), build / f"findings/{slug}.json")


# Lesson plans -------------------------------------------------------------------------------------------------------


def plan(chapter: pages.Chapter, source: NotebookNode, known: Known, points: int) -> str:
    """A chapter's sections with the minutes that they take to read, and what stands in each. Markdown."""
    facts, rows, total = chapter.facts, [], 0.0
    for heading, cells in sections(source):
        seconds = reading.seconds(cells)
        total += seconds
        there = "; ".join(_held(cells, known))
        rows.append(f"| {heading} | {round(seconds / 60) or 'under 1'} | {there} |")
    return "\n".join(
        [
            f"# Lesson plan: {chapter.title}\n\n{facts['paper']['authors']}. {facts['claim']}\n",
            f"Students need {'; '.join(facts['prerequisites'])}.\n\nAfterwards they can\n",
            *(f"- {objective}" for objective in facts["objectives"]),
            f"\nThe whole takes {round(total / 60)} minutes to read, a section what the table says: each word,",
            "formula, proof and line of code at its own pace, exercises without solving them. At the board allow more,",
            f"or leave out proofs. The homework has {points} point{'s' if points != 1 else ''}, one for each check.\n",
            "| section | minutes | holds |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def sections(notebook: NotebookNode) -> Iterator[tuple[str, list[NotebookNode]]]:
    """Headings of the second and third level, each with the cells and parts of cells up to the next."""
    heading, held = "Beginning", []
    for cell in (cell for cell in notebook.cells if not reading.UNREAD & {*cell.metadata.get("tags", [])}):
        for part in _HEADING.split(cell.source) if cell.cell_type == "markdown" else [cell.source]:
            if cell.cell_type == "markdown" and _HEADING.match(part):
                if held:
                    yield heading, held
                heading, held = part.split("\n")[0].replace("### ", "– ").replace("## ", ""), []
            if part.strip():
                held.append(nbformat.from_dict({**cell, "source": part}))
    if held:
        yield heading, held


def _held(cells: list[NotebookNode], known: Known) -> Iterator[str]:
    """The numbered boxes and figures in some cells, by number and title."""
    for cell in cells:
        if cell.cell_type == "markdown":
            for box in _LABEL.findall(cell.source):
                yield markdown(f"{box}```", known).split("**")[1].rstrip(".")
        elif name := cell.metadata.get("mystnb", {}).get("figure", {}).get("name"):
            yield known.look_up("places", name).words
