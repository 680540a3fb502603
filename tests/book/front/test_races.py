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


def shown(root, *rows, beside=()) -> BeautifulSoup:
    (root / "results/toy").mkdir(parents=True)
    (root / "results/toy/bench.json").write_text(json.dumps({"date": "2026-11-02", "rows": rows, "beside": beside}))
    names = ("toy", "calm")  # nobody races in the second
    chapters = [Chapter(slug, {}, {"rows": []}, 0, {}, Minutes(1, 2), (), f"1. {slug}") for slug in names]
    return BeautifulSoup(races.table(root, chapters), "html.parser")


@pytest.mark.parametrize(
    ("verdict", "holder"), [("met", "this book"), ("missed", "numba"), ("undecided", "nobody yet")]
)
def test_a_record_is_whose_the_whole_interval_is(tmp_path, verdict, holder):
    second = {"threads": 2, "machine": "EPYC, 2 cores", "name": "a race", "ratio": 3, "ratio_low": 2, "ratio_high": 4}
    row = RACE | {"verdict": verdict, "since": "2026-11-01"}
    soup = shown(
        tmp_path,
        row,
        RACE | {"headline": False, "verdict": "met"},
        beside=[second, second | {"threads": 1}, second | {"name": "b"}],
    )
    (row,) = soup.select("tr:has(td)")
    cells = {cell["data-label"]: cell.get_text() for cell in row.select("[data-label]")}
    assert cells["Held by"] == f"{holder}since 2026-11-01"
    assert cells["Peer’s time over ours"] == "1.5 [1.2, 1.9]2 threads (EPYC): 3 [2, 4]1 thread (EPYC): 3 [2, 4]"
    assert cells["Of the limit"] == "11 %"
    assert [code.get_text() for code in soup.select("code")] == ["make bench CHAPTERS=toy"]


def test_what_is_no_race_has_its_reason_and_no_holder(tmp_path):
    told = RACE | {"headline": False, "verdict": "reported", "peer": "a lean one", "why": "It checks nothing."}
    shown(tmp_path, told, RACE | {"verdict": "met"})
    chapters = [Chapter(slug, {}, {"rows": []}, 0, {}, Minutes(1, 2), (), f"1. {slug}") for slug in ("toy", "calm")]
    (row,) = BeautifulSoup(races.reported(tmp_path, chapters), "html.parser").select("tr:has(td)")
    assert [cell.get_text() for cell in row.select("[data-label]")] == [
        "a race",
        "a lean one",
        "1.5 [1.2, 1.9]",
        "It checks nothing.",
    ]


def test_what_can_still_be_won_comes_first_and_a_race_without_a_day_has_that_of_its_table(tmp_path):
    won, lost = (RACE | {"name": verdict, "verdict": verdict, "limit": None} for verdict in ("met", "missed"))
    soup = shown(tmp_path, won, lost)
    assert [row.th.get_text() for row in soup.select("tr:has(td)")] == ["missed", "met"]
    assert {cell.get_text() for cell in soup.select("small")} == {"since 2026-11-02"}
