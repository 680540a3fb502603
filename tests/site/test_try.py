"""*Try it* in the page: opened from a folder, with the network off, it answers as the package does, before and after an
edit."""

import json
import re
import time

import pytest
from answers import TRIES
from solutions import RIGHT, answered

pytestmark = pytest.mark.browser


@pytest.fixture(params=sorted(TRIES))
def slug(request):
    return request.param


def _ran(page) -> list[float]:
    page.locator(".try-run").click()
    page.wait_for_function("document.querySelector('.try-run').textContent === 'Run'", timeout=60_000)
    assert "Ran here" in page.locator(".try-state").inner_text(), page.locator(".try").inner_text()
    return json.loads(page.locator(".try").get_attribute("data-result"))


def test_it_runs_from_a_folder_and_an_edit_changes_the_answer(site, browser, slug):
    one, page = TRIES[slug], browser.new_page(viewport={"width": 390, "height": 844})
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / f"notebooks/{slug}.html").as_uri() + "?view=all")
    page.wait_for_selector(".try-run:not([disabled])")
    assert not [url for url in asked if url.endswith(("python.js", "codemirror.js"))]
    shown = page.locator(".try-output").inner_text()
    assert _ran(page) == pytest.approx(one.answer(one.now), rel=1e-12, abs=1e-12)
    assert page.locator(".try-output").inner_text() == shown
    assert page.locator(".try-curves svg").count() == 1
    page.locator(".try-program").click()
    page.wait_for_selector(".CodeMirror")
    page.evaluate("([old, fresh]) => { const editor = document.querySelector('.CodeMirror').CodeMirror;"
                  "editor.setValue(editor.getValue().replace(old, fresh)); }", [one.old, one.new])  # fmt: skip
    assert _ran(page) == pytest.approx(one.answer(one.after), rel=1e-12, abs=1e-12)
    assert page.locator(".try-output").inner_text() != shown
    page.locator(".try-reset").click()
    assert page.locator(".try-output").inner_text() == shown
    page.locator(".try-choice").select_option("1")
    assert page.locator(".try-output").inner_text() == "no answer yet"
    stub = page.evaluate("document.querySelector('.CodeMirror').CodeMirror.getValue()")
    page.evaluate(
        "text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)", answered(stub, RIGHT[slug])
    )
    _ran(page)
    assert page.locator(".try-output").inner_text() == "right"
    assert not [url for url in asked if not url.startswith(("file:", "blob:"))]
    page.close()


def test_from_a_server_on_a_desktop_another_temperature_is_run_and_real_seconds_are_told(address, browser):
    one, page, asked = TRIES["sinkhorn"], browser.new_page(viewport={"width": 1280, "height": 800}), []
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
    page.locator(".CodeMirror-line", has_text=one.old).click()
    page.keyboard.press("End")
    page.keyboard.press("Backspace")
    page.keyboard.type("5")  # 1.5
    assert len(told()) == 1
    assert json.loads(page.locator(".try").get_attribute("data-result")) == pytest.approx(one.answer(1.5), rel=1e-12)
    assert page.locator(".try-output").inner_text() != shown
    wait = "import time\nend = time.time() + 1.2\nwhile time.time() < end: pass"
    page.evaluate("text => document.querySelector('.CodeMirror').CodeMirror.setValue(text)", wait)
    assert told()[0] >= 1.2
    assert not [url for url in asked if not url.startswith((address, "blob:", "data:"))]
    page.close()


def test_an_error_is_shown_and_a_run_without_end_can_be_stopped(site, browser):
    page = browser.new_page()
    page.goto((site / "notebooks/sinkhorn.html").as_uri() + "?view=all")
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
    page.goto((site / "notebooks/sinkhorn.html").as_uri() + "?view=all")
    page.locator(".try-run").click()
    page.wait_for_function("document.querySelector('.try-state').textContent.includes('no Python in it')")
    page.close()
