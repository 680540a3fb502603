"""Fixtures of the builder."""

import shutil
from pathlib import Path

import pytest
import toybook


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A checkout whose chapter is not written yet."""
    return toybook.make_house(tmp_path)


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout of one chapter that was run."""
    repo = toybook.make_house(tmp_path_factory.mktemp("ran"))
    toybook.write_chapter(repo, "toy", "x = 1", toybook.report_cell())
    assert toybook.derived(repo, "run").returncode == 0
    return repo


@pytest.fixture
def built(ran: Path, tmp_path: Path) -> Path:
    """A copy of it that a test may change."""
    return shutil.copytree(ran, tmp_path / "built")


@pytest.fixture(scope="session")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy book of the site's tests, rendered once; no test changes its pages."""
    from test_render import render, write_book

    root = write_book(tmp_path_factory.mktemp("book"))
    render.render(root)
    return root
