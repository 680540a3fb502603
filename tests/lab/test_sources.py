"""The files of an experiment are what it imports, those of a chapter the laboratory and its paper."""

from pathlib import Path

import pytest

from derived.lab import sources


@pytest.fixture
def package(tmp_path: Path) -> Path:
    files = {
        "__init__.py": "",
        "lab/__init__.py": "",
        "lab/a.py": "from . import b\n",
        "lab/b.py": "import os\nfrom derived.lab.c import f\n",
        "lab/c.py": "def f(): pass\n",
        "lab/unused.py": '"""Not imported."""\n',
        "papers/__init__.py": "",
        "papers/x/__init__.py": "from .theory import g\n",
        "papers/x/theory.py": "def g():\n    from derived.lab import a\n",
    }
    for name, text in files.items():
        path = tmp_path / "derived" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "derived"


def names(module: str, package: Path) -> set[str]:
    return {path.relative_to(package).as_posix() for path in sources.source_files(module, package)}


def test_imports_are_followed_through_packages_functions_and_relative_names(package):
    assert names("derived.papers.x.theory", package) == {"papers/x/theory.py", "lab/a.py", "lab/b.py", "lab/c.py"}


def test_a_chapter_can_run_the_laboratory_its_paper_and_their_scripts(package):
    (package / "papers/x/explorer.js").touch()
    (package / "papers/y").mkdir()
    (package / "papers/y/other.py").touch()
    found = {path.relative_to(package).as_posix() for path in sources.chapter_files("x", package)}
    assert {"lab/unused.py", "papers/x/theory.py", "papers/x/explorer.js"} <= found
    assert "papers/y/other.py" not in found
    assert package / "papers/y/other.py" in sources.chapter_files("a_page_of_the_book", package)


def test_the_face_of_a_package_is_no_part_of_what_its_modules_run(package):
    found = sources.source_files("derived.papers.x.theory", package)
    assert package / "papers/x/theory.py" in found
    assert not [path for path in found if path.name == "__init__.py"]


def test_a_hash_follows_the_bytes_and_the_names_of_files(package):
    path = package / "lab/c.py"
    before = sources.file_hash([path], package)
    path.write_text(path.read_text() + "# a comment\n")
    assert sources.file_hash([path], package) != before
    renamed = path.rename(package / "lab/d.py")
    renamed.write_text(renamed.read_text().removesuffix("# a comment\n"))
    assert sources.file_hash([renamed], package) != before
