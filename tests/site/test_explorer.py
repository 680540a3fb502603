"""The script of the explorers on figures of its own: one slider, several, other methods, and Plotly out of reach."""

import shutil
from pathlib import Path

import pytest

from derived.book import explorer

pytestmark = pytest.mark.browser

SCRIPT = Path(__file__).parents[2] / "book/_static/explorer.js"
HEIGHTS = "() => document.querySelector('.explorer-plot').data[0].y"


def slider(name: str, values: list[int], method: str, args) -> dict:
    steps = [{"label": str(v), "value": str(v), "method": method, "args": args(v)} for v in values]
    return {"currentvalue": {"prefix": f"{name} = "}, "steps": steps}


def figure(sliders: list[dict], frames: dict[str, list[int]]) -> dict:
    return {
        "data": [{"type": "bar", "y": [0, 0]}],
        "layout": {"meta": {"alt": "Two bars."}, "sliders": sliders, "updatemenus": [{"buttons": []}]},
        "frames": [{"name": name, "data": [{"y": y}]} for name, y in frames.items()],
    }


def page_with(tmp_path: Path, browser, shown: dict, vendor: bool = True):
    if vendor:
        explorer.vendor(tmp_path / "vendor")
    shutil.copyfile(SCRIPT, tmp_path / "explorer.js")
    html = explorer.placeholder(shown, "vendor/plotly.min.js")
    text = f"<!DOCTYPE html><html data-theme='light'><script src='explorer.js'></script><body>{html}</body></html>"
    (tmp_path / "page.html").write_text(text, "utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    if vendor:
        page.wait_for_selector(".explorer[data-ready]")
    return page


def test_one_slider_animates_and_says_its_value(tmp_path, browser):
    frames = {"1": [1, 1], "2": [2, 4]}
    page = page_with(tmp_path, browser, figure([slider("beta", [1, 2], "animate", lambda v: [[str(v)]])], frames))
    control = page.locator("input[type=range]")
    assert control.get_attribute("aria-valuetext") == "beta = 1"
    assert control.get_attribute("aria-label") == "beta"
    control.press("ArrowRight")
    page.wait_for_function(f"({HEIGHTS})().join() === '2,4'")
    assert page.locator(".explorer-slider output").inner_text() == "beta = 2"
    assert page.locator(".updatemenu-container, .slider-container").count() == 0
    page.close()


def test_several_sliders_name_one_frame(tmp_path, browser):
    sliders = [slider(name, [1, 2], "animate", lambda v: [[str(v)]]) for name in "ab"]
    page = page_with(tmp_path, browser, figure(sliders, {f"{a}|{b}": [a, 10 * b] for a in (1, 2) for b in (1, 2)}))
    page.locator("input[type=range]").nth(1).press("End")
    page.wait_for_function(f"({HEIGHTS})().join() === '1,20'")
    page.locator("input[type=range]").nth(0).press("End")
    page.wait_for_function(f"({HEIGHTS})().join() === '2,20'")
    page.close()


def test_a_slider_may_restyle(tmp_path, browser):
    page = page_with(tmp_path, browser, figure([slider("n", [3, 5], "restyle", lambda v: [{"y": [[v, v]]}])], {}))
    page.locator("input[type=range]").press("End")
    page.wait_for_function(f"({HEIGHTS})().join() === '5,5'")
    page.close()


def test_words_remain_where_plotly_cannot_be_had(tmp_path, browser):
    page = page_with(tmp_path, browser, figure([], {}), vendor=False)
    page.wait_for_timeout(500)
    assert page.locator(".explorer-fallback").is_visible()
    assert page.locator(".explorer-fallback").inner_text() == "Two bars."
    page.close()
