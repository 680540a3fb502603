"""From any claim to all of its evidence and back, on the built site."""

import json

import pytest

from derived.book.evidence import one_way


@pytest.fixture(scope="module")
def places(every_page) -> dict:
    """The place of each claim, by paper and id."""
    return {
        (page.name.removeprefix("claims/").removesuffix(".html"), place["data-claim"]): place
        for page in every_page
        if page.name.startswith("claims/")
        for place in page.soup.select("details.evidence")
    }


def test_claims_and_their_evidence_lead_to_each_other(every_page):
    assert one_way({page.name: page.soup for page in every_page}) == []


def test_every_claim_has_a_place_and_its_rows_lead_there(site, every_page, places):
    rows = json.loads((site / "downloads/ledger.json").read_text("utf-8"))
    assert set(places) == {(row["paper"], row["id"]) for row in rows if row["headline"]}
    for page in every_page:
        for row in page.soup.select("tr.claim"):
            assert row.select_one(f'a[href="../claims/{row["data-paper"]}.html#{row["data-claim"]}"]'), row[
                "data-claim"
            ]


def test_a_place_holds_all_of_the_evidence(places):
    """Verdict, criterion, statement or why there is none, experiment, test and command."""
    for (paper, claim), place in places.items():
        found = {term.get_text(): term.find_next_sibling("dd") for term in place.select("dt")}
        assert place.select_one("summary .verdict"), claim
        assert found["rests on"].select("a") or found["rests on"].get_text(strip=True), claim
        if "experiment" in found:
            assert {"run it", "run it again"} & set(found), claim
            assert "criterion" in found or place.select_one(".verdict-reported, .verdict-not-run"), claim
            ways = f'a[href^="../notebooks/{paper}.html#run-"], a[href^="../book/status.html#"]'
            assert place.select_one(ways), claim
            assert "src/derived/papers/" in found["experiment"].get_text(), claim
        if found["rests on"].select("a"):
            assert found["tested by"].select("code"), claim


def test_a_statement_and_the_cell_that_checks_it_lead_to_each_other(chapters):
    for page in chapters:
        for link in page.soup.select(".statement-links a[href^='#check-']"):
            label = link["href"].removeprefix("#check-")
            target = page.soup.find(id=f"check-{label}")
            cell = target if target.contents else target.parent
            assert cell.select_one(f'.cell-links a[href="#{label}"]'), f"{page.name}: {label}"


def test_the_index_has_every_statement_of_every_chapter(every_page, chapters):
    (index,) = (page for page in every_page if page.name == "book/theorems.html")
    listed = [row.select_one("th a")["href"] for row in index.soup.select("tr.statement")]
    boxes = [f"../{page.name}#{box['id']}" for page in chapters for box in page.soup.select("div.proof.admonition[id]")]
    assert sorted(listed) == sorted(boxes)
    assert all(any(sign.isdigit() for sign in row.th.a.get_text()) for row in index.soup.select("tr.statement"))
