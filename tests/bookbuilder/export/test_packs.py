"""The packs of a course, from a small book: nothing of a solution in the one, all of it in the other."""

import io
import json
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from test_render import FINDING, write_book

from bookbuilder.chapter_pages.plain import Known, Place
from bookbuilder.export import packs
from bookbuilder.paths import Repo, UserError
from bookbuilder.sphinx_site import render
from bookbuilder.teach import sheets

SECRETS = ("projector is its rank", "trace_of_A = 4321", "4321", "as it should")


@pytest.fixture(scope="module")
def repo(tmp_path_factory) -> Repo:
    """The toy book with an answer, its solution as text and as code, and a check that says more than "right"."""
    root = write_book(tmp_path_factory.mktemp("book"))
    for name in ("_build/executed/notebooks/toy.ipynb", "notebooks/toy.ipynb"):
        notebook = nbformat.read(root / name, as_version=4)
        place = next(at for at, cell in enumerate(notebook.cells) if "# the check" in cell.source)
        said = [new_output("stream", name="stdout", text="right, as it should\n")]
        check = new_code_cell("print(trace_of_A)", id="check", outputs=said if "executed" in name else [])
        solution = new_code_cell("trace_of_A = 4321", metadata={"tags": ["solution", "hide-cell"]}, id="solution")
        notebook.cells[place : place + 1] = [solution, check]
        notebook.cells.insert(place - 1, new_code_cell("trace_of_A = ...", id="stub"))
        nbformat.write(notebook, root / name)
    (root / "_build/findings/toy.json").write_text(json.dumps(FINDING), "utf-8")
    (root / "_build/.teach").mkdir()  # as of a command that was killed
    for name in ("class.zip", "tutors.zip", ".teach/draft"):
        (root / "_build" / name).write_text("old")
    packs.packs(Repo(root), ["toy"])
    return Repo(root)


def held(pack: Path | io.BytesIO) -> dict[str, str]:
    """The files of a zip by name, as text; those of a wheel or another zip in it too, with its name before theirs."""
    with zipfile.ZipFile(pack) as opened:
        content = {name: opened.read(name) for name in opened.namelist()}
    inner = {name: held(io.BytesIO(raw)) for name, raw in content.items() if name.endswith((".whl", ".zip"))}
    found = {name: raw.decode("utf-8", "replace") for name, raw in content.items() if name not in inner}
    return found | {f"{pack}/{name}": text for pack, files in inner.items() for name, text in files.items()}


def test_the_class_gets_a_whole_site_without_a_solution_in_any_file(repo):
    files = held(repo.build / "class.zip")
    assert {"class/index.html", "class/slides/toy-90.html", "class/search/index.js"} <= set(files)
    assert {f"class/downloads/toy-{kind}.ipynb" for kind in ("student", "homework")} <= set(files)
    assert {name.split("/")[0] for name in files} == {"class"}
    assert [(name, secret) for name, text in files.items() for secret in SECRETS if secret in text] == []
    assert "projector" not in files["class/search/index.js"]
    assert "Rank first." not in " ".join(files.values())
    assert "class/downloads/toy-student.zip/toy-student.ipynb" in files
    assert "downloads/toy.zip" not in files["class/notebooks/toy.html"]


def test_the_site_itself_has_what_the_class_must_not_see(repo):
    """What the test above looks for is there to be found."""
    site = render.render(repo.root, ["toy"]).path
    page = (site / "notebooks/toy.html").read_text("utf-8")
    assert "projector is its rank" in page
    assert "as it should" in page
    assert "4321" in (site / "downloads/toy.ipynb").read_text("utf-8")
    assert "4321" in held(site / "downloads/toy.zip")["toy.ipynb"]
    assert 'downloads/toy.zip"' in page
    assert {path.name for path in (site / "downloads").glob("*.ipynb")} == {
        "toy.ipynb",
        "toy-student.ipynb",
        "toy-homework.ipynb",
    }


def test_tutors_get_solutions_homework_and_a_plan(repo):
    files = held(repo.build / "tutors.zip")
    assert "trace_of_A = 4321" in files["tutors/toy.ipynb"]
    assert "### BEGIN SOLUTION\\ntrace_of_A = 4321" in files["tutors/toy-homework.ipynb"].replace('\\n",\n    "', "\\n")
    assert "Rank first." in files["tutors/site/slides/toy-90.html"]
    assert "trace_of_A" in files["tutors/otter/toy/toy-exercise-check1.py"]
    plan = files["tutors/toy-plan.md"]
    assert "| 20 | 30 | Theorem 1.1 (Attention is a projection) | 4 | core | prove | Rank first. |" in plan
    assert "| 0 | 20 | Fig. 1.1 | 3 | optional |  |  |" in plan
    assert "The homework has 1 point: the sheet says for what." in plan


