"""The stage: copies of pages and executed chapters, filled in with what is made from data, as Sphinx reads them.

_build/book/{book,notebooks,claims,_static}   the stage, at the same paths as in the repository
_build/extra                                  what is copied into the site as it is
"""

import json
import shutil
from pathlib import Path
from typing import Any

import nbformat
import yaml

from bookbuilder import contents, yaml_io
from bookbuilder.chapter_pages import chapter, evidence, explorer, pages
from bookbuilder.index_pages import fill, reference, reports, welcome
from bookbuilder.ledger import changes
from bookbuilder.ledger.ledger import foreign
from bookbuilder.notebook import form
from bookbuilder.notebook.evidence import bibtex
from bookbuilder.paths import Repo, UserError
from bookbuilder.run.driver import faults_of, read_notebook
from bookbuilder.sphinx_site import downloads
from bookbuilder.teach import decks, homework

LEDGER = "book/ledger"  # the page that has the evidence of each chapter below it
REPORTS = "book/evidence"  # and the page below which their reports do
PACKAGES = "book/package"  # and that below which their packages are documented
STATEMENTS = "statements.json"  # in the stage: what the book's Sphinx extension says of each statement


def stage(root: Path, build: Path, slugs: list[str]) -> tuple[Path, list[pages.Chapter], dict[str, str]]:
    """Copy pages and executed chapters to where Sphinx reads them, and fill them in from data.

    Returns the folder that Sphinx reads, the chapters, and the addresses that they link to.
    """
    target = _copy(root, build, slugs)
    extra = _stage_extra(root, build, slugs)
    written = contents.read(root)
    filled = [
        chapter.fill(root, build, slug, _links(root, slug, extra), welcome.card_words(written, slug)) for slug in slugs
    ]
    address = f"{extra['url']}/blob/{extra['branch']}/" if extra["url"] else ""
    proofs = {one.slug: evidence.write(root, target, one, notebook, address) for one, notebook in filled}
    (target / STATEMENTS).write_text(json.dumps({slug: shown for slug, (shown, _) in proofs.items()}), "utf-8")
    for essay in Repo(root).essays():
        nbformat.write(chapter.essay(build, essay, slugs), target / f"book/{essay}.ipynb")
    chapters = [one for one, _ in filled]
    for one in chapters:
        reports.write(root, target, one)
    fill.fill(root, build, target, chapters, [row for _, index in proofs.values() for row in index])
    ledger = json.dumps([row for one in chapters for row in one.rows], indent=1, ensure_ascii=False)
    (build / "extra/downloads/ledger.json").write_text(ledger + "\n", "utf-8")
    (build / "extra/claims").mkdir()
    for one in chapters:
        cards = json.dumps(pages.claim_previews(one), ensure_ascii=False).replace("</", "<\\/")
        text = f"(window.claims ??= {{}}).{one.slug} = {cards};\n"  # a script, since a page on a disk cannot fetch
        (build / f"extra/claims/{one.slug}.js").write_text(text, "utf-8")
    dated = json.dumps(changes.read(root), indent=1, ensure_ascii=False)
    (build / "extra/downloads/changes.json").write_text(dated + "\n", "utf-8")
    return target, chapters, extra


def known(repo: Repo, slugs: list[str]) -> list[str]:
    """One line per fault of chapters that can be known before they run; a run of minutes is not spent to tell it."""
    bibliography, found = (repo.root / "book/references.bib").read_text("utf-8"), foreign(repo, slugs)
    written = contents.read(repo.root)
    for slug in slugs:
        notebook = read_notebook(repo, slug)
        try:
            chapter.static(notebook, slug)
        except UserError as error:
            found.append(str(error))
        facts = notebook["metadata"].get("derived") or {}
        silent = [name for name, text in welcome.card_words(written, slug).items() if not text]
        if silent and form.is_strict(notebook):
            found.append(f"{slug}: {contents.FILE} lacks its {', '.join(silent)}")
        key = facts.get("paper", {}).get("bibkey")
        if key and not bibtex(bibliography, key):
            found.append(f"{slug}: book/references.bib has no entry {key}")
        found += faults_of(repo, slug, notebook)
    return found


