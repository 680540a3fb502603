"""The stage: copies of pages and executed chapters, filled in with what is made from data, as Sphinx reads them.

_build/book/{book,notebooks,claims,_static}   the stage, at the same paths as in the repository
_build/extra                                  what is copied into the site as it is
"""

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

from derived.book import written
from derived.book.block import page as block
from derived.book.front import notation, reference, welcome
from derived.book.house import House, UserError
from derived.book.judge import news
from derived.book.judge.ledger import check_columns, entered
from derived.book.page import cells, explorer, opening, pages
from derived.book.page.plain import CARD, ERRATA
from derived.book.site import downloads
from derived.book.site.builder import RenderError
from derived.book.source import edition, evidence, reading, statements
from derived.book.teach import homework, lectures

LEDGER = "book/ledger"  # the page below which the evidence of each chapter stands
STATEMENTS = "statements.json"  # in the stage: what the book's Sphinx extension says of each statement
SHARED = "shared.json"  # in the stage: what a shared link to a page shows
REPORT = 'class="chapter-ledger"'  # the table that a chapter's report() shows in Jupyter
DRAWS = re.compile(r"(show|explorer)\([^\n]*\)")  # the whole of a cell that only shows a figure: its call says nothing
DOWNLOADS = "downloads"  # the branch of the repository on which the workflow puts what the site offers to take away
SVG = "image/svg+xml"
FACTS = ("paper", "claim", "prerequisites", "objectives")
ERRATUM = ("said", "where", "right", "who", "checked")
PAPER_FACTS = ("title", "authors", "bibkey")


def stage(
    root: Path, build: Path, slugs: list[str], solutions: bool = True
) -> tuple[Path, list[pages.Chapter], dict[str, str]]:
    """Copy pages and executed chapters to where Sphinx reads them, filling in what is made from data.

    Returns the folder that Sphinx reads, the chapters, and the names of what they link to. Without ``solutions`` no
    page leads to a notebook that has them.
    """
    for slug in slugs:
        _check_inputs(root, build, slug)
    target = build / "book"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(root / "book", target / "book", ignore=shutil.ignore_patterns("_static"))
    shutil.copytree(root / "book/_static", target / "_static")
    (target / "notebooks").mkdir()
    _stage_toc(target / "book/_toc.yml", slugs)
    extra = _stage_extra(root, build)
    wrong = [fault for slug in slugs for fault in _faults(root, build, slug)]
    if wrong:
        raise RenderError("\n".join(wrong))
    staged = [_stage_chapter(root, build, slug, extra, solutions) for slug in slugs]
    chapters = [chapter for chapter, _ in staged]
    (target / "claims").mkdir()
    said = {chapter.slug: _evidence(root, target, chapter, notebook, extra) for chapter, notebook in staged}
    (target / STATEMENTS).write_text(json.dumps({slug: known for slug, (known, _) in said.items()}), "utf-8")
    made = _whole_book(root, build, target, chapters, extra)
    made["<!-- theorems -->"] = pages.theorems(chapters, [row for _, index in said.values() for row in index])
    _fill_pages(root, target / "book", chapters, made)
    rows = [row for chapter in chapters for row in chapter.rows]
    ledger = json.dumps(rows, indent=1, ensure_ascii=False)
    (build / "extra/downloads/ledger.json").write_text(ledger + "\n", "utf-8")
    return target, chapters, extra


def _check_inputs(root: Path, build: Path, slug: str) -> None:
    if not (root / f"notebooks/{slug}.ipynb").is_file():
        raise RenderError(f"{slug}: book/_toc.yml lists the chapter, but notebooks/{slug}.ipynb is not there")
    if not all((build / part).is_file() for part in (f"executed/notebooks/{slug}.ipynb", f"findings/{slug}.json")):
        raise RenderError(f"{slug}: the chapter has not been executed; run: make site CHAPTERS={slug}")


