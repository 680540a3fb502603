"""From executed notebooks to the site: stage copies, let Sphinx build them beside the old site, then swap.

    _build/book/{book,notebooks,_static}    the stage: what Sphinx reads, at the same paths as in the repository
    _build/sites/<hash of its sources>      finished sites; usually one
    _build/html -> sites/<hash>             what people open, replaced in one step

The build starts from nothing every time, because an incremental one forgets the warnings of unchanged pages. Whatever
goes wrong, or whenever the process is killed, `_build/html` still shows the last good site.
"""

import hashlib
import json
import os
import re
import shutil
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import nbformat
from bs4 import BeautifulSoup
from nbformat import NotebookNode

from bookbuilder.chapter_pages import live_code, numbers, pages
from bookbuilder.chapter_pages.plain import Known, Place, Work, places, values, works
from bookbuilder.paths import Repo, UserError
from bookbuilder.sphinx_site import downloads, runtime, search
from bookbuilder.sphinx_site.builder import build_html
from bookbuilder.sphinx_site.stage import stage
from bookbuilder.teach import decks

CODE = re.compile(r'(?<=<div class="highlight-ipython3 notranslate"><div class="highlight"><pre>).*?(?=</pre>)', re.S)
WRITTEN = ("notebooks", "book", "claims", "packages")  # where the pages are that can be searched
# Inputs of the site besides executed notebooks and findings; the wheel holds all of src/derived.
SOURCES = (
    "book",
    "_config.yml",
    "results",
    "src/derived",
    "src/bookbuilder",
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
    lacks: str = ""  # why its pages cannot run Python


def site_key(root: Path, build: Path, slugs: list[str]) -> str:
    """Hash everything that the site is made from."""
    made = [build / part for slug in slugs for part in (f"executed/notebooks/{slug}.ipynb", f"findings/{slug}.json")]
    made += sorted((build / "executed/book").glob("*.ipynb"))
    files = [path for name in SOURCES for path in _files(root / name)] + [path for path in made if path.is_file()]
    digest = hashlib.sha256(" ".join([sys.version, *slugs]).encode())
    for path in files:
        digest.update(f"\n{path.relative_to(root if path.is_relative_to(root) else build)} ".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    hidden = ("__pycache__", ".ipynb_checkpoints")
    return sorted(p for p in path.rglob("*") if p.is_file() and not any(part in hidden for part in p.parts))


# Make -----------------------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    """A site before its notebooks are added, and the data that they need: labels, bibliography, addresses."""

    html: Path
    chapters: list[pages.Chapter]
    places: dict[str, Place]
    works: dict[str, Work]
    extra: dict[str, str]


def make(root: Path, build: Path, slugs: list[str], draft: Path) -> Made:
    """Build pages and decks in the folder ``draft`` from the executed chapters in ``build``."""
    staged, chapters, extra = stage(root, build, slugs)
    html = build_html(root, staged, draft)
    shutil.copytree(build / "extra", html, dirs_exist_ok=True)
    _write_works(html)
    _write_root(html)
    written = sorted(path.relative_to(html).as_posix() for part in WRITTEN for path in (html / part).glob("*.html"))
    parsed = {name: _parsed(html / name) for name in written}
    search.write(html, parsed)
    found: dict[str, Place] = {}
    for slug in slugs:
        found |= places(parsed[f"notebooks/{slug}.html"], f"notebooks/{slug}.html")
    made = Made(html, chapters, found, works(root / "book/references.bib"), extra)
    taught = {
        each.slug: decks.Taught(parsed[f"notebooks/{each.slug}.html"], known(build, each.slug, made), each.rows)
        for each in chapters
        if decks.source(root, each.slug).is_file()
    }
    if faults := decks.write(root, html, taught):
        raise UserError("\n".join(faults))
    return made


def _parsed(page: Path) -> BeautifulSoup:
    """Parse a page without the code of its cells, which is half of its marks and is not searched."""
    return BeautifulSoup(CODE.sub("", page.read_text("utf-8")), "html.parser")


def _write_works(html: Path) -> None:
    """Write the bibliography's entries by anchor as a script, so that previews work from a disk too."""
    page = html / "book/bibliography.html"
    soup = BeautifulSoup(page.read_text("utf-8") if page.is_file() else "", "html.parser")
    found = {work["id"]: work.p.decode_contents() for work in soup.select("article .citation[id]")}
    text = json.dumps(found, ensure_ascii=False).replace("</", "<\\/")
    (html / "_static/works.js").write_text(f"window.works = {text};\n", "utf-8")


def _write_root(html: Path) -> None:
    """Write the page at the site's own address: it leads to the first page, and has its icon and what a shared link to
    it shows."""
    head = BeautifulSoup((html / "book/intro.html").read_text("utf-8"), "html.parser").head
    said = head.select("title, meta[name=description], meta[property^='og:'], meta[name^='twitter:'], link[rel='icon']")
    for tag in said:
        for name in {"href", "content"} & set(tag.attrs):
            tag[name] = tag[name].removeprefix("../")  # its own address is one folder higher
    lines = ['<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">', *map(str, said)]
    lines.append('<meta http-equiv="refresh" content="0; url=book/intro.html"></head>')
    lines.append('<body><a href="book/intro.html">To the book</a></body></html>\n')
    (html / "index.html").write_text("\n".join(lines), "utf-8")


def known(build: Path, slug: str, made: Made) -> Known:
    """Collect what the text of a chapter may refer to."""
    executed = nbformat.read(build / f"executed/notebooks/{slug}.ipynb", as_version=4)
    return Known(slug, made.places, made.works, values(executed), made.extra["site"])


def versions(root: Path, build: Path, slug: str, made: Made) -> dict[str, NotebookNode]:
    """Make a chapter's downloads by kind (downloads.versions)."""
    source = nbformat.read(root / f"notebooks/{slug}.ipynb", as_version=4)
    executed = nbformat.read(build / f"executed/notebooks/{slug}.ipynb", as_version=4)
    numbers.fill(slug, source, json.loads((build / f"findings/{slug}.json").read_text("utf-8"))["rows"])
    command = partial(downloads.install_command, made.extra["url"], made.extra["wheel"])
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


def render(root: Path, slugs: list[str] | None = None) -> Site:
    """Build the site of these chapters (all of the book's), unless nothing has changed since the last time.

    UserError has one line per cause.
    """
    root = root.resolve()
    build = root / "_build"
    slugs = Repo(root).chapters() if slugs is None else slugs
    key = site_key(root, build, slugs)
    site = build / "sites" / key
    if site.is_dir() and (build / "html").resolve() == site:
        return Site(build / "html", False)
    shutil.rmtree(site, ignore_errors=True)  # finished by a build that was killed before the swap
    draft = site.with_name(f"{key}.tmp")
    draft.parent.mkdir(parents=True, exist_ok=True)
    try:
        made = make(root, build, slugs, draft)
        for slug in slugs:
            found = versions(root, build, slug, made)
            public = {kind: notebook for kind, notebook in found.items() if kind in downloads.PUBLIC}
            downloads.write(made.html / "downloads", slug, public)
            if "solved" in found:
                (made.html / "teach" / slug).mkdir(exist_ok=True)
                nbformat.write(found["solved"], made.html / "teach" / slug / "homework.ipynb")
        programs = any(live_code.reference(root, slug).is_file() for slug in slugs)
        lacks = runtime.add(build, made.html / "vendor") if programs else ""
        made.html.rename(site)
    finally:
        shutil.rmtree(draft, ignore_errors=True)  # an unfinished one would fill the disk further
    return Site(swap(build, site), True, lacks)
