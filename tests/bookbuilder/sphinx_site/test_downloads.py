"""The wheel that the site offers, the records that go with a chapter, and what its first cell says."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import toybook
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookbuilder.paths import Repo
from bookbuilder.sphinx_site import downloads


@pytest.fixture
def tree(tmp_path):
    """The checkout's own settings of the build, with a package of one file, one record and two rows of the ledger."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        if (toybook.ROOT / name).exists():
            shutil.copy(toybook.ROOT / name, tmp_path / name)
    (tmp_path / "src/derived").mkdir(parents=True)
    (tmp_path / "src/derived/__init__.py").write_text('__version__ = "2.1"\n')
    (tmp_path / "results/toy/Draws/cpu").mkdir(parents=True)
    (tmp_path / "results/toy/Draws/cpu/record.json").write_text("{}")
    toybook.write_ledger(tmp_path, toybook.COMMITTED, toybook.COMMITTED | {"paper": "other", "id": "O-1"})
    return tmp_path


def wheel(tree):
    shutil.rmtree(tree / "dist", ignore_errors=True)
    return downloads.build_wheel(tree, tree / "dist")


def test_a_wheel_of_other_content_has_another_version(tree):
    first = wheel(tree).name
    assert first.startswith("transformers_derived-2.1+")
    assert wheel(tree).name == first
    (tree / "src/derived/__init__.py").write_text('__version__ = "2.1"  # other words\n')
    second = wheel(tree).name
    (tree / "results/toy/Draws/cpu/record.json").write_text("[]")
    assert wheel(tree).name == second != first, "a record is no part of the wheel"


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """The wheel of this checkout."""
    return downloads.build_wheel(toybook.ROOT, tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_the_package_alone(package):
    names = zipfile.ZipFile(package).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"derived"}
    assert "derived/papers/cactus/reference.py" in names
    assert [name for name in names if name.startswith("derived/results/") or "bookbuilder" in name] == []
    assert package.stat().st_size < 1_500_000


def test_the_command_of_the_wheel_says_in_one_line_that_it_needs_a_clone(package):
    code = "import sys; sys.path.insert(0, sys.argv[1]); from derived.cli import main; main()"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code, package], capture_output=True, text=True)
    [line] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith("derived: this command builds the book and needs a clone of its repository")


NOTEBOOK = new_notebook(cells=[new_markdown_cell("# Toy", id="title")])


def written(tree: Path, name: str) -> Path:
    """The downloads of the toy chapter."""
    folder = tree / name
    downloads.write_records(Repo(tree), folder, ["toy"])
    downloads.write(folder, "toy", {"whole": NOTEBOOK, "student": NOTEBOOK, "homework": NOTEBOOK})
    return folder


def test_a_chapter_carries_its_own_records_and_rows_of_the_ledger(tree):
    (tree / "results/toy/Draws/.cpu.new-1").mkdir()
    (tree / "results/toy/Draws/.cpu.new-1/record.json").write_text("half saved")
    (tree / "results/toy/notes.json").write_text("{}")
    (tree / "results/other").mkdir()
    (tree / "results/other/notes.json").write_text("{}")
    folder = written(tree, "downloads")
    carried = {"results/ledger.json", "results/toy/notes.json", "results/toy/Draws/cpu/record.json"}
    for name in ("toy", "toy-student"):
        with zipfile.ZipFile(folder / f"{name}.zip") as pack:
            assert {*pack.namelist()} == {f"{name}.ipynb", *carried}
            assert [row["paper"] for row in json.loads(pack.read("results/ledger.json"))] == ["toy"]
            assert pack.read("results/toy/Draws/cpu/record.json") == b"{}"
            assert pack.read(f"{name}.ipynb") == (folder / f"{name}.ipynb").read_bytes()
    beside = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    zips = {"toy.zip", "toy-student.zip"}
    assert beside == {"toy.ipynb", "toy-student.ipynb", "toy-homework.ipynb", *zips, *carried}


def test_equal_files_make_equal_zips(tree):
    first = written(tree, "first")
    os.utime(tree / "results/toy/Draws/cpu/record.json", (1e9, 1e9))
    assert (written(tree, "second") / "toy.zip").read_bytes() == (first / "toy.zip").read_bytes()
    (tree / "results/toy/Draws/cpu/record.json").write_text("[]")
    assert (written(tree, "third") / "toy.zip").read_bytes() != (first / "toy.zip").read_bytes()


def said(command: str) -> list[str]:
    """The lines that the first cell of a downloaded notebook ends with where the package is missing."""
    source = f'raise SystemExit("The package:  {downloads.INSTALL}")'
    [cell] = downloads.clean(new_notebook(cells=[new_code_cell(source)]), command).cells
    with pytest.raises(SystemExit) as caught:
        exec(cell.source)
    return str(caught.value).removeprefix("The package:  ").splitlines()


def test_the_first_cell_names_the_wheel_and_the_zip_where_there_is_no_repository():
    command, advice = said(downloads.install_command("", "x.whl", "toy-student.zip"))
    assert command == "pip install ./x.whl"
    assert "the folder results of toy-student.zip" in advice
    assert advice.endswith("  pip install torch --index-url https://download.pytorch.org/whl/cpu")


def test_the_command_of_the_first_cell_fetches_package_and_records(tree):
    """It is run as it stands, with the branch of a repository on this machine; pip alone does nothing."""
    repository = tree / "repository"
    written(tree, "repository")
    git = ["git", "-C", repository, "-c", "user.name=book", "-c", "user.email=book@example.org"]
    for words in (["init", "-q", "-b", downloads.BRANCH], ["add", "."], ["commit", "-qm", "Downloads"]):
        subprocess.run([*git, *words], check=True)
    (tree / "empty").mkdir()
    command, advice = said(downloads.install_command(f"file://{repository}", "x.whl", "toy.zip"))
    assert command.startswith(f"pip install git+file://{repository} && ")
    assert advice.startswith("In Colab put ! before it; ")
    path = tree / "bin/pip"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    environment = os.environ | {"PATH": f"{path.parent}:{os.environ['PATH']}"}
    subprocess.run(command, shell=True, check=True, cwd=tree / "empty", env=environment)
    assert (tree / "empty/results/toy/Draws/cpu/record.json").read_text() == "{}"