def _stage_toc(path: Path, slugs: list[str]) -> None:
    """Keep only the chapters of this build."""
    toc = written.read(path, dict[str, Any])
    wanted = {f"notebooks/{slug}" for slug in slugs}
    for part in toc["parts"]:
        keep = [e for e in part["chapters"] if not e["file"].startswith("notebooks/") or e["file"] in wanted]
        part["chapters"] = keep
        for entry in keep:
            if entry["file"] == LEDGER:
                entry["sections"] = [
                    {"file": f"claims/{slug}", "title": f"Evidence, chapter {number}"}
                    for number, slug in enumerate(slugs, start=1)
                ]
    toc["parts"] = [part for part in toc["parts"] if part["chapters"]]
    path.write_text(yaml.safe_dump(toc, sort_keys=False), "utf-8")


def _stage_extra(root: Path, build: Path) -> dict[str, str]:
    """Make what is copied into the site as it is; returns the wheel's name and the addresses of repository and site."""
    extra = build / "extra"
    shutil.rmtree(extra, ignore_errors=True)
    explorer.vendor(extra / "vendor")
    wheel = downloads.build_wheel(root, extra / "downloads")
    settings = written.read(root / "_config.yml", dict[str, Any])
    repository = settings.get("repository") or {}
    url, site = repository.get("url") or "", settings["sphinx"]["config"].get("ogp_site_url") or ""
    addresses = {"url": url.rstrip("/"), "site": site.rstrip("/")}
    return {"wheel": wheel.name, "branch": repository.get("branch") or "main"} | addresses


def _links(slug: str, extra: dict[str, str], *, solutions: bool, homework: bool, slides: bool) -> dict[str, str]:
    """The addresses of what a chapter gives away, empty for what it does not."""
    links = {
        "notebook": f"../downloads/{slug}.ipynb" if solutions else "",
        "student": f"../downloads/{slug}-student.ipynb",
        "homework": f"../downloads/{slug}-homework.ipynb" if homework else "",
        "slides": f"../slides/{slug}" if slides else "",
        "wheel": f"../downloads/{extra['wheel']}",
        "launch": "",
    }
    if extra["url"].startswith("https://github.com/"):
        place = extra["url"].removeprefix("https://github.com/")
        links["launch"] = f"https://colab.research.google.com/github/{place}/blob/{DOWNLOADS}/{slug}-student.ipynb"
    return links


def _stage_chapter(
    root: Path, build: Path, slug: str, extra: dict[str, str], solutions: bool
) -> tuple[pages.Chapter, NotebookNode]:
    """Fill in one executed notebook; returns what the other pages say about it, and the notebook."""
    notebook = nbformat.read(build / f"executed/notebooks/{slug}.ipynb", as_version=4)
    _show_parameters(notebook)
    facts = _facts(notebook, slug)
    finding = json.loads((build / f"findings/{slug}.json").read_text("utf-8"))
    finding["rows"] = entered(House(root), finding["rows"])
    exercises = sum(len(re.findall(r"^[`:]{3,}\{exercise(?:-start)?\}", c.source, re.M)) for c in notebook.cells)
    sections = tuple(heading for cell in notebook.cells for heading in reading.sections(cell))
    source = nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4)
    given = {"homework": bool(homework.roles(source)), "slides": lectures.path(root, slug).is_file()}
    links = _links(slug, extra, solutions=solutions, **given)
    name = f"{welcome.number(root, slug)}. {welcome.heading(source)}"
    chapter = pages.Chapter(slug, facts, finding, exercises, links, reading.minutes(source), sections, name)
    filled = _fill(notebook, CARD, pages.card(chapter))
    if filled != 1:
        raise RenderError(f"{slug}: the line {CARD} must stand in exactly one markdown cell, found {filled}")
    corrections = facts.get("errata", [])
    if _fill(notebook, ERRATA, pages.errata(corrections)) != bool(corrections):
        raise RenderError(f"{slug}: the line {ERRATA} must stand in one markdown cell if the metadata has errata")
    cells.tidy(notebook)
    names, files = (f"explorer-{number}" for number in itertools.count(1)), build / "extra/explorers"
    for position, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code":
            if DRAWS.fullmatch(cell.source):
                cell.metadata["tags"] = [*cell.metadata.get("tags", []), "remove-input"]
            try:
                cell.outputs = [_output(output, cell, finding, names, files) for output in cell.outputs]
            except ValueError as error:
                raise RenderError(f"{slug}: cell {position}: {error}") from error
    opening.arrange(notebook)
    return chapter, notebook


