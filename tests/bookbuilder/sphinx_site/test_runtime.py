"""Python for the page: made once, checked, and left out in one line where it cannot be had."""

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from bookbuilder.sphinx_site import runtime

FILES = {
    "pyodide-1": {
        "pyodide.js": "load();",
        "pyodide.asm.mjs": "const here = import.meta.url; export default _createPyodideModule;",
        "pyodide.asm.wasm": "wasm",
        "python_stdlib.zip": "zip",
        "pyodide-lock.json": "{}",
    },
    "codemirror-5": {"lib/codemirror.js": "edit();", "lib/codemirror.css": "p {}", "mode/python/python.js": "mode();"},
}


def _packed(files: dict[str, str]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, text in files.items():
            one = tarfile.TarInfo(f"package/{name}")
            one.size = len(text)
            archive.addfile(one, io.BytesIO(text.encode()))
    return held.getvalue()


@pytest.fixture
def registry(tmp_path, monkeypatch) -> list[str]:
    """An npm that has the two packages; what it was asked for."""
    packages, asked = {name: _packed(files) for name, files in FILES.items()}, []

    def npm(made: Path, command: str, package: str) -> None:
        name = package.replace("@", "-")
        (made / f"{name}.tgz").write_bytes(packages[name])
        asked.append(f"{command} {package}")

    monkeypatch.setattr(runtime, "_npm", npm)
    digests = {name: hashlib.sha256(held).hexdigest() for name, held in packages.items()}
    monkeypatch.setattr(runtime, "PACKAGES", digests)
    (tmp_path / "vendor").mkdir()
    return asked


def test_both_scripts_are_made_once(tmp_path, registry):
    for _ in range(2):
        assert runtime.add(tmp_path, tmp_path / "vendor") == ""
    assert registry == ["pack pyodide@1", "pack codemirror@5"]
    assert (tmp_path / "vendor/python.js").read_text("utf-8").startswith('window.PYTHON = {"worker": "')
    assert "edit();mode();document.head.append(" in (tmp_path / "vendor/codemirror.js").read_text("utf-8")


def test_the_module_becomes_a_plain_script():
    files = {name: text.encode() for name, text in FILES["pyodide-1"].items()}
    worker = runtime.worker(files)
    assert worker.splitlines() == [runtime.BEFORE.strip(), "load();", 'const here = "https://book.invalid/"; ']


def test_another_file_than_the_pinned_one_is_refused(tmp_path, registry, monkeypatch):
    monkeypatch.setitem(runtime.PACKAGES, "pyodide-1", "0" * 64)
    assert runtime.add(tmp_path, tmp_path / "vendor") == (
        "pages cannot run Python: pyodide-1.tgz is not the file that was pinned"
    )
    assert not list((tmp_path / "vendor").iterdir())


def test_without_a_registry_the_site_is_built_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/npm").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin/npm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert runtime.add(tmp_path, tmp_path) == runtime.MISSING
    monkeypatch.setattr(runtime.shutil, "which", lambda name: None)
    monkeypatch.setattr(runtime, "NODE", "no such requirement")
    assert runtime.add(tmp_path, tmp_path) == runtime.MISSING
