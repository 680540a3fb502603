"""*Try it* in the page: opened from a folder, with the network off, it answers as the reference program does, before
and after an edit."""

import json
from pathlib import Path

import pytest

from bookbuilder.chapter_pages import live_code

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
# An edit of each program: what is replaced, and by what.
EDITS = {
    "ols_attention": ("factor = 2.0", "factor = -1.5"),
    "signal_propagation": ("alpha = 0.5", "alpha = 0.25"),
    "homogenized": ("eta, heads = 1.0, 1", "eta, heads = 0.5, 1"),
    "sinkhorn": ("temperature = 1.0", "temperature = 0.5"),
    "hierarchical_kernel": ("[0.5, 0.3, 0.2]", "[1.0, 0.0, 0.0]"),
    "stochastic_approximation": ("w = [0.3, 0.7]", "w = [0.5, 0.5]"),
    "in_place_ttt": ('"abcabcabc", 2', '"abcabcabc", 3'),
    "cactus": ("delta = 1 / 16", "delta = 1 / 100"),
    "task_ecologies": ("beta = 0.3  #", "beta = 0.4  #"),
    "geometric_tax": ("wrong = 1", "wrong = 3"),
}


@pytest.fixture
def answer(tmp_path):
    """A function that runs a reference program here, after an edit, for its result."""

    def answered(slug: str, old: str = "", new: str = "") -> list[float]:
        text = live_code.reference(ROOT, slug).read_text("utf-8")
        assert not old or text.count(old) == 1
        (tmp_path / "reference.py").write_text(text.replace(old, new) if old else text, "utf-8")
        return live_code.run(tmp_path / "reference.py")[1]["result"]

    return answered


def _ran(page) -> list[float]:
    page.locator(".try-run").click()
    page.wait_for_function("document.querySelector('.try-run').textContent === 'Run'", timeout=60_000)
    assert "Ran here" in page.locator(".try-state").inner_text(), page.locator(".try").inner_text()
    return json.loads(page.locator(".try").get_attribute("data-result"))


def test_it_runs_from_a_folder_and_an_edit_changes_the_answer(site, browser, answer):
    page = browser.new_page(viewport={"width": 390, "height": 844})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "notebooks/sinkhorn.html").as_uri())
    page.wait_for_selector(".try-run:not([disabled])")
    assert not [url for url in asked if url.endswith(("python.js", "codemirror.js"))]
    shown = page.locator(".try-output").inner_text()
    assert _ran(page) == pytest.approx(answer("sinkhorn"), rel=1e-12, abs=1e-12)
    assert page.locator(".try-output").inner_text() == shown
    assert page.locator(".try-curves svg").count() == 1
    page.locator(".try-program").click()
    page.wait_for_selector(".CodeMirror")
    set_to = "(text) => document.querySelector('.CodeMirror').CodeMirror.setValue(text)"
    for slug, edit in EDITS.items():  # every program here: one start of Python is enough
        text, before, after = live_code.reference(ROOT, slug).read_text("utf-8"), answer(slug), answer(slug, *edit)
        assert after != pytest.approx(before, rel=1e-3, abs=1e-3)
        for program, wanted in ((text, before), (text.replace(*edit), after)):
            page.evaluate(set_to, program)
            assert _ran(page) == pytest.approx(wanted, rel=1e-12, abs=1e-12), slug
    assert page.locator(".try-output").inner_text() != shown
    page.locator(".try-reset").click()
    assert page.locator(".try-output").inner_text() == shown
    assert not [url for url in asked if not url.startswith(("file:", "blob:"))]
    page.close()


def test_each_chapter_has_its_program_and_what_it_prints(chapters):
    for page in chapters:
        lines = {line.strip() for line in live_code.reference(ROOT, page.file.stem).read_text("utf-8").splitlines()}
        shown = "\n".join(each.get_text() for each in page.soup.select(".try-file, .try-program"))
        assert {line.strip() for line in shown.splitlines()} <= lines, page.name
        assert page.soup.select_one(".try-output").get_text().strip(), page.name


def test_an_error_is_shown_and_a_run_without_end_can_be_stopped(site, browser):
    page = browser.new_page()
    page.goto((site / "notebooks/sinkhorn.html").as_uri())
    page.locator(".try-program").click()
    page.wait_for_selector(".try .CodeMirror")  # what is typed while it comes may be typed into either
    page.evaluate("document.querySelector('.CodeMirror').CodeMirror.setValue('1 / 0')")
    page.locator(".try-run").click()
    page.wait_for_selector(".try-output.try-error", timeout=60_000)
    assert page.locator(".try-output").inner_text().splitlines()[-1] == "ZeroDivisionError: division by zero"
    page.evaluate("document.querySelector('.CodeMirror').CodeMirror.setValue('while True: pass')")
    page.locator(".try-run").click()
    page.locator(".try-run", has_text="Stop").click()
    assert page.locator(".try-state").inner_text() == "Stopped."
    page.close()


def test_a_copy_without_python_says_so(site, browser, tmp_path):
    page = browser.new_page()
    page.route("**/python.js", lambda route: route.abort())
    page.goto((site / "notebooks/sinkhorn.html").as_uri())
    page.locator(".try-run").click()
    page.wait_for_function("document.querySelector('.try-state').textContent.includes('no Python in it')")
    page.close()
