"""From executed notebooks to the site: stage copies, let Sphinx build them beside the old site, then swap.

    _build/book/{book,notebooks,_static}    the stage: what Sphinx reads, at the same paths as in the repository
    _build/sites/<n>                        finished sites; usually one
    _build/html -> sites/<n>                what people open, replaced in one step

The build starts from nothing every time, because an incremental one forgets the warnings of unchanged pages. Whatever
goes wrong, or whenever the process is killed, `_build/html` still shows the last good site.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import yaml
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from derived.book import cells, downloads, edition, explorer, homework, pages, reading, reference, slides, statements
from derived.book.builder import RenderError, build_html
from derived.book.house import House, UserError
from derived.book.ledger import check_columns
from derived.book.plain import CARD, ERRATA, Known, Place, Work, places, values, works

KEY_FILE = "site-key.txt"
STATEMENTS = "statements.json"  # in the stage: what the book's Sphinx extension says of each statement
REPORT = 'class="chapter-ledger"'  # the table that a chapter's report() shows in Jupyter
DRAWS = re.compile(r"(show|explorer)\([^\n]*\)")  # the whole of a cell that only shows a figure: its call says nothing
DOWNLOADS = "downloads"  # the branch of the repository on which the workflow puts what the site offers to take away
FACTS = ("paper", "claim", "prerequisites", "objectives")
ERRATUM = ("said", "where", "right", "who", "checked")
PAPER_FACTS = ("title", "authors", "bibkey")
# Inputs of the site besides executed notebooks and findings; the wheel holds all of src/derived.
SOURCES = (
    "book",
    "_config.yml",
    "results",
    "src/derived",
    "notebooks",
    "tests/papers",
    "pyproject.toml",
    "requirements.lock",
)


@dataclass(frozen=True)
class Site:
    """A finished site, and whether this call had to build it."""

    path: Path
    built: bool


def site_key(root: Path, build: Path, slugs: list[str]) -> str:
    """A hash of everything that the site is made from."""
    made = [build / part for slug in slugs for part in (f"executed/notebooks/{slug}.ipynb", f"findings/{slug}.json")]
    files = [path for name in SOURCES for path in _files(root / name)] + [path for path in made if path.is_file()]
    digest = hashlib.sha256(" ".join([sys.version, *slugs]).encode())
    for path in files:
        digest.update(f"\n{path.relative_to(root if path.is_relative_to(root) else build)} ".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    hidden = ("__pycache__", ".ipynb_checkpoints")
    return sorted(p for p in path.rglob("*") if p.is_file() and not any(part in hidden for part in p.parts))


# Stage --------------------------------------------------------------------------------------------------------------


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
    chapters = [_stage_chapter(root, build, slug, extra, solutions) for slug in slugs]
    (target / STATEMENTS).write_text(
        json.dumps({c.slug: _statements(root, target, c, extra) for c in chapters}), "utf-8"
    )
    _fill_pages(root, target / "book", chapters)
    rows = [row for chapter in chapters for row in chapter.rows]
    ledger = json.dumps(rows, indent=1, ensure_ascii=False)
    (build / "extra/downloads/ledger.json").write_text(ledger + "\n", "utf-8")
    return target, chapters, extra


def _check_inputs(root: Path, build: Path, slug: str) -> None:
    if not (root / f"notebooks/{slug}.ipynb").is_file():
        raise RenderError(f"{slug}: book/_toc.yml lists the chapter, but notebooks/{slug}.ipynb is not there")
    if not all((build / part).is_file() for part in (f"executed/notebooks/{slug}.ipynb", f"findings/{slug}.json")):
        raise RenderError(f"{slug}: the chapter has not been executed; run: make site CHAPTERS={slug}")


def _read_yaml(path: Path) -> dict[str, Any]:
    try:
        return yaml.safe_load(path.read_text("utf-8"))
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise RenderError(f"{path.name}{line}: {error.problem}") from error


def _stage_toc(path: Path, slugs: list[str]) -> None:
    """Keep only the chapters of this build."""
    toc = _read_yaml(path)
    wanted = {f"notebooks/{slug}" for slug in slugs}
    for part in toc["parts"]:
        keep = [e for e in part["chapters"] if not e["file"].startswith("notebooks/") or e["file"] in wanted]
        part["chapters"] = keep
    toc["parts"] = [part for part in toc["parts"] if part["chapters"]]
    path.write_text(yaml.safe_dump(toc, sort_keys=False), "utf-8")


def _stage_extra(root: Path, build: Path) -> dict[str, str]:
    """Make what is copied into the site as it is; returns the wheel's name and the addresses of repository and site."""
    extra = build / "extra"
    shutil.rmtree(extra, ignore_errors=True)
    explorer.vendor(extra / "vendor")
    wheel = downloads.build_wheel(root, extra / "downloads")
    settings = _read_yaml(root / "_config.yml")
    repository = settings.get("repository") or {}
    url, site = repository.get("url") or "", settings["sphinx"]["config"].get("ogp_site_url") or ""
    addresses = {"url": url.rstrip("/"), "site": site.rstrip("/")}
    return {"wheel": wheel.name, "branch": repository.get("branch") or "main"} | addresses


