"""A replication report: every item answered or set apart with a reason, effects on one axis, linked data."""

import json

import pytest
from bs4 import BeautifulSoup
from toybook import COMMITTED, ROW, write_ledger

from bookbuilder.chapter_pages.pages import Chapter
from bookbuilder.notebook.reading import Minutes
from bookbuilder.paths import UserError
from bookbuilder.report import report, source

FILE = """version: Version 1.
seen: All of it.
left_out:
  - {what: Its appendix., why: It needs a telescope.}
searched: Two shelves.
earlier:
  - {what: A rival., kind: follow-up, bears: threatens, claims: [T-1]}
code: None was found.
closeness: rewritten from the text
deviations:
  - {what: Smaller., why: Two cores., direction: None.}
easy: All.
hard: Nothing.
gpu_hour: Nothing.
"""
APART = "apart:\n  replications: none was found.\n  critiques: none was found.\n"
LETTERLESS = "  letter: nothing fails here.\n  reply: there is no letter.\n"
EFFECT = {"unit": "share", "paper": 0.5, "paper_error": None, "ours": 0.6, "low": 0.5, "high": 0.8, "ratio": 1.2}
EFFECT |= {"difference": 0.1, "difference_low": 0.0, "difference_high": 0.3, "sees": 0.2}


def row(id: str, **changes) -> dict:
    return ROW | {"id": id, "paper": "toy", "source": "paper", "changed": [], "expected": "holds"} | changes


def chapter(*rows: dict) -> Chapter:
    paper = {"title": "A toy", "authors": "Ada Lovelace and Alan Turing", "arxiv": "2601.00001", "bibkey": "toy1"}
    finding = {"chapter": "toy", "rows": [*rows], "records": [], "versions": {"python": "3"}, "seconds": 1.0}
    finding |= {"device_name": "a CPU", "peak_memory_mb": 9.0, "date": "2026-11-24T09:00:00+00:00"}
    return Chapter("toy", {"paper": paper, "claim": "It is."}, finding, 0, {}, Minutes(1, 2), (), "1. Toy")


@pytest.fixture
def root(tmp_path):
    (tmp_path / "book/reports").mkdir(parents=True)
    (tmp_path / "results").mkdir()
    (tmp_path / "book/references.bib").write_text("@misc{toy1,\n  title = {A toy}\n}\n")
    write_ledger(tmp_path, COMMITTED | {"registered": "2026-11-01"})
    return tmp_path


def made(root, *rows: dict, text: str = FILE + APART + LETTERLESS) -> BeautifulSoup:
    (root / "book/reports/toy.yml").write_text(text)
    report.write(root, root, root, chapter(*rows))
    return BeautifulSoup((root / "reports/toy.md").read_text(), "html.parser")


def answer(page: BeautifulSoup, key: str) -> str:
    return " ".join(page.select_one(f"dd#{key}").get_text(" ").split())


def test_every_item_is_answered_or_says_why_it_does_not_apply(root):
    page = made(root, row("T-1"), row("O-1", source="ours"))
    assert not page.select("dd.open")
    assert answer(page, "critiques") == "does not apply: none was found."
    assert answer(page, "taken-up") == "1 of the paper, its retellings and earlier work: T-1"
    assert answer(page, "follow-ups") == "A rival. threatens: T-1"
    assert answer(page, "criteria").startswith("The expected verdict of 1 row was entered with its day")
    assert answer(page, "cite") == "@misc{toy1, title = {A toy} }"


def test_an_item_that_nothing_answers_stops_the_build(root):
    with pytest.raises(UserError, match="nothing answers letter, reply; say under `apart` why"):
        made(root, row("T-1"), text=FILE + APART)


def test_a_reason_for_an_item_that_has_an_answer_stops_the_build(root):
    with pytest.raises(UserError, match="`apart` has hours, which has an answer or is no item"):
        made(root, row("T-1"), text=FILE + APART + LETTERLESS + "  hours: none.\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (FILE.replace("[T-1]", "[T-9]"), "toy has no claim T-9"),
        (FILE.replace("seen: All of it.\n", ""), "seen is missing"),
        (FILE + "luck: none\n", "luck: unknown key"),
    ],
)
def test_a_file_of_another_shape_is_one_clear_line(root, text, message):
    with pytest.raises(UserError, match=message):
        made(root, row("T-1"), text=text)


def test_a_chapter_without_a_file_has_no_report(root):
    report.write(root, root, root, chapter(row("T-1")))
    assert not (root / "reports").exists()


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({}, "verified"),
        ({"verdict": "fails"}, "falsified"),
        ({"verdict": "refuted"}, "falsified"),
        ({"scale": "toy"}, "toy"),
        ({"scale": "toy", "verdict": "undecided"}, "inconclusive"),
        ({"verdict": "fails", "source": "digest"}, "inconclusive"),
        ({"verdict": "not run"}, "inconclusive"),
        ({"verdict": "reported"}, "inconclusive"),
    ],
)
def test_a_verdict_in_the_words_of_the_challenge(changes, word):
    assert report.challenge(row("T-1", **changes)) == word


