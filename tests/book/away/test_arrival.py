"""What comes back is compared with what was asked for before it replaces anything."""

import base64
import dataclasses
import io
import tarfile
from pathlib import Path
from typing import ClassVar

import pandas as pd
import pytest

from derived.book.away import arrival
from derived.book.away.there import BEGIN, END, told
from derived.book.house import House, UserError
from derived.book.judge import recording
from derived.lab import record as records
from derived.lab.experiment import Experiment
from derived.lab.record import Record
from derived.lab.sources import source_hash

ROOT = Path(__file__).resolve().parents[3]


class Here(Experiment):
    """Three conditions."""

    tiers: ClassVar = {"ci": {}, "cpu": {}}

    @classmethod
    def paper(cls):
        return "toy"

    def conditions(self):
        return [{"shift": shift, "kind": "a"} for shift in range(3)]


Here.__module__ = "derived.papers.cactus.matching"  # whose code it says it is
ROWS = pd.DataFrame({"shift": [0, 1, 2], "kind": "a", "value": [0.1, 0.2, 0.3]})
GOOD = Record(
    **{"paper": "toy", "experiment": "Here", "tier": "cpu", "seed": 0, "configuration": {}},
    **{"versions": {}, "device": "cpu", "device_name": "a core", "seconds": 1.0, "peak_memory_mb": 1.0, "date": "then"},
    **{"source_hash": source_hash(Here.__module__), "rows": ROWS, "ci_rows": ROWS},
)


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """Write a record on another machine, and give it as the text that its log has."""

    def send(record: Record) -> str:
        with monkeypatch.context() as there:
            there.setattr(records, "results_root", lambda: tmp_path / "there")
            return told(records.save(record))

    monkeypatch.setattr(records, "results_root", lambda: tmp_path / "here")
    monkeypatch.setattr(recording, "history", lambda house, experiment, uncommitted: "c0ffee")
    return send


def take(text: str, seed: int = 0) -> None:
    arrival.take(House(ROOT), text.splitlines(), [Here], "cpu", seed, False)


def here() -> Record | None:
    return records.read(records.slot("toy", "Here", "cpu"), "")


def test_a_record_is_saved_with_the_commit_that_holds_its_code(sent, capsys):
    take(f"hello\n{sent(GOOD)}\nbye")
    pd.testing.assert_frame_equal(here().rows, ROWS)
    assert here().commit == "c0ffee"
    assert [line.split(" -> ")[0] for line in capsys.readouterr().out.splitlines()] == [
        *("hello", "toy/Here/cpu: 3 rows in 1 s", "bye")
    ]


def test_a_service_may_write_before_each_line(sent):
    take("\n".join(f"(task, pid=12) {line}" for line in sent(GOOD).splitlines()))
    assert here() is not None


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"source_hash": "other"}, "it was made by other code than is here"),
        ({"configuration": {"num": 1}}, "it is of another configuration"),
        ({"seed": 1}, "it is of seed 1, not 0"),
        ({"rows": ROWS.iloc[:2]}, "1 of 3 conditions are missing"),
        ({"rows": ROWS.drop(columns="value")}, "its columns are not those of tier ci"),
        ({"rows": ROWS.drop(columns="kind"), "ci_rows": ROWS.drop(columns="kind")}, "its rows have no kind"),
    ],
)
def test_what_was_not_asked_for_replaces_nothing(sent, change, reason):
    take(sent(GOOD))
    before = here()
    with pytest.raises(UserError) as told_why:
        take(sent(dataclasses.replace(GOOD, date="later", **change)))
    assert str(told_why.value) == f"toy/Here/cpu came back and is refused, nothing was replaced: {reason}"
    assert here().date == before.date == "then"


def test_another_experiment_is_left_out_and_named(sent):
    with pytest.raises(UserError, match="toy/There/cpu was not asked for, and is left out"):
        take(sent(dataclasses.replace(GOOD, experiment="There")))


def test_what_was_damaged_or_cut_on_its_way_replaces_nothing(sent):
    text = sent(GOOD).splitlines()
    for broken in ([BEGIN, *text[2:]], [BEGIN, "no text of a record", END], [*text[:3], text[3][:-5], *text[4:]]):
        with pytest.raises(UserError, match="a record was damaged on its way, nothing was replaced"):
            take("\n".join(broken))
    with pytest.raises(UserError, match=r"Here did not come back; what did is saved, the same command continues"):
        take("\n".join(text[:-1]))
    assert here() is None


def test_what_comes_back_cannot_write_elsewhere(tmp_path):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.addfile(tarfile.TarInfo(str(tmp_path / "outside")), io.BytesIO())
    with pytest.raises(UserError, match="a record was damaged on its way"):
        arrival.opened(base64.b64encode(packed.getvalue()))
    assert not (tmp_path / "outside").exists()


def test_the_other_machines_own_words_are_the_error(sent):
    with pytest.raises(UserError, match=r"^no card$"):
        take("derived: no card\nderived: no card")


def test_a_record_with_failed_conditions_is_an_error_and_replaces_none(sent):
    failed = dataclasses.replace(GOOD, rows=ROWS.assign(failure=[None, "E: why", None]), date="later")
    take(sent(GOOD))
    with pytest.raises(UserError, match=r"1 conditions failed \(E: why\); the old record stays"):
        take(sent(failed))
    assert here().date == "then"


@pytest.mark.parametrize(
    "place", sorted((ROOT / "results").glob("*/*/*/record.json")), ids=lambda p: "-".join(p.parts[-4:-1])
)
def test_every_committed_record_has_the_shape_that_is_asked_of_one_from_elsewhere(place):
    record = records.read(place.parent, "")
    experiment = recording.choose(record.paper, [record.experiment], record.tier)[0]
    assert arrival.misshapen(record, experiment.at(record.tier)) == []
