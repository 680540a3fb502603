"""The files of the package that a chapter and an experiment depend on, and a hash over them. Nothing of them runs."""

import hashlib
from collections.abc import Iterable
from modulefinder import ModuleFinder
from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parents[1]  # …/derived


def chapter_files(slug: str, root: Path = PACKAGE_ROOT) -> list[Path]:
    """The files that a chapter can run: the laboratory's and its paper's, with the scripts that its explorers compute
    by. For a page of the book's own, which has no paper, those of every paper."""
    paper = root / "papers" / slug
    folders = (root / "lab", paper if paper.is_dir() else root / "papers")
    return sorted(path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".js"))


def source_files(module: str, root: Path = PACKAGE_ROOT) -> list[Path]:
    """The files that a module is made of and imports, direct and through others.

    A package's ``__init__`` is left out: it declares names and computes nothing (a test of the repo says so).
    """
    finder = ModuleFinder([str(root.parent)])
    finder.import_hook(module)
    found = (Path(each.__file__) for each in finder.modules.values() if each.__file__)
    return sorted(path for path in found if path.name != "__init__.py")


def file_hash(paths: Iterable[Path], root: Path) -> str:
    """SHA-256 over the names (relative to the root) and the bytes of the files, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