def _copy(root: Path, build: Path, slugs: list[str]) -> Path:
    """Copy the book's own pages to an empty stage."""
    target = build / "book"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(root / "book", target / "book", ignore=shutil.ignore_patterns("_static", "reports"))
    shutil.copytree(root / "book/_static", target / "_static")
    (target / "notebooks").mkdir()
    (target / "claims").mkdir()
    _stage_toc(root, target / "book/_toc.yml", slugs)
    return target


def _stage_toc(root: Path, path: Path, slugs: list[str]) -> None:
    """Write the table of contents of this build as Jupyter Book reads it: a part without pages lists the chapters."""
    written = contents.read(root)
    numbered = [*enumerate(slugs, start=1)]
    reported = [(number, slug) for number, slug in numbered if reports.source(root, slug).is_file()]
    below = {
        LEDGER: [{"file": f"claims/{slug}", "title": f"Evidence, chapter {number}"} for number, slug in numbered],
        REPORTS: [{"file": f"reports/{slug}", "title": f"Report, chapter {number}"} for number, slug in reported],
        PACKAGES: [
            {"file": f"{reference.FOLDER}/{slug}", "title": f"Package, chapter {number}"}
            for number, slug in numbered
            if reference.offers(root, slug)
        ],
    }
    below["book/teaching"] = [
        {"file": f"{decks.FOLDER}/{slug}/plan", "title": f"Lesson plan, chapter {number}"}
        for number, slug in numbered
        if decks.source(root, slug, "plan.md").is_file()
    ]
    chapters = [_entry(f"notebooks/{slug}", title=written.chapters[slug].name) for slug in slugs]
    parts = []
    for part in written.parts:
        pages = [
            _entry(f"book/{page}", sections=_below(f"book/{page}", names, below)) for page, names in part.tree().items()
        ]
        if entries := pages or chapters:
            parts.append({"caption": part.caption, "chapters": entries} | ({} if pages else {"numbered": True}))
    toc = {"format": "jb-book", "root": contents.FIRST, "parts": parts}
    path.write_text(yaml.safe_dump(toc, sort_keys=False), "utf-8")


def _below(page: str, names: list[str], made: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The entries below a page: pages of the book, then a page of each chapter."""
    own = [_entry(f"book/{name}", sections=made.get(f"book/{name}")) for name in names]
    return own + made.get(page, [])


def _entry(file: str, **more: Any) -> dict[str, Any]:
    """An entry of the table of contents with what is not empty of its other keys."""
    return {"file": file} | {key: value for key, value in more.items() if value}


def _stage_extra(root: Path, build: Path, slugs: list[str]) -> dict[str, str]:
    """Make the files that are copied into the site; return the wheel's name and the addresses of repository and
    site."""
    extra = build / "extra"
    shutil.rmtree(extra, ignore_errors=True)
    explorer.vendor(extra / "vendor")
    wheel = downloads.build_wheel(root, extra / "downloads")
    downloads.write_records(Repo(root), extra / "downloads", slugs)
    settings = yaml_io.read(root / "_config.yml", dict[str, Any])
    repository = settings.get("repository") or {}
    url, site = repository.get("url") or "", settings["sphinx"]["config"].get("ogp_site_url") or ""
    addresses = {"url": url.rstrip("/"), "site": site.rstrip("/")}
    return {"wheel": wheel.name, "branch": repository.get("branch") or "main"} | addresses


def _links(root: Path, slug: str, extra: dict[str, str]) -> dict[str, str]:
    """The addresses of a chapter's downloads and slides, empty for what it does not have."""
    exercises = homework.roles(nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4))
    links = {
        "notebook": f"../downloads/{slug}.zip",
        "student": f"../downloads/{slug}-student.zip",
        "homework": f"../downloads/{slug}-homework.ipynb" if exercises else "",
        "slides": f"../teach/{slug}/slides.html" if decks.source(root, slug).is_file() else "",
        "wheel": f"../downloads/{extra['wheel']}",
        "report": f"../reports/{slug}.html" if reports.source(root, slug).is_file() else "",
        "launch": "",
    }
    if extra["url"].startswith("https://github.com/"):
        place = extra["url"].removeprefix("https://github.com/")
        links["launch"] = (
            f"https://colab.research.google.com/github/{place}/blob/{downloads.BRANCH}/{slug}-student.ipynb"
        )
    return links