def _links(slug: str, extra: dict[str, str], *, solutions: bool, homework: bool) -> dict[str, str]:
    """The addresses of what a chapter gives away, empty for what it does not."""
    links = {
        "notebook": f"../downloads/{slug}.ipynb" if solutions else "",
        "student": f"../downloads/{slug}-student.ipynb",
        "homework": f"../downloads/{slug}-homework.ipynb" if homework else "",
        "wheel": f"../downloads/{extra['wheel']}",
        "launch": "",
    }
    if extra["url"].startswith("https://github.com/"):
        place = extra["url"].removeprefix("https://github.com/")
        links["launch"] = f"https://colab.research.google.com/github/{place}/blob/{DOWNLOADS}/{slug}-student.ipynb"
    return links


def _stage_chapter(root: Path, build: Path, slug: str, extra: dict[str, str], solutions: bool) -> pages.Chapter:
    """Stage one executed notebook; returns what the other pages say about it."""
    notebook = nbformat.read(build / f"executed/notebooks/{slug}.ipynb", as_version=4)
    _show_parameters(notebook)
    facts = _facts(notebook, slug)
    finding = json.loads((build / f"findings/{slug}.json").read_text("utf-8"))
    exercises = sum(len(re.findall(r"^[`:]{3,}\{exercise(?:-start)?\}", c.source, re.M)) for c in notebook.cells)
    sections = tuple(heading for cell in notebook.cells for heading in reading.sections(cell))
    source = nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4)
    links = _links(slug, extra, solutions=solutions, homework=bool(homework.roles(source)))
    chapter = pages.Chapter(slug, facts, finding, exercises, links, reading.minutes(source), sections)
    filled = _fill(notebook, CARD, pages.card(chapter))
    if filled != 1:
        raise RenderError(f"{slug}: the line {CARD} must stand in exactly one markdown cell, found {filled}")
    corrections = facts.get("errata", [])
    if _fill(notebook, ERRATA, pages.errata(corrections)) != bool(corrections):
        raise RenderError(f"{slug}: the line {ERRATA} must stand in one markdown cell if the metadata has errata")
    cells.tidy(notebook)
    for position, cell in enumerate(notebook.cells, start=1):
        if cell.cell_type == "code":
            if DRAWS.fullmatch(cell.source):
                cell.metadata["tags"] = [*cell.metadata.get("tags", []), "remove-input"]
            try:
                cell.outputs = [_output(output, cell, finding) for output in cell.outputs]
            except ValueError as error:
                raise RenderError(f"{slug}: cell {position}: {error}") from error
    nbformat.write(notebook, build / f"book/notebooks/{slug}.ipynb")
    return chapter


def _faults(root: Path, build: Path, slug: str) -> list[str]:
    """What a chapter of the second edition lacks, one line each."""
    source = nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4)
    rows = json.loads((build / f"findings/{slug}.json").read_text("utf-8"))["rows"]
    check_columns(slug, rows)
    return edition.faults(root, slug, source, rows)


def _statements(root: Path, target: Path, chapter: pages.Chapter, extra: dict[str, str]) -> dict[str, Any]:
    """What the page says at each statement of a chapter, and the chapter's claims, to which its words link.

    The check cells are named in the metadata of the staged notebook.
    """
    path = target / f"notebooks/{chapter.slug}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    headlines, tested = pages.headlines(chapter.rows), statements.tests(root, chapter.slug)
    source = f"{extra['url']}/blob/{extra['branch']}/" if extra["url"] else ""
    said = {}
    for each in statements.statements(notebook):
        proved = [row for row in headlines if row["proof"] and row["proof"] == each.label]
        said[each.label] = pages.statement(each.whose, each.label, each.check is not None, tested, proved, source)
        if each.check is not None:
            notebook.cells[each.check].metadata.setdefault("derived_anchors", []).append(f"check-{each.label}")
    nbformat.write(notebook, path)
    return {"statements": said, "claims": [row["id"] for row in headlines]}


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


def _output(output: NotebookNode, cell: NotebookNode, finding: pages.Finding) -> NotebookNode:
    """An output as the site shows it; a figure's alt text and provenance go to its cell, where MyST-NB looks."""
    data = output.get("data", {})
    if explorer.PLOTLY in data:
        return nbformat.from_dict(explorer.replace(output, "../vendor/plotly.min.js"))
    if REPORT in data.get("text/html", ""):
        output["data"] = {"text/html": pages.chapter_ledger(finding)}
    for kind in ("image/svg+xml", "image/png"):
        about = output.get("metadata", {}).get(kind, {})
        if kind in data and about.get("alt"):
            settings = cell.metadata.setdefault("mystnb", {})
            settings.setdefault("image", {})["alt"] = " ".join(about["alt"].split())
            if about.get("provenance") and settings.get("figure", {}).get("caption"):
                provenance = re.sub(r"([\[\]*_`$\\])", r"\\\1", about["provenance"])
                settings["figure"]["caption"] += f" [{provenance}]{{.provenance}}"
    return output


