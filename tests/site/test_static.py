"""The built site, read as files: links, pictures, leftovers of markup, weights, downloads."""

import copy
import itertools
import json
import re
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
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


def test_nothing_is_loaded_from_elsewhere(every_page):
    found = [
        f"{page.name}: {tag[RESOURCES[tag.name]]}"
        for page in every_page
        for tag in page.soup.find_all(list(RESOURCES))
        if is_foreign(tag.get(RESOURCES[tag.name], "")) and not set(tag.get("rel", [])) & NO_RESOURCE
    ]
    assert not found


def test_style_sheets_load_nothing_from_elsewhere(site, every_page):
    texts = {str(path.relative_to(site)): path.read_text("utf-8") for path in site.rglob("*.css")}
    texts |= {page.name: " ".join(t.get_text() for t in page.soup.find_all("style")) for page in every_page}
    loads = re.compile(r"""(?:url\(\s*['"]?|@import\s+['"])((?:https?:)?//[^'")]+)""")
    assert not [f"{name}: {url}" for name, text in texts.items() for url in loads.findall(text)]


def test_letters_of_figures_are_in_every_font(site):
    private = re.compile("[\ue000-\uf8ff]")  # what a mathematical font of its own has there, no other shows
    assert not [path.name for path in site.rglob("*.svg") if private.search(path.read_text("utf-8"))]


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
        links = [(tag.get("href"), tag) for tag in page.soup.find_all("a", href=True)]
        links += [
            (tag[RESOURCES[tag.name]], tag)
            for tag in page.soup.find_all(list(RESOURCES))
            if tag.get(RESOURCES[tag.name])
        ]
        for url, _ in links:
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


def test_links_into_the_ledger_use_its_words(pages):
    (ledger,) = (page for page in pages if page.name == "book/ledger.html")
    papers = {tag["value"] for tag in ledger.soup.select("select[name=paper] option")}
    verdicts = {tag["value"] for tag in ledger.soup.select("input[name=verdict]")}
    sources = {tag["value"] for tag in ledger.soup.select("select[name=source] option")}
    for page in pages:
        for tag in page.soup.select("a[href*='ledger.html#']"):
            state = dict(re.findall(r"(paper|verdict|source)=([\w-]+)", tag["href"]))
            assert state.get("paper", "") in papers, f"{page.name}: {tag['href']}"
            assert state.get("verdict", "holds") in verdicts, f"{page.name}: {tag['href']}"
            assert state.get("source", "") in sources, f"{page.name}: {tag['href']}"


def test_every_picture_has_words(pages):
    mute = [f"{p.name}: {img['src']}" for p in pages for img in p.soup.find_all("img") if img.get("alt") is None]
    mute += [f"{p.name}: {img['src']}" for p in pages for img in p.article.find_all("img") if not img.get("alt")]
    assert not mute


def test_every_figure_has_a_numbered_caption(chapters):
    bare = [
        f"{page.name}: {figure.get('id')}"
        for page in chapters
        for figure in page.article.find_all("figure")
        if not figure.select_one("figcaption .caption-number")
    ]
    assert not bare


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
    found = []
    for page in pages:
        text = readable(page.article)
        for what, pattern in LEFTOVERS.items():
            found += [
                f"{page.name}: {what}: …{text[max(m.start() - 30, 0) : m.end() + 30]}…"
                for m in re.finditer(pattern, text)
            ]
    assert not found


def test_no_placeholder_is_left(pages):
    comments = [f"{p.name}: {c}" for p in pages for c in p.article.find_all(string=lambda t: isinstance(t, Comment))]
    assert not comments


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
        assert levels[0] == 1, page.name
        assert levels.count(1) == 1, page.name
        steps = itertools.pairwise(levels)
        assert all(after - before <= 1 for before, after in steps), f"{page.name}: {levels}"


def test_pages_are_light(site, pages):
    """What a phone must fetch before it can show a page, explorers' script excepted."""
    heavy = []
    for page in pages:
        tags = page.soup.select("script[src], link[rel=stylesheet], img")
        urls = {tag.get("src") or tag.get("href") for tag in tags}
        files = [((site / page.name).parent / unquote(urlsplit(url).path)).resolve() for url in urls]
        own = (site / page.name).stat().st_size
        total = own + sum(file.stat().st_size for file in files if file.is_file())
        if own > 3e6 or total > 8e6:
            heavy.append(f"{page.name}: {own / 1e6:.1f} MB, {total / 1e6:.1f} MB with what it loads")
    assert not heavy


