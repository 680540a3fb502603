"""Records are whole or absent, refuse what they must, and tell fresh from stale."""

import errno
import json
import os

import numpy as np
import pandas as pd
import pytest

from derived.lab import intact, record
from derived.lab.experiment import run_condition
from derived.lab.record import RecordError, disagreements, load, save, strayed


def test_what_is_saved_is_loaded_bit_for_bit(toy, recorded):
    before = recorded(toy)
    save(before)
    after = load(toy, "cpu")
    assert len((record.slot("toy", "Toy", "cpu") / "record.json").read_text().splitlines()) < 22
    pd.testing.assert_frame_equal(after.rows, before.rows, check_exact=True)
    pd.testing.assert_frame_equal(after.ci_rows, before.ci_rows, check_exact=True)
    assert (after.configuration, after.versions) == (before.configuration, before.versions)


def test_the_digits_of_tiny_numbers_and_missing_ones_survive(toy, recorded):
    rows = pd.DataFrame({"value": [np.pi * 1e-12, np.nan, -1e300], "count": [1, 2, 3], "name": ["a", None, "c"]})
    rows = rows.assign(single=np.float32([1 / 3, np.nan, -np.inf]), right=[True, False, True], zero=-0.0)
    save(recorded(toy, ci_rows=rows))
    pd.testing.assert_frame_equal(load(toy, "cpu").ci_rows, rows, check_exact=True)


def test_no_record_is_none(toy):
    assert load(toy, "gpu") is None


@pytest.mark.parametrize("name", ["record.json", "rows.parquet", "ci.parquet"])
@pytest.mark.parametrize("damage", ["truncate", "edit", "delete"])
def test_a_damaged_record_is_refused_with_the_command_that_remakes_it(toy, recorded, name, damage):
    path = save(recorded(toy)) / name
    content = path.read_bytes()
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(content[:-20] if damage == "truncate" else content.replace(b"toy", b"yot", 1))
    with pytest.raises(RecordError, match="derived record toy Toy --tier cpu"):
        load(toy, "cpu")


def test_an_edited_number_is_refused(toy, recorded):
    path = save(recorded(toy)) / "record.json"
    head = json.loads(path.read_text())
    head["seconds"] = 0.1
    path.write_text(json.dumps(head))
    with pytest.raises(RecordError, match="edited"):
        load(toy, "cpu")


def test_a_record_of_another_configuration_is_refused_and_says_what_differs(toy, recorded):
    save(recorded(toy, configuration=toy(draws=7).configuration()))
    with pytest.raises(RecordError, match="draws: recorded 7, now 100"):
        load(toy, "cpu")


