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


def test_a_name_offered_lazily_leads_to_its_own_module_alone(package):
    table = "{'theory': ['g'], 'other.deep': ['h']}"
    (package / "papers/x/__init__.py").write_text(
        f"import lazy_loader\n__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={table})\n"
    )
    (package / "papers/x/other").mkdir()
    (package / "papers/x/other/__init__.py").touch()
    (package / "papers/x/other/deep.py").write_text("import derived.lab.unused\n")
    assert "papers/x/theory.py" not in names("from derived.papers.x import h", package)
    assert {"papers/x/other/deep.py", "lab/unused.py"} <= names("from derived.papers.x import h", package)
    assert "papers/x/other/deep.py" not in names("from derived.papers.x import g", package)
    assert "papers/x/theory.py" not in names("import derived.papers.x.other", package)


def test_a_module_that_collects_claims_leads_to_all_topics_of_the_paper(package):
    (package / "papers/x/__init__.py").write_text("")
    for name in ("layer.py", "training.py", "exercises.py", "reference.py"):
        (package / "papers/x" / name).write_text("from .theory import g\n")
    collector = package / "papers/x/claims.py"
    collector.write_text("from derived.lab.claims import collect\nCLAIMS, EXPERIMENTS = collect(__name__)\n")
    topics = {"papers/x/layer.py", "papers/x/training.py", "papers/x/theory.py", "lab/a.py"}
    reached = names("from derived.papers.x.claims import CLAIMS", package)
    assert topics <= reached
    assert not {"papers/x/exercises.py", "papers/x/reference.py"} & reached
    collector.write_text("")
    assert not topics & names("from derived.papers.x.claims import CLAIMS", package)


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
