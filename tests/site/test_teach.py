"""Decks of the built site in a browser without a network, and the zips that a lecturer takes along."""

import io
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
import pytest
from pypdf import PdfReader

from bookbuilder.export import figures
from bookbuilder.paths import Repo
from bookbuilder.teach import zips

ROOT = Path(__file__).parents[2]
FAULTS = """async () => {
  const found = [];
  for (let number = 0; number < Reveal.getTotalSlides(); number++) {
    Reveal.slide(number);
    const slide = Reveal.getCurrentSlide(), images = [...slide.querySelectorAll("img")];
    await Promise.all(images.map((image) => image.decode().catch(() => {})));
    const box = slide.getBoundingClientRect();
    const rects = (selector) => [...slide.querySelectorAll(selector)].map((each) => each.getBoundingClientRect());
    const low = rects(":scope > :not(aside)").some((part) => part.bottom > box.bottom + 2);
    const wide = rects(":scope > :not(aside) :is(mjx-math, td)").some((part) => part.right > box.right);
    found.push(...[
      low && "something is below the slide", wide && "something is too wide",
      slide.querySelector("mjx-merror") && "a formula is wrong",
      slide.textContent.includes("$") && "a formula is not set",
      images.some((image) => !image.naturalWidth) && "a figure is missing",
    ].filter(Boolean).map((fault) => `${number + 1}: ${fault}`));
  }
  return found;
}"""
LEFT = "net::ERR_ABORTED"  # of an explorer whose slide was left before it came


def opened(browser, url: str):
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    failed: list[str] = []
    page.on("requestfailed", lambda request: request.failure == LEFT or failed.append(request.url))
    page.on("pageerror", lambda error: failed.append(str(error)))
    page.goto(url)
    page.wait_for_selector("body[data-ready]", timeout=120_000)
    return page, failed


@pytest.mark.browser
def test_a_deck_opens_from_a_folder_and_every_slide_fits(browser, site, deck):
    page, failed = opened(browser, f"{(site / 'teach' / deck / 'slides.html').as_uri()}")
    assert page.evaluate(FAULTS) == []
    assert failed == []
    page.close()


@pytest.mark.browser
def test_a_shorter_lecture_has_the_slides_with_a_star(browser, site):
    page, _ = opened(browser, f"{(site / 'teach/sinkhorn/slides.html').as_uri()}?50")
    source = (ROOT / "book/teach/sinkhorn/slides.md").read_text("utf-8")
    assert page.evaluate("Reveal.getTotalSlides()") == source.count(" ★\n")
    page.close()


def apart(function):
    """Call it in a thread of its own: where other tests drive a browser, the main one has a loop already."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_the_class_gets_no_solution_and_figures_have_their_size(site, chapters):
    assert len(apart(lambda: [*zips.teach(Repo(ROOT))])) == 4
    held = {}
    for name in ("class", "tutors"):
        with zipfile.ZipFile(ROOT / f"_build/{name}.zip") as opened:
            held[name] = {file: opened.read(file) for file in opened.namelist()}
    for_class = b"\n".join(raw for name, raw in held["class"].items() if name.endswith((".ipynb", ".html", ".md")))
    for page in chapters:
        slug = page.file.stem
        cells = nbformat.read(ROOT / f"notebooks/{slug}.ipynb", as_version=4).cells
        solved = {cell.source for cell in cells if "solution" in cell.metadata.get("tags", [])}
        others = {line for cell in cells if cell.source not in solved for line in cell.source.splitlines()}
        lines = {line for text in solved for line in text.splitlines() if len(line) > 60 and '"' not in line} - others
        assert len(lines) > 3, slug
        assert [line for line in lines if line.encode() in for_class] == []
        assert f"tutors/teach/{slug}/homework.ipynb" in held["tutors"]
    drawn = [name for name in held["class"] if name.endswith(".svg")]
    for name in drawn:
        printed = PdfReader(io.BytesIO(held["class"][name.replace(".svg", ".pdf")]))
        width, height = figures.size(held["class"][name].decode())
        assert len(printed.pages) == 1
        assert tuple(map(float, printed.pages[0].mediabox[2:])) == pytest.approx((width, height), abs=2)
