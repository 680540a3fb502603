"""Records from the command line: complete, resumable, refused when they must be; and starting a chapter."""

import contextlib
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from unittest.mock import Mock

import pandas as pd
import psutil
import pytest
import toybook

from bookbuilder.ledger import recording, workers
from bookbuilder.notebook import form
from bookbuilder.paths import Repo
from bookbuilder.sphinx_site import stage
from derived.lab.real import pinned

PAPER = ("--authors", "A. One, B. Two", "--bibkey", "someone2026mine")


@pytest.fixture
def paper(repo, monkeypatch):
    """The experiments of a toy paper, which are recorded in this process; a process of its own has its own workers."""
    pool = workers.workers
    here = lambda jobs, scheduler: pool(jobs, scheduler) if scheduler else contextlib.nullcontext(toybook.Here())  # noqa: E731
    monkeypatch.setattr(workers, "workers", here)
    return toybook.write_paper(repo, toybook.EXPERIMENT, toybook.CLAIMS)


def test_an_interrupted_recording_continues_where_it_stopped(repo, paper):
    (paper / "stop").touch()
    assert toybook.process(repo, "record", "toy", "--uncommitted", "--jobs", "1").returncode != 0
    assert not (repo / "results/toy").exists()
    (note,) = (repo / "_build/record").rglob("began.json")
    began = json.loads(note.read_text())
    (paper / "stop").unlink()
    claims = paper / "claims.py"
    claims.write_text(claims.read_text().replace("The mean is told.", "The mean is zero."))
    process = toybook.derived(repo, "record", "toy", "--uncommitted", "--jobs", "1")
    assert process.returncode == 0, process.stderr
    assert (paper / "ran").read_text() == "0122", "only the condition that had not finished ran again"
    head = json.loads((repo / "results/toy/Draws/cpu/record.json").read_text())
    assert (head["tier"], head["seed"], head["configuration"]) == ("cpu", 0, {"num": 5})
    assert len(pd.read_parquet(repo / "results/toy/Draws/cpu/ci.parquet")) == 6
    assert head["commit"] == ""
    assert "not a git repository" in head["no_commit"]
    assert {"torch", "numpy", "python"} <= set(head["versions"])
    assert {name: head[name] for name in began} == began, "when it began, and the terms that stood then"
    assert list(head["terms"]) == ["T-1"]
    assert head["started"] <= head["date"]
    assert not list((repo / "_build/record").rglob("*.parquet"))


def test_a_terminated_recording_stops_and_keeps_what_is_finished(repo, paper):
    change(paper, "raise KeyboardInterrupt", "__import__('time').sleep(600)")
    (paper / "stop").touch()
    process = toybook.start(repo, "record", "toy", "--uncommitted", "--jobs", "1", stderr=subprocess.DEVNULL)
    while not [*(repo / "_build/record").rglob("1.parquet")] and process.poll() is None:
        time.sleep(0.05)
    family = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    assert process.wait(120) != 0
    _, alive = psutil.wait_procs(family, timeout=120)
    assert family
    assert not alive
    assert not (repo / "results/toy").exists()
    assert len([*(repo / "_build/record").rglob("[0-9]*.parquet")]) == 2, "finished conditions are kept"


