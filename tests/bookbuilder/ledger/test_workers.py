"""A real Dask cluster on loopback: the rows of the local pool, whatever happens to workers and scheduler."""

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from pathlib import Path

import pandas as pd
import pytest
import toybook

from bookbuilder.ledger import workers

Client = pytest.importorskip("distributed").Client
json_load_robust = pytest.importorskip("distributed.utils").json_load_robust
dask = pytest.importorskip("dask")


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    root = toybook.make_house(tmp_path_factory.mktemp("cluster"))
    toybook.write_paper(root, toybook.EXPERIMENT, toybook.CLAIMS)
    return root


@pytest.fixture(autouse=True)
def client(repo, monkeypatch):
    """This process records the toy; it gives its scheduler five minutes, on a machine that has other work."""
    monkeypatch.setattr(workers, "PACKAGE_ROOT", repo / "src/derived")
    monkeypatch.setattr(workers, "PATIENCE", 300)
    with dask.config.set({"distributed.comm.timeouts.connect": "300s"}):
        yield


@contextlib.contextmanager
def cluster(root: Path, number: int, card: Sequence[str] = ()):
    """A scheduler, its address, and workers of one thread, the last one of them with the options of a card."""
    file = Path(tempfile.mkdtemp(dir=root), "scheduler.json")  # where it writes its address, with a free port
    options = {"stderr": subprocess.DEVNULL, "env": toybook.environment(root), "cwd": root}
    serve = ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    work = ["dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard", "--no-nanny"]
    started = [
        subprocess.Popen([sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]], **options)
        for command in (serve, *[work] * number)
    ]
    if card:
        options["env"] = options["env"] | {"CARD": "A"}
        started.append(
            subprocess.Popen([sys.executable, "-m", f"distributed.cli.{work[0]}", *work[1:], *card], **options)
        )
    try:
        while not file.exists():
            assert started[0].poll() is None, "the scheduler ended"
            time.sleep(0.05)
        yield json_load_robust(file)["address"], started[0]
    finally:
        for each in started:
            each.kill()
            each.wait()


@pytest.fixture(scope="module")
def address(repo):
    with cluster(repo, 2) as (found, _):
        yield found


@pytest.fixture(scope="module")
def local(repo):
    """The rows of the local pool."""
    done = toybook.process(repo, "record", "toy", "--uncommitted", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    return record(repo)


def record(repo: Path) -> bytes:
    """Read the rows of the record, and take it away."""
    place = repo / "results/toy/Draws/cpu"
    rows = (place / "rows.parquet").read_bytes()
    for file in place.iterdir():
        file.unlink()
    place.rmdir()
    return rows


def ran(repo: Path) -> str:
    """The conditions that ran at tier cpu since it was last asked."""
    file = repo / "src/derived/papers/toy/ran"
    found = file.read_text()
    file.unlink()
    return found


def told(repo: Path, word: str) -> Path:
    file = repo / "src/derived/papers/toy" / word
    file.touch()
    return file


def test_a_cluster_gives_the_rows_of_the_local_pool_and_a_killed_worker_loses_nothing(repo, address, local):
    ran(repo)
    die = told(repo, "die")
    done = toybook.derived(repo, "record", "toy", "--uncommitted", "--scheduler", address)
    assert done.returncode == 0, done.stderr
    assert not die.exists()
    assert record(repo) == local
    assert {*ran(repo)} == {*"012"}


def test_a_condition_that_fails_is_a_failed_row_and_the_rest_goes_on(repo, address):
    wrong = told(repo, "raise")
    done = toybook.derived(repo, "record", "toy", "--uncommitted", "--scheduler", address)
    wrong.unlink()
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "derived: toy/Draws/cpu: recorded with 1 failed conditions (ArithmeticError: the last one)"
    )
    assert ran(repo).count("2") == 1
    rows = pd.read_parquet(repo / "results/toy/Draws/cpu/rows.parquet")
    record(repo)
    assert rows["failure"].notna().sum() == 1
    assert sorted(rows["shift"].unique()) == [0, 1, 2]
    (trace,) = rows["traceback"].dropna()
    assert 'raise ArithmeticError("the last one")' in trace


def kill_after_a_condition(scheduler: subprocess.Popen, drafts: Path) -> None:
    while not [*drafts.rglob("[0-9]*.parquet")] and scheduler.poll() is None:
        time.sleep(0.05)
    scheduler.kill()


def test_a_killed_scheduler_is_one_clear_line_and_the_run_continues_elsewhere(repo, local, monkeypatch):
    slow, drafts = told(repo, "slow"), repo / "_build/record"
    shutil.rmtree(drafts, ignore_errors=True)
    with cluster(repo, 1) as (found, scheduler):
        killer = threading.Thread(target=kill_after_a_condition, args=(scheduler, drafts))
        killer.start()
        done = toybook.derived(repo, "record", "toy", "--uncommitted", "--scheduler", found)
    killer.join()
    kept = [*drafts.rglob("[0-9]*.parquet")]
    slow.unlink()
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("Draws:")]
    assert lines == [
        f"derived: the scheduler at {found} is gone; finished conditions are kept, the same command continues"
    ]
    ran(repo)
    monkeypatch.setattr(workers, "workers", lambda jobs, scheduler: contextlib.nullcontext(toybook.Here()))
    assert toybook.derived(repo, "record", "toy", "--uncommitted").returncode == 0
    assert record(repo) == local
    assert len(ran(repo)) <= 3 - len(kept)


