"""The changes of criteria on the page of history."""

from bs4 import BeautifulSoup
from test_pages import assert_balanced, chapter, row

from bookbuilder.index_pages import history


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