def test_a_chapter_has_every_part(chapters):
    parts = {
        "its opening": ".opening-lines",
        "a theorem": "div.proof.admonition",
        "a figure": "figure img",
        "an exercise": "div.exercise",
        "a solution": "div.solution",
        "the paper's claims": "table.claims tr.claim",
    }
    missing = [
        f"{page.name}: {what}" for page in chapters for what, css in parts.items() if not page.article.select(css)
    ]
    assert not missing


def test_the_ledger_has_every_claim(site, pages):
    (ledger,) = (page for page in pages if page.name == "book/ledger.html")
    rows = json.loads((site / "downloads/ledger.json").read_text("utf-8"))
    shown = [tag["id"] for tag in ledger.soup.select("tr.claim")]
    assert sorted(shown) == sorted(row["id"] for row in rows if row["headline"])
    assert {row["id"] for row in rows} == set(shown)
    theirs = {tag["id"].removeprefix("claim-") for p in pages if p.is_chapter for tag in p.soup.select("tr.claim")}
    assert theirs == {row["id"] for row in rows if row["headline"] and row["source"] in ("paper", "repo", "digest")}


def test_downloads_are_whole(site: Path, chapters):
    for page in chapters:
        slug = Path(page.name).stem
        full, student = (
            nbformat.read(site / f"downloads/{slug}{kind}.ipynb", as_version=4) for kind in ("", "-student")
        )
        for notebook in (full, student):
            nbformat.validate(notebook)
            assert not any(cell.get("outputs") for cell in notebook.cells), slug
            first = next(cell for cell in notebook.cells if cell.cell_type == "code")
            assert "pip install ./" in first.source or "pip install git+" in first.source, slug
        assert not any("solution" in cell.metadata.get("tags", []) for cell in student.cells), slug
        assert len(student.cells) < len(full.cells), f"{slug}: no cell is tagged solution"
    assert len(list((site / "downloads").glob("*.whl"))) == 1


def test_every_explorer_has_four_stops_a_slider_a_still_and_the_colours_of_the_page(site, chapters):
    for page in chapters:
        boxes = page.article.select(".explorer")
        for box in boxes:
            figure, still = ((site / page.name).parent / url for url in (box["data-figure"], box.noscript.img["src"]))
            assert still.read_text("utf-8").count("<") > 100, still
            first = figure.read_text("utf-8").splitlines()[0].split(" = ", 1)[1]
            layout = json.loads(first.removesuffix(";"))["layout"]
            few = [len(slider["steps"]) for slider in layout["sliders"] if len(slider["steps"]) < 4]
            assert not few, f"{figure.name}: a slider of {few} stops"
            assert "color" not in layout.get("font", {}), f"{figure.name}: words in a colour that is lost in the dark"


#: A name of a program, or a power of ten as programs print it; LayerNorm and ListOps are people's names for things.
NAME_OR_POWER = re.compile(r"[a-z]{2}_\w|\de[+-]\d|^(?!LayerNorm|ListOps|DeltaNet|LaCT|DyT)[A-Z][a-z]+[A-Z]")


def test_heads_of_tables_are_words(chapters):
    """What a cell shows is a table for readers: no name of a program heads it, and its numbers are written as people
    write them."""
    found = []
    for page in chapters:
        tables = page.article.select("table.dataframe")
        heads = [head.get_text() for table in tables for head in table("th")]
        found += [f"{page.name}: {head}" for head in heads if NAME_OR_POWER.search(head)]
        cells = [cell.get_text() for cell in page.article.select("table.races td[data-label*=thread]")]
        found += [f"{page.name}: {cell}" for cell in cells if re.search(r"\de[+-]\d", cell)]
    assert not found


def test_the_summary_is_short(chapters):
    """At most 450 words to read: a formula counts as one, and links to statements, claims and papers as none."""
    found = {}
    for page in chapters:
        section = copy.copy(page.soup.find(id="in-short"))
        for part in section.select(
            "figure, .explorer, .cell, details, script, style, noscript, a.reference, a.headerlink"
        ):
            part.decompose()
        for formula in section.select(".math"):
            formula.replace_with(" x ")
        found[page.name] = sum(any(map(str.isalnum, word)) for word in section.get_text(" ").split())
    assert min(found.values()) > 120
    assert max(found.values()) <= 450, found


def test_no_verdict_is_glued_into_a_sentence(chapters):
    """A sentence says what was found; «(XX-1.a): holds» is a row of a table."""
    glued = re.compile(r"[A-Z]{2,3}-\w+(?:\.\w+)? ?\)? ?: ?(?:holds|fails|undecided|refuted|reported)\b")
    found = []
    for page in chapters:
        article = copy.copy(page.soup.select_one("article"))
        for part in article.select("table, pre, .claims-box, script, style"):
            part.decompose()
        found += [f"{page.name}: {each}" for each in glued.findall(" ".join(article.get_text(" ").split()))]
    assert not found
