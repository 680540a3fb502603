"""Makes the packs of a course: a site without solutions for the class, and all solutions for tutors.

class.zip    ``class/``: the site built anew from chapters without solutions, student notebooks, slides, homework
tutors.zip   ``tutors/``: for each chapter the notebook with solutions (and the rubrics in them), the homework with
             nbgrader's solution regions, otter-grader's tests, the lesson plans, and a sheet of points, rubrics and
             common mistakes; the site as it is, with the speaker's notes in its decks
figures.zip  all figures under speaking names
"""

import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat

from bookbuilder.export import figures
from bookbuilder.paths import Repo, UserError
from bookbuilder.run.driver import read_findings
from bookbuilder.sphinx_site import downloads, render
from bookbuilder.teach import homework, sheets, teaching

FOR_CLASS = ("student", "homework")
FOR_TUTORS = {"whole": "{}.ipynb", "solved": "{}-homework.ipynb"}


def teach(repo: Repo) -> Iterator[str]:
    """Make both packs and the figures; a line for each file."""
    if not (repo.site / "index.html").is_file():
        raise UserError("there is no site yet: run `make site` first")
    for_class, tutors = packs(repo, [slug for slug in repo.chapters() if read_findings(repo, slug)])
    yield f"made {for_class}: unpack it anywhere and open class/index.html"
    yield f"made {tutors}: solutions, homework for nbgrader, lesson plans"
    slugs = [slug for slug in repo.chapters() if (repo.site / f"notebooks/{slug}.html").is_file()]
    try:
        pack = figures.figures(repo.site.resolve(), slugs, repo.build / "figures.zip")
    except UserError as error:  # a class can do without
        yield f"no figures.zip: {error}"
        return
    yield f"made {pack}: SVG, PDF and credits"


def packs(repo: Repo, slugs: list[str]) -> tuple[Path, Path]:
    """Write both packs from the executed chapters; each is whole or is not there."""
    work = repo.build / ".teach"
    shutil.rmtree(work, ignore_errors=True)
    for_class, tutors = work / "class", work / "tutors"
    tutors.mkdir(parents=True)
    try:
        for slug in slugs:
            _without_solutions(repo, slug, work / "build")
        if (repo.build / "executed/book").is_dir():
            shutil.copytree(repo.build / "executed/book", work / "build/executed/book")
        made = render.make(repo.root, work / "build", slugs, work / "draft", solutions=False)
        for chapter in made.chapters:
            found = render.versions(repo.root, repo.build, chapter.slug, made)
            given = {kind: found[kind] for kind in FOR_CLASS if kind in found}
            downloads.write(made.html / "downloads", chapter.slug, given)
            for kind, name in FOR_TUTORS.items():
                if kind in found:
                    nbformat.write(found[kind], tutors / name.format(chapter.slug))
            graded = found["solved"].cells if "solved" in found else []
            points = sum(cell.metadata.get("nbgrader", {}).get("points", 0) for cell in graded)
            plans = teaching.plan(chapter, made.lectures[chapter.slug], points)
            (tutors / f"{chapter.slug}-plan.md").write_text(plans, "utf-8")
            if "solved" in found:
                source = nbformat.read(repo.notebook(chapter.slug), as_version=4)
                known = render.known(repo.build, chapter.slug, made)
                sheet = sheets.sheet(chapter.slug, chapter.title, source, found["solved"], known)
                (tutors / f"{chapter.slug}-sheet.md").write_text(sheet, "utf-8")
                tests = tutors / "otter" / chapter.slug
                tests.mkdir(parents=True)
                executed = nbformat.read(repo.executed(chapter.slug), as_version=4)
                for name, text in homework.otter(chapter.slug, source, executed).items():
                    (tests / name).write_text(text, "utf-8")
        made.html.rename(for_class)
        site = render.render(repo.root, slugs).path
        shutil.copytree(site, tutors / "site", ignore=shutil.ignore_patterns("python.js"))  # 8 MB
        return _zipped(for_class, repo.build / "class.zip"), _zipped(tutors, repo.build / "tutors.zip")
    except (downloads.BuildError, render.RenderError) as error:
        raise UserError(str(error)) from None
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _zipped(folder: Path, pack: Path) -> Path:
    """Zip a folder under a temporary name and rename the file when it is complete."""
    return Path(shutil.make_archive(str(folder), "zip", folder.parent, folder.name)).replace(pack)


def _without_solutions(repo: Repo, slug: str, build: Path) -> None:
    """Copy an executed chapter without its solutions and without the output of their checks."""
    notebook = nbformat.read(repo.executed(slug), as_version=4)
    for place in homework.roles(notebook):
        notebook.cells[place].outputs = []
    (build / "executed/notebooks").mkdir(parents=True, exist_ok=True)
    (build / "findings").mkdir(exist_ok=True)
    nbformat.write(downloads.student(notebook), build / f"executed/notebooks/{slug}.ipynb")
    shutil.copy(repo.findings(slug), build / f"findings/{slug}.json")
