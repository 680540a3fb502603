"""Which files of the package a piece of code depends on, found without running it, and a hash over them.

The cache of executed chapters and the provenance of records both rest on this one function: a result is as old as the
oldest version of any file that it imports, directly or through others.
"""

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parents[1]  # …/derived


def module_file(name: str, root: Path = PACKAGE_ROOT) -> Path | None:
    """The file of the module ``derived.a.b``, or None if there is no such module (``b`` may be a function of ``a``)."""
    path = root.joinpath(*name.split(".")[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file() and path.parts[-1] != "__init__":
            return candidate
    return None


def imported_modules(code: str, package: str = "") -> set[str]:
    """Names under ``derived`` that the code imports, each with its parent packages; functions count as names too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            names |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    names = {name for name in names if name.split(".")[0] == "derived"}
    return names | {".".join(name.split(".")[:depth]) for name in names for depth in range(1, name.count(".") + 1)}


@cache
def _imports_of(path: Path, package: str, _mtime: int) -> frozenset[str]:
    return frozenset(imported_modules(path.read_text("utf-8"), package))


def imported_files(code: str, root: Path = PACKAGE_ROOT) -> list[Path]:
    """Every file of the package that the code imports, transitively, sorted."""
    found: dict[str, Path] = {}
    todo = imported_modules(code)
    while todo:
        name = todo.pop()
        path = module_file(name, root)
        if name in found or path is None:
            continue
        found[name] = path
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        todo |= _imports_of(path, package, path.stat().st_mtime_ns)
    return sorted(set(found.values()))


def file_hash(paths: Iterable[Path], root: Path) -> str:
    """SHA-256 over the names (relative to the root) and the bytes of the files, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def source_hash(module: str) -> str:
    """The hash over the files of the package that the module is made of and imports."""
    return file_hash(imported_files(f"import {module}"), PACKAGE_ROOT)
