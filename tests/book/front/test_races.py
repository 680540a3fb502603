"""Open races: who holds each record, since when, and the command that runs it again."""

import json

import pytest
from bs4 import BeautifulSoup

from derived.book.front import races
from derived.book.page.pages import Chapter
from derived.book.source.reading import Minutes

RACE = {
    "name": "a race",
    "peer": "numba",
    "headline": True,
    "ratio": 1.5,
    "ratio_low": 1.2,
    "ratio_high": 1.9,
    "limit": 0.113,
}


def shown(root, *rows) -> BeautifulSoup:
    (root / "results/toy").mkdir(parents=True)
    (root / "results/toy/bench.json").write_text(json.dumps({"date": "2026-11-02", "rows": rows}))
    names = ("toy", "calm")  # nobody races in the second
    chapters = [Chapter(slug, {}, {"rows": []}, 0, {}, Minutes(1, 2), (), f"1. {slug}") for slug in names]
    return BeautifulSoup(races.table(root, chapters), "html.parser")


@pytest.mark.parametrize(
    ("verdict", "holder"), [("met", "this book"), ("missed", "numba"), ("undecided", "nobody yet")]
)
def test_a_record_is_whose_the_whole_interval_is(tmp_path, verdict, holder):
    soup = shown(
        tmp_path, RACE | {"verdict": verdict, "since": "2026-11-01"}, RACE | {"headline": False, "verdict": "met"}
    )
    (row,) = soup.select("tr:has(td)")
    cells = {cell["data-label"]: cell.get_text() for cell in row.select("[data-label]")}
    assert cells["Held by"] == f"{holder}since 2026-11-01"
    assert cells["Peer’s time over ours"] == "1.5 [1.2, 1.9]"
    assert cells["Of the limit"] == "11 %"
    assert [code.get_text() for code in soup.select("code")] == ["make bench CHAPTERS=toy"]


def test_what_can_still_be_won_comes_first_and_a_race_without_a_day_has_that_of_its_table(tmp_path):
    won, lost = (RACE | {"name": verdict, "verdict": verdict, "limit": None} for verdict in ("met", "missed"))
    soup = shown(tmp_path, won, lost)
    assert [row.th.get_text() for row in soup.select("tr:has(td)")] == ["missed", "met"]
    assert {cell.get_text() for cell in soup.select("small")} == {"since 2026-11-02"}
