"""Fixtures of the press."""

from pathlib import Path

import press
import pytest


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A checkout without chapters."""
    return press.make_house(tmp_path)
