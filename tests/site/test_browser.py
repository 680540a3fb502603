"""The built site in a browser without a network: errors, maths, dark, narrow, the ledger's filters, the explorers."""

import importlib.resources
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from weigh import Scale

pytestmark = pytest.mark.browser

TYPESET = """async () => {
  await window.MathJax?.startup?.promise;
  await window.MathJax?.startup?.document?.lazyTypesetAll?.();
  await document.fonts.ready;
  await new Promise(requestAnimationFrame);
}"""
LEFT = ("net::ERR_ABORTED",)  # a request that a test's own reload cut short
LOCAL = re.compile(r"http://127\.0\.0\.1[:/]|file:|data:|blob:")
THEMES, WIDTHS = ("dark", "light"), (390, 1280)
# Pages that are looked at in a wide window, too, with all of axe's rules and all of their maths.
CLOSELY = ("book/intro.html", "book/ledger.html", "notebooks/sinkhorn.html", "notebooks/geometric_tax.html")
UNTYPESET = """() =>
  [...document.querySelectorAll(".math")].filter((e) => e.checkVisibility() && !e.querySelector("mjx-math")).length"""
DRAWING = """(box) => [...box.querySelectorAll(".plot-container :is(path, image, text)")]
  .map((e) => e.outerHTML).join()"""
# Without preloading, which asks for style sheets of style sheets at the wrong address, for one rule that is off anyway.
# A formula is no stop of the Tab key, though it may be so wide that it scrolls: a chapter has a thousand. Contrast
# takes axe most of its time, and CONTRAST reads it in both themes. Rules that are neither serious nor mended are off.
RUN_AXE = """([contrast, mended]) => axe.run(document, { preload: false, resultTypes: ["violations"],
    rules: Object.fromEntries(axe._audit.rules
      .filter((rule) => !["serious", "critical"].includes(rule.impact) && !mended.includes(rule.id))
      .map((rule) => [rule.id, { enabled: false }])
      .concat(["color-contrast", "link-in-text-block"].map((id) => [id, { enabled: contrast }])))
  }).then(({ violations }) =>
  violations.flatMap(({ id, impact, nodes }) => nodes.map(({ html }) => [id, impact, html.slice(0, 160)]))
    .filter(([id, , html]) => id !== "scrollable-region-focusable" || !html.startsWith("<mjx-container")))"""
# Of a chapter and the ledger: megabytes before compression, without Plotly's script and MathJax; elements.
LIMITS = (0.9, 8_000)
PATIENCE = 120_000  # milliseconds that a page may take on a machine that does other things too; its weight has a test
EMPTY = "empty-table-header"  # a head that is a formula has no letters to axe, which shows it by its first tag alone
MENDED = [EMPTY, "aria-required-children", "label-content-name-mismatch"]
TWO_FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
UNFOLD = """() => {
  for (const fold of document.querySelectorAll("details.evidence, .claims-box details")) fold.open = true;
}"""
# What sticks out of the window although no box around it scrolls.
STICKS_OUT = """() => {
  const fits = (element) => element.getBoundingClientRect().right <= innerWidth + 1;
  const unseen = "[aria-hidden=true], .visually-hidden, mjx-assistive-mml, thead";
  const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX) && fits(element);
  const boxed = (element) => element && (scrolls(element) || boxed(element.parentElement));
  return [...document.querySelectorAll("article.bd-article *")]
    .filter((e) => e.getBoundingClientRect().width && !fits(e) && !e.closest(unseen) && !boxed(e))
    .map((e) => e.outerHTML.slice(0, 120));
}"""
# The contrast of all that has letters of its own. Layers and pairs of colours are read once each: a chapter has ten
# thousand pieces of code in ten colours.
CONTRAST = """() => {
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const rgb = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (c) => c.map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const known = new Map();
  const layers = (element) => {
    if (!element) return [];
    if (!known.has(element))
      known.set(element, [...layers(element.parentElement), getComputedStyle(element).backgroundColor]);
    return known.get(element);
  };
  const ratios = new Map();
  const ratio = (below, colour) => {
    const pair = [...below, colour].join();
    if (!ratios.has(pair)) {
      const [low, high] = [light(rgb(below)), light(rgb([...below, colour]))].sort((a, b) => a - b);
      ratios.set(pair, (high + 0.05) / (low + 0.05));
    }
    return ratios.get(pair);
  };
  const lettered = (e) => [...e.childNodes].some((node) => node.nodeType === 3 && /[\\p{L}\\p{N}]/u.test(node.data));
  const painted = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true });
  const unread = "script, style, noscript, svg *, mjx-container *, .visually-hidden, [aria-hidden=true] *, :disabled";
  return [...document.querySelectorAll("body *")].filter((e) => lettered(e) && !e.closest(unread) && painted(e))
    .map((e) => [ratio(layers(e), getComputedStyle(e).color), e])
    .filter(([found]) => found < 4.5).map(([found, e]) => [found, e.outerHTML.slice(0, 100)]);
}"""