def _faults(root: Path, build: Path, slug: str) -> list[str]:
    """What a chapter of the second edition lacks, one line each."""
    source = nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4)
    rows = json.loads((build / f"findings/{slug}.json").read_text("utf-8"))["rows"]
    check_columns(slug, rows)
    strict = edition.is_strict(source)
    lacking = evidence.faults(source, rows) if strict else []
    return edition.faults(root, slug, source, rows) + [f"{slug}: {fault}" for fault in lacking]


def _evidence(
    root: Path, target: Path, chapter: pages.Chapter, notebook: NotebookNode, extra: dict[str, str]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Write the page of a chapter's evidence, and the staged notebook with what checks, runs and figures lead to.

    Returns what the chapter's page says at its statements, with the claims to which its words link; and the statements
    for the index. Which claims rest on which stands in the source's metadata.
    """
    slug = chapter.slug
    source = nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4)
    whole = {"cells": notebook["cells"], "metadata": source["metadata"]}
    rows, tested = pages.headlines(chapter.rows), statements.tests(root, slug)
    address = f"{extra['url']}/blob/{extra['branch']}/" if extra["url"] else ""
    found = evidence.gather(root, slug, whole, pages.entries_of(chapter.rows), chapter.finding["records"])
    resting = evidence.resting(whole, rows)
    said, index = {}, []
    for each in statements.statements(notebook):
        claims = [row for row in rows if row["id"] in resting.get(each.label, [])]
        said[each.label] = pages.statement(each.whose, each.label, each.check is not None, tested, claims, slug)
        index.append({"slug": slug, "claims": claims, **asdict(each)})
    evidence.mark_cells(slug, notebook["cells"], found)
    nbformat.write(notebook, target / f"notebooks/{slug}.ipynb")
    entry = evidence.bibtex((root / "book/references.bib").read_text("utf-8"), chapter.facts["paper"]["bibkey"])
    named = {test for each in found for test in each.tests}.union(*(tested.get(each, []) for each in said))
    shown = statements.texts(root, slug, named)
    text = pages.evidence(chapter, found, statements.proved(notebook["cells"]), shown, entry, address)
    (target / f"claims/{slug}.md").write_text(text, "utf-8")
    return {"statements": said, "claims": [row["id"] for row in rows]}, index


def _show_parameters(notebook: NotebookNode) -> None:
    """Let the parameters cell show the values of this run, and drop the cell with which papermill set them."""
    tagged = {tag: cell for cell in notebook.cells for tag in cell.metadata.get("tags", [])}
    injected, parameters = tagged.get("injected-parameters"), tagged.get("parameters")
    if injected is not None:
        notebook.cells.remove(injected)
        if parameters is not None:
            parameters.source = injected.source.removeprefix("# Parameters\n").rstrip()


def _facts(notebook: NotebookNode, slug: str) -> dict[str, Any]:
    """The static facts of a chapter's card, from the notebook's own metadata."""
    facts = notebook.metadata.get("derived") or {}
    missing = [name for name in FACTS if name not in facts]
    missing += [f"paper.{name}" for name in PAPER_FACTS if not facts.get("paper", {}).get(name)]
    missing += [
        f"errata[{place}].{name}"
        for place, entry in enumerate(facts.get("errata", []))
        for name in ERRATUM
        if not entry.get(name)
    ]
    if missing:
        raise RenderError(f'{slug}: the notebook\'s metadata "derived" lacks {", ".join(missing)}')
    return facts


def _fill(notebook: NotebookNode, placeholder: str, fragment: str) -> int:
    """Put a fragment in place of its line; returns how many such lines there were."""
    filled = 0
    for cell in notebook.cells:
        lines = [line.rstrip() for line in cell.source.splitlines()]
        if cell.cell_type == "markdown" and placeholder in lines:
            filled += lines.count(placeholder)
            cell.source = "\n".join(fragment if line == placeholder else line for line in lines)
    return filled


def _output(
    output: NotebookNode, cell: NotebookNode, finding: pages.Finding, names: Iterator[str], files: Path
) -> NotebookNode:
    """An output as the site shows it; a figure's alt text and provenance go to its cell, where MyST-NB looks, and what
    explorers load to the folder ``files``."""
    data = output.get("data", {})
    if explorer.PLOTLY in data:
        name = next(names)
        file = files / f"{finding['chapter']}-{name}"
        return nbformat.from_dict(explorer.replace(output, "../vendor/plotly.min.js", name, file))
    if REPORT in data.get("text/html", ""):
        output["data"] = {"text/html": pages.chapter_ledger(finding)}
    if SVG in data:
        from derived.book.page import pictures  # loads matplotlib, which a book that has not changed does without

        data[SVG] = pictures.light(data[SVG])
    for kind in (SVG, "image/png"):
        about = output.get("metadata", {}).get(kind, {})
        if kind in data and about.get("alt"):
            settings = cell.metadata.setdefault("mystnb", {})
            settings.setdefault("image", {})["alt"] = " ".join(about["alt"].split())
            if about.get("provenance") and settings.get("figure", {}).get("caption"):
                provenance = re.sub(r"([\[\]*_`$\\])", r"\\\1", about["provenance"])
                settings["figure"]["caption"] += f" [{provenance}]{{.provenance}}"
    return output


def _whole_book(
    root: Path, build: Path, target: Path, chapters: list[pages.Chapter], extra: dict[str, str]
) -> dict[str, str]:
    """The fragments of the pages that are about the whole book. Pictures go to the site, words for shared
    links to the stage."""
    executed = {c.slug: nbformat.read(build / f"executed/notebooks/{c.slug}.ipynb", as_version=4) for c in chapters}
    try:
        found = welcome.cards(root, chapters, executed)
    except UserError as error:
        raise RenderError(str(error)) from error
    for card in found:
        if card.picture:
            welcome.draw(card, build / "extra" / welcome.FOLDER)
    (target / SHARED).write_text(json.dumps(welcome.shared(found)), "utf-8")
    one_block = {}
    if (target / "book/one_block.md").is_file():
        one_block = block.fragments(build, {card.chapter.slug: (card.number, card.heading) for card in found})
    symbols = [(card.number, card.heading, notation.table(executed[card.chapter.slug])) for card in found]
    told = news.entries(root, chapters)
    return one_block | {
        "<!-- sphere -->": welcome.sphere(root, executed),
        "<!-- cards -->": welcome.shelf(found),
        "<!-- paths -->": welcome.paths(root, found),
        "<!-- news -->": news.latest(told),
        "<!-- verdicts -->": news.verdicts(told),
        "<!-- glossary -->": notation.glossary(root, executed),
        "<!-- letters -->": notation.shared(symbols),
        "<!-- notation -->": notation.notation(symbols),
    }


def _fill_pages(root: Path, folder: Path, chapters: list[pages.Chapter], made: dict[str, str]) -> None:
    """Put generated fragments in place of their placeholder lines, those that are already made among them."""
    fragments = made | {
        "<!-- totals -->": pages.totals(chapters),
        "<!-- ledger -->": pages.ledger(chapters),
        "<!-- status -->": pages.status(chapters),
        "<!-- history -->": news.history(chapters),
        "<!-- course -->": pages.course(chapters),
        "<!-- package -->": reference.page(root, [(chapter.slug, chapter.name) for chapter in chapters]),
    }
    for path in folder.glob("*.md"):
        lines = path.read_text("utf-8").splitlines()
        path.write_text("\n".join(fragments.get(line, line) for line in lines) + "\n", "utf-8")