def test_an_interrupted_pool_leaves_no_thread_behind():
    before = set(threading.enumerate())
    pool = workers.workers(1, "")
    pool.__enter__().submit(time.sleep, 600)
    interrupt = KeyboardInterrupt()
    assert not pool.__exit__(KeyboardInterrupt, interrupt, None)
    assert set(threading.enumerate()) == before


def test_a_killed_worker_of_this_machine_is_one_clear_line_and_the_run_continues(repo, local, monkeypatch):
    shutil.rmtree(repo / "_build/record", ignore_errors=True)
    die = told(repo, "die")
    done = toybook.process(repo, "record", "toy", "--uncommitted", "--jobs", "1")
    assert not die.exists()
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line and not line.startswith("Draws:")]
    assert lines == ["derived: Draws: a worker was killed (out of memory?); finished conditions are kept"]
    ran(repo)
    monkeypatch.setattr(workers, "workers", lambda jobs, scheduler: contextlib.nullcontext(toybook.Here()))
    assert toybook.derived(repo, "record", "toy", "--uncommitted").returncode == 0
    assert record(repo) == local
    assert "0" not in ran(repo), "what had finished is not done again"


def test_workers_with_a_card_do_one_condition_a_card_and_the_others_none(repo, local):
    card = told(repo, "card")
    with cluster(repo, 1, card=("--nthreads", "3", "--resources", "GPU=1")) as (found, _):
        with Client(found) as client:
            client.wait_for_workers(2)
        done = toybook.derived(repo, "record", "toy", "--uncommitted", "--scheduler", found)
    card.unlink()
    assert done.returncode == 0, done.stderr
    assert record(repo) == local


@pytest.fixture
def doctored(repo, tmp_path):
    """The environment of a worker that has another file of the package."""
    shutil.copytree(repo / "src", tmp_path / "src")
    experiments = tmp_path / "src/derived/papers/toy/draws.py"
    experiments.write_text(experiments.read_text().replace("draw.numpy() +", "3 * draw.numpy() +"))
    return tmp_path


def foreign(root: Path, address: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
    return subprocess.Popen(
        [*command, "--no-nanny"], env=toybook.environment(root), cwd=root, stderr=subprocess.PIPE, text=True
    )


def test_a_worker_with_other_code_is_refused_by_name_and_nothing_is_saved(repo, doctored, address):
    with Client(address) as client:
        worker = foreign(doctored, address)
        try:
            client.wait_for_workers(1 + len(client.scheduler_info(n_workers=-1)["workers"]))
            done = toybook.derived(repo, "record", "toy", "--uncommitted", "--scheduler", address)
        finally:
            worker.kill()
            worker.communicate()
    assert done.returncode == 1
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("derived: ")]
    assert line.startswith("derived: the worker tcp://127.0.0.1:")
    assert "has another derived/papers/toy/draws.py; nothing was run or saved" in line
    assert not (repo / "results/toy/Draws/cpu").exists()


def test_a_worker_that_holds_older_code_in_memory_is_refused(repo, address):
    draws = repo / "src/derived/papers/toy/draws.py"
    text = draws.read_text()
    for _ in range(2):  # as it is, a worker may be used again
        with workers.workers(0, address) as executor:
            assert executor.submit(abs, -1).result(300) == 1
    draws.write_text(text + "# edited\n")
    try:
        words = r"the worker tcp://127.0.0.1:\d+ loaded derived/papers/toy/draws.py before it changed; nothing"
        with pytest.raises(workers.UserError, match=words), workers.workers(0, address):
            raise AssertionError("it was let in")
    finally:
        draws.write_text(text)


def test_a_worker_with_other_versions_is_refused(repo, address, monkeypatch):
    monkeypatch.setattr(workers, "versions", lambda: dict.fromkeys(workers.MATTER, "1.0"))
    words = r"the worker tcp://127.0.0.1:\d+ has python 3.*, and here is 1.0"
    with pytest.raises(workers.UserError, match=words), workers.workers(0, address):
        raise AssertionError("it was let in")


def test_a_worker_that_joins_later_with_other_code_ends(repo, doctored, address):
    with Client(address) as client:
        there = len(client.scheduler_info(n_workers=-1)["workers"])
        with workers.workers(0, address) as executor:
            worker = foreign(doctored, address)
            complaint = worker.communicate(timeout=300)[1]
            assert worker.returncode != 0
            assert "has another derived/papers/toy/draws.py" in complaint
            assert executor.submit(abs, -1).result(300) == 1
            assert len(client.scheduler_info(n_workers=-1)["workers"]) == there
        worker = foreign(doctored, address)  # once the recording is over the cluster is free again
        try:
            client.wait_for_workers(there + 1)
        finally:
            worker.kill()
            worker.communicate()


def test_no_scheduler_is_one_clear_line(repo):
    done = toybook.derived(repo, "record", "toy", "--uncommitted", "--scheduler", "here")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("derived: no scheduler at 'here' (")
    assert line.endswith("give one like tcp://127.0.0.1:8786")


def test_what_stops_all_work_is_no_failed_row():
    for error in (CancelledError(), KeyboardInterrupt()):
        future = Future()
        future.set_exception(error)
        with pytest.raises(type(error)):
            workers.result_of(future, {"shift": 1})
    future = Future()
    future.set_exception(RuntimeError("its workers died"))
    (row,) = json.loads(workers.result_of(future, {"shift": 1})[0].to_json(orient="records"))
    assert (row["shift"], row["failure"]) == (1, "RuntimeError: its workers died")
