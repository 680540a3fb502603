"""A reader's rerun as a file: what it says, what compare makes of it, and what the page of evidence counts."""

import getpass
import json
import platform
from types import SimpleNamespace

import press
import pytest

from derived.book.house import House, UserError
from derived.book.judge import attest

KEY = ("toy", "T-1", "ci")
TOLD = {
    **{"date": "2026-11-24", "machine": {"system": "Linux"}, "versions": {"python": "3"}, "tier": "ci", "seed": 0},
    "judged": {"toy": {"T-1": "holds 0123456789abcdef"}},
}


def put(root, name="a", **changes):
    path = root / attest.FOLDER / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(TOLD | changes))
    return path


def test_it_says_what_ran_and_nothing_personal(built):
    done = press.derived(built, "attest")
    assert done.returncode == 0, done.stderr
    assert press.derived(built, "attest").returncode == 0
    (file,) = (built / attest.FOLDER).iterdir()  # the same machine again is the same file
    told = json.loads(file.read_text())
    assert told["judged"] == {"toy": {"T-1": "holds 0123456789abcdef"}}
    assert (told["tier"], told["seed"]) == ("ci", 0)
    assert told["machine"].keys() == {"system", "processor", "device", "cores", "memory"}
    assert not {platform.node(), getpass.getuser(), str(built)} & {*told["machine"].values()}
    assert str(built) not in file.read_text()
    assert press.derived(built, "claims", "--accept").returncode == 0
    assert press.derived(built, "compare", str(file)).returncode == 0


@pytest.mark.parametrize(("held", "told"), [(15.6, 16), (16, 16), (62.7, 64), (125.5, 128)])
def test_memory_is_told_as_the_class_that_its_machine_is_sold_in(monkeypatch, held, told):
    monkeypatch.setattr(attest.psutil, "virtual_memory", lambda: SimpleNamespace(total=round(held * 2**30)))
    assert attest._machine("cpu")["memory"] == f"at most {told} GiB"


def test_rows_of_a_record_are_no_rerun():
    assert attest._judged([press.ROW | {"tier": "cpu"}, press.ROW | {"verdict": "not run"}], "ci") == {}


def test_without_a_run_there_is_nothing_to_attest(tmp_path):
    press.write_toc(tmp_path, "toy")
    with pytest.raises(UserError, match="run `make site` first"):
        attest.attest(House(tmp_path))


def test_compare_names_what_differs_and_what_other_terms_judged(tmp_path):
    given = attest.read_rows(
        put(tmp_path, judged={"toy": {"T-1": "fails 0123456789abcdef", "T-2": "holds " + "f" * 16}})
    )
    ours = [press.COMMITTED, press.COMMITTED | {"id": "T-2"}]
    assert attest.differences(ours, given) == [
        "toy T-1 (ci): ours «holds» 0.5, yours «fails» no value",
        "toy T-2 (ci): judged by other terms than ours",
    ]
    assert attest.differences(ours, [press.ROW]) == []


def test_machines_are_counted_by_row_and_by_verdict(tmp_path):
    assert attest.reruns(tmp_path, [press.ROW]) == {}
    put(tmp_path, "a")
    put(tmp_path, "b", judged={"toy": {"T-1": "undecided 0123456789abcdef"}})
    put(tmp_path, "c", judged={"toy": {"T-1": "holds " + "f" * 16}})  # other terms
    put(tmp_path, "d", seed=3)
    assert attest.reruns(tmp_path, [press.ROW]) == {KEY: (2, 1)}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"judged": {"toy": {"T-1": "passes 0123456789abcdef"}}}, "judged: toy: T-1"),
        ({"judged": {"toy": {"T-1": "holds"}}}, "judged: toy: T-1"),
        ({"owner": "Ada"}, "unknown key"),
        ({"tier": "huge"}, "tier"),
        ({"date": "yesterday"}, "date"),
        ({"seed": "0"}, "a whole number is expected"),
    ],
)
def test_another_shape_is_one_clear_line(tmp_path, changes, message):
    put(tmp_path, **changes)
    with pytest.raises(UserError, match=rf"a\.json.*{message}"):
        attest.reruns(tmp_path, [press.ROW])