def test_a_failing_condition_is_told_and_an_old_record_stays(repo, paper):
    assert toybook.derived(repo, "record", "toy", "--uncommitted").returncode == 0
    before = (repo / "results/toy/Draws/cpu/record.json").read_text()
    path = paper / "draws.py"
    path.write_text(
        path.read_text().replace("if self.num == 5:", "if self.num == 5:\n            raise ArithmeticError('no')")
    )
    process = toybook.derived(repo, "record", "toy", "--uncommitted")
    assert process.returncode == 1
    assert process.stderr.splitlines()[-1].endswith("conditions failed (ArithmeticError: no); the old record stays")
    assert (repo / "results/toy/Draws/cpu/record.json").read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("toy", "Nope"), "toy has no experiment 'Nope'; it has Draws"),
        (("toy", "Draws", "--tier", "gpu"), "Draws is not offered at tier gpu; it has ci, cpu"),
        (("toy", "--tier", "ci"), "runs in every build"),
        (("nope",), "no chapter is called nope"),
        ((), "name a paper"),
        (("toy", "--minutes", "3"), "--minutes needs --missing"),
        (("--missing", "--tier", "ci"), "runs in every build"),
    ],
)
def test_what_cannot_be_recorded_is_one_clear_line(repo, paper, arguments, message):
    process = toybook.derived(repo, "record", *arguments)
    assert process.returncode == 1
    assert len(process.stderr.splitlines()) == 1
    assert message in process.stderr


def head_of(repo) -> dict:
    return json.loads((repo / "results/toy/Draws/cpu/record.json").read_text())


def change(paper, old: str, new: str) -> None:
    path = paper / "draws.py"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_what_is_not_here_is_not_recorded(repo, paper, tmp_path, monkeypatch):
    assert toybook.derived(repo, "record", "toy", "--uncommitted").returncode == 0
    before = head_of(repo)
    monkeypatch.setattr(pinned, "root", lambda: tmp_path / "nothing")
    change(paper, "    num: int = 5", '    needs: ClassVar = ("rxnmapper",)\n    num: int = 5')
    process = toybook.derived(repo, "record", "toy", "--uncommitted")
    assert process.returncode == 1
    assert "what it needs is not here: make real (rxnmapper)" in process.stderr
    assert head_of(repo) == before


@pytest.mark.parametrize("content", [b"", b"PAR1 and no more"])
def test_a_truncated_draft_is_none(tmp_path, content):
    recording._keep(tmp_path, 0, (pd.DataFrame({"value": [1.0]}), 2.0, 3.0))
    whole = (tmp_path / "0.parquet").read_bytes()
    assert recording.kept(tmp_path / "0.parquet") is not None
    for damaged in (content, whole[:-20]):
        (tmp_path / "0.parquet").write_bytes(damaged)
        assert recording.kept(tmp_path / "0.parquet") is None
    pd.DataFrame({"value": [1.0]}).to_parquet(tmp_path / "0.parquet")
    assert recording.kept(tmp_path / "0.parquet") is None, "rows without their seconds"


@pytest.fixture
def three(repo, paper):
    """Experiments First, Draws and Last, on which no, one and two claims rest."""
    (paper / "more.py").write_text(
        toybook.EXPERIMENT.replace("class Draws(", "class Last(")
        .replace("(Draws,)", "(First, Last)")
        .replace("EXPERIMENTS =", "class First(Last):\n    pass\n\n\nEXPERIMENTS =")
    )
    claims = paper / "claims.py"
    text = claims.read_text().replace("import EXPERIMENTS as EXPERIMENTS\n", "import EXPERIMENTS as OTHERS\n")
    text = text.replace("import Draws\n", "import Draws\nfrom derived.papers.toy.more import First, Last\n")
    text = text.replace("CLAIMS = (", "EXPERIMENTS = (First, *OTHERS, Last)\nCLAIMS = (")
    one = text[text.index('reported("T-1"') : text.rindex(",)")]
    more = ", ".join(one.replace("Draws", "Last").replace("T-1", f"T-{number}") for number in (2, 3))
    claims.write_text(text[: text.rindex(",)")] + f", {more})\n")
    return paper


def missing(repo, *options):
    return toybook.derived(repo, "record", "toy", *options, "--missing", "--uncommitted")


