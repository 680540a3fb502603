"""The book on paper: every page of the built site through headless Chromium, each by itself and all in one file.

Proofs are open, explorers show their first view, formulas and tables wider than the paper are made to fit, and the
solutions of a chapter stand together at its end.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright
from pypdf import PdfWriter

from derived.book.house import UserError

FLAGS = ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
WIDE = 672  # pixels between the margins of A4
PREPARE = """async (wide) => {
  document.documentElement.dataset.theme = "light";
  const article = document.querySelector("article");
  for (const still of article.querySelectorAll(".explorer noscript")) {
    const box = still.parentElement;
    box.innerHTML = still.textContent + box.querySelector(".explorer-fallback").outerHTML;
    box.style.minHeight = 0;
  }
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
  for (const fold of article.querySelectorAll(".proof-fold, .solutions details")) fold.open = true;
  await window.MathJax?.startup?.promise;
  await window.MathJax?.startup?.document?.lazyTypesetAll?.();
  for (const image of document.images) image.loading = "eager"; // a lazy one out of view is never decoded
  await Promise.all([...document.images].map((image) => image.decode().catch(() => null)));
  for (const each of article.querySelectorAll("div.math > mjx-container, mjx-container.wide-formula, table")) {
    const share = wide / each.scrollWidth;
    if (share < 1) each.style.zoom = share;
  }
}"""
FOOT = '<div style="width: 100%; text-align: center; font-size: 8px"><span class="pageNumber"></span></div>'


def write(site: Path, names: Sequence[str], into: Path) -> list[Path]:
    """Print these pages of the site, by their addresses without ``.html``; returns the files, the whole book last."""
    into.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        found = shutil.which("chromium") or shutil.which("google-chrome")
        if found is None and not Path(playwright.chromium.executable_path).is_file():
            raise UserError("there is no Chromium: apt install chromium, or playwright install chromium")
        browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
        files = [_printed(browser, site / f"{name}.html", into / f"{Path(name).name}.pdf") for name in names]
        browser.close()
    with PdfWriter() as book:
        for file in files:
            book.append(file, outline_item=file.stem)
        book.write(into / "book.pdf")
    return [*files, into / "book.pdf"]


def _printed(browser: Browser, page: Path, file: Path) -> Path:
    tab = browser.new_page(viewport={"width": 1000, "height": 1400})
    tab.goto(page.as_uri(), wait_until="load")
    tab.emulate_media(media="print", color_scheme="light")
    tab.evaluate(PREPARE, WIDE)
    margins = {"top": "18mm", "bottom": "18mm", "left": "16mm", "right": "16mm"}
    tab.pdf(
        path=file,
        format="A4",
        margin=margins,
        print_background=True,
        outline=True,
        tagged=True,
        display_header_footer=True,
        header_template="<span></span>",
        footer_template=FOOT,
    )
    tab.close()
    return file
