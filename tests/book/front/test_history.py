"""The news of the ledger."""

import json

import pytest
from bs4 import BeautifulSoup
from test_pages import assert_balanced, chapter, row

from derived.book.front import history
from derived.book.house import UserError
from derived.book.judge import changes, news


def ledger(*rows: tuple[str, str, str]) -> list[dict]:
    return [{"paper": "toy", "id": claim, "tier": tier, "verdict": verdict} for claim, tier, verdict in rows]


def test_a_verdict_that_changed_and_a_claim_that_is_new_are_told():
    before = ledger(("A", "ci", "holds"), ("A", "cpu", "not run"), ("B", "ci", "holds"))
    after = ledger(("A", "ci", "fails"), ("A", "cpu", "not run"), ("B", "ci", "holds"), ("C", "ci", "holds"))
    after += ledger(("C", "cpu", "holds"), ("B", "gpu", "holds"))  # one claim; a tier more of an old claim is none
    changed = {"id": "A", "tier": "ci", "before": "holds", "after": "fails"}
    assert news.compared(before, after, "2026-11-23") == [
        {"date": "2026-11-23", "paper": "toy", "claims": 1, "gone": [], "verdicts": [changed]}
    ]


def test_a_claim_that_left_the_ledger_is_told_and_no_link_leads_to_it(tmp_path):
    both, one = ledger(("A", "ci", "holds"), ("B", "ci", "holds"), ("B", "cpu", "fails")), ledger(("A", "ci", "holds"))
    fails = ledger(("A", "ci", "fails"), ("B", "ci", "fails"), ("B", "cpu", "fails"))
    news.add(tmp_path, news.compared(both, fails, "2026-11-22"))
    news.add(tmp_path, news.compared(fails, one, "2026-11-23"))
    changes.add(tmp_path, "toy", ["B"], "left", "It was a row.", "It could not fail.")
    entries = history.entries(tmp_path, [chapter(row("A"))])
    assert [entry.gone for entry in entries] == [{"It could not fail.": ["B"]}, {}]
    assert entries[0].parts == ["1 claim that left the ledger", "1 changed verdict"]
    assert "Left the ledger: B. It could not fail." in history.latest(entries)
    for page in (history.latest(entries), history.verdicts(entries)):
        links = {link.get("href") for link in BeautifulSoup(page, "html.parser").select("a[href*='ledger.html']")}
        assert links == {"ledger.html#A"}
        assert "B (left since)" in page


def test_a_ledger_that_changes_nothing_is_no_news(tmp_path):
    rows = ledger(("A", "ci", "holds"))
    assert news.compared(rows, rows, "2026-11-23") == []
    news.add(tmp_path, [])
    assert not (tmp_path / news.FILE).exists()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"date": ', "news.json, line 1: Expecting value"),
        ('[{"date": "2026-11-23", "paper": "toy", "claims": 1}]', "news.json, entry 1: verdicts is missing"),
        ('{"date": "2026-11-23"}', "news.json: a list is expected"),
    ],
)
def test_kept_news_that_cannot_be_read_are_named_in_one_line(tmp_path, text, words):
    (tmp_path / "results").mkdir()
    (tmp_path / news.FILE).write_text(text)
    with pytest.raises(UserError) as caught:
        news.read(tmp_path)
    assert str(caught.value).startswith(words)


def told(tmp_path) -> list[history.Entry]:
    """Two accepted ledgers, and one criterion that changed on the day of the second."""
    change = {"date": "2026-11-23", "kind": "range", "what": "w", "why": "y"}
    for day, before, after in (("2026-11-22", "holds", "undecided"), ("2026-11-23", "undecided", "fails")):
        found = news.compared(ledger(("A", "ci", before)), ledger(("A", "ci", after)), day)
        news.add(tmp_path, found)
    news.add(tmp_path, [{"date": "2026-11-23", "paper": "elsewhere", "claims": 1, "verdicts": []}])
    rows = [row("A", changed=[change]), row("A", tier="cpu", changed=[change], headline=False)]
    return history.entries(tmp_path, [chapter(*rows)])


