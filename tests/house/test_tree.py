"""A checkout has only what somebody put there."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_ignored_is_ignored_as_a_link_too():
    assert [line for line in (ROOT / ".gitignore").read_text("utf-8").splitlines() if line.endswith("/")] == []


def test_a_clone_with_other_line_ends_has_ours():
    """Where git's ``core.autocrlf`` is on, scripts keep LF, and records and pictures their bytes."""
    asked = ["git", "check-attr", "text", "eol", "--", ".ci/run", "a/rows.parquet", "a.png"]
    lines = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines[:2] == [".ci/run: text: auto", ".ci/run: eol: lf"]
    assert lines[2::2] == ["a/rows.parquet: text: unset", "a.png: text: unset"]


def test_ci_fails_where_a_step_leaves_something_in_the_checkout(tmp_path):
    steps = re.search(r"^times=.*?^}$", (ROOT / ".ci/run").read_text("utf-8"), re.M | re.S)[0]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    (tmp_path / "here").touch()

    def run(command: str) -> subprocess.CompletedProcess:
        script = f"set -euo pipefail\n{steps}\nstep tests {command}"
        return subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)

    assert run("true").returncode == 0
    done = run("touch there")
    assert done.returncode == 1
    assert done.stdout.splitlines()[3:] == ["tests left something in the checkout", "?? here", "?? there"]
