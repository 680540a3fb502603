"""The wheel that the site offers: other content, other version; nothing half saved in it."""

import shutil
import zipfile

import press
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from derived.book import downloads


@pytest.fixture
def tree(tmp_path):
    """The checkout's own settings of the build, with a package of one file and one record."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        if (press.ROOT / name).exists():
            shutil.copy(press.ROOT / name, tmp_path / name)
    (tmp_path / "src/derived").mkdir(parents=True)
    (tmp_path / "src/derived/__init__.py").write_text('__version__ = "2.1"\n')
    (tmp_path / "results/toy/Draws/cpu").mkdir(parents=True)
    (tmp_path / "results/toy/Draws/cpu/record.json").write_text("{}")
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
    assert len({first, second, wheel(tree).name}) == 3


def test_a_record_half_saved_is_in_no_wheel(tree):
    before = wheel(tree)
    names = zipfile.ZipFile(before).namelist()
    (tree / "results/toy/Draws/.cpu.new-1").mkdir()
    (tree / "results/toy/Draws/.cpu.new-1/record.json").write_text("{")
    after = wheel(tree)
    assert after.name == before.name
    assert zipfile.ZipFile(after).namelist() == names
    assert "derived/results/toy/Draws/cpu/record.json" in names


def test_a_downloaded_notebook_warns_of_what_the_installation_brings():
    for repository in ("", "https://example.org/book"):
        command = downloads.install_command(repository, "x.whl")
        assert command.startswith(f"pip install git+{repository}" if repository else "pip install ./x.whl")
        assert command.endswith(
            "without a GPU, first:  pip install torch --index-url https://download.pytorch.org/whl/cpu"
        )


def test_students_keep_what_begins_in_the_cell_of_a_solution():
    tags = {"tags": ["solution"]}
    mixed = "```{solution} x\n## no heading\nSo.\n```\n\n## Take-away\n\nKeep."
    cells = [new_markdown_cell("Text."), new_markdown_cell(mixed, metadata=tags), new_code_cell("1", metadata=tags)]
    found = downloads.student(new_notebook(cells=cells)).cells
    assert [cell.source for cell in found] == ["Text.", "## Take-away\n\nKeep."]
    assert found[1].metadata["tags"] == []
    open_end = "```{solution} x\nSo.\n```\n\n```{exercise} Open\nTry.\n```"
    found = downloads.student(new_notebook(cells=[new_markdown_cell(open_end, metadata=tags)])).cells
    assert [cell.source for cell in found] == ["```{exercise} Open\nTry.\n```"]