def test_what_is_missing_is_recorded_the_most_claims_first(repo, three):
    done = missing(repo)
    assert done.returncode == 0, done.stderr
    begun = [line.split(":")[0] for line in done.stdout.splitlines() if "claim" in line]
    assert begun == ["toy/Last", "toy/Draws", "toy/First"]
    assert len([*(repo / "results/toy").rglob("record.json")]) == 3
    assert missing(repo).stdout == "", "nothing is missing"
    shutil.rmtree(repo / "results/toy/Draws")
    assert "toy/Draws: 1 claim, its time is not known" in missing(repo).stdout


def test_what_takes_longer_than_the_minutes_is_left_out(repo, three):
    assert missing(repo).returncode == 0
    head = repo / "results/toy/Last/cpu/record.json"
    head.write_text(json.dumps(json.loads(head.read_text()) | {"seconds": 600.0}))  # edited, so it must be made again
    for minutes in ("9", "0"):
        done = missing(repo, "--minutes", minutes)
        assert done.returncode == 3
        assert "toy/Last: 2 claims, 600 s last time: left out" in done.stdout
    done = missing(repo, "--minutes", "11")
    assert done.returncode == 0, done.stderr


def test_a_recording_whose_time_is_over_keeps_what_is_finished_and_goes_on(repo, paper, monkeypatch):
    ended = [False]

    def later(futures, timeout):
        for number, future in enumerate(futures):
            if number and not ended[0]:
                ended[0] = True
                raise TimeoutError
            yield future

    monkeypatch.setattr(recording, "as_completed", later)
    monkeypatch.setattr(recording, "_keep_finished", Mock(side_effect=recording._keep_finished))
    done = missing(repo, "--minutes", "60")
    assert done.returncode == 3, done.stderr
    assert "records are still missing; run the same command again" in done.stdout
    assert not (repo / "results/toy").exists()
    done = missing(repo, "--minutes", "60")
    assert done.returncode == 0, done.stderr
    assert (paper / "ran").read_text() == "012", "nothing ran a second time"


def test_what_had_too_little_time_for_one_condition_comes_last_the_next_time(repo, three, monkeypatch):
    with monkeypatch.context() as first:
        first.setattr(recording, "as_completed", Mock(side_effect=TimeoutError))
        first.setattr(recording, "_keep_finished", Mock())
        assert missing(repo, "Last", "--minutes", "60").returncode == 3
    begun = [line.split(":")[0] for line in missing(repo).stdout.splitlines() if "claim" in line]
    assert begun == ["toy/Draws", "toy/First", "toy/Last"]


@pytest.fixture
def started(repo):
    """A second chapter is started beside the toy chapter."""
    toybook.write_chapter(repo, "toy", toybook.report_cell())
    assert toybook.derived(repo, "new", "my_paper", *PAPER).returncode == 0


def test_a_new_chapter_has_the_form_and_a_name_in_use_is_refused(repo, started):
    notebook = json.loads((repo / "notebooks/my_paper.ipynb").read_text())
    assert form.is_strict(notebook)
    assert form.faults(repo, "my_paper", notebook) == []
    assert stage.known(Repo(repo), ["my_paper"]) == []
    again = toybook.derived(repo, "new", "my_paper", *PAPER)
    assert again.returncode == 1
    assert "there is a chapter my_paper already" in again.stderr
    for wrong in ("My-Paper", "class"):
        assert "is no slug" in toybook.derived(repo, "new", wrong, *PAPER).stderr


def test_what_a_new_chapter_lacks_is_told_at_once_and_before_it_runs(repo, started):
    """Mistakes of a newcomer, and what follows from them, are lines of one refusal, and nothing has run."""
    toybook.write_ledger(repo, toybook.COMMITTED)
    notebook = repo / "notebooks/my_paper.ipynb"
    wrong = {"{prf:proof}": "{note}", "someone2026mine": "nobody2026"}
    for old, new in wrong.items():
        notebook.write_text(notebook.read_text().replace(old, new))
    change = {"src/derived/papers/my_paper/first.py": ("MP-1", "T-1")}
    for file, (old, new) in change.items():
        (repo / file).write_text((repo / file).read_text().replace(old, new))
    refused = toybook.derived(repo, "site", "my_paper")
    assert refused.returncode == 1
    assert refused.stderr.splitlines() == [
        "derived: my_paper: T-1 is a claim of toy; the ids of a chapter begin with letters that no other has",
        "derived: my_paper: book/references.bib has no entry nobody2026",
        "derived: my_paper: theorem my_paper-square lacks its proof",
    ]
    assert not Repo(repo).executed("my_paper").exists()
    assert "T-1 is a claim of toy" in toybook.derived(repo, "run", "my_paper").stderr


