"""The wheel that the site offers: other content, other version; nothing half saved in it."""

import shutil
import zipfile

import pytest
import toybook
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from bookbuilder.sphinx_site import downloads


@pytest.fixture
def tree(tmp_path):
    """The checkout's own settings of the build, with a package of one file and one record."""
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        if (toybook.ROOT / name).exists():
            shutil.copy(toybook.ROOT / name, tmp_path / name)
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
        plain = f"pip install git+{repository}" if repository else "pip install ./x.whl"
        command = downloads.install_command(repository, "x.whl")
        assert command.startswith(f"{plain} ")
        assert command.endswith(f"  {plain} --extra-index-url https://download.pytorch.org/whl/cpu")


def test_students_keep_what_follows_the_box_of_a_solution_in_its_cell():
    tags = {"tags": ["solution"]}
    box = "```{solution} x\n## no heading\nSo.\n```"
    mixed = f"{box}\n\n**Open project.** Try.\n\n## Take-away"
    sources = ["Text.", box, "A rubric.", mixed]
    cells = [new_markdown_cell(text, metadata=tags if text != "Text." else {}) for text in sources]
    found = downloads.student(new_notebook(cells=[*cells, new_code_cell("1", metadata=tags)])).cells
    assert [cell.source for cell in found] == ["Text.", "**Open project.** Try.\n\n## Take-away"]
    assert found[1].metadata["tags"] == []
