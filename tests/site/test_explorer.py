"""The script of the explorers on figures of its own: sliders of all kinds, narrow and dark pages, no Plotly."""

import shutil
from pathlib import Path

import pytest

from bookbuilder.chapter_pages import explorer

pytestmark = pytest.mark.browser

STATIC = Path(__file__).parents[2] / "book/_static"
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


def page_with(tmp_path: Path, browser, shown: dict, vendor: bool = True, anchor: str = ""):
    if vendor:
        explorer.vendor(tmp_path / "vendor")
    for name in ("explorer.js", "book.css"):
        shutil.copyfile(STATIC / name, tmp_path / name)
    html = explorer.placeholder(shown, "vendor/plotly.min.js", "explorer-1", "one")
    (tmp_path / "one.js").write_text(explorer.script(shown, "one.js"), "utf-8")
    head = "<link rel='stylesheet' href='book.css'><script src='explorer.js'></script>"
    text = f"<!DOCTYPE html><html data-theme='light'>{head}<body>{html}</body></html>"
    (tmp_path / "page.html").write_text(text, "utf-8")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri() + anchor)
    if vendor:
        page.wait_for_selector(".explorer[data-ready]")
    return page


def test_a_slider_animates_says_its_value_and_plays_to_its_end(tmp_path, browser):
    frames = {str(n): [n, n] for n in (1, 2, 3)}
    shown = figure([slider("beta", [1, 2, 3], "animate", lambda v: [[str(v)]])], frames)
    shown["layout"]["meta"]["play"] = 500
    page = page_with(tmp_path, browser, shown)
    control = page.locator("input[type=range]")
    assert control.get_attribute("aria-valuetext") == "beta = 1"
    assert control.get_attribute("aria-label") == "beta"
    control.press("ArrowRight")
    page.wait_for_function(f"({HEIGHTS})().join() === '2,2'")
    assert page.locator(".explorer-slider output").inner_text() == "beta = 2"
    assert page.locator(".updatemenu-container, .slider-container").count() == 0
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(f"({HEIGHTS})().join() === '3,3'")
    page.get_by_role("button", name="Play", exact=True).click()  # it has come to rest; from the start again
    page.wait_for_function(f"({HEIGHTS})().join() === '1,1'")
    page.close()


def test_several_sliders_name_one_frame_stand_in_the_address_and_are_set_by_it(tmp_path, browser):
    sliders = [slider(name, [1, 2, 3], "animate", lambda v: [[str(v)]]) for name in "ab"]
    shown = figure(sliders, {f"{a}|{b}": [a, 10 * b] for a in (1, 2, 3) for b in (1, 2, 3)})
    page = page_with(tmp_path, browser, shown, anchor="#explorer-1=1,2")
    page.wait_for_function(f"({HEIGHTS})().join() === '2,30'")
    assert page.locator(".explorer-slider output").all_inner_texts() == ["a = 2", "b = 3"]
    page.locator("input[type=range]").nth(0).press("End")
    page.wait_for_function(f"({HEIGHTS})().join() === '3,30' && location.hash === '#explorer-1=2,2'")
    page.evaluate("location.hash = '#explorer-1=9,x'")  # no such place: they stay
    page.evaluate("location.hash = '#explorer-1=2,0'")
    page.wait_for_function(f"({HEIGHTS})().join() === '3,10'")
    page.close()


def side_by_side() -> dict:
    """Two panels with titles, in colours of the light page."""
    shown = figure([], {})
    shown["data"] = [
        {"y": [1, 2], "line": {"color": "#0072B2"}},
        {"y": [3, 4], "xaxis": "x2", "yaxis": "y2", "line": {"color": "#123456"}, "marker": {"color": "#777777"}},
    ]
    ends = ([0, 0.45], [0.55, 1])
    axes = {f"{axis}axis{n}": {"anchor": f"{other}{n}"} for axis, other in ("xy", "yx") for n in ("", "2")}
    for number, domain in zip(("", "2"), ends, strict=True):
        axes[f"xaxis{number}"]["domain"] = domain
    titles = [
        {"text": "a title", "x": sum(e) / 2, "y": 1, "xref": "paper", "yref": "paper", "showarrow": False} for e in ends
    ]
    shown["layout"] |= {**axes, "annotations": titles, "height": 300}
    return shown


LAYOUT = """() => {
  const plot = document.querySelector('.explorer-plot'), box = (axis) => axis.domain.map((x) => Math.round(100 * x));
  const { xaxis, xaxis2, yaxis, yaxis2, annotations } = plot._fullLayout;
  const titles = annotations.map((a) => Math.round(100 * a.y));
  return { x: [box(xaxis), box(xaxis2)], y: [box(yaxis), box(yaxis2)], titles, height: plot.clientHeight };
}"""


def test_panels_are_stacked_on_a_narrow_page_and_colours_are_those_of_a_dark_one(tmp_path, browser):
    page = page_with(tmp_path, browser, side_by_side())
    wide = page.evaluate(LAYOUT)
    assert wide["x"] == [[0, 45], [55, 100]]
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function(f"({LAYOUT})().height === 560")
    narrow = page.evaluate(LAYOUT)
    assert narrow["x"] == [[0, 100], [0, 100]]
    assert 0 == narrow["y"][1][0] < narrow["y"][1][1] < narrow["y"][0][0]
    assert narrow["titles"] == [100, narrow["y"][1][1]]
    page.set_viewport_size({"width": 1200, "height": 800})
    page.wait_for_function(f"({LAYOUT})().height === {wide['height']}")
    assert page.evaluate(LAYOUT) == wide
    colours = "() => document.querySelector('.explorer-plot').data.map((t) => [t.line.color, t.marker?.color ?? null])"
    light = page.evaluate(colours)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"({colours})()[1][1] === '#A9B3BC'")
    assert page.evaluate(colours) == [["#56B4E9", None], ["#123456", "#A9B3BC"]]
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    page.wait_for_function(f"({colours})()[1][1] === '#777777'")
    assert page.evaluate(colours) == light
    page.close()


def test_a_computed_explorer_draws_what_its_function_returns(tmp_path, browser):
    shown = figure([slider(name, [1, 2, 3], "skip", lambda v: []) for name in "ab"], {})
    compute = (
        "const twice = (x) => 2 * x;\nfunction compute([a, b], { c }) { return { data: [{ y: [a, twice(b) + c] }] }; }"
    )
    shown["layout"]["meta"] |= {"compute": compute, "given": {"c": 100}}
    page = page_with(tmp_path, browser, shown, anchor="#explorer-1=1,2")
    page.wait_for_function(f"({HEIGHTS})().join() === '2,106'")
    page.locator("input[type=range]").nth(0).press("End")
    page.wait_for_function(f"({HEIGHTS})().join() === '3,106'")
    page.wait_for_function("location.hash === '#explorer-1=2,2'")
    assert page.evaluate("typeof twice") == "undefined"  # names of a figure stay its own
    page.close()


def test_words_remain_where_plotly_cannot_be_had(tmp_path, browser):
    shown = figure([slider("n", [1, 2], "animate", lambda v: [[str(v)]])], {"1": [1, 1], "2": [2, 4]})
    page = page_with(tmp_path, browser, shown, vendor=False)
    page.wait_for_function("document.querySelector('.explorer-fallback')?.checkVisibility()")
    assert page.locator(".explorer-fallback").inner_text() == "Two bars."
    page.close()
