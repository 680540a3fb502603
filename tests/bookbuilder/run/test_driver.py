"""The driver: what fails, fails loudly and leaves the last good result; what has not changed does not run."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest
import toybook

from bookbuilder.paths import Repo, processor
from bookbuilder.run import driver
from derived.lab.real import pinned

PARAMETERS = {"tier": "ci", "seed": 0, "device": "cpu"}


def good(repo, **changes):
    toybook.write_chapter(repo, "toy", "x = 1", toybook.report_cell(**changes))


def lines(process: subprocess.CompletedProcess) -> list[str]:
    assert "Traceback" not in process.stderr
    return process.stderr.strip().splitlines()


def test_a_chapter_runs_once_and_again_only_after_a_change(repo):
    good(repo)
    first = toybook.derived(repo, "run")
    assert first.returncode == 0, first.stderr
    assert "done in" in first.stdout
    found = {"tier": "ci", "seed": 0, "device_name": processor()}
    assert toybook.findings(repo, "toy").items() >= found.items(), "where nothing else is asked"
    content = (repo / "_build/executed/notebooks/toy.ipynb").read_text()
    assert "papermill" not in content
    assert content.count("vnd.derived") == 1, "only in the cell's source: the findings are not part of the page"
    second = toybook.derived(repo, "run")
    assert "(cached)" in second.stdout
    assert "done in" not in second.stdout
    (repo / "_build/findings/toy.json").unlink()
    assert "done in" in toybook.derived(repo, "run").stdout
    assert (repo / "_build/executed/notebooks/toy.ipynb").read_text() == content, "two runs must be equal byte for byte"


def test_a_chapter_runs_in_the_builders_own_python_whatever_kernels_jupyter_finds(repo, tmp_path, monkeypatch):
    folder = tmp_path / "jupyter/kernels/python3"
    folder.mkdir(parents=True)
    argv = ["/usr/bin/env", "OTHER=1", sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (folder / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "mine", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    cell = f"import os, sys\nassert 'OTHER' not in os.environ and sys.executable == {sys.executable!r}"
    toybook.write_chapter(repo, "toy", cell, toybook.report_cell())
    done = toybook.derived(repo, "run")
    assert done.returncode == 0, done.stderr


def test_an_essay_runs_and_is_cached_as_a_chapter_is_and_makes_no_claim(repo):
    good(repo)
    with (repo / "book/chapters.yml").open("a") as file:
        file.write("  - {caption: More, pages: [essay]}\n")
    toybook.write_chapter(repo, "essay", "print(40 + 2)")
    (repo / "notebooks/essay.ipynb").rename(repo / "book/essay.ipynb")
    assert Repo(repo).essays() == ["essay"]
    assert Repo(repo).chapters() == ["toy"]
    done = toybook.derived(repo, "run", "essay")
    assert done.returncode == 0, done.stderr
    assert "42" in (repo / "_build/executed/book/essay.ipynb").read_text()
    assert "(cached)" in toybook.derived(repo, "run", "essay").stdout
    assert "no chapter is called essay" in toybook.derived(repo, "record", "essay").stderr
    toybook.write_chapter(repo, "essay", "1 / 0")
    (repo / "notebooks/essay.ipynb").rename(repo / "book/essay.ipynb")
    assert "essay: cell 3 (1 / 0) raised ZeroDivisionError" in toybook.derived(repo, "run", "essay").stderr


FAULTS = {
    "raises": ("1 / 0", "toy: cell 3 (1 / 0) raised ZeroDivisionError: division by zero"),
    "exits": ("import sys; sys.exit(0)", "cell 3 (import sys; sys.exit(0)) raised SystemExit"),
    "dies": (
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
        "toy: cell 3 (import os, signal; os.kill(os.getpid(), signal.SIGKILL)): the kernel died",
    ),
    "no check": (toybook.report_cell(on_page=["T-1"]), "claim T-1 is on_page, and no check cell names it"),
    "no report": ("x = 1", "called report(...) 0 times"),
    "no proof": (toybook.report_cell(proof="gone"), "claim T-1 rests on 'gone', a label that the page has not"),
    "leaks": (f"import os\n{toybook.report_cell()}\nos.getcwd()", "its output shows the working directory"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_chapter_that_fails_says_where_and_why_and_leaves_the_last_good_run(built, fault):
    before = {path: path.read_bytes() for path in (built / "_build").rglob("toy.*") if "running" not in path.parts}
    cell, message = FAULTS[fault]
    toybook.write_chapter(built, "toy", cell, "never = 'reached'")
    process = toybook.derived(built, "run")
    assert process.returncode == 1
    assert len(lines(process)) == 1
    assert message in process.stderr
    assert before == {path: path.read_bytes() for path in before}


def test_a_chapter_that_never_ends_is_stopped_and_its_cell_named(repo):
    toybook.write_chapter(repo, "toy", "import time", "time.sleep(600)")
    process = toybook.derived(repo, "run", "--limit", "6")
    assert process.returncode == 1
    assert "toy: stopped at its limit of 6 s, in cell 4 (time.sleep(600))" in lines(process)[-1]
    assert not [p for p in psutil.process_iter(["cmdline"]) if str(repo) in " ".join(p.info["cmdline"] or [])]


def test_one_failing_chapter_does_not_keep_the_others_from_running(repo):
    good(repo)
    toybook.write_chapter(repo, "bad", "1 / 0")
    toybook.write_toc(repo, "bad", "toy")
    process = toybook.derived(repo, "run")
    assert process.returncode == 1
    assert toybook.findings(repo, "toy")["rows"][0]["verdict"] == "holds"


def test_chapters_of_one_lane_share_what_is_imported_and_nothing_else(repo, monkeypatch):
    monkeypatch.setattr(driver, "SHARED", ("this",))  # it prints on import
    toybook.write_chapter(repo, "toy", "import this, os\nthis.mine = os.environ['MINE'] = ''", "os._exit(0)")
    then = "import this, os, sys\nassert not hasattr(this, 'mine') and 'MINE' not in os.environ"
    toybook.write_chapter(repo, "then", "import sys\nassert 'this' in sys.modules", then, "missing")
    toybook.write_toc(repo, "toy", "then")
    said = lines(toybook.derived(repo, "run", "--jobs", "1"))
    assert said[0].startswith("derived: toy: cell 4 (os._exit(0)): the kernel died")
    assert said[1].startswith("derived: then: cell 5 (missing) raised NameError")


def test_a_wrong_parameters_cell_is_refused(repo):
    toybook.write_chapter(repo, "toy", toybook.report_cell(), parameters='tier = "ci"\nsize = 3')
    assert "must hold exactly tier, seed, device" in lines(toybook.derived(repo, "run"))[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nope",), "no chapter is called nope; there is toy"),
        (("--tier", "xl"), "tier 'xl' is unknown: use ci, cpu, gpu"),
        (("--device", "tpu"), "device 'tpu' is unknown: use auto, cpu, cuda"),
        (("--device", "cuda"), "no NVIDIA device"),
    ],
)
def test_unknown_names_are_one_clear_line(repo, monkeypatch, arguments, message):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    good(repo)
    process = toybook.derived(repo, "run", *arguments)
    assert process.returncode == 1
    assert len(lines(process)) == 1
    assert message in process.stderr


def test_a_changed_verdict_fails_the_run_and_names_the_claim(repo):
    good(repo, verdict="fails")
    process = toybook.derived(repo, "run")
    assert process.returncode == 1
    assert lines(process) == ["derived: toy: claim T-1 at tier ci: the verdict is «fails», expected «holds»"]
    assert "(cached)" in toybook.derived(repo, "run").stdout, "the run itself was good and need not be repeated"


def test_two_builds_at_once_are_refused(repo):
    good(repo)
    (repo / "_build").mkdir()
    with open(repo / "_build/.build.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = toybook.derived(repo, "run")
    assert process.returncode == 1
    assert lines(process) == ["derived: another build of this checkout is running; wait for it or stop it"]


STUCK = "import ctypes; ctypes.PyDLL(None).sleep(600)"  # compiled code that lets no other thread have its turn


@pytest.mark.parametrize(
    ("how", "cell"),
    [*((how, "time.sleep(600)") for how in (signal.SIGKILL, signal.SIGINT, signal.SIGTERM)), (signal.SIGKILL, STUCK)],
)
def test_a_killed_build_takes_its_kernels_along_and_the_next_one_works(repo, how, cell):
    toybook.write_chapter(repo, "toy", "import time", cell)
    driver = toybook.start(repo, "run", stdout=subprocess.DEVNULL)
    partial = repo / "_build/running/toy/toy.ipynb"
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not (partial.exists() and '"running"' in partial.read_text()):
        time.sleep(0.2)
    family = psutil.Process(driver.pid).children(recursive=True)
    os.kill(driver.pid, how)
    assert driver.wait(120) != 0
    _, alive = psutil.wait_procs(family, timeout=120)
    assert family
    assert not alive
    good(repo)
    assert toybook.derived(repo, "run").returncode == 0


def test_a_corrupt_cache_is_run_again(built):
    path = built / "_build/executed/notebooks/toy.ipynb"
    path.write_text(path.read_text()[:-30])
    assert "done in" in toybook.derived(built, "run").stdout


@pytest.fixture
def keys(repo, monkeypatch):
    """The key of the first chapter in a copy of this checkout, as a function of what has been changed in the copy."""
    shutil.copytree(toybook.ROOT / "results/ols_attention", repo / "results/ols_attention")
    (repo / "notebooks").mkdir()
    shutil.copy(toybook.ROOT / "notebooks/ols_attention.ipynb", repo / "notebooks")
    toybook.move(monkeypatch, repo)
    return lambda **changes: driver.chapter_key(Repo(repo), "ols_attention", PARAMETERS | changes)


@pytest.mark.parametrize(
    ("path", "reruns"),
    [
        ("src/derived/papers/ols_attention/model/theory.py", True),
        ("src/derived/papers/ols_attention/layer.py", True),
        ("src/derived/papers/ols_attention/explorer.js", True),
        ("src/derived/lab/stats.py", True),
        ("results/ols_attention/New/cpu/record.json", True),
        ("requirements.lock", True),
        ("src/bookbuilder/run/worker.py", True),
        ("src/bookbuilder/run/guard.py", True),
        ("src/bookbuilder/serve.py", False),
        ("src/derived/papers/another/theory.py", False),
        ("src/bookbuilder/ledger/ledger.py", False),
        ("results/another/New/cpu/record.json", False),
        ("results/changes.yml", False),
        ("results/ledger.json", False),
        ("README.md", False),
    ],
)
def test_the_key_sees_what_the_chapter_depends_on_and_nothing_else(repo, keys, path, reruns):
    before = keys()
    file = repo / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((file.read_text() if file.exists() else "") + '\n"""Another docstring."""\n')
    assert (keys() != before) == reruns


def test_the_key_sees_which_real_weights_and_data_of_its_own_are_here(keys, monkeypatch):
    before = keys()
    monkeypatch.setattr(pinned, "state", lambda chapter: {"mails": chapter == "another"})
    absent = keys()
    monkeypatch.setattr(pinned, "state", lambda chapter: {"mails": chapter == "ols_attention"})
    assert len({before, absent, keys()}) == 3


def test_the_key_sees_the_cells_and_the_parameters(repo, keys):
    before = keys()
    assert len({before, keys(tier="cpu"), keys(seed=1)}) == 3
    path = repo / "notebooks/ols_attention.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][-1]["source"] = "1 + 1"
    path.write_text(json.dumps(notebook))
    assert keys() != before


def test_the_site_is_built_without_torch_and_without_what_only_tests_install():
    code = "import sys, bookbuilder.cli, bookbuilder.sphinx_site.render\n"
    code += "sys.exit(bool({'torch', 'matplotlib', 'playwright', 'pypdf'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_chapter_sees_neither_the_readers_own_settings_nor_files_of_an_earlier_run(
    repo, tmp_path_factory, monkeypatch
):
    mine = tmp_path_factory.mktemp("mine")
    (mine / "profile_default/startup").mkdir(parents=True)
    (mine / "profile_default/startup/00.py").write_text("leaked = True")
    (mine / "startup.py").write_text("leaked = True")
    (mine / "matplotlibrc").write_text("font.size: 30\n")
    for name, value in {"IPYTHONDIR": mine, "PYTHONSTARTUP": mine / "startup.py", "MATPLOTLIBRC": mine}.items():
        monkeypatch.setenv(name, str(value))
    (repo / "_build/running/toy").mkdir(parents=True)
    (repo / "_build/running/toy/leftover").touch()
    cell = (
        "import os, matplotlib\n"
        "assert 'leaked' not in globals()\n"
        "assert matplotlib.rcParams['font.size'] == 10\n"
        "assert not os.path.exists('leftover')"
    )
    toybook.write_chapter(repo, "toy", cell, toybook.report_cell())
    process = toybook.derived(repo, "run")
    assert process.returncode == 0, process.stderr


def test_a_false_step_fails_whatever_python_is_told_to_skip(repo, monkeypatch):
    monkeypatch.setenv("PYTHONOPTIMIZE", "1")
    toybook.write_chapter(repo, "toy", "assert 1 == 2", toybook.report_cell())
    process = toybook.derived(repo, "run")
    assert process.returncode == 1
    assert "toy: cell 3 (assert 1 == 2) raised AssertionError" in process.stderr


WRITES = """from pathlib import Path
import derived
place = Path(derived.__file__).parents[2] / "{}"
place.write_text(place.read_text() + " ")"""


@pytest.mark.parametrize("file", ["results/ledger.json", "results/toy/Draws/cpu/record.json", "src/derived/lab/rng.py"])
def test_a_cell_that_rewrites_the_book_is_found_out(repo, file):
    toybook.write_record(repo, seconds=1)
    toybook.write_chapter(repo, "toy", WRITES.format(file), toybook.report_cell())
    [line] = lines(toybook.derived(repo, "run"))
    assert line == f"derived: toy: {file} changed while it ran; no cell may write there"


def test_what_a_kernel_started_ends_with_it(repo):
    cell = "import subprocess\nalive = subprocess.Popen(['sleep', '600'], start_new_session=True).pid\nprint(alive)"
    toybook.write_chapter(repo, "toy", cell, toybook.report_cell())
    assert toybook.derived(repo, "run").returncode == 0
    notebook = json.loads((repo / "_build/executed/notebooks/toy.ipynb").read_text())
    pid = next(int(o["text"][0]) for c in notebook["cells"] for o in c.get("outputs", []) if o.get("name") == "stdout")
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("damage", ["no column", "no rows"])
def test_findings_of_another_shape_count_as_not_run(repo, damage):
    good(repo)
    assert toybook.derived(repo, "run").returncode == 0
    found = toybook.findings(repo, "toy")
    match damage:
        case "no column":
            del found["rows"][0]["verdict"]
        case "no rows":
            found["rows"] = []
    (repo / "_build/findings/toy.json").write_text(json.dumps(found))
    assert driver.read_findings(Repo(repo), "toy") is None
    assert lines(toybook.derived(repo, "claims")) == ["derived: no findings of toy yet: run `make site` first"]


def test_a_build_started_in_the_background_can_be_interrupted(repo):
    toybook.write_chapter(repo, "toy", "import time", "time.sleep(600)")
    pipe, deaf = subprocess.PIPE, lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    with toybook.start(repo, "run", stdout=pipe, stderr=pipe, preexec_fn=deaf, start_new_session=True) as driver:
        assert "to run" in driver.stdout.readline()
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
        try:
            assert driver.communicate(timeout=120)[1].startswith("derived: interrupted")
        finally:
            driver.kill()


@pytest.mark.parametrize("content", ["[]", '{"cells": []}', '{"cells": [1], "metadata": {}}'])
def test_a_file_that_is_no_notebook_is_one_clear_line(repo, content):
    good(repo)
    (repo / "notebooks/toy.ipynb").write_text(content)
    [line] = lines(toybook.derived(repo, "run"))
    assert line.startswith("derived: toy: notebooks/toy.ipynb is no notebook: it lacks")


def test_a_syntax_error_names_its_cell_or_its_file(repo):
    toybook.write_chapter(repo, "toy", "x = 1", "# words\ny = (")
    [line] = lines(toybook.derived(repo, "run"))
    assert line.startswith("derived: toy: cell 4 (# words), line 2: no Python: ")
    toybook.write_chapter(repo, "toy", "import derived.papers.mine.model")
    (repo / "src/derived/papers/mine").mkdir()
    (repo / "src/derived/papers/mine/__init__.py").write_text("\ny = (\n")
    [line] = lines(toybook.derived(repo, "run"))
    where, _, what = line.partition(" raised SyntaxError: ")
    assert where == "derived: toy: cell 3 (import derived.papers.mine.model)"
    assert what == "'(' was never closed (__init__.py, line 2)"


def test_a_long_run_says_what_to_expect_and_where_it_is(repo, monkeypatch, capsys):
    toybook.write_chapter(repo, "toy", "import time", "time.sleep(1)", toybook.report_cell())
    toybook.write_record(repo, seconds=2160.4)
    monkeypatch.setattr(driver, "REPORT_EVERY", 0.05)
    for name, value in toybook.environment(repo).items():
        monkeypatch.setenv(name, value)
    outcomes = []
    for _ in range(2):
        outcomes += driver.run_chapters(Repo(repo), ["toy"], PARAMETERS | {"tier": "cpu"}, 1)
        assert outcomes[-1].error is None
        (repo / "requirements.lock").write_text("another")
    said = capsys.readouterr().out
    assert "toy: to run at tier cpu, its records took 2160 s" in said
    assert " s so far, in cell 4 (time.sleep(1))" in said
    assert f"toy: to run at tier cpu, {outcomes[0].findings['seconds']:.0f} s last time" in said


def test_what_can_be_known_of_all_chapters_is_told_at_once_and_nothing_runs(repo):
    """A cell that is too long, of one chapter, and a slip of Python of another."""
    toybook.write_paper(repo, toybook.EXPERIMENT, toybook.CLAIMS)
    path = repo / "notebooks/toy.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    notebook["metadata"]["derived"] = {"edition": 3}
    notebook["cells"][-1]["source"] = "x = 1\n" * 26
    path.write_text(json.dumps(notebook), "utf-8")
    toybook.write_chapter(repo, "other", "x = (", toybook.report_cell())
    toybook.write_toc(repo, "toy", "other")
    ran = toybook.derived(repo, "run")
    assert ran.returncode == 1
    said = lines(ran)
    for line in (
        "derived: toy: T-1 is a claim of other; the ids of a chapter begin with letters that no other has",
        "derived: toy: cell 3 has 26 lines of code, over 25",
        "derived: other: cell 3 (x = (), line 1: no Python: '(' was never closed",
    ):
        assert line in said, said
    assert "to run" not in ran.stdout
    assert not (repo / "_build/executed").exists()


def test_a_wrong_slug_is_told_while_a_build_runs(repo):
    toybook.write_chapter(repo, "toy", toybook.report_cell())
    with driver.build_lock(Repo(repo)):
        for command in ("run", "site"):
            assert "no chapter is called nope" in toybook.derived(repo, command, "nope").stderr


def test_an_edited_record_is_told_before_anything_runs(repo):
    toybook.write_chapter(repo, "toy", toybook.report_cell())
    place = repo / "results/toy/Draws/cpu"
    place.mkdir(parents=True)
    (place / "record.json").write_text('{"seconds": 1}')
    process = toybook.derived(repo, "run")
    assert lines(process) == [
        "derived: toy: the record toy/Draws/cpu is truncated or was edited (its checksums do not fit); make it again: "
        "derived record toy Draws --tier cpu"
    ]
    assert "to run" not in process.stdout