def test_tutors_get_a_sheet_of_points_rubrics_and_common_mistakes(repo):
    """The toy has no exercises.py; the mistakes are those of a paper that has one."""
    assert "# Tutor's sheet: " in held(repo.build / "tutors.zip")["tutors/toy-sheet.md"]
    cells = [
        new_markdown_cell(
            "## Exercises\n\n```{exercise} Rule\n:label: cac-ex-rule\n\n*Implement, 15 minutes, easy, core.* Write "
            "it.\n```\n\n```{admonition} A nudge\n:class: hint dropdown\n\nSee {prf:ref}`cac-ex-hand`.\n```"
        ),
        new_markdown_cell("```{solution} cac-ex-rule\nAs here.\n```", metadata={"tags": ["solution"]}),
    ]
    cells += [
        new_markdown_cell(
            "```{exercise} Hand\n:label: cac-ex-hand\n\n*Derive, 10 minutes, easy, extra.* Find two.\n```"
        ),
        new_markdown_cell(
            "```{solution} cac-ex-hand\nSo.\n\n- 1 point: says why.\n```", metadata={"tags": ["solution"]}
        ),
    ]
    points = {"cac-ex-rule-check1": 3, "cac-ex-hand-words": 1, "cac-ex-hand-check1": 2}
    graded = new_notebook(
        cells=[
            new_code_cell("", metadata={"nbgrader": {"grade": True, "grade_id": name, "points": some}})
            for name, some in points.items()
        ]
    )
    places = {"cac-ex-rule": "Exercise 5.5", "cac-ex-hand": "Exercise 5.1"}
    known = Known("cactus", {label: Place(words, "page", "anchor") for label, words in places.items()}, {}, {})
    sheet = sheets.sheet("cactus", "Cactus", new_notebook(cells=cells), graded, known)
    head = "| exercise | kind | minutes | difficulty | importance | points |\n|---|---|---|---|---|---|\n"
    assert head + "| Exercise 5.5 | Implement | 15 | easy | core | 3 |\n" in sheet
    assert "| Exercise 5.1 | Derive | 10 | easy | extra | 3 (1 for each of 2 answers, 1 for words) |" in sheet
    assert re.search(r"^- delta under no root: `not right: at q_n = \S+, delta = .*2 delta", sheet, re.M)
    assert "*A nudge.* See Exercise 5.1." in sheet
    assert "**Solution to Exercise 5.5.** As here." in sheet
    assert "\n- (b) it is not normalised: `not right: yours is (0.25, 0, 0.25)`" in sheet


def test_nothing_else_is_left(repo):
    """The fixture's packs have replaced others, which no other test could open."""
    left = {path.name for path in repo.build.iterdir()}
    assert {"class.zip", "tutors.zip"} < left
    assert not [name for name in left if name.startswith(".")]


@pytest.fixture
def told(repo, monkeypatch) -> Callable[[], list[str]]:
    """What the command says of a site with one chapter, whose packs are there."""
    monkeypatch.setattr(packs, "packs", lambda *_: (Path("class.zip"), Path("tutors.zip")))
    for name in ("index.html", "notebooks/toy.html"):
        (repo.site / name).parent.mkdir(parents=True, exist_ok=True)
        (repo.site / name).touch()
    return lambda: [*packs.teach(repo)]


def test_the_command_makes_figures_of_every_chapter_of_the_site_too(repo, told, monkeypatch):
    monkeypatch.setattr(Repo, "chapters", lambda repo: ["toy", "not_built_yet"])
    monkeypatch.setattr(packs.figures, "figures", lambda site, slugs, pack: pack)
    assert told()[2:] == [f"made {repo.build}/figures.zip: SVG, PDF and credits"]


def test_without_a_browser_the_packs_are_made_and_a_line_says_what_is_not(told, monkeypatch):
    def none(*_):
        raise UserError("there is no Chromium")

    monkeypatch.setattr(packs.figures, "figures", none)
    assert told()[-1] == "no figures.zip: there is no Chromium"
