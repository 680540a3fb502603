"""Which files of the package a piece of code depends on, found without running it, and a hash over them.

It follows imports, direct and through others, the names that an ``__init__`` offers lazily, and the topics from which
a paper's claims are collected.
"""

import ast
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE_ROOT = Path(__file__).resolve().parents[1]  # …/derived
NO_TOPICS = ("claims", "exercises", "reference")  # modules of a paper that state nothing


def module_file(name: str, root: Path = PACKAGE_ROOT) -> Path | None:
    """The file of the module ``derived.a.b``, or None if there is no such module (``b`` may be a function of ``a``)."""
    path = root.joinpath(*name.split(".")[1:])
    for candidate in (path.with_suffix(".py"), path / "__init__.py"):
        if candidate.is_file() and path.parts[-1] != "__init__":
            return candidate
    return None


def imported_modules(code: str, package: str = "", file: str = "<code>") -> set[str]:
    """Names under ``derived`` that the code imports, each with its parent packages; functions count as names too.
    SyntaxError, which names the ``file``, for what is no Python."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code, file)):
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
    return frozenset(imported_modules(path.read_text("utf-8"), package, str(path)))


@cache
def _offered(path: Path, _mtime: int) -> dict[str, str]:
    """The names that a package's ``__init__`` resolves on first use (``lab.face.attach``), with their modules."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("attach"):
            table = next((word.value for word in node.keywords if word.arg == "submod_attrs"), ast.Dict([], []))
            return {name: module for module, names in ast.literal_eval(table).items() for name in names}
    return {}


def _collected(path: Path, package: str) -> set[str]:
    """The modules from which a paper's ``claims.py`` takes its claims (``lab.claims.collect``): all topics."""
    collects = path.name == "claims.py" and "collect(__name__" in path.read_text("utf-8")
    names = {file.stem for file in path.parent.glob("*.py")} if collects else set()
    return {f"{package}.{name}" for name in names - {"__init__", *NO_TOPICS}}


def _home(name: str, root: Path) -> str:
    """The module that defines a lazily offered name; the name itself if it is not offered that way."""
    package, _, last = name.rpartition(".")
    path = module_file(package, root) if package else None
    if path is None or path.name != "__init__.py" or module_file(name, root) is not None:
        return name
    module = _offered(path, path.stat().st_mtime_ns).get(last)
    return f"{package}.{module}" if module else name


def imported_files(code: str, root: Path = PACKAGE_ROOT) -> list[Path]:
    """Every file of the package that the code imports, transitively, sorted."""
    found: dict[str, Path] = {}
    todo = imported_modules(code)
    while todo:
        name = _home(todo.pop(), root)
        path = module_file(name, root)
        if name in found or path is None:
            continue
        found[name] = path
        package = name if path.name == "__init__.py" else name.rpartition(".")[0]
        todo |= _imports_of(path, package, path.stat().st_mtime_ns) | _collected(path, package)
    return sorted(set(found.values()))


def file_hash(paths: Iterable[Path], root: Path) -> str:
    """SHA-256 over the names (relative to the root) and the bytes of the files, in the order of their names."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()


def source_files(module: str, root: Path = PACKAGE_ROOT) -> list[Path]:
    """The files that a module is made of and imports.

    A package's ``__init__`` is left out: it declares names and computes nothing (a test of the repo says so).
    """
    return [path for path in imported_files(f"import {module}", root) if path.name != "__init__.py"]
