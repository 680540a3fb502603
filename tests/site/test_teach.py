"""What `make teach` makes: no line of a solution is in the pages and notebooks of the class pack; figures."""

import io
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from bookbuilder.export import figures
from bookbuilder.sphinx_site.downloads import student

ROOT = Path(__file__).parents[2]
FORMULA, WORDS = 12, 30  # characters of a piece that does not stand elsewhere by chance
MARKS = re.compile(r"\$+|\{[a-z:]+\}`[^`]*`|[*`]+|^[ \t]*[-:] ?|^\d+\.", re.M)  # where a line is cut into pieces


def pieces(cell: nbformat.NotebookNode) -> set[str]:
    """The lines of code of a cell but for the heads of its blocks, which say nothing alone, or its words and formulas
    without what is written otherwise on a page or in plain Markdown."""
    lines = [line for line in cell.source.splitlines() if not line.startswith(("```", ":"))]
    is_code = cell.cell_type == "code"
    cut = [[line] if is_code else MARKS.split(line) for line in lines if not (is_code and line.endswith(":"))]
    parts = (" ".join(part.split()) for line in cut for part in line)
    return {part for part in parts if len(part) >= (FORMULA if re.search(r"[\\=_^(]", part) else WORDS)}


def texts(pack: Path) -> Iterator[tuple[str, str]]:
    """The files of a zip but for the package: of a page or notebook what a reader sees, any other as it is."""
    with zipfile.ZipFile(pack) as opened:
        for name in opened.namelist():
            raw = opened.read(name)
            if name.endswith(".whl"):  # its exercises.py has the answers that the checks compare with
                continue
            if name.endswith(".ipynb"):
                yield name, "\n".join(cell.source for cell in nbformat.reads(raw.decode(), as_version=4).cells)
            elif name.endswith(".html"):
                yield name, BeautifulSoup(raw, "html.parser").get_text()
            else:
                yield name, raw.decode("utf-8", "replace")


def secrets() -> dict[str, set[str]]:
    """The pieces of each chapter's solutions that stand nowhere else in chapters or statements of the ledger."""
    found, shown = {}, [row["statement"] for row in json.loads((ROOT / "results/ledger.json").read_text("utf-8"))]
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        solutions = [cell for cell in notebook.cells if "solution" in cell.metadata.get("tags", [])]
        found[path.stem] = {piece for cell in solutions for piece in pieces(cell)}
        left = student(notebook).cells
        shown += [cell.source for cell in left]
        shown += [cell.metadata.get("mystnb", {}).get("figure", {}).get("caption", "") for cell in left]
    public = " ".join(" ".join(shown).split())
    return {slug: {piece for piece in held if piece not in public} for slug, held in found.items()}


PACKS = """from pathlib import Path
from bookbuilder.export.packs import packs
from bookbuilder.paths import Repo
repo = Repo(Path.cwd())
packs(repo, repo.chapters())"""


def test_no_line_of_a_solution_is_in_the_class_pack_and_every_one_in_the_tutors_pack(site):
    known = secrets()
    assert all(len(held) > 10 for held in known.values()), "a chapter seems to have no solutions"
    subprocess.run([sys.executable, "-c", PACKS], cwd=ROOT, check=True)
    there = {name: " ".join(text.split()) for name, text in texts(ROOT / "_build/class.zip")}
    assert len([name for name in there if name.endswith("-homework.ipynb")]) == len(known)
    leaks = [(n, s, piece) for n, text in there.items() for s, held in known.items() for piece in held if piece in text]
    assert [leak for leak in leaks if not re.fullmatch(r"[\w.]+", leak[2])] == []  # a name of the package is no secret
    tutors = {name: " ".join(text.split()) for name, text in texts(ROOT / "_build/tutors.zip")}
    lost = {
        (slug, piece) for slug, held in known.items() for piece in held if piece not in tutors[f"tutors/{slug}.ipynb"]
    }
    assert lost == set()


def apart(function: Callable[[], Any]) -> Any:
    """Call it in a thread of its own: where other tests drive a browser, the main one has a loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_every_figure_is_in_the_zip_as_svg_and_pdf_with_a_credit(chapters, site, tmp_path):
    slugs = [page.file.stem for page in chapters][:2]
    pack = apart(lambda: figures.figures(site, slugs, tmp_path / "figures.zip"))
    drawn = [each.name for each in figures.found(site, slugs)]
    assert len(drawn) >= 10
    with zipfile.ZipFile(pack) as opened:
        files = {name: opened.read(name) for name in opened.namelist()}
    assert {*files} == {f"figures/{name}.{kind}" for name in drawn for kind in ("svg", "pdf")} | {"figures/CREDITS.md"}
    credits = files["figures/CREDITS.md"].decode()
    for name in drawn:
        svg, printed = files[f"figures/{name}.svg"].decode(), PdfReader(io.BytesIO(files[f"figures/{name}.pdf"]))
        assert "var(" not in svg
        assert f"`{name}`: Fig. " in credits
        assert len(printed.pages) == 1
        width, height = figures.size(svg)
        assert (float(printed.pages[0].mediabox.width), float(printed.pages[0].mediabox.height)) == pytest.approx(
            (width, height), abs=2
        )


def test_each_slide_and_each_figure_can_be_cited(chapters, site):
    for page in chapters:
        for deck in (site / "slides").glob(f"{page.file.stem}-*.html"):
            text = deck.read_text("utf-8")
            assert text.count('<section class="slide') == text.count('class="credit"') > 10, deck.name
    assert "copy citation" in (site / "_static/page.js").read_text("utf-8")
