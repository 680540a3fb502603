"""From any claim to all of its evidence and back, on the built site."""

import json
import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

import pytest

from bookbuilder.notebook.statements import RESULTS

# What stands where a link of a claim's place leads, by the words before the link or in it.
THERE = {
    "statement": "div.proof.admonition",
    "its proof": "div.proof",
    "its check": "div.cell_input",
    "seen in": "figcaption",
    "experiment": "div.cell_input, figure",  # the code of an opening is not shown
    "tested by": "pre",
    "recorded": "td",
    "its record": "td",
    "live": "td",
    "BibTeX of the paper": "pre",
}


@pytest.fixture(scope="module")
def places(every_page) -> dict:
    """The place of each claim, by paper and id."""
    return {
        (page.name.removeprefix("claims/").removesuffix(".html"), place["data-claim"]): place
        for page in every_page
        if page.name.startswith("claims/")
        for place in page.soup.select("details.evidence")
    }


def test_every_claim_has_a_place_and_its_rows_lead_there(site, every_page, places):
    rows = json.loads((site / "downloads/ledger.json").read_text("utf-8"))
    assert set(places) == {(row["paper"], row["id"]) for row in rows if row["headline"]}
    for page in every_page:
        for row in page.soup.select("tr.claim"):
            place = f"../claims/{row['data-paper']}.html#{row['data-claim']}"
            assert row.select_one(f'a[href="{place}"]'), place


def test_the_index_has_every_statement_of_every_chapter(every_page, chapters):
    (index,) = (page for page in every_page if page.name == "book/theorems.html")
    listed = [row.select_one("th a")["href"] for row in index.soup.select("tr.statement")]
    boxes = [f"../{page.name}#{box['id']}" for page in chapters for box in page.soup.select("div.proof.admonition[id]")]
    assert sorted(listed) == sorted(boxes)
    assert all(any(sign.isdigit() for sign in row.th.a.get_text()) for row in index.soup.select("tr.statement"))


def test_three_clicks_lead_from_any_claim_to_all_that_decides_it(every_page, chapters):
    """The id of a claim in its chapter leads to its place, and a link there to statement, proof, check, run, record and
    test, each of which holds what it promises: two clicks, and files alone."""
    pages = {page.name: page for page in every_page}
    anchors = {name: {tag["id"]: tag for tag in page.soup.find_all(id=True)} for name, page in pages.items()}
    lacking = []
    for chapter in chapters:
        for row in chapter.article.select("tr.claim"):
            head = at(anchors, chapter.name, row.select_one(".claim-name a")["href"])
            place = head and head.find_parent("details", class_="evidence")
            lost = ["its place"] if place is None else lacks(anchors, f"claims/{chapter.name.split('/')[1]}", place)
            lacking += [f"{row['data-claim']}: {what}" for what in lost]
    assert lacking == []


def at(anchors: dict, page: str, href: str):
    """What stands where a link leads; None where nothing does."""
    path, _, anchor = href.partition("#")
    name = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
    return anchors.get(name, {}).get(unquote(anchor))


def lacks(anchors: dict, page: str, place) -> Iterator[str]:
    """What the place of a claim does not hold, and its links that lead to nothing or to something else."""
    said = {term.get_text(): term.find_next_sibling("dd") for term in place.select("dt")}
    verdict = place.select_one("summary .verdict")
    if not place.select_one(".evidence-said").get_text(strip=True):
        yield "a statement"
    if verdict is None or not said["found"].select("code"):
        yield "a verdict with its tier"
    judged = verdict is not None and not {"verdict-reported", "verdict-not-run"} & set(verdict["class"])
    if judged and "criterion" not in said:
        yield "a criterion"
    for run in said["found"].select("div:has(> .verdict)"):
        if not run.select("a") and "(" not in run.get_text():
            yield "a record or a reason"
    if "experiment" in said and not {"run it", "run it again"} & set(said):
        yield "a command"
    tested = "decided by" in said or ("tested by" in said and said["tested by"].a)
    if ("rests on" in said or "experiment" in said) and not tested:
        yield "a test"
    links = [(link, link.get_text()) for term in ("found", "rests on") if term in said for link in said[term]("a")]
    links += [
        (link, term) for term in ("experiment", "seen in", "tested by") if term in said for link in said[term]("a")
    ]
    links += [(link, link.get_text()) for link in place.select(".evidence-ways a[href='#bibtex']")]
    if "BibTeX of the paper" not in {words for _, words in links}:
        yield "BibTeX"
    for link, words in links:
        kind = words.split()[0].lower() if words else ""
        there = at(anchors, page, link["href"])
        css = THERE.get(words, THERE["statement"])
        held = there is not None and (holds(there, css) or (not there.contents and holds(there.parent, css)))
        if not held:
            yield f"{words} at {link['href']}"
        elif words not in THERE and kind in RESULTS and judged and not holds_proof(anchors, page, link, place):
            yield f"the proof of {words}"


def holds(tag, css: str) -> bool:
    """Whether an element is such a one, holds one, or is the heading of one."""
    after = tag.find_next_sibling() if tag.name == "h2" else None
    return tag.css.match(css) or tag.select_one(css) is not None or (after is not None and after.css.match(css))


def holds_proof(anchors: dict, page: str, link, place) -> bool:
    """Whether the place has a link to the proof of a statement that its page proves."""
    label = link["href"].partition("#")[2]
    proved = at(anchors, page, link["href"].replace(f"#{label}", f"#proof-{label}")) is not None
    return not proved or place.select_one(f'a[href$="#proof-{label}"]') is not None
