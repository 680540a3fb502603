"""The driver: what fails, fails loudly and leaves the last good result; what has not changed does not run."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import press
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from derived.book.house import House, processor
from derived.book.run import driver, worker
from derived.lab.real import pinned

PARAMETERS = {"tier": "ci", "seed": 0, "device": "cpu"}


def good(house, slug="toy", **changes):
    press.write_chapter(house, slug, "x = 1", press.report_cell(**changes))
    press.write_toc(house, slug)


def lines(process: subprocess.CompletedProcess) -> list[str]:
    assert "Traceback" not in process.stderr
    return process.stderr.strip().splitlines()


def test_a_chapter_runs_once_and_again_only_after_a_change(house):
    good(house)
    first = press.derived(house, "run")
    assert first.returncode == 0, first.stderr
    assert "done in" in first.stdout
    found = {"tier": "ci", "seed": 0, "device_name": processor()}
    assert press.findings(house, "toy").items() >= found.items(), "where nothing else is asked"
    content = (house / "_build/executed/notebooks/toy.ipynb").read_text()
    assert "papermill" not in content
    assert [*press.findings(house, "toy")["sections"]] == ["toy"]
    assert content.count("vnd.derived") == 1, "only in the cell's source: the findings are not part of the page"
    second = press.derived(house, "run")
    assert "(cached)" in second.stdout
    assert "done in" not in second.stdout
    (house / "_build/findings/toy.json").unlink()
    assert "done in" in press.derived(house, "run").stdout
    assert (house / "_build/executed/notebooks/toy.ipynb").read_text() == content, (
        "two runs must be equal byte for byte"
    )


def test_the_seconds_of_a_run_are_told_by_section():
    code = [new_code_cell("x", metadata={"papermill": {"duration": each}}) for each in (0.26, 1.5, 1.5, None)]
    notes = [new_markdown_cell("## Later\n\nwords"), new_markdown_cell("no heading")]
    notebook = new_notebook(cells=[code[0], notes[0], code[1], notes[1], *code[2:]])
    assert worker._seconds(notebook) == {"": 0.3, "Later": 3.0}


def test_what_runs_again_is_decided_by_what_files_hold_whatever_the_clock_says(house):
    """A clock set back: a cell that changed is older than its run, and what did not change is younger."""
    good(house)
    assert "done in" in press.derived(house, "run").stdout
    path = house / "notebooks/toy.ipynb"
    press.write_chapter(house, "toy", "x = 2", press.report_cell())
    os.utime(path, (0, 0))
    assert "done in" in press.derived(house, "run").stdout
    for file in (path, house / "requirements.lock"):
        os.utime(file, (2**32, 2**32))
    assert "(cached)" in press.derived(house, "run").stdout


def test_the_books_own_run_is_found_again_after_one_of_another_seed(house):
    good(house)
    assert "done in" in press.derived(house, "run").stdout
    content = (house / "_build/executed/notebooks/toy.ipynb").read_text()
    assert "done in" in press.derived(house, "run", "--seed", "1").stdout
    assert press.findings(house, "toy")["seed"] == 1
    again = press.derived(house, "run")
    assert "(cached)" in again.stdout
    assert press.findings(house, "toy")["seed"] == 0
    assert (house / "_build/executed/notebooks/toy.ipynb").read_text() == content
    assert press.derived(house, "run", "--seed", "1").returncode == 0
    (house / "_build/aside/toy/toy.json").write_text("damaged")
    assert "done in" in press.derived(house, "run").stdout


def test_an_essay_runs_and_is_cached_as_a_chapter_is_and_makes_no_claim(house):
    good(house)
    toc = house / "book/_toc.yml"
    toc.write_text(f"{toc.read_text()}      - file: book/essay\n")
    press.write_chapter(house, "essay", "print(40 + 2)")
    (house / "notebooks/essay.ipynb").rename(house / "book/essay.ipynb")
    assert House(house).essays() == ["essay"]
    assert House(house).chapters() == ["toy"]
    done = press.derived(house, "run", "essay")
    assert done.returncode == 0, done.stderr
    assert "42" in (house / "_build/executed/book/essay.ipynb").read_text()
    assert "(cached)" in press.derived(house, "run", "essay").stdout
    assert "no chapter is called essay" in press.derived(house, "record", "essay").stderr
    press.write_chapter(house, "essay", "1 / 0")
    (house / "notebooks/essay.ipynb").rename(house / "book/essay.ipynb")
    assert "essay: cell 3 (1 / 0) raised ZeroDivisionError" in press.derived(house, "run", "essay").stderr


FAULTS = {
    "raises": ("1 / 0", "toy: cell 3 (1 / 0) raised ZeroDivisionError: division by zero"),
    "exits": ("import sys; sys.exit(0)", "cell 3 (import sys; sys.exit(0)) raised SystemExit"),
    "dies": (
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "toy: cell 3 (import os, signal; os.kill(os.getpid(), signal.SIGKILL)): the kernel died",
    ),
    "no check": (press.report_cell(on_page=["T-1"]), "claim T-1 is on_page, and no check cell names it"),
    "no report": ("x = 1", "called report(...) 0 times"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_chapter_that_fails_says_where_and_why_and_leaves_the_last_good_run(built, fault):
    before = {path: path.read_bytes() for path in (built / "_build").rglob("toy.*") if "running" not in path.parts}
    cell, message = FAULTS[fault]
    press.write_chapter(built, "toy", cell, "never = 'reached'")
    process = press.derived(built, "run")
    assert process.returncode == 1
    assert len(lines(process)) == 1
    assert message in process.stderr
    assert before == {path: path.read_bytes() for path in before}


def test_a_chapter_that_never_ends_is_stopped_and_its_cell_named(house):
    press.write_chapter(house, "toy", "x = 1", "while True:\n    pass")
    press.write_toc(house, "toy")
    started = time.monotonic()
    process = press.derived(house, "run", "--limit", "6")
    assert time.monotonic() - started < 30
    assert process.returncode == 1
    assert "toy: stopped at its limit of 6 s, in cell 4 (while True:)" in lines(process)[-1]
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(house) in " ".join(p.info["cmdline"] or [])]


def test_one_failing_chapter_does_not_keep_the_others_from_running(house):
    good(house, "toy")
    press.write_chapter(house, "bad", "1 / 0")
    press.write_toc(house, "bad", "toy")
    process = press.derived(house, "run")
    assert process.returncode == 1
    assert press.findings(house, "toy")["rows"][0]["verdict"] == "holds"


def test_a_wrong_parameters_cell_is_refused(house):
    press.write_chapter(house, "toy", press.report_cell(), parameters='tier = "ci"\nsize = 3')
    press.write_toc(house, "toy")
    assert "must hold exactly tier, seed, device" in lines(press.derived(house, "run"))[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "no chapter is called nope; there is toy"),
        (("--tier", "xl"), "tier 'xl' is unknown: use ci, cpu, gpu"),
        (("--device", "tpu"), "device 'tpu' is unknown: use auto, cpu, cuda"),
        (("--device", "cuda"), "no NVIDIA device"),
    ],
)
def test_unknown_names_are_one_clear_line(house, monkeypatch, arguments, message):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    good(house)
    process = press.derived(house, "run", *arguments)
    assert process.returncode == 1
    assert len(lines(process)) == 1
    assert message in process.stderr


def test_a_changed_verdict_fails_the_run_and_names_the_claim(house):
    good(house, verdict="fails")
    process = press.derived(house, "run")
    assert process.returncode == 1
    assert lines(process) == ["derived: toy: claim T-1 at tier ci: the verdict is «fails», expected «holds»"]
    assert "(cached)" in press.derived(house, "run").stdout, "the run itself was good and need not be repeated"


def test_two_builds_at_once_are_refused(house):
    good(house)
    (house / "_build").mkdir()
    with open(house / "_build/.build.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = press.derived(house, "run")
    assert process.returncode == 1
    assert lines(process) == ["derived: another build of this checkout is running; wait for it or stop it"]


STUCK = "import ctypes; ctypes.PyDLL(None).sleep(600)"  # compiled code that lets no other thread have its turn


@pytest.mark.parametrize(
    ("how", "cell"), [(signal.SIGKILL, "time.sleep(600)"), (signal.SIGINT, "time.sleep(600)"), (signal.SIGKILL, STUCK)]
)
def test_a_killed_build_takes_its_kernels_along_and_the_next_one_works(house, how, cell):
    press.write_chapter(house, "toy", "import time", cell)
    press.write_toc(house, "toy")
    driver = press.start(house, "run", stdout=subprocess.DEVNULL)
    partial = house / "_build/running/toy/toy.ipynb"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (partial.exists() and '"running"' in partial.read_text()):
        time.sleep(0.2)
    family = psutil.Process(driver.pid).children(recursive=True)
    os.kill(driver.pid, how)
    driver.wait(30)
    _, alive = psutil.wait_procs(family, timeout=20)
    assert family
    assert not alive
    good(house)
    assert press.derived(house, "run").returncode == 0


def test_a_build_that_is_killed_while_its_worker_starts_takes_it_along(house):
    press.write_chapter(house, "toy", "import time", "time.sleep(600)")
    press.write_toc(house, "toy")
    driver = press.start(house, "run", stdout=subprocess.DEVNULL)
    family, deadline = [], time.monotonic() + 60
    while time.monotonic() < deadline and not family:
        family = psutil.Process(driver.pid).children(recursive=True)
    driver.kill()
    driver.wait(30)
    _, alive = psutil.wait_procs(family, timeout=30)
    for process in alive:
        process.kill()
    assert family
    assert not alive


def test_a_corrupt_cache_is_run_again(built):
    path = built / "_build/executed/notebooks/toy.ipynb"
    path.write_text(path.read_text()[:-30])
    assert "done in" in press.derived(built, "run").stdout


@pytest.fixture
def keys(house, monkeypatch):
    """The key of the first chapter in a copy of this checkout, as a function of what has been changed in the copy."""
    shutil.copytree(press.ROOT / "results/ols_attention", house / "results/ols_attention")
    (house / "notebooks").mkdir()
    shutil.copy(press.ROOT / "notebooks/ols_attention.ipynb", house / "notebooks")
    press.move(monkeypatch, house)
    return lambda **changes: driver.chapter_key(House(house), "ols_attention", PARAMETERS | changes)


@pytest.mark.parametrize(
    ("path", "reruns"),
    [
        ("src/derived/papers/ols_attention/model/theory.py", True),
        ("src/derived/papers/ols_attention/layer.py", True),
        ("src/derived/papers/ols_attention/explorer.js", True),
        ("src/derived/lab/stats.py", True),
        ("results/ols_attention/New/cpu/record.json", True),
        ("requirements.lock", True),
        ("src/derived/book/run/worker.py", True),
        ("src/derived/book/run/guard.py", True),
        ("src/derived/book/serve.py", False),
        ("src/derived/papers/another/theory.py", False),
        ("src/derived/book/judge/ledger.py", False),
        ("results/another/New/cpu/record.json", False),
        ("README.md", False),
    ],
)
def test_the_key_sees_what_the_chapter_depends_on_and_nothing_else(house, keys, path, reruns):
    before = keys()
    file = house / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + '\n"""Another docstring."""\n')
    assert (keys() != before) == reruns


def test_the_key_sees_which_real_weights_and_data_of_its_own_are_here(keys, monkeypatch):
    before = keys()
    monkeypatch.setattr(pinned, "state", lambda chapter: {"mails": chapter == "another"})
    absent = keys()
    monkeypatch.setattr(pinned, "state", lambda chapter: {"mails": chapter == "ols_attention"})
    assert len({before, absent, keys()}) == 3


def test_the_key_does_not_see_what_the_press_alone_reads(house, keys):
    before = keys()
    path = house / "notebooks/ols_attention.ipynb"
    notebook = json.loads(path.read_text())
    notebook["metadata"]["derived"] |= {"rests": {}, "alone": {"another reason": "OLS-1.a"}}
    path.write_text(json.dumps(notebook))
    assert keys() == before
    notebook["metadata"]["derived"]["claim"] = "Another."
    path.write_text(json.dumps(notebook))
    assert keys() != before


def test_the_key_sees_the_cells_and_the_parameters(house, keys):
    before = keys()
    assert len({before, keys(tier="cpu"), keys(seed=1)}) == 3
    path = house / "notebooks/ols_attention.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][-1]["source"] = "1 + 1"
    path.write_text(json.dumps(notebook))
    assert keys() != before


def test_the_press_starts_without_torch_and_matplotlib():
    code = "import sys, derived.book.cli, derived.book.site.render\n"
    code += "sys.exit(bool({'torch', 'matplotlib'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_a_cell_writes_past_python_stops_nothing(house):
    press.write_chapter(house, "toy", "import os\nfor _ in range(40):\n    os.write(1, b'x' * 10_000)", "1 / 0")
    press.write_toc(house, "toy")
    process = press.derived(house, "run", "--limit", "40")
    assert lines(process)[-1].endswith("raised ZeroDivisionError: division by zero")


def test_a_chapter_sees_neither_the_readers_own_settings_nor_files_of_an_earlier_run(
    house, tmp_path_factory, monkeypatch
):
    mine = tmp_path_factory.mktemp("mine")
    (mine / "profile_default/startup").mkdir(parents=True)
    (mine / "profile_default/startup/00.py").write_text("leaked = True")
    (mine / "startup.py").write_text("leaked = True")
    (mine / "matplotlibrc").write_text("font.size: 30\n")
    for name, value in {"IPYTHONDIR": mine, "PYTHONSTARTUP": mine / "startup.py", "MATPLOTLIBRC": mine}.items():
        monkeypatch.setenv(name, str(value))
    (house / "_build/running/toy").mkdir(parents=True)
    (house / "_build/running/toy/leftover").touch()
    cell = (
        "import os, matplotlib\n"
        "assert 'leaked' not in globals()\n"
        "assert matplotlib.rcParams['font.size'] == 10\n"
        "assert not os.path.exists('leftover')"
    )
    press.write_chapter(house, "toy", cell, press.report_cell())
    press.write_toc(house, "toy")
    process = press.derived(house, "run")
    assert process.returncode == 0, process.stderr


def test_a_false_step_fails_whatever_python_is_told_to_skip(house, monkeypatch):
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    press.write_chapter(house, "toy", "assert 1 == 2", press.report_cell())
    press.write_toc(house, "toy")
    process = press.derived(house, "run")
    assert process.returncode == 1
    assert "toy: cell 3 (assert 1 == 2) raised AssertionError" in process.stderr


WRITES = """from pathlib import Path
import derived
place = Path(derived.__file__).parents[2] / "{}"
place.write_text(place.read_text() + " ")"""


@pytest.mark.parametrize("file", ["results/ledger.json", "results/toy/Draws/cpu/record.json", "src/derived/lab/rng.py"])
def test_a_cell_that_rewrites_the_book_is_found_out(house, file):
    (house / file).parent.mkdir(parents=True, exist_ok=True)
    (house / file).touch()
    press.write_chapter(house, "toy", WRITES.format(file), press.report_cell())
    press.write_toc(house, "toy")
    [line] = lines(press.derived(house, "run"))
    assert line == f"derived: toy: {file} changed while it ran; no cell may write there"


def test_what_a_kernel_started_ends_with_it(house):
    cell = "import subprocess\nalive = subprocess.Popen(['sleep', '600'], start_new_session=True).pid\nprint(alive)"
    press.write_chapter(house, "toy", cell, press.report_cell())
    press.write_toc(house, "toy")
    assert press.derived(house, "run").returncode == 0
    notebook = json.loads((house / "_build/executed/notebooks/toy.ipynb").read_text())
    pid = next(int(o["text"][0]) for c in notebook["cells"] for o in c.get("outputs", []) if o.get("name") == "stdout")
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("damage", ["a word", "no column", "no rows"])
def test_findings_of_another_shape_count_as_not_run(house, damage):
    good(house)
    assert press.derived(house, "run").returncode == 0
    found = press.findings(house, "toy")
    match damage:
        case "a word":
            found["rows"][0]["value"] = "abc"
        case "no column":
            del found["rows"][0]["verdict"]
        case "no rows":
            found["rows"] = []
    (house / "_build/findings/toy.json").write_text(json.dumps(found))
    assert driver.read_findings(House(house), "toy") is None
    assert lines(press.derived(house, "claims")) == ["derived: no findings of toy yet: run `make site` first"]


def test_a_build_started_in_the_background_can_be_interrupted(house):
    press.write_chapter(house, "toy", "import time", "time.sleep(600)")
    press.write_toc(house, "toy")
    pipe, deaf = subprocess.PIPE, lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    with press.start(house, "run", stdout=pipe, stderr=pipe, preexec_fn=deaf) as driver:
        assert "to run" in driver.stdout.readline()
        driver.send_signal(signal.SIGINT)
        try:
            assert "interrupted" in driver.communicate(timeout=20)[1]
        finally:
            driver.kill()


NO_NOTEBOOK = {
    "{}": " is no notebook: it has no list of cells",
    "[]": " is no notebook: it has no list of cells",
    '{"cells": []}': " is no notebook: it has no metadata",
    '{"cells": [1], "metadata": {}}': ": cell 1 lacks cell_type, metadata or source",
    '{"cells": [{"cell_type": "code"}], "metadata": {}}': ": cell 1 lacks cell_type, metadata or source",
}


@pytest.mark.parametrize("content", NO_NOTEBOOK)
def test_a_file_that_is_no_notebook_is_one_clear_line(house, content):
    good(house)
    (house / "notebooks/toy.ipynb").write_text(content)
    assert lines(press.derived(house, "run")) == [f"derived: toy: notebooks/toy.ipynb{NO_NOTEBOOK[content]}"]


def test_a_syntax_error_names_its_cell_or_its_file(house):
    press.write_chapter(house, "toy", "x = 1", "# words\ny = (")
    press.write_toc(house, "toy")
    [line] = lines(press.derived(house, "run"))
    assert line.startswith("derived: toy: cell 4 (# words), line 2: no Python: ")
    press.write_chapter(house, "toy", "import derived.papers.mine.model")
    (house / "src/derived/papers/mine").mkdir()
    (house / "src/derived/papers/mine/__init__.py").write_text("\ny = (\n")
    [line] = lines(press.derived(house, "run"))
    assert line.startswith("derived: toy: src/derived/papers/mine/__init__.py, line 2: no Python: ")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it names no parts with chapters"),
        ("root: book/intro\n", "it names no parts with chapters"),
        (
            "parts:\n  - chapters:\n      - file: notebooks/toy\n      - file: notebooks/toy\n",
            "it names notebooks/toy twice",
        ),
        ("parts:\n  - chapters:\n      - file: notebooks/absent\n", "it names notebooks/absent, which is not there"),
    ],
)
def test_a_table_of_contents_that_cannot_be_is_one_clear_line(house, text, message):
    good(house)
    (house / "book/_toc.yml").write_text(text)
    [line] = lines(press.derived(house, "run"))
    assert line == f"derived: book/_toc.yml: {message}"


def test_findings_that_are_none_are_made_again(built):
    (built / "_build/findings/toy.json").write_text("[]")
    assert "done in" in press.derived(built, "run").stdout


def test_a_long_run_says_what_to_expect_and_where_it_is(house, monkeypatch, capsys):
    press.write_chapter(house, "toy", "import time", "time.sleep(5)", press.report_cell())
    press.write_toc(house, "toy")
    (house / "results/toy/Draws/cpu").mkdir(parents=True)
    (house / "results/toy/Draws/cpu/record.json").write_text('{"seconds": 2160.4}')
    monkeypatch.setattr(driver, "TELL_EVERY", 2)
    for name, value in press.environment(house).items():
        monkeypatch.setenv(name, value)
    outcomes = []
    for _ in range(2):
        outcomes += driver.run_chapters(House(house), ["toy"], PARAMETERS | {"tier": "cpu"}, 1)
        assert outcomes[-1].error is None
        (house / "requirements.lock").write_text("another")
    said = capsys.readouterr().out
    assert "toy: to run at tier cpu, its records took 2160 s" in said
    assert " s so far, in cell 4 (time.sleep(5))" in said
    assert f"toy: to run at tier cpu, {outcomes[0].findings['seconds']:.0f} s last time" in said


def test_what_can_be_known_of_all_chapters_is_told_at_once_and_nothing_runs(house):
    """A cell that is too long and a claim that rests on nothing, of one chapter, and a slip of Python of another."""
    room = press.write_paper(house, press.EXPERIMENT, "").parent
    (room / "claims.py").unlink()
    (room / "claims").mkdir()
    (room / "claims/__init__.py").write_text(press.CLAIMS, "utf-8")
    path = house / "notebooks/toy.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    notebook["metadata"]["derived"] = {"edition": 2}
    notebook["cells"][-1]["source"] = "x = 1\n" * 26
    path.write_text(json.dumps(notebook), "utf-8")
    press.write_chapter(house, "other", "x = (", press.report_cell())
    press.write_toc(house, "toy", "other")
    ran = press.derived(house, "run")
    assert ran.returncode == 1
    said = lines(ran)
    for line in (
        "derived: toy: T-1 is a claim of other; a chapter's ids begin with letters of its own",
        "derived: toy: cell 3 has 26 lines of code, over 25",
        'derived: toy: claim T-1 rests on no statement; name one in the metadata\'s "rests", or in "alone" say why',
        "derived: other: cell 3 (x = (), line 1: no Python: '(' was never closed",
    ):
        assert line in said, said
    assert "to run" not in ran.stdout
    assert not (house / "_build/executed").exists()