def test_a_full_disk_leaves_the_old_record(toy, recorded, monkeypatch):
    place = save(recorded(toy))
    before = {path.name: path.read_bytes() for path in place.iterdir()}

    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(record.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(recorded(toy, seconds=9.0))
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before
    assert [path.name for path in place.parent.iterdir()] == ["cpu"]


def test_a_new_record_that_cannot_take_its_place_leaves_the_old_one(toy, recorded, monkeypatch):
    place = save(recorded(toy))
    rename = type(place).rename

    def fails(path, target):
        if ".new-" in path.name:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    monkeypatch.setattr(type(place), "rename", fails)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        save(recorded(toy, seconds=9.0))
    assert load(toy, "cpu").seconds == 1.5
    assert [path.name for path in place.parent.iterdir()] == ["cpu"]


def test_equal_rows_agree_and_undeclared_floats_are_not_compared():
    a = pd.DataFrame({"n": [1, 2], "name": ["x", None], "exact": [1.0, np.nan], "timed": [1.0, 2.0]})
    assert disagreements(a, a.assign(timed=[5.0, 6.0]), {"exact": 1e-12}) == []


@pytest.mark.parametrize("scale", [1e-20, 1.0, 1e20])
def test_the_rounding_that_is_allowed_is_relative(scale):
    a = pd.DataFrame({"exact": [scale]})
    assert not disagreements(a, a * (1 + 0.5e-12), {"exact": 1e-12})
    assert disagreements(a, a * (1 + 3e-12), {"exact": 1e-12})


@pytest.mark.parametrize(
    "change", [{"n": [1, 3]}, {"name": ["y", None]}, {"exact": [1.0 + 3e-12, np.nan]}, {"exact": [1.0, 0.0]}]
)
def test_a_changed_count_string_or_exact_float_is_a_disagreement(change):
    a = pd.DataFrame({"n": [1, 2], "name": ["x", None], "exact": [1.0, np.nan]})
    assert len(disagreements(a, a.assign(**change), {"exact": 1e-12})) == 1


def test_other_keys_or_sizes_are_a_disagreement():
    a = pd.DataFrame({"n": [1, 2]})
    assert disagreements(a, a.iloc[:1], {})
    assert disagreements(a, a.rename(columns={"n": "m"}), {})


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ([1.0, 2.0, 3.0, 4.0], [1.1, 90.0, 3.0, 0.0], True),  # rows may end anywhere
        ([1.0, 1.0], [1.9, 1.9], True),
        ([1.0, 1.0], [2.1, 2.1], False),
        ([1.0, 1.0], [0.4, 0.4], False),
        ([-1.0, -1.0], [-2.1, -2.1], False),
        ([1.0, 1.0], [-1.0, -1.0], False),
        ([0.0, 0.0, 1.0, 1.0], [-1.0, 0.0, 0.0, 0.0], True),
        ([0.0, 0.0], [2e-6, 2e-6], False),
        ([0.0, 0.0], [1e-7, 1e-7], True),  # rounding gaps
        ([1e-16, 1e-16], [-1e-14, -1e-14], True),
        ([1e-16, 1e-16], [0.9e-14, 0.9e-14], True),
        ([1e-16, 1e-16], [1e-7, 1e-7], False),  # those of another dtype
        ([1e-12, 1e-12], [1e-9, 1e-9], False),
        ([1.0, np.inf, np.inf], [1.0, 1.0, np.nan], True),
        ([1.0, np.inf, np.inf], [1.0, 1.0, 1.0], False),
        ([1.0, 1.0], [np.nan, np.nan], False),
        ([np.nan, np.nan], [np.nan, np.nan], True),
    ],
)
def test_a_column_is_another_as_a_whole(then, now, same):
    tables = (pd.DataFrame({"gap": column}) for column in (then, now))
    assert (strayed(*tables, ["gap"]) == []) == same


def test_a_condition_that_raises_becomes_a_row(toy):
    rows = run_condition(toy(shifts=(-1.0,)), {"shift": -1.0}, seed=0, device="cpu")
    [row] = rows.to_dict("records")
    assert row["traceback"].startswith("Traceback")
    assert row == {"shift": -1.0, "failure": "ArithmeticError: negative shift", "traceback": row["traceback"]}


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"paper": "another"},
        {"tier": "gpu"},
        {"seconds": None},
        {"rows": [[1, 2]]},
    ],
)
def test_a_record_that_is_none_of_its_place_is_refused_however_well_it_is_sealed(toy, recorded, change):
    path = save(recorded(toy)) / "record.json"
    head = json.loads(path.read_text()) | change
    [name] = change
    if change[name] is None:
        del head[name]
    head["checksums"]["record.json"] = intact.seal(head)
    path.write_text(json.dumps(head))
    with pytest.raises(RecordError, match=r"record toy/Toy/cpu (is that|has not).* derived record toy Toy --tier cpu"):
        load(toy, "cpu")


def test_what_a_killed_save_left_is_put_right(toy, recorded):
    place = save(recorded(toy))
    (place.parent / ".cpu.new-1").mkdir()
    place.rename(place.parent / ".cpu.old-1")
    record.sweep("toy")
    assert [path.name for path in place.parent.iterdir()] == ["cpu"]
    assert load(toy, "cpu") is not None
    (place.parent / ".cpu.old-1").mkdir()
    record.sweep("toy")
    assert [path.name for path in place.parent.iterdir()] == ["cpu"]


def test_records_are_those_of_the_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert (record.results_root() / "ledger.json").is_file()


def test_without_a_checkout_records_are_those_beside_the_notebook(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "PACKAGE_ROOT", tmp_path / "lib/site-packages/derived")
    monkeypatch.chdir(tmp_path)
    assert record.results_root() == tmp_path / "results"