def test_effects_stand_on_one_axis_as_shares_of_the_papers_numbers(root):
    half = EFFECT | {"paper": -1.0, "difference": -0.1, "difference_low": -0.3, "difference_high": 0.0}
    rows = [row("T-1", effect=EFFECT), row("T-2", effect=half), row("T-3", effect=EFFECT | {"paper": 0.0}), row("T-4")]
    one, two = report.forest(rows)
    assert (one["share"], one["places"]) == (pytest.approx(0.2), [0.0, 0.3333, 1.0])
    assert two["places"] == [-0.5, -0.1667, 0.0]
    page = made(root, *rows)
    assert len(page.select("svg.forest circle")) == 2
    assert "theirs 0.5, ours 0.6" in answer(page, "effects")


def test_a_failure_is_shown_with_its_letter(root):
    letter = "letter:\n  sent: 2026-11-24\n  text: |\n    Dear authors,\n\n    it fails.\n"
    page = made(root, row("T-1", verdict="fails"), text=FILE + letter + APART)
    assert answer(page, "failures").startswith("T-1")
    assert [part.get_text() for part in page.select("#letter p")] == ["Dear authors,", "it fails."]
    assert answer(page, "reply") == "sent 2026-11-24; no reply yet"


def test_a_failure_names_its_witness(root):
    measured = {"source": "ours", "kind": "statistic", "value": 2.0, "low": 1.0, "high": 3.0, "accept": [None, 0.5]}
    page = made(root, row("T-1", verdict="fails"), row("O-1", verdict="fails", **measured))
    theirs, ours = (" ".join(each.get_text(" ").split()) for each in page.select("#failures > div"))
    assert "Witness:" in theirs
    assert "A claim of this book. Witness: 2" in ours
    assert "[1, 3], at most 0.5 allowed; an interval of 99.9" in ours


def test_linked_data_of_a_paper_without_an_address_have_none(root):
    at = chapter(row("T-1"))
    del at.facts["paper"]["arxiv"]
    assert "url" not in report.linked(at, at.rows)["@graph"][0]


def test_changes_are_told_in_words_and_counts_agree_with_their_nouns(root):
    change = {"date": "2026-11-24", "what": "A.", "why": "B."}
    late = [change | {"kind": "late"}, change | {"kind": "late"}]
    page = made(root, row("T-1", changed=late), row("T-2"))
    assert answer(page, "changed").startswith("1 claim, by kind: written after rows or a pilot had been seen 1. ")
    assert answer(page, "criteria").startswith("The expected verdict of 1 row was entered")
    page = made(root, row("T-1"))
    assert answer(page, "changed") == "does not apply: no claim has such a change"


def test_a_report_counts_controls_and_the_claims_that_say_why_there_is_none(root):
    control = {"value": 0.1, "low": 0.0, "high": 0.6, "verdict": "undecided"}
    both = [row("T-1", kind="bound", control=control), row("T-2", kind="bound", control="A theorem.")]
    words = answer(made(root, *both), "controls")
    assert words.startswith("1 of 2 bounds and statistics has a control")
    assert "1 says why there is none" in words
    assert "T-1 scores 0.1 [0, 0.6]: undecided" in words


def test_linked_data_reviews_each_claim_that_is_not_ours(root):
    made(root, row("T-1", verdict="fails"), row("O-1", source="ours"))
    article, review = json.loads((root / "toy-report.json").read_text())["@graph"]
    assert [author["name"] for author in article["author"]] == ["Ada Lovelace", "Alan Turing"]
    assert (review["@type"], review["url"]) == ("ClaimReview", "../claims/toy.html#T-1")  # it lies in downloads/
    assert (review["reviewRating"]["alternateName"], review["reviewRating"]["ratingValue"]) == ("falsified", 1)


def test_the_letter_of_the_shape_is_optional_and_its_names_are_those_of_earlier_work():
    told = source.Report.model_validate(
        {
            **dict.fromkeys(("version", "seen", "searched", "code", "easy", "hard", "gpu_hour"), "a"),
            **{"closeness": "designed here", "left_out": [{"what": "a", "why": "b"}]},
            "deviations": [{"what": "a", "why": "b", "direction": "c"}],
            "earlier": [{"what": "a", "kind": "critique", "claims": ["T-1", "T-2"]}],
        }
    )
    assert (told.letter, told.names()) == (None, {"T-1", "T-2"})
