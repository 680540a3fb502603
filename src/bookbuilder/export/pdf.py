"""Prints the book: every page of the built site through headless Chromium, one file each and all in one.

Proofs and tables of claims are open, explorers show their first view, formulas and tables wider than the paper are made
to fit, and the solutions of a chapter come together at its end. A page is laid out at the width of the paper before it
is printed, so what can be measured there is what the paper shows.

A separate process prints each page, ``python -m bookbuilder.export.pdf PAGE FILE``, and is ended when it hangs.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, sync_playwright
from pypdf import PdfReader, PdfWriter

from bookbuilder.paths import Repo, UserError

FLAGS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
LIMIT = 600.0  # seconds that one page may take; the longest takes a tenth of it
WIDE = 672  # pixels between the margins of A4
MARGINS = {"top": "18mm", "bottom": "18mm", "left": "16mm", "right": "16mm"}
PREPARE = """async (wide) => {
  document.documentElement.dataset.theme = "light";
  const article = document.querySelector("article");
  const solved = "div.solution, div.cell.tag_solution";
  const solutions = [...article.querySelectorAll(solved)].filter((each) => !each.parentElement.closest(solved));
  if (solutions.length) {
    const end = document.createElement("section");
    end.className = "solutions";
    end.innerHTML = "<h2>Solutions</h2>";
    end.append(...solutions);
    article.append(end);
  }
  for (const each of article.querySelectorAll(".toggle-hidden")) each.classList.remove("toggle-hidden");
  for (const fold of article.querySelectorAll(".proof-fold, .solutions details, details.hide")) fold.open = true;
  for (const link of document.querySelectorAll("a[href]"))
    if (link.protocol === "file:" && link.pathname !== location.pathname) link.removeAttribute("href"); // not on paper
  for (const box of article.querySelectorAll(".explorer")) {
    if (!box.checkVisibility()) continue;
    box.scrollIntoView(); // so that it is drawn
    while (!box.dataset.ready) await new Promise((resolve) => setTimeout(resolve, 50));
    box.querySelector(".explorer-fallback").hidden = false;
  }
  await window.MathJax?.startup?.promise;
  const fresh = [...article.querySelectorAll(".math:not(:has(mjx-container))")];
  const folded = fresh.filter((each) => each.checkVisibility());
  if (folded.length) await window.MathJax?.typesetPromise?.(folded); // those of a fold were left out when the page came
  await window.MathJax?.startup?.document?.lazyTypesetAll?.();
  for (const image of document.images) image.loading = "eager"; // a lazy one out of view is never decoded
  await Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
  const room = (each) => Math.min(wide, each.parentElement.clientWidth || wide);
  for (const each of article.querySelectorAll("div.math > mjx-container, mjx-container.wide-formula, table")) {
    const share = room(each) / each.scrollWidth;
    if (share < 1) each.style.zoom = share;
  }
}"""
TITLE = " — Transformers, Derived"  # what the title of a page of the site ends with
FOOT = """<div style="width: 100%; margin: 0 16mm; font: 8px sans-serif; color: #55626d; display: flex;
  justify-content: space-between"><span class="title"></span><span class="pageNumber"></span></div>"""


def write(site: Path, names: Sequence[str], into: Path, limit: float = LIMIT, *, whole: bool = True) -> list[Path]:
    """Print these pages of the site, by their addresses without ``.html``, and if ``whole`` all of them in book.pdf;
    returns the files, that one last. Files from before stay until all is printed.

    UserError where there is no browser, or a page is not printed in ``limit`` seconds.
    """
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=into, prefix=".") as draft:
        files = [Path(draft) / f"{Path(name).name}.pdf" for name in names]
        _print(site, names, files, limit)
        if whole:
            files.append(_bound(files, Path(draft) / "book.pdf"))
        return [file.replace(into / file.name) for file in files]


def _print(site: Path, names: Sequence[str], files: Sequence[Path], limit: float) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        printed = [
            pool.submit(_apart, site / f"{name}.html", file, limit) for name, file in zip(names, files, strict=True)
        ]
        try:
            for each in printed:
                each.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _bound(files: Sequence[Path], into: Path) -> Path:
    """Bind all files in one."""
    with PdfWriter() as book:
        for file in files:
            named = (PdfReader(file).metadata or {}).get("/Title", file.stem)
            book.append(file, outline_item=named.removesuffix(TITLE))
        book.write(into)
    return into


def _apart(page: Path, file: Path, limit: float) -> None:
    """Print a page in a separate process and end it when it takes too long."""
    command = [sys.executable, "-P", "-m", "bookbuilder.export.pdf", str(page), str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit)
    except subprocess.TimeoutExpired:
        raise UserError(
            f"{page.name} was not printed in {limit:g} s, so Chromium was stopped; try it again alone"
        ) from None
    if done.returncode:
        raise UserError(f"{page.name} was not printed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")


@contextmanager
def laid_out(browser: Browser, page: Path) -> Iterator[Page]:
    """Open a page of the site at the width of the paper, with all folds open."""
    tab = browser.new_page(viewport={"width": WIDE, "height": 950})
    tab.emulate_media(media="print", color_scheme="light")
    tab.goto(page.as_uri(), wait_until="load", timeout=0)  # the process has a limit
    tab.evaluate(PREPARE, WIDE)
    yield tab
    tab.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser; raise UserError if there is none."""
    with sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        if found is None and not Path(playwright.chromium.executable_path).is_file():
            raise UserError("there is no Chromium: apt install chromium, or playwright install chromium")
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield browser
        browser.close()


def print_page(page: Path, file: Path) -> None:
    """Print one page of the site."""
    with chromium() as browser, laid_out(browser, page) as tab:
        tab.pdf(
            path=file,
            format="A4",
            margin=MARGINS,
            print_background=True,
            outline=True,
            tagged=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOT,
        )


def printed(repo: Repo, slugs: list[str]) -> list[Path]:
    """Print the named chapters, or the whole book, and their replication reports; UserError for one without a page."""
    chosen = repo.choose(slugs)
    missing = [slug for slug in chosen if not (repo.site / f"notebooks/{slug}.html").is_file()]
    if missing:
        raise UserError(f"the site has no page of {', '.join(missing)} yet: run `make site` first")
    chapters = [f"notebooks/{slug}" for slug in chosen]
    names = chapters if slugs else ["book/intro", "book/how_to_read", *chapters, "book/bibliography"]
    files = write(repo.site.resolve(), names, repo.build / "pdf", whole=not slugs)
    reports = [f"reports/{slug}" for slug in chosen if (repo.site / f"reports/{slug}.html").is_file()]
    return files + (write(repo.site.resolve(), reports, repo.build / "pdf/reports", whole=False) if reports else [])


if __name__ == "__main__":
    try:
        print_page(Path(sys.argv[1]), Path(sys.argv[2]))
    except (UserError, Error) as error:
        sys.exit(str(error).splitlines()[0])
