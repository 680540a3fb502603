"""The built site, read as files: links, pictures, leftovers of markup."""

import itertools
import json
import re
from collections import Counter
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup, Comment

RESOURCES = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "object": "data",
    "embed": "src",
}
NO_RESOURCE = {"canonical", "next", "prev", "index", "search", "author", "copyright", "edit"}
UNTYPESET = ("pre", "code", "script", "style", "textarea", "title")


def is_foreign(url: str) -> bool:
    return bool(urlsplit(url).netloc) or url.startswith("//")


def test_nothing_is_loaded_from_elsewhere(site, every_page):
    texts = {str(path.relative_to(site)): path.read_text("utf-8") for path in site.rglob("*.css")}
    texts |= {page.name: " ".join(t.get_text() for t in page.soup.find_all("style")) for page in every_page}
    loads = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])((?:https?:)?//[^'")]+)""")
    found = [f"{name}: {url}" for name, text in texts.items() for url in loads.findall(text)]
    found += [
        f"{page.name}: {tag[RESOURCES[tag.name]]}"
        for page in every_page
        for tag in page.soup.find_all(list(RESOURCES))
        if is_foreign(tag.get(RESOURCES[tag.name], "")) and not set(tag.get("rel", [])) & NO_RESOURCE
    ]
    assert not found


def targets(soup: BeautifulSoup) -> set[str]:
    return (
        {""}
        | {tag["id"] for tag in soup.find_all(id=True)}
        | {tag["name"] for tag in soup.find_all("a", attrs={"name": True})}
    )


def test_every_link_and_anchor_leads_somewhere(site, every_page):
    anchors = {page.name: targets(page.soup) for page in every_page}
    broken = []
    for page in every_page:
        links = {tag["href"] for tag in page.soup.find_all("a", href=True)}
        links |= {tag.get(RESOURCES[tag.name], "") for tag in page.soup.find_all(list(RESOURCES))} - {""}
        for url in sorted(links):
            parts = urlsplit(url)
            if parts.scheme or parts.netloc or url.startswith("data:"):
                continue
            path = ((site / page.name).parent / unquote(parts.path)).resolve() if parts.path else site / page.name
            if path.is_dir():
                path /= "index.html"
            name = str(path.relative_to(site)) if path.is_relative_to(site) else "outside of the site"
            if not path.is_file():
                broken.append(f"{page.name}: {url}")
            elif "=" not in parts.fragment and unquote(parts.fragment) not in anchors.get(
                name, {unquote(parts.fragment)}
            ):
                broken.append(f"{page.name}: no anchor {url}")
    assert not broken


def readable(article: BeautifulSoup) -> str:
    """The text that a reader sees, without code and maths."""
    kept = []
    for text in article.find_all(string=True):
        parents = list(text.parents)
        hidden = any(p.name in UNTYPESET or "math" in p.get("class", []) for p in parents)
        if not hidden and not isinstance(text, Comment):
            kept.append(text)
    return " ".join(kept)


LEFTOVERS = {
    "a role": r"\{[a-z:]+\}(?:`|\w+`)",
    "a directive": r":::|\{(?:prf:|admonition|figure|math|note|exercise|solution)[\w-]*\}",
    "a fence": r"```",
    "a dollar sign": r"\$",
    "a link of Markdown": r"\]\([^)\s]+\)",
    "an emphasis of Markdown": r"\*\*\w",
    "a TeX command": r"\\(?:frac|begin|end|operatorname|mathbb|label|ref|eqref)\b",
    "an undefined reference": r"\?\?",
}


def test_no_markup_is_left_in_the_text(pages):
    comments = [f"{p.name}: {c}" for p in pages for c in p.article.find_all(string=lambda t: isinstance(t, Comment))]
    found = [f"a placeholder: {each}" for each in comments]
    for page in pages:
        text = readable(page.article)
        for what, pattern in LEFTOVERS.items():
            found += [
                f"{page.name}: {what}: …{text[max(m.start() - 30, 0) : m.end() + 30]}…"
                for m in re.finditer(pattern, text)
            ]
    assert not found


def test_no_page_shows_a_warning_or_an_error(every_page):
    bad = ".system-message, .problematic, .output.stderr, .output.traceback"
    found = [f"{page.name}: {tag.get_text()[:200]}" for page in every_page for tag in page.soup.select(bad)]
    found += [f"{page.name}: WARNING in its text" for page in every_page if "WARNING" in page.soup.get_text()]
    assert not found


def test_ids_are_unique(every_page):
    found = []
    for page in every_page:
        seen = Counter(tag["id"] for tag in page.soup.find_all(id=True))
        found += [f"{page.name}: {name} ({count} times)" for name, count in seen.items() if count > 1]
    assert not found


def test_headings_form_a_tree(pages):
    for page in pages:
        levels = [int(tag.name[1]) for tag in page.article.find_all(re.compile("^h[1-6]$"))]
        assert levels[0] == levels.count(1) == 1, page.name
        assert all(after - before <= 1 for before, after in itertools.pairwise(levels)), f"{page.name}: {levels}"


def test_the_ledger_has_every_claim(site, pages):
    (ledger,) = (page for page in pages if page.name == "book/ledger.html")
    rows = json.loads((site / "downloads/ledger.json").read_text("utf-8"))
    shown = [tag["id"] for tag in ledger.soup.select("tr.claim")]
    assert sorted(shown) == sorted(row["id"] for row in rows if row["headline"])
    assert {row["id"] for row in rows} == set(shown)
    theirs = {tag["id"].removeprefix("claim-") for p in pages if p.is_chapter for tag in p.soup.select("tr.claim")}
    assert theirs == {row["id"] for row in rows if row["headline"] and row["source"] in ("paper", "repo", "digest")}


def test_every_explorer_has_four_stops_a_slider_and_the_colours_of_the_page(site, chapters):
    for page in chapters:
        boxes = page.article.select(".explorer")
        for box in boxes:
            figure = (site / page.name).parent / box["data-figure"]
            first = figure.read_text("utf-8").splitlines()[0].split(" = ", 1)[1]
            layout = json.loads(first.removesuffix(";"))["layout"]
            few = [len(slider["steps"]) for slider in layout["sliders"] if len(slider["steps"]) < 4]
            assert not few, f"{figure.name}: a slider of {few} stops"
            assert "color" not in layout.get("font", {}), f"{figure.name}: words in a colour that is lost in the dark"
