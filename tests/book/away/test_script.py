"""One file for a hosted job: it runs where nothing of the book is, and its log is all that must come back."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import press
import pytest
from packaging.requirements import Requirement

from derived.book.away import parcel, script
from derived.book.house import House


def header(text: str) -> dict:
    """Read the metadata of a script as PEP 723 says."""
    (block,) = re.findall(r"(?m)^# /// script$\s((?:^#(?:| .*)$\s)+)^# ///$", text)
    return tomllib.loads("".join(line[2:] for line in block.splitlines(keepends=True)))


def run(python: str | Path, file: Path, *arguments: str, **added: str) -> subprocess.CompletedProcess:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [python, file.name, *arguments]
    return subprocess.run(command, cwd=file.parent, env=plain | added, capture_output=True, text=True, timeout=400)


def test_the_log_of_a_script_is_a_record_and_a_second_run_makes_nothing_again(house, tmp_path):
    made = press.derived(house, "record", "toy", "Draws", "--jobs", "1", "--on", "script")
    assert made.returncode == 0, made.stderr
    away = Path((house / "_build/away/toy-cpu.py").rename(tmp_path / "toy-cpu.py"))
    log = tmp_path / "log"
    for _ in range(2):
        done = run(sys.executable, away, PYTHONPATH=sysconfig.get_paths()["purelib"], TOLD=str(tmp_path))
        assert done.returncode == 0, done.stdout + done.stderr
        log.write_text(done.stdout)
    assert sorted((tmp_path / "ran").read_text().split()) == sorted([f"{n}{s}" for n in "25" for s in range(4)])
    back = press.derived(house, "record", "toy", "Draws", "--fetched", str(log))
    assert back.returncode == 0, back.stderr
    assert (house / "results/toy/Draws/cpu/rows.parquet").is_file()
    assert "--fetched LOG" in made.stdout
    log.write_text(log.read_text().replace("END RECORD", ""))
    cut = press.derived(house, "record", "toy", "Draws", "--fetched", str(log))
    assert cut.stderr == "derived: Draws did not come back; what did is saved, the same command continues\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, Path]:
    """The script and the notebook of a paper's records at tier gpu, for a machine without a card."""
    order = {"paper": "hierarchical_kernel", "experiments": ["Overhead"], "tier": "gpu"}
    packed = parcel.pack(House(press.ROOT), order | {"seed": 0, "device": "cpu", "jobs": 1})
    return tuple(script.write(tmp_path_factory.mktemp("made"), packed, "kernel-gpu", "derived record"))


def image(folder: Path, named: list[str]) -> Path:
    """An environment that has these packages as they are here, what they need, and nothing else."""
    venv.create(folder, with_pip=False)
    todo, packages = [*named], Path(sysconfig.get_paths("venv", {"base": str(folder)})["purelib"])
    while todo:
        asked = Requirement(todo.pop())
        if asked.marker and not asked.marker.evaluate({"extra": ""}):
            continue
        found = importlib.metadata.distribution(asked.name)
        assert asked.specifier.contains(found.version), asked
        todo += found.requires or []
        for name in {file.parts[0] for file in found.files} - {"..", "__pycache__"}:
            if not (packages / name).exists():
                (packages / name).symlink_to(found.locate_file(name))
    return folder / "bin/python"


def test_it_runs_in_an_empty_environment_with_what_its_header_names(made, tmp_path):
    file, _ = made
    python = image(tmp_path / "image", header(file.read_text())["dependencies"])
    done = run(python, file, "try")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.fullmatch(r"hierarchical_kernel/Overhead: \d+ rows at size tiny, no record\n", done.stdout)


def test_the_notebook_is_one_cell_that_writes_the_script_and_leaves_torch_alone(made, tmp_path, monkeypatch):
    file, notebook = made
    (cell,) = json.loads(notebook.read_text())["cells"]
    lines = cell["source"].splitlines()
    (install,) = [line for line in lines if line.startswith("!{sys.executable} -m pip")]
    named = {Requirement(each).name for each in header(file.read_text())["dependencies"]}
    assert "torch" in named
    assert "torch" not in install.replace("torchvision", "")
    assert all(name in install for name in named - {"torch"})
    monkeypatch.chdir(tmp_path)
    exec(compile(cell["source"].split("\n!")[0], "cell", "exec"), {})
    assert (tmp_path / file.name).read_text() == file.read_text()
