"""Fixtures of the builder."""

import shutil
from pathlib import Path

import pytest
import toybook


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A checkout without chapters."""
    return toybook.make_house(tmp_path)


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of one chapter that was run."""
    repo = toybook.make_house(tmp_path_factory.mktemp("ran"))
    toybook.write_chapter(repo, "toy", "x = 1", toybook.report_cell())
    toybook.write_toc(repo, "toy")
    assert toybook.derived(repo, "run").returncode == 0
    return repo


@pytest.fixture
def built(ran: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return shutil.copytree(ran, tmp_path / "built")
