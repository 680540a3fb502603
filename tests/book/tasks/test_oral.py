"""Oral cards of every chapter, and a thousand hands of each."""

from pathlib import Path

import pytest

from derived.book.house import House
from derived.book.tasks import oral

ROOT = Path(__file__).resolve().parents[3]
SLUGS = House(ROOT).chapters()


@pytest.mark.parametrize("slug", SLUGS)
def test_a_chapter_has_ten_cards_and_ten_wrong_answers(slug):
    cards, slips = oral.cards(ROOT, slug), oral.slips(slug)
    assert len(cards) >= 10
    assert len(slips) >= 10
    for card in cards:
        assert len(card.questions) == 3
        for question in card.questions:
            assert question.ask.endswith("?")
            assert question.next
            assert all(each.strip() for each in question.must), card.label
            assert "{prf:ref}" not in "".join(question.must)
        statement, proof, evidence = (each.must for each in card.questions)
        assert len(statement[0]) > 20
        assert len(proof) >= 2
        assert any("test" in each for each in evidence)


@pytest.mark.parametrize("slug", SLUGS)
def test_a_thousand_hands_are_whole_and_differ(slug):
    cards, seen, slips = oral.cards(ROOT, slug), set(), set()
    for k in range(1000):
        asked, wrong = oral.hand(cards, slug, f"student {k}")
        assert len(asked) == len(wrong) == oral.HAND
        assert len({name for name, _ in asked}) == oral.HAND
        seen.add((*asked, *wrong))
        slips |= {*wrong}
    assert len(seen) > 900
    assert slips == {*oral.slips(slug)}
    assert oral.hand(cards, slug, "Ada") == oral.hand(cards, slug, "Ada")


def test_a_wrong_answer_is_wrong_and_its_sheet_says_why():
    slip = next(each for each in oral.slips("cactus") if each.label == "cac-ex-tv")
    asked = oral.slipped("cactus", slip, "Ada")
    assert slip.wrong in asked.must[0]
    assert oral.slipped("cactus", slip, "Bob").ask != asked.ask
    text = oral.sheet(ROOT, "cactus", "Cactus", "Ada", "Ada word")
    assert text.startswith("# Oral cards: Cactus, for Ada")
    assert text.count("An answer must contain") == 6
