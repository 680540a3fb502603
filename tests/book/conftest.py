"""Fixtures of the press."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import press


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A checkout without chapters."""
    return press.make_house(tmp_path)
