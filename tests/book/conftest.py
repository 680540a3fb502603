"""Fixtures of the press."""

import shutil
from pathlib import Path

import press
import pytest


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
