"""What make says before it does anything that takes long."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = "{}.{}".format(*sys.version_info)


@pytest.fixture
def make(tmp_path):
    """make in a folder whose environment was made with this Python and whose commands do nothing."""
    for name in ("Makefile", "requirements.lock", "requirements-dev.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    for name, text in {".venv/bin/derived": "exit 0", "other": "echo 3.9"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / ".venv/.installed").touch()

    def run(*arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["make", "--no-print-directory", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    run.folder = tmp_path
    return run


def test_another_python_than_that_of_the_environment_is_refused(make):
    assert make("claims").returncode == 0
    assert make("claims", f"PYTHON={sys.executable}").returncode == 0
    done = make("claims", "PYTHON=./other")
    assert done.returncode != 0
    assert done.stderr.startswith(f"make: .venv was made with Python {HERE}; to have 3.9 in its place: rm -r .venv")


def test_a_record_of_no_paper_is_refused_before_anything_is_installed(make):
    (make.folder / ".venv/.installed").unlink()
    done = make("record")
    assert done.returncode != 0
    assert "say which paper: make record CHAPTERS=ols_attention TIER=cpu" in done.stderr
    assert done.stdout == ""
