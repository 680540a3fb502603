"""The dependency closure sees what is imported, and nothing else."""

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


def names(code: str, package: Path) -> set[str]:
    return {path.relative_to(package).as_posix() for path in sources.imported_files(code, package)}


def test_imports_are_followed_through_packages_functions_and_relative_names(package):
    found = names("from derived.papers import x", package)
    assert found == {
        *("__init__.py", "lab/__init__.py", "lab/a.py", "lab/b.py", "lab/c.py"),
        *("papers/__init__.py", "papers/x/__init__.py", "papers/x/theory.py"),
    }


def test_a_function_and_its_module_give_the_same_files(package):
    assert names("from derived.lab.c import f", package) == names("import derived.lab.c", package)


def test_other_packages_are_not_followed(package):
    assert names("import torch, derivedx, numpy.linalg", package) == set()


def test_the_hash_changes_with_an_imported_file_and_not_with_another(package):
    def digest() -> str:
        return sources.file_hash(sources.imported_files("import derived.lab.a", package), package)

    before = digest()
    (package / "lab/unused.py").write_text('"""Another docstring."""\n')
    assert digest() == before
    (package / "lab/c.py").write_text("def f(): return 1\n")
    assert digest() != before


def test_the_hash_sees_a_file_that_moves(package):
    both = [package / "lab/b.py", package / "lab/c.py"]
    before = sources.file_hash(both, package)
    texts = [path.read_text() for path in both]
    for path, text in zip(both, reversed(texts), strict=True):
        path.write_text(text)
    assert sources.file_hash(both, package) != before
