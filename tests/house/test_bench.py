"""A race that somebody runs again does not replace the book's."""

import importlib.util
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

if "harness" not in sys.modules:  # it is sent to other processes by its name, so there is one of it
    SPEC = importlib.util.spec_from_file_location("harness", Path(__file__).resolve().parents[2] / "bench/harness.py")
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
            kept.write_text("the book's")
    assert kept.read_text() == "the book's"
    assert '"rows": []' in fresh.read_text()
    assert f"to make it the book's: cp {fresh} {kept}" in capsys.readouterr().out


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
