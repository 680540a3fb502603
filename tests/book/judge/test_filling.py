"""A tier is filled in pieces: what says most for its hours first, stopped when the time is over, nothing run twice."""

import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import press
import pytest

from derived.book.house import House, UserError
from derived.book.judge import filling
from derived.book.record import cost
from derived.lab.real import pinned

COUNT = {"launches": 0, "held": 1e9, "float64": 1e12}  # operations: seconds in proportion
WAITS = "import sys, time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    open(sys.argv[1], 'w').close()"
DEAF = "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\ntime.sleep(60)"


def lacking(name: str, obstacle: str = "") -> filling.Lacking:
    return filling.Lacking("toy", name, 2, None, obstacle)


def paper(monkeypatch, **rows: int) -> None:
    """A paper whose experiments decide so many rows at tier gpu."""
    made = {name: SimpleNamespace(__name__=name, tiers={"ci": {}, "gpu": {}}, needs=()) for name in rows}
    claims = [
        SimpleNamespace(experiment=made[name], judged_at=("ci", "gpu"))
        for name, num in rows.items()
        for _ in range(num)
    ]
    claims.append(SimpleNamespace(experiment=made["Long"], judged_at=("ci",)))  # decides nothing there
    monkeypatch.setattr(
        filling.recording, "claims_of", lambda paper: SimpleNamespace(CLAIMS=claims, EXPERIMENTS=[*made.values()])
    )
    monkeypatch.setattr(filling.recording, "machine", lambda device: ("cuda", "NVIDIA H100 80GB HBM3"))
    if "Absent" in made:
        made["Absent"].needs = ("gemma",)
        monkeypatch.setattr(pinned, "missing", lambda names: [*names])


def test_what_decides_most_rows_an_hour_comes_first_and_what_cannot_be_made_here_last(tmp_path, monkeypatch):
    paper(monkeypatch, Unknown=9, Absent=9, Large=9, Long=3, Short=1, Made=5, Silent=0)
    house = House(tmp_path)
    times = {"Long": 4, "Short": 1, "Large": 1, "Absent": 1, "Made": 1, "Silent": 1}
    counts = {f"toy/{name}/gpu": COUNT | {"float64": by * 1e15, "of": ""} for name, by in times.items()}
    counts["toy/Large/gpu"]["held"] = 1e12
    (tmp_path / "results").mkdir()
    cost.keep(house, counts)
    monkeypatch.setattr(filling, "slot", lambda paper, name, tier: tmp_path if name == "Made" else tmp_path / name)
    found = filling.lacking(house, ["toy"], "gpu", "auto")
    assert [each.experiment for each in found[:3]] == ["Short", "Long", "Unknown"]
    assert {each.experiment for each in found[3:] if each.obstacle} == {"Absent", "Large"}
    assert {each.cost.card for each in found if each.cost} == {"H100"}
    assert str(found[0]).startswith("toy/Short: 1 row, about ")
    assert "3 rows" in str(found[1])
    assert str(found[2]) == "toy/Unknown: 9 rows, not counted"


def test_what_runs_when_the_time_is_over_is_interrupted_and_what_does_not_listen_is_killed(tmp_path, monkeypatch):
    started = time.monotonic()
    assert filling.ended([sys.executable, "-c", WAITS, str(tmp_path / "kept")], 2) is None
    assert (tmp_path / "kept").exists(), "it could keep what was finished"
    monkeypatch.setattr(filling, "GRACE", 1)
    assert filling.ended([sys.executable, "-c", DEAF], 2) is None
    assert time.monotonic() - started < 40
    assert filling.ended([sys.executable, "-c", "raise SystemExit(7)"], 60) == 7


def test_one_that_fails_is_named_at_the_end_and_one_without_its_data_is_not_tried(monkeypatch):
    tried = []
    codes = {"A": 1, "B": 0, "C": None}
    monkeypatch.setattr(filling, "ended", lambda command, seconds: tried.append(command) or codes[command[5]])
    chosen = [lacking("A"), lacking("X", "not here"), lacking("B")]
    with pytest.raises(UserError, match=r"not made, for the reasons above: toy/A$"):
        filling.fill(chosen, "gpu", "cuda", 3, 1)
    assert [command[5:] for command in tried] == [
        [name, "--tier", "gpu", "--device", "cuda", "--jobs", "3"] for name in "AB"
    ]
    assert filling.fill([lacking("B")], "gpu", "auto", 0, 1)
    assert tried[-1][5:] == ["B", "--tier", "gpu", "--device", "auto"]
    assert not filling.fill([lacking("B"), lacking("C"), lacking("A")], "gpu", "auto", 0, 1)
    assert tried[-1][5] == "C", "nothing is begun when the time is over"


def test_a_tier_is_filled_from_the_command_line(house):
    press.write_paper(house, press.EXPERIMENT, press.CLAIMS)
    listed = press.derived(house, "fill", "toy", "--tier", "cpu", "--dry-run")
    assert listed.stdout == "toy/Draws: 1 row, not counted\n"
    done = press.process(house, "fill", "toy", "--tier", "cpu", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert (house / "results/toy/Draws/cpu/record.json").exists()
    again = press.derived(house, "fill", "toy", "--tier", "cpu")
    assert (again.returncode, again.stdout) == (0, "")


def test_minutes_are_those_of_all_records_together(monkeypatch):
    """Each may take what the ones before it have left."""
    now, left = iter((1000.0, 1000.0, 1090.0)), []
    monkeypatch.setattr(filling.time, "monotonic", lambda: next(now))
    monkeypatch.setattr(filling, "ended", lambda command, seconds: left.append(seconds) or 0)
    assert filling.fill([lacking("A"), lacking("B")], "gpu", "auto", 0, 2)
    assert left == [120.0, 30.0]


def test_rows_count_by_the_hour_and_not_alone():
    """Three rows in four hours come after one in an hour, four rows in three hours before it."""
    hour = cost.Cost("H100", 3600, 1e9, 1.0, True)
    worth = [
        replace(lacking("A"), rows=rows, cost=replace(hour, seconds=3600 * hours)).worth
        for rows, hours in ((4, 3), (1, 1), (3, 4))
    ]
    assert worth == sorted(worth, reverse=True)
    assert worth[1] == pytest.approx(1 / 3600)


@pytest.mark.parametrize(("code", "exits"), [(0, 0), (1, 1), (None, 3)])
def test_who_fills_is_told_by_the_exit_code_whether_to_go_on(house, monkeypatch, code, exits):
    press.write_paper(house, press.EXPERIMENT, press.CLAIMS)
    monkeypatch.setattr(filling, "ended", lambda command, seconds: code)
    ran = press.derived(house, "fill", "toy", "--tier", "cpu")
    assert ran.returncode == exits
    assert ("the time is over" in ran.stdout) == (exits == 3)
