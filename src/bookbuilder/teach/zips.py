"""Makes what a lecturer takes along from the built site.

class.zip    notebooks and homework without solutions, decks without notes, figures as SVG, PDF and PNG
tutors.zip   notebooks and homework with solutions, plans, decks with notes, figures
"""

import time
from collections.abc import Iterator

from bs4 import BeautifulSoup

from bookbuilder import contents
from bookbuilder.chapter_pages import pages
from bookbuilder.export import figures
from bookbuilder.paths import Repo, UserError
from bookbuilder.sphinx_site.downloads import write_zip
from bookbuilder.teach import decks

SHARED = (
    "teach/reveal/**/*",
    "_static/mathjax/**/*",
    "_static/book.css",
    "_static/explorer.js",
    "vendor/plotly.min.js",
)
SHARED += ("explorers/*.js", "downloads/results/**/*", "downloads/*.whl")
STUDENTS = ("downloads/*-student.ipynb", "downloads/*-homework.ipynb")
TUTORS = ("teach/*/plan.md", "teach/*/homework.ipynb")


def teach(repo: Repo) -> Iterator[str]:
    """Write class.zip and tutors.zip; a line for each step."""
    site, started = repo.site.resolve(), time.monotonic()
    if not (site / "index.html").is_file():
        raise UserError("there is no site yet: run `make site` first")
    drawn = sorted((site / "teach").glob("*/*.svg"))
    yield f"printing {len(drawn)} figures as PDF and PNG"
    printed = dict(zip(drawn, figures.printed([each.read_text("utf-8") for each in drawn]), strict=True))
    slugs = [path.parent.name for path in sorted((site / "teach").glob("*/slides.html"))]
    built = [site / f"notebooks/{slug}.html" for slug in slugs]
    shown = [
        each for page in built for each in figures.found(page, BeautifulSoup(page.read_text("utf-8"), "html.parser"))
    ]
    credits = "\n".join(f"- `{each.name}`: {each.credit}" for each in shown)
    entries = contents.read(repo.root).chapters
    chapters = [(slug, words.name or slug) for slug, words in entries.items() if slug in slugs]
    whole = [f"downloads/{path.stem}.ipynb" for path in (site / "notebooks").glob("*.html")]
    for name, patterns in (("class", (*SHARED, *STUDENTS)), ("tutors", (*SHARED, *whole, *TUTORS))):
        files = {path: path.read_bytes() for each in patterns for path in sorted(site.glob(each)) if path.is_file()}
        for path in drawn:
            files |= {path: path.read_bytes()} | {path.with_suffix(kind): raw for kind, raw in printed[path].items()}
        for path in sorted((site / "teach").glob("*/*")):
            if path.suffix == ".html" or path.name == "slides.md":
                text = path.read_text("utf-8")
                files[path] = (decks.without_notes(text) if name == "class" else text).encode()
        texts = {
            "README.md": pages.html(f"{name}.md", chapters=chapters),
            "CREDITS.md": f"# To paste under a figure\n\n{credits}\n",
        }
        texts = {file: text.encode() for file, text in texts.items()}
        texts |= {path.relative_to(site).as_posix(): raw for path, raw in files.items()}
        draft = repo.build / f"{name}.part"
        write_zip(draft, {f"{name}/{file}": raw for file, raw in texts.items()})
        draft.replace(repo.build / f"{name}.zip")
        yield f"made {repo.build / f'{name}.zip'}: begin with its README.md"
    yield f"both in {time.monotonic() - started:.0f} s"