def test_a_new_chapter_passes_the_lint_and_its_own_tests(repo, started):
    shutil.copy(toybook.ROOT / "tests/papers/conftest.py", repo / "tests/papers/conftest.py")
    made = ["src/derived/papers/my_paper", "tests/papers/my_paper", "notebooks/my_paper.ipynb"]
    for command in (
        ["ruff", "check", *made],
        ["ruff", "format", "--check", *made],
        ["pytest", "-p", "no:cacheprovider", "--doctest-modules", "tests/papers/my_paper", f"{made[0]}/model"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=repo, env=toybook.environment(repo), capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_record_of_another_seed_is_not_overwritten(repo, paper):
    assert toybook.derived(repo, "record", "toy", "--uncommitted").returncode == 0
    before = head_of(repo)
    process = toybook.derived(repo, "record", "toy", "--uncommitted", "--seed", "5")
    assert process.returncode == 1
    assert process.stderr.splitlines() == [
        "derived: toy/Draws/cpu: there is a record of seed 0, which the book shows; to have one of seed 5 in its "
        "place, delete results/toy/Draws/cpu first"
    ]
    assert head_of(repo) == before


def test_a_record_holds_the_live_rows_of_its_own_seed(repo, paper):
    rows = []
    for seed in ("0", "5"):
        shutil.rmtree(repo / "results/toy", ignore_errors=True)
        assert toybook.derived(repo, "record", "toy", "--uncommitted", "--seed", seed).returncode == 0
        rows.append((repo / "results/toy/Draws/cpu/ci.parquet").read_bytes())
    assert rows[0] != rows[1]


def test_a_worker_has_one_thread(monkeypatch):
    for name in workers.ONE_THREAD:
        monkeypatch.setenv(name, "4")
    with workers._pool(1) as pool:
        found = list(pool.map(os.getenv, workers.ONE_THREAD))
    assert found == ["1"] * len(found)


def git(repo, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, cwd=repo, capture_output=True, text=True, check=True).stdout


def test_only_committed_sources_are_recorded_unless_the_record_may_say_so(repo, paper):
    commit = committed(repo)
    (repo / "src/derived/papers/toy/claims.py").write_text(toybook.CLAIMS + "# no part of the experiment\n")
    assert toybook.derived(repo, "record", "toy").returncode == 0
    assert head_of(repo)["commit"] == commit
    change(paper, "draw = torch.rand(", "numbers = draw = torch.rand(")
    process = toybook.derived(repo, "record", "toy")
    assert process.stderr.splitlines()[-1] == (
        "derived: toy/Draws: not committed: src/derived/papers/toy/draws.py; commit it, "
        "or let the record say so: --uncommitted"
    )
    assert toybook.derived(repo, "record", "toy", "--uncommitted").returncode == 0
    assert head_of(repo)["commit"] == commit
    assert head_of(repo)["no_commit"] == "it does not hold src/derived/papers/toy/draws.py"


def committed(repo) -> str:
    git(repo, "init", "-q")
    (repo / ".gitignore").write_text("/_build/\nran\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "all")
    return git(repo, "rev-parse", "HEAD").strip()


def test_a_source_that_git_does_not_know_is_not_committed(repo, paper):
    committed(repo)
    (paper / "more.py").write_text('"""More."""\n')
    change(paper, "import pandas as pd\n", "import pandas as pd\n\nimport derived.papers.toy.more\n")
    git(repo, "add", "src/derived/papers/toy/draws.py")
    git(repo, "commit", "-qm", "without one")
    process = toybook.derived(repo, "record", "toy")
    assert "not committed: src/derived/papers/toy/more.py;" in process.stderr


def test_what_git_says_is_said_and_nothing_runs(repo, paper, monkeypatch):
    """A checkout that git refuses, or that has no git, names no commit in silence no more."""
    refusals = {"not a git repository": lambda: None}
    refusals["detected dubious ownership"] = lambda: (
        committed(repo) and monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    )
    refusals["git cannot be started (No such file or directory)"] = lambda: monkeypatch.setenv("PATH", "/nowhere")
    for words, change in refusals.items():
        change()
        process = toybook.derived(repo, "record", "toy")
        assert process.returncode == 1
        (line,) = process.stderr.splitlines()
        assert line.startswith("derived: toy/Draws: git names no commit: ")
        assert words in line
        assert line.endswith("mend it, or let the record say so: --uncommitted")
    assert not (repo / "results/toy").exists()
    assert not (paper / "ran").exists()


def test_experiments_that_cannot_be_imported_are_one_clear_line(repo, paper):
    change(paper, "import pandas as pd", "import pandas as pd, nowhere")
    process = toybook.derived(repo, "record", "toy", "--uncommitted")
    assert process.stderr == (
        "derived: derived.papers.toy.claims cannot be imported: ModuleNotFoundError: No module named 'nowhere'\n"
    )


def test_a_failure_at_tier_ci_is_one_clear_line(repo, paper):
    change(
        paper,
        "draw = torch.rand(",
        "if self.num == 2:\n            raise ArithmeticError('no')\n        draw = torch.rand(",
    )
    process = toybook.derived(repo, "record", "toy", "--uncommitted")
    assert process.returncode == 1
    assert (
        process.stderr.splitlines()[-1]
        == "derived: toy/Draws at the small size (ci): 3 conditions failed (ArithmeticError: no)"
    )
    assert not (repo / "results/toy").exists()


CLOCKS = ("seconds", "peak_memory_mb", "date", "started", "checksums")


def in_a_fork(repo, moment: float) -> int:
    """Record in a copy of this process, which dies by SIGKILL when it touches a file of a draft or a record for the
    n-th time; returns how often it did."""
    told, tell = os.pipe()
    if child := os.fork():
        os.close(tell)
        with os.fdopen(told, "rb") as pipe:
            touched = len(pipe.read())
        os.waitpid(child, 0)
        return touched
    places, seen = (f"{repo}/results/toy", f"{repo}/_build/record"), 0

    def watch(event: str, given: tuple) -> None:
        nonlocal seen
        if event in ("open", "os.rename", "os.mkdir", "os.rmdir", "os.remove") and str(given[0]).startswith(places):
            seen += 1
            os.write(tell, b".")
            if seen == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    try:
        toybook.derived(repo, "record", "toy", "--uncommitted")
    finally:
        os._exit(0)


def test_a_recording_killed_anywhere_continues_to_the_same_record(repo, paper):
    place, whole = repo / "results/toy/Draws/cpu", []

    def found() -> tuple[bytes, dict]:
        head = head_of(repo)
        rows = (place / "rows.parquet").read_bytes()
        shutil.rmtree(place.parent)
        return rows, {key: value for key, value in head.items() if key not in CLOCKS}

    touched = in_a_fork(repo, math.inf)
    whole = found()
    assert touched > 20
    for moment in random.Random(0).sample(range(1, touched), 10):
        in_a_fork(repo, moment)
        assert toybook.derived(repo, "record", "toy", "--uncommitted").returncode == 0
        assert not [*(repo / "results").rglob(".*")], "what was half saved is swept away"
        assert found() == whole, moment