@contextmanager
def blank(browser, width: int = 1280, height: int = 900) -> Iterator:
    """A tab of its own; leaving it fails on any error or request to another host."""
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    context.set_default_navigation_timeout(PATIENCE)
    page = context.new_page()
    trouble: list[str] = []
    page.on("console", lambda m: trouble.append(f"{m.type}: {m.text}") if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: trouble.append(f"error: {error}"))
    page.on("requestfailed", lambda r: None if r.failure in LEFT else trouble.append(f"{r.failure}: {r.url}"))
    page.on("response", lambda r: trouble.append(f"{r.status}: {r.url}") if r.status >= 400 else None)
    page.on("request", lambda r: None if LOCAL.match(r.url) else trouble.append(f"foreign: {r.url}"))
    yield page
    url = page.url
    context.close()
    assert not trouble, url


@contextmanager
def opened(browser, url: str, width: int = 1280, height: int = 900, *, typeset: bool = False) -> Iterator:
    """A page as a reader meets it, or after all its maths is typeset."""
    with blank(browser, width, height) as page:
        page.goto(url, wait_until="load")
        if typeset:
            page.evaluate(TYPESET)
        yield page


@pytest.fixture(scope="session")
def axe() -> str:
    return (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")


def test_a_page_opens_well(browser, site, axe, page_name):
    """One visit of each page, from a disk, answers all that is asked of it: in a window of a phone, which becomes as
    wide as that of a desktop where it is looked at closely.

    Axe looks before all maths is typeset, which is one template and has most of the elements. Colours are read before
    too: where letters of a formula are not set they are there as TeX.
    """
    closely, chapter = page_name in CLOSELY, page_name.startswith("notebooks/")
    widths = WIDTHS if closely else WIDTHS[:1]
    with blank(browser, widths[0]) as page:
        scale = Scale(page)
        page.goto(f"{site.as_uri()}/{page_name}", wait_until="load")
        wrong = too_heavy(page_name, scale)
        for width in widths:
            resize(page, width)
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                page.evaluate(TWO_FRAMES)
                wrong += off_colour(page, theme)
            wrong += violations(page, axe, contrast=closely and width < 1000)
            page.evaluate(UNFOLD)
            page.evaluate(TYPESET)
            wrong += faults(page)
        if chapter:
            move_explorers(page, page_name)
            unfold_a_solution(page)
    assert not wrong


def resize(page, width: int) -> None:
    """Make a window as wide as that, if it is not."""
    if page.viewport_size["width"] != width:
        page.set_viewport_size({"width": width, "height": page.viewport_size["height"]})
        page.wait_for_timeout(400)  # a third of a second after, the theme says anew what a keyboard can scroll
        page.evaluate(TWO_FRAMES)


def too_heavy(name: str, scale: Scale) -> list[str]:
    """What a chapter or the ledger weighs too much; weigh.py also measures seconds, which differ between machines."""
    if not name.startswith(("notebooks/", "book/ledger")):
        return []
    found = zip(scale.read()[:2], LIMITS, ("MB", "elements"), strict=True)
    return [f"{has:.2f} {unit}" for has, most, unit in found if has > most]


def off_colour(page, theme: str) -> list[str]:
    """Contrast below 4.5, and another theme than was asked for."""
    found = [f"{theme}: contrast {ratio:.1f}: {html}" for ratio, html in page.evaluate(CONTRAST)]
    if page.evaluate("document.documentElement.dataset.theme") != theme:
        found.append(f"is not {theme}")
    return found


def faults(page) -> list[str]:
    """What is wider than the window, and formulas that are not typeset, are wrong, or stop the Tab key."""
    found = [f"sticks out: {html}" for html in page.evaluate(STICKS_OUT)]
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("the page scrolls sideways")
    if page.evaluate("[...document.querySelectorAll('.claims-box')].some((e) => e.scrollWidth > e.clientWidth + 1)"):
        found.append("a table of claims is too wide")
    if count := page.evaluate(UNTYPESET):
        found.append(f"{count} formulas are not typeset")
    found += [f"MathJax: {text}" for text in page.locator("mjx-merror, [data-mjx-error]").all_inner_texts()]
    if page.locator("mjx-container[tabindex='0']").count():
        found.append("a formula is a stop of the Tab key")
    return found


def violations(page, axe: str, contrast: bool = False) -> list[str]:
    """What axe finds that is serious, or was mended once."""
    page.evaluate(axe)
    return [
        f"axe: {rule}, {impact}: {html}"
        for rule, impact, html in page.evaluate(RUN_AXE, [contrast, MENDED])
        if (impact in ("serious", "critical") or rule in MENDED) and not (rule == EMPTY and not html.endswith("</th>"))
    ]


def test_a_formula_is_typeset_when_it_comes_near(browser, address, chapters):
    context = browser.new_context(viewport={"width": 390, "height": 900})
    page = context.new_page()
    page.goto(f"{address}{chapters[0].name}")
    last = page.locator("article .math").last
    last.scroll_into_view_if_needed()
    page.wait_for_function("(formula) => formula.querySelector('mjx-math')", arg=last.element_handle())
    context.close()


def visible_claims(page) -> list[str]:
    """What the filters let through, folded or not."""
    return page.evaluate("[...document.querySelectorAll('tr.claim')].filter((r) => !r.hidden).map((r) => r.id)")


def test_the_ledger_filters(browser, site):
    with opened(browser, f"{site.as_uri()}/book/ledger.html") as page:
        everything = visible_claims(page)
        chip = page.locator(".chip:has(input[value=holds])")
        holding = page.locator("tr.claim[data-verdict=holds]").count()
        assert holding > 0
        chip.click()
        assert holding <= len(visible_claims(page)) < len(everything)  # with those that amend them
        assert page.locator("tr.claim[data-verdict=holds]").last.is_visible(), "a fold opens for what it holds"
        assert page.url.endswith("#verdict=holds")
        assert page.locator(".ledger-count output").inner_text().startswith(f"{holding} of {len(everything)} claims")
        source = page.get_attribute("tr.claim[data-verdict=holds]", "data-source")
        page.select_option("select[name=source]", source)
        both = page.locator(f"tr.claim[data-verdict=holds][data-source={source}]").count()
        assert page.locator(".chip:has(input[value=holds]) .chip-count").inner_text() == str(both)
        assert page.url.endswith(f"#source={source}&verdict=holds")
        page.select_option("select[name=source]", "")
        first = page.locator("tr.claim[data-verdict=holds]").last.get_attribute("id")
        page.fill(".ledger-filters input[name=q]", first.lower())
        matched = [name for name in visible_claims(page) if first in name]
        assert matched
        assert page.locator(".ledger-count output").inner_text().startswith(f"{len(matched)} of ")
        page.reload()
        assert page.input_value(".ledger-filters input[name=q]") == first.lower()
        assert page.locator("input[value=holds]").is_checked()
        page.click("button[type=reset]")
        page.wait_for_function("!location.hash")
        assert visible_claims(page) == everything


def test_a_filter_and_a_claim_can_be_linked_to_and_a_phone_shows_cards(browser, address):
    with opened(browser, f"{address}book/ledger.html", width=390) as page:
        row = page.locator("tr.claim").last
        assert row.evaluate("(e) => getComputedStyle(e).display") == "block"
        claim, paper = row.get_attribute("id"), row.get_attribute("data-paper")
    with opened(browser, f"{address}book/ledger.html#{claim}") as page:
        page.wait_for_function(
            "(id) => document.getElementById(id).getBoundingClientRect().top < innerHeight", arg=claim
        )
        assert page.locator(f"[id='{claim}']").is_visible()
    with opened(browser, f"{address}book/ledger.html#paper={paper}") as page:
        assert page.input_value("select[name=paper]") == paper
        assert len(visible_claims(page)) == page.locator(f"tr.claim[data-paper='{paper}']").count()


def unfold_a_solution(page) -> None:
    solution = page.locator("div.solution").first
    before = solution.bounding_box()["height"]
    solution.locator(".admonition-title").click()
    height = "([box, before]) => box.getBoundingClientRect().height > before + 10"
    page.wait_for_function(height, arg=[solution.element_handle(), before])


def move_explorers(page, name: str) -> None:
    """Press each slider of each explorer once."""
    boxes = page.locator(".explorer")
    for box in (boxes.nth(index) for index in range(boxes.count())):
        box.scroll_into_view_if_needed()
        page.wait_for_function("(box) => box.dataset.ready", arg=box.element_handle())
        assert box.get_attribute("aria-label")
        assert box.locator("[data-title*=Share]").count() == 0, "a button that uploads"
        sliders = box.locator("input[type=range]")
        assert sliders.count(), f"{name}: an explorer has no slider"
        for slider in (sliders.nth(i) for i in range(sliders.count())):
            before, words = box.evaluate(DRAWING), slider.get_attribute("aria-valuetext")
            slider.focus()
            slider.press("ArrowLeft" if slider.input_value() == slider.get_attribute("max") else "ArrowRight")
            page.wait_for_function(
                f"([box, before]) => ({DRAWING})(box) !== before", arg=[box.element_handle(), before]
            )
            assert slider.get_attribute("aria-valuetext") != words


def test_the_book_reads_without_scripts(browser, address, chapters):
    """Every claim is shown, a chapter is whole, and an explorer says in words what there would be to see."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{address}book/ledger.html")
    claims = page.locator("tr.claim")
    assert claims.count() > 0
    assert claims.evaluate_all("(rows) => rows.every((row) => row.checkVisibility())")
    assert not page.locator(".ledger-filters").is_visible()
    page.goto(address + next(each for each in chapters if each.article.select(".explorer")).name)
    for css in (".explorer-fallback", ".cell_input:not(details *)", ".exercise", "figure", ".opening-lines"):
        assert page.locator(f"article {css}").first.is_visible(), css
    context.close()


def test_a_link_into_a_proof_opens_it_and_paper_shows_them_all(browser, address, chapters):
    with opened(browser, address + chapters[0].name) as page:
        proofs = page.locator(".proof-fold:not(.admonition .proof-fold)")  # an appendix has a fold of its own
        assert proofs.count()
        assert not proofs.last.locator(".proof").is_visible()
        inside = page.evaluate("document.querySelector('.proof-fold [id]:not(.proof-fold)')?.id ?? ''")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert all(proofs.nth(i).locator(".proof").is_visible() for i in range(proofs.count()))
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert not proofs.last.locator(".proof").is_visible()
        if inside:
            page.evaluate("(id) => (location.hash = id)", inside)
            page.wait_for_function("(id) => document.getElementById(id).checkVisibility()", arg=inside)
