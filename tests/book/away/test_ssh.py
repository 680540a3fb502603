"""Records made over ssh on a real server: the rows of this machine, whatever is cut off."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import press
import pytest

from derived.book.away import parcel, ssh
from derived.book.house import House, UserError

ALL = [f"5{shift}" for shift in range(4)]


@pytest.fixture(scope="module")
def local(house) -> Path:
    """The record that this machine makes, put aside."""
    done = press.process(house, "record", "toy", "Draws", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    return (house / "results/toy/Draws/cpu").rename(house / "aside")


def rows(place: Path) -> bytes:
    return (place / "rows.parquet").read_bytes()


def wait_for(condition) -> None:
    deadline = time.monotonic() + 200
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert condition()


def switch_off(home: Path) -> None:
    """Kill the run there, as a power cut does."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            mine = f"HOME={home}\0" in (process / "environ").read_text()
            if mine and "derived.book.away.there" in (process / "cmdline").read_text():
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:  # it has ended meanwhile
            continue


def test_a_cut_line_and_a_power_cut_lose_nothing_and_the_rows_are_those_of_this_machine(house, host, local):
    drafts, slow = host.home / ".derived/_build/record", host.told / "slow"
    slow.touch()
    with host.start("Draws", stdout=subprocess.DEVNULL) as following:
        wait_for(lambda: [*drafts.rglob("[0-9]*.parquet")])
        following.kill()
    switch_off(host.home)
    time.sleep(2)  # its workers watch it
    kept = {path.stem for path in drafts.rglob("[0-9]*.parquet")}
    assert 0 < len(kept) < 4
    assert not (house / "results/toy/Draws/cpu").exists()
    slow.unlink()
    host.ran()
    done = host.record("Draws")
    assert done.returncode == 0, done.stderr
    assert host.ran() == [f"5{shift}" for shift in range(4) if str(shift) not in kept]
    assert rows(house / "results/toy/Draws/cpu") == rows(local)
    again = host.record("Draws")
    assert again.returncode == 0, again.stderr
    assert "toy/Draws/cpu: already here" in again.stdout
    assert host.ran() == []


def test_what_fails_is_one_line_and_replaces_nothing_and_the_rest_comes(house, host, local):
    old = house / "results/toy/Draws/cpu"
    shutil.copytree(local, old, dirs_exist_ok=True)
    (host.told / "raise").touch()
    with host.start("Draws", "Others", stdout=subprocess.DEVNULL) as following:
        wait_for(lambda: (host.told / "ran").exists())
        following.kill()  # the run goes on, and the same command follows it
    done = host.record("Draws", "Others")
    assert done.returncode == 1
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("derived: ")]
    assert "toy/Draws/cpu: 1 conditions failed (ArithmeticError: the third one); the old record stays" in line
    assert rows(old) == rows(local)
    once = sorted(2 * [*ALL, "52", "52"])
    assert host.ran() in (once, sorted([*once, *6 * ["52"]]))  # a run that had ended is begun again, for what failed
    (host.told / "raise").unlink()
    for each in (old, old.parents[1] / "Others/cpu"):
        shutil.rmtree(each)
    mended = host.record("Draws", "Others")
    assert mended.returncode == 0, mended.stderr
    assert host.ran() == ["52", "52"]
    assert rows(old) == rows(old.parents[1] / "Others/cpu") == rows(local)


@pytest.fixture
def lines(host, monkeypatch):
    """Follow an empty parcel's log in this process."""
    monkeypatch.setenv("PATH", f"{host.home / 'bin'}:{os.environ['PATH']}")
    order = {"paper": "cactus", "experiments": [], "tier": "cpu", "seed": 0, "device": "cpu", "jobs": 1}
    packed = parcel.pack(House(press.ROOT), order)
    return lambda name: [*ssh.lines(name, packed)]


def test_where_nobody_listens_one_clear_line_says_so(lines):
    refused = "the connection to closed failed .ssh: connect to host 127.0.0.1 port 1: Connection refused"
    with pytest.raises(UserError, match=refused):
        lines("closed")


def test_a_host_without_a_fitting_python_says_so_in_one_line(host, lines):
    venv = host.home / ".derived/venv"
    aside = venv.rename(venv.with_name("aside")) if venv.exists() else None
    poor = [host.home / "bin" / name for name in ("python3", "python3.11", "python3.12", "python3.13")]
    try:
        for each in poor:
            each.symlink_to("/bin/false")
        (line,) = lines("there")
    finally:
        for each in poor:
            each.unlink()
        if aside:
            aside.rename(venv)
    assert line.startswith("derived: ")
    assert line.endswith(" has no Python 3.11 to 3.13 on the path of a plain ssh command\n")


@pytest.mark.parametrize("target", ["ssh:", "moon"])
def test_a_place_that_there_is_not_is_one_clear_line(house, target):
    done = press.derived(house, "record", "toy", "--on", target)
    assert (done.returncode, done.stderr) == (
        1,
        f"derived: --on {target}: no such place; use ssh:HOST, slurm, k8s, or script for a hosted job\n",
    )
