"""*Try it* in the page: opened from a folder, with the network off, it answers as the reference program does, before
and after an edit."""

import json
import re
import time
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


@pytest.fixture(params=sorted(EDITS))
def slug(request):
    return request.param


def _ran(page) -> list[float]:
    page.locator(".try-run").click()
    page.wait_for_function("document.querySelector('.try-run').textContent === 'Run'", timeout=60_000)
    assert "Ran here" in page.locator(".try-state").inner_text(), page.locator(".try").inner_text()
    return json.loads(page.locator(".try").get_attribute("data-result"))


def test_it_runs_from_a_folder_and_an_edit_changes_the_answer(site, browser, slug, answer):
    edit, page = EDITS[slug], browser.new_page(viewport={"width": 390, "height": 844})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / f"notebooks/{slug}.html").as_uri())
    page.wait_for_selector(".try-run:not([disabled])")
    assert not [url for url in asked if url.endswith(("python.js", "codemirror.js"))]
    shown = page.locator(".try-output").inner_text()
    before, after = answer(slug), answer(slug, *edit)
    assert after != pytest.approx(before, rel=1e-3, abs=1e-3)
    assert _ran(page) == pytest.approx(before, rel=1e-12, abs=1e-12)
    assert page.locator(".try-output").inner_text() == shown
    assert page.locator(".try-curves svg").count() == 1
    page.locator(".try-program").click()
    page.wait_for_selector(".CodeMirror")
    page.evaluate("([old, fresh]) => { const editor = document.querySelector('.CodeMirror').CodeMirror;"
                  "editor.setValue(editor.getValue().replace(old, fresh)); }", [*edit])  # fmt: skip
    assert _ran(page) == pytest.approx(after, rel=1e-12, abs=1e-12)
    assert page.locator(".try-output").inner_text() != shown
    page.locator(".try-reset").click()
    assert page.locator(".try-output").inner_text() == shown
    assert not [url for url in asked if not url.startswith(("file:", "blob:"))]
    page.close()


def test_from_a_server_on_a_desktop_another_temperature_is_run_and_real_seconds_are_told(address, browser, answer):
    edit, page, asked = EDITS["sinkhorn"], browser.new_page(viewport={"width": 1280, "height": 800}), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{address}notebooks/sinkhorn.html")  # as a stranger comes, in the reader's view
    assert page.locator("#try-it p", has_text="press Run").is_visible()
    assert page.locator("#try-it li", has_text="temperature").is_visible()
    shown = page.locator(".try-output").inner_text()

    def told() -> list[float]:
        """Run it; the seconds that it tells, which are no more than passed."""
        began = time.monotonic()
        _ran(page)
        seconds = [float(each) for each in re.findall(r"([\d.]+) s\b", page.locator(".try-state").inner_text())]
        assert sum(seconds) < time.monotonic() - began + 0.02
        return seconds

    ran, loaded = told()
    assert ran < loaded
    page.locator(".try-program").click()
    page.wait_for_selector(".CodeMirror")
    page.locator(".CodeMirror-line", has_text=edit[0]).click()
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    page.keyboard.type("5")  # 1.5
    assert len(told()) == 1
    assert json.loads(page.locator(".try").get_attribute("data-result")) == pytest.approx(
        answer("sinkhorn", edit[0], "temperature = 1.5"), rel=1e-12
    )
    assert page.locator(".try-output").inner_text() != shown
    wait = "import time\nend = time.time() + 1.2\nwhile time.time() < end: pass"
    page.evaluate("text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)", wait)
    assert told()[0] >= 1.2
    assert not [url for url in asked if not url.startswith((address, "blob:", "data:"))]
    page.close()


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
