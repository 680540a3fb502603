"""Decks and zips of a small book: Markdown becomes slides, and nothing of a solution goes to the class."""

import shutil
import zipfile
from pathlib import Path

from bs4 import BeautifulSoup
from test_render import SLIDES, page

from bookbuilder.chapter_pages import plain
from bookbuilder.export import figures
from bookbuilder.paths import Repo
from bookbuilder.teach import decks, zips


def test_a_deck_shows_figures_numbers_and_explorers_and_keeps_its_markdown(book):
    text = BeautifulSoup(page(book, "teach/toy/slides.html"), "html.parser").textarea.get_text()
    assert "# Toys ★\n\n![A figure](toy-figure.svg)\n\nNote:\nRank first, by Theorem 1.1." in text
    assert "$a<b$ & it's live" in text
    assert '<iframe data-src="explorer-1.html" title="An explorer"></iframe>' in text
    assert "& it's live" not in page(book, "teach/toy/slides.html"), "an ampersand is escaped"
    folder = book / "_build/html/teach/toy"
    assert "var(" not in (folder / "toy-figure.svg").read_text("utf-8")
    box = BeautifulSoup((folder / "explorer-1.html").read_text("utf-8"), "html.parser").select_one(".explorer")
    assert (folder / box["data-figure"]).is_file()
    assert (folder / box["data-plotly"]).is_file()
    assert (folder / "../reveal/LICENSE").read_text("utf-8").startswith("Copyright (C)")


def test_pandoc_gets_notes_and_the_plan_is_a_page(book):
    text = page(book, "teach/toy/slides.md")
    assert text.startswith(
        "# Toys\n\n![A figure](toy-figure){height=60%}\n\n::: notes\nRank first, by Theorem 1.1.\n:::\n"
    )
    assert "[An explorer](explorer-1.html)" in text, "pandoc shows no page in a slide"
    assert "Theorem 1.1" in BeautifulSoup(page(book, "book/teach/toy/plan.html"), "html.parser").article.get_text()
    assert 'href="../teach/toy/slides.html"' in page(book, "notebooks/toy.html")


def test_a_missing_figure_or_label_is_a_fault_in_one_line(book, tmp_path):
    html = shutil.copytree(book / "_build/html", tmp_path / "html", ignore=shutil.ignore_patterns("teach", "vendor"))
    built = BeautifulSoup(page(book, "notebooks/toy.html"), "html.parser")
    known = plain.Known("toy", plain.places(built, "notebooks/toy.html"), {}, {})
    (tmp_path / "book/teach/toy").mkdir(parents=True)
    for wrong, fault in (
        ("toy-figure", "slides.md shows toy-figur, which is no figure or explorer of the chapter and no toy-figur.svg"),
        ("toy-theorem", "toy: its text refers to toy-theore, which is not among the places of the site"),
    ):
        (tmp_path / "book/teach/toy/slides.md").write_text(SLIDES.replace(wrong, wrong[:-1]), "utf-8")
        (found,) = decks.write(tmp_path, html, {"toy": decks.Taught(built, known, [])})
        assert found.startswith(f"book/teach/toy: {fault}")
        assert "\n" not in found
        shutil.rmtree(html / "teach")


def held(pack: Path) -> dict[str, str]:
    with zipfile.ZipFile(pack) as opened:
        return {name: opened.read(name).decode("utf-8", "replace") for name in opened.namelist()}


def test_the_class_gets_no_solution_and_no_note_and_the_tutors_both(book, monkeypatch):
    monkeypatch.setattr(figures, "printed", lambda drawings: ({".pdf": b"printed"} for _ in drawings))
    lines = list(zips.teach(Repo(book)))
    assert lines[0] == "printing 1 figures as PDF and PNG"
    for_class, tutors = held(book / "_build/class.zip"), held(book / "_build/tutors.zip")
    assert [name for name, text in for_class.items() if "projector is its rank" in text or "Rank first" in text] == []
    assert "projector is its rank" in tutors["tutors/downloads/toy.ipynb"]
    assert "Rank first" in tutors["tutors/teach/toy/slides.html"]
    assert tutors["tutors/teach/toy/plan.md"] == "# Plan: Toys\n\nProve Theorem 1.1.\n"
    shared = {"README.md", "CREDITS.md", "teach/toy/slides.html", "teach/toy/slides.md", "teach/toy/toy-figure.pdf"}
    shared |= {"teach/reveal/reveal.js", "_static/mathjax/tex-chtml.js", "_static/explorer.js", "vendor/plotly.min.js"}
    assert {f"class/{name}" for name in shared | {"downloads/toy-student.ipynb"}} <= set(for_class)
    assert {f"tutors/{name}" for name in shared} <= set(tutors)