def _fill_pages(root: Path, folder: Path, chapters: list[pages.Chapter]) -> None:
    """Put generated fragments in place of their placeholder lines."""
    fragments = {
        "<!-- totals -->": pages.totals(chapters),
        "<!-- ledger -->": pages.ledger(chapters),
        "<!-- status -->": pages.status(chapters),
        "<!-- history -->": pages.history(chapters),
        "<!-- course -->": pages.course(chapters),
        "<!-- package -->": reference.page(root, [(chapter.slug, chapter.title) for chapter in chapters]),
    }
    for path in folder.glob("*.md"):
        lines = path.read_text("utf-8").splitlines()
        path.write_text("\n".join(fragments.get(line, line) for line in lines) + "\n", "utf-8")


# Make -----------------------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """A site before its notebooks are put into it, and what they need: labels, bibliography, addresses."""

    html: Path
    chapters: list[pages.Chapter]
    places: dict[str, Place]
    works: dict[str, Work]
    extra: dict[str, str]


def make(root: Path, build: Path, slugs: list[str], draft: Path, solutions: bool = True) -> Made:
    """Build pages and slides in the folder ``draft`` from the executed chapters in ``build``."""
    staged, chapters, extra = stage(root, build, slugs, solutions)
    html = build_html(root, staged, draft)
    shutil.copytree(build / "extra", html, dirs_exist_ok=True)
    found = {}
    for chapter in chapters:
        name = f"notebooks/{chapter.slug}.html"
        page = BeautifulSoup((html / name).read_text("utf-8"), "html.parser")
        found |= places(page, name)
        slides.write(html, chapter, page)
    return Made(html, chapters, found, works(root / "book/references.bib"), extra)


def known(build: Path, slug: str, made: Made) -> Known:
    """What the text of a chapter refers to."""
    executed = nbformat.read(build / f"executed/notebooks/{slug}.ipynb", as_version=4)
    return Known(slug, made.places, made.works, values(executed), made.extra["site"])


def versions(root: Path, build: Path, slug: str, made: Made) -> dict[str, NotebookNode]:
    """What a chapter gives away, by its kind (downloads.versions)."""
    source = nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4)
    executed = nbformat.read(build / f"executed/notebooks/{slug}.ipynb", as_version=4)
    command = downloads.install_command(made.extra["url"], made.extra["wheel"])
    return downloads.versions(source, executed, command, known(build, slug, made))


# Swap ---------------------------------------------------------------------------------------------------------------


def swap(build: Path, site: Path) -> Path:
    """Make `html` point at a finished site in one step, then remove the old ones."""
    link, fresh = build / "html", build / f".html-{os.getpid()}"
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(site.relative_to(build))
    if link.is_dir() and not link.is_symlink():  # a folder from elsewhere cannot be replaced in one step
        link.rename(site.with_name(f"{site.name}.old"))
    os.replace(fresh, link)
    for other in site.parent.iterdir():
        if other != site:
            shutil.rmtree(other, ignore_errors=True)
    return link


def _next_place(sites: Path) -> Path:
    """A number that no finished site has, after removing what a killed build left."""
    sites.mkdir(parents=True, exist_ok=True)
    for leftover in sites.glob("*.tmp"):
        shutil.rmtree(leftover, ignore_errors=True)
    return sites / str(1 + max((int(path.name) for path in sites.iterdir() if path.name.isdigit()), default=0))


def render(root: Path, slugs: list[str] | None = None, *, force: bool = False) -> Site:
    """Build the site of these chapters (all of the book's), unless nothing has changed since the last time.

    RenderError has one line per cause.
    """
    root = root.resolve()
    build = root / "_build"
    slugs = House(root).chapters() if slugs is None else slugs
    key = site_key(root, build, slugs)
    with contextlib.suppress(OSError):
        if not force and (build / "html" / KEY_FILE).read_text("utf-8") == key:
            return Site(build / "html", False)
    site = _next_place(build / "sites")
    draft = site.with_name(f"{site.name}.tmp")
    try:
        made = make(root, build, slugs, draft)
        for slug in slugs:
            for kind, notebook in versions(root, build, slug, made).items():
                if kind in downloads.PUBLIC:
                    nbformat.write(notebook, made.html / "downloads" / downloads.PUBLIC[kind].format(slug))
        (made.html / KEY_FILE).write_text(key, "utf-8")
        made.html.rename(site)
    except (downloads.BuildError, UserError) as error:
        raise RenderError(str(error)) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # an unfinished one would fill the disk further
    return Site(swap(build, site), True)
