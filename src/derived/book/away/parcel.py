"""Packs what another machine needs to make records: the code of a paper's experiments, and the order.

    HASH/code/src/derived/…     what the record is made with, found by its imports, and no other file
    HASH/code/order.json        paper, experiments, tier, seed, device, jobs
    HASH/code/requirements.txt  what these files import, as the lock pins it; torch by its bound: an image's own stays
    HASH/code/go.sh             sets up and runs

Two orders of the same code are one parcel, byte for byte; HASH names it.
"""

import ast
import gzip
import hashlib
import io
import json
import re
import sys
import tarfile
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

from derived.book.house import House
from derived.book.judge import recording
from derived.lab.record import VERSIONS_OF
from derived.lab.sources import PACKAGE_ROOT, imported_files


@dataclass(frozen=True)
class Parcel:
    """An order packed for another machine."""

    content: bytes  # a tar file, compressed
    requirements: tuple[str, ...]

    @property
    def name(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:16]


def pack(house: House, order: Mapping[str, Any]) -> Parcel:
    """Pack an order with the code that it runs."""
    claims = recording.claims_of(order["paper"])
    modules = {"derived.book.away.there", claims.__name__, *(one.__module__ for one in claims.EXPERIMENTS)}
    code = imported_files(f"import {', '.join(sorted(modules))}")
    needed = tuple(requirements(house, code))
    files = {f"src/derived/{path.relative_to(PACKAGE_ROOT).as_posix()}": path.read_bytes() for path in code}
    files["go.sh"] = (PACKAGE_ROOT / "book/away/go.sh").read_bytes()
    files["pyproject.toml"] = b"# marks a checkout: records go to results/ beside it\n"
    files["requirements.txt"] = "".join(f"{each}\n" for each in needed).encode()
    files["order.json"] = json.dumps(order, indent=1, sort_keys=True).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return Parcel(gzip.compress(buffer.getvalue(), mtime=0), needed)


def requirements(house: House, code: Iterable[Path]) -> list[str]:
    """List what files import of other projects as the lock pins it, and torch by its bound."""
    project = tomllib.loads((house.root / "pyproject.toml").read_text("utf-8"))["project"]
    bounds = {_project(line): line for line in project["dependencies"]}
    imported = {name for path in code for name in _imported(path.read_text("utf-8"))} - sys.stdlib_module_names
    known = packages_distributions()
    wanted = {_normal(each) for name in imported for each in known.get(name, [])} | {*VERSIONS_OF, "pyarrow"}
    pins = [line for line in house.lock.read_text("utf-8").splitlines() if _project(line) in wanted - {"torch"}]
    return [bounds["torch"], *pins]


def _imported(code: str) -> set[str]:
    """Name the top-level packages that code imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def _project(line: str) -> str:
    """Read the name that a requirement begins with."""
    return _normal(re.split(r"[^\w.-]", line, maxsplit=1)[0])


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
