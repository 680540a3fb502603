"""Fixtures of the press."""

import shutil
import sys
from pathlib import Path

import press
import pytest

from derived import papers
from derived.book.run import driver
from derived.lab import record, sources


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A checkout without chapters."""
    return press.make_house(tmp_path)


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of one chapter that was run."""
    house = press.make_house(tmp_path_factory.mktemp("ran"))
    press.write_chapter(house, "toy", "x = 1", press.report_cell())
    press.write_toc(house, "toy")
    assert press.derived(house, "run").returncode == 0
    return house


@pytest.fixture
def built(ran: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return shutil.copytree(ran, tmp_path / "built")


@pytest.fixture
def own_sources(house: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The press reads the package's files, and its records, in the checkout, not where this process has them from."""
    root = house / "src/derived"
    for module in (driver, record):
        monkeypatch.setattr(module, "PACKAGE_ROOT", root)
    monkeypatch.setattr(papers, "__path__", [*papers.__path__, str(root / "papers")])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a file may change twice within a second
    for function in (sources.imported_files, sources.source_files, sources.source_hash):
        monkeypatch.setattr(function, "__defaults__", (root,))
