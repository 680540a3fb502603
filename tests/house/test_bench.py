"""A race that somebody runs again does not replace the book's."""

import importlib.util
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
if "harness" not in sys.modules:  # it is sent to other processes by its name, so there is one of it
    SPEC = importlib.util.spec_from_file_location("harness", ROOT / "bench/harness.py")
    sys.modules["harness"] = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(sys.modules["harness"])
harness = sys.modules["harness"]


def test_a_race_is_the_books_only_where_it_has_none(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    monkeypatch.setattr(harness.sys, "argv", ["toy.py"])
    kept, fresh = tmp_path / "results/toy/bench.json", tmp_path / "_build/bench/toy.json"
    for _ in range(2):
        harness.command("toy", lambda *_: [], rounds=1, quick_rounds=1, dtype="float32")
        if not fresh.exists():
            kept.write_text('{"whose": "the book"}')
    assert kept.read_text() == '{"whose": "the book"}'
    assert '"rows": []' in fresh.read_text()
    assert f"to make it the book's: cp {fresh} {kept}" in capsys.readouterr().out


def test_other_numbers_of_threads_have_a_process_of_their_own(tmp_path, monkeypatch):
    """The headlines alone, from a script that says how many threads XLA was given."""
    script, kept = tmp_path / "toy.py", {"name": "a race", "peer": "they", "ratio": 1.5, "verdict": "met"}
    rows = [kept | {"ratio_low": 1.2, "ratio_high": 1.9, "headline": first, "ours_ms": 3.0} for first in (True, False)]
    script.write_text(
        "import json, os, pathlib, sys\n"
        "threads = os.environ['XLA_FLAGS'].rpartition('=')[2]\n"
        "assert sys.argv[1:3] == ['--threads', threads] and sys.argv[-1] == '--quick'\n"
        "where = {'threads': int(threads), 'machine': 'two cores', 'date': '2026-11-09', 'torch': '2.0'}\n"
        f"pathlib.Path(sys.argv[4]).write_text(json.dumps(where | {{'rows': {rows!r}}}))\n"
    )
    monkeypatch.setattr(harness.sys, "argv", [str(script)])
    where = {"threads": 2, "machine": "two cores", "date": "2026-11-09"}
    assert harness.at_threads(2, quick=True) == [where | kept | {"ratio_low": 1.2, "ratio_high": 1.9}]


def test_headlines_at_other_threads_join_the_books_table_and_outlive_its_next_run(tmp_path, monkeypatch):
    table, path = tmp_path / "kept.json", tmp_path / "fresh.json"
    there, four = {"threads": 2, "machine": "theirs", "ratio": 0.5}, {"threads": 4, "machine": "ours", "ratio": 3.0}
    old = {"threads": 2, "machine": "ours", "ratio": 0.7}
    table.write_text(json.dumps({"date": "2026-11-02", "rows": [1], "beside": [there, four, old]}))
    harness.put_beside(table, path, [old | {"ratio": 1.5}])
    joined = {"date": "2026-11-02", "rows": [1], "beside": [there, four, old | {"ratio": 1.5}]}
    assert json.loads(path.read_text()) == joined
    harness.write(path, [], threads=1, dtype="float64", before=table)
    assert json.loads(path.read_text())["beside"] == [there, four, old]


def test_races_at_other_threads_are_run_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    monkeypatch.setattr(harness.sys, "argv", ["toy.py", "--beside", "2"])
    monkeypatch.setattr(harness, "at_threads", lambda threads, quick: [{"threads": threads, "machine": "ours"}])
    harness.write_whole(tmp_path / "results/toy/bench.json", json.dumps({"rows": [1]}))
    harness.command("toy", lambda *_: pytest.fail("raced"), rounds=1, quick_rounds=1, dtype="float32")
    fresh = json.loads((tmp_path / "_build/bench/toy.json").read_text())
    assert fresh == {"rows": [1], "beside": [{"threads": 2, "machine": "ours"}]}


@pytest.mark.parametrize("path", sorted(ROOT.glob("results/*/bench.json")), ids=lambda path: path.parent.name)
def test_a_chapter_has_at_most_four_headlines_and_what_is_reported_says_why(path):
    rows = json.loads(path.read_text())["rows"]
    assert sum(row["headline"] for row in rows) <= 4
    assert not [row["name"] for row in rows if (row["verdict"] == "reported") != bool(row.get("why"))]


def test_a_record_keeps_its_day_until_it_changes_hands(tmp_path):
    fields = {name: 0.0 for name in harness.Row.__dataclass_fields__}
    names = {"name": "a race", "ours": "we", "peer": "they", "role": "peer", "rounds": 3}
    row = harness.Row(**fields | names | {"headline": True, "verdict": "met"})
    table = tmp_path / "bench.json"
    table.write_text(json.dumps({"rows": [asdict(row) | {"since": "2026-11-01"}]}))
    assert harness.since(row, table, "2026-11-09") == {"since": "2026-11-01"}
    for changed in ({"verdict": "missed"}, {"peer": "others"}, {"name": "another race"}):
        assert harness.since(replace(row, **changed), table, "2026-11-09") == {"since": "2026-11-09"}, changed
    assert harness.since(row, None, "2026-11-09") == {"since": "2026-11-09"}
    assert harness.since(replace(row, headline=False), table, "2026-11-09") == {}