def test_changes_of_one_day_are_told_as_one_and_those_that_undo_each_other_not_at_all(tmp_path):
    for was, now in (("holds", "undecided"), ("undecided", "fails"), ("fails", "holds")):
        both = ledger(("A", "ci", was), ("B", "ci", was)), ledger(("A", "ci", now), ("B", "ci", "fails"))
        news.add(tmp_path, news.compared(*both, "2026-11-22"))
    news.add(tmp_path, news.compared(ledger(("A", "ci", "holds")), ledger(("A", "ci", "undecided")), "2026-11-23"))
    news.add(tmp_path, news.compared(ledger(("A", "ci", "undecided")), ledger(("A", "ci", "holds")), "2026-11-23"))
    (entry,) = history.entries(tmp_path, [chapter(row("A"), row("B"))])
    assert [(each["id"], each["before"], each["after"]) for each in entry.verdicts] == [("B", "holds", "fails")]


def test_news_are_only_added_and_the_newest_comes_first(tmp_path):
    entries = told(tmp_path)
    assert [(entry.date, entry.paper) for entry in entries] == [("2026-11-23", "toy"), ("2026-11-22", "toy")]
    assert entries[0].parts == ["1 changed verdict", "1 changed criterion"]
    assert len(json.loads((tmp_path / news.FILE).read_text())) == 3


def test_within_a_day_the_order_is_that_of_the_book(tmp_path):
    slugs = ["zeta", "alpha", "mid"]
    news.add(tmp_path, [{"date": "2026-11-23", "paper": slug, "claims": 1, "verdicts": []} for slug in sorted(slugs)])
    found = history.entries(tmp_path, [chapter(slug=slug) for slug in slugs])
    assert [entry.paper for entry in found] == slugs


def test_what_is_not_among_the_newest_is_folded(tmp_path):
    days = range(history.SHOWN + 2)
    news.add(tmp_path, [{"date": f"2026-11-2{day}", "paper": "toy", "claims": 1, "verdicts": []} for day in days])
    soup = BeautifulSoup(history.latest(history.entries(tmp_path, [chapter()])), "html.parser")
    assert len(soup.select("ul.news > li")) == len(days)
    assert [each.get_text() for each in soup.select("details time")] == ["2026-11-21", "2026-11-20"]
    assert soup.summary.get_text() == "2 earlier"


def test_the_newest_come_first_and_all_verdicts_are_listed(tmp_path):
    entries = told(tmp_path)
    first = BeautifulSoup(history.latest(entries), "html.parser").select_one("ul.news > li").get_text(" ", strip=True)
    assert "1 changed verdict, 1 changed criterion" in first
    assert "undecided → fails" in first
    soup = BeautifulSoup(history.verdicts(entries), "html.parser")
    since = [line.select(".verdict")[1].get_text(strip=True) for line in soup.select("tbody tr")]
    assert since == ["✗fails", "?undecided"]


def test_the_history_tells_each_change_once_the_newest_first():
    change = {"date": "2026-11-20", "kind": "range", "what": "The margin was $1$.", "why": "So."}
    late = row("B", changed=[{**change, "date": "2026-11-21"}])
    other_tier = row("A", tier="cpu", headline=False, changed=[change])
    same = row("C", changed=[change])
    text = history.history([chapter(row("A", changed=[change]), other_tier, late, same)])
    soup = BeautifulSoup(text, "html.parser")
    assert [line.get_text(" ").split()[0] for line in soup.select("tbody tr")] == ["2026-11-21", "2026-11-20"]
    assert [link.get_text() for link in soup.select("tbody tr:last-child a[href*=ledger]")] == ["A", "C"]
    assert "2 changes in 3 claims" in text
    assert_balanced(text)
    assert_balanced(history.history([]))
