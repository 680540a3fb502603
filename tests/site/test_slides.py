"""What a lecturer needs of the built decks, each read beside the page of its chapter."""

import functools

import pytest
from bs4 import BeautifulSoup

from bookbuilder.notebook.lectures import LENGTHS


@functools.cache
def deck(site, slug: str, minutes: int) -> BeautifulSoup:
    return BeautifulSoup((site / f"slides/{slug}-{minutes}.html").read_text("utf-8"), "html.parser")


def words(tag) -> str:
    return " ".join(tag.get_text(" ").split())


@pytest.mark.parametrize("minutes", LENGTHS)
def test_each_proved_statement_on_a_slide_has_its_proof_in_the_note(first_drafts, site, minutes):
    for page in first_drafts:
        proofs = {fold["id"].removeprefix("proof-"): fold for fold in page.article.select("details.proof-fold[id]")}
        assert len(proofs) > 5, page.name
        shown = 0
        for slide in deck(site, page.name[10:-5], minutes).select(".slide"):
            for box in slide.select(".part .proof.admonition[id]"):
                if proof := proofs.get(box["id"]):
                    shown += 1
                    assert words(proof.select_one(".proof")) in words(slide.select_one(".notes")), box["id"]
        assert shown > 2, page.name
