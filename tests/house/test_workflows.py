"""The workflows of a fork can be read, and put the downloads where Colab looks."""

from pathlib import Path

import pytest
import yaml

from bookbuilder.sphinx_site import downloads

FILES = sorted((Path(__file__).resolve().parents[2] / ".github/workflows").glob("*.yml"))


def jobs(name: str) -> dict[str, dict]:
    [file] = [file for file in FILES if file.stem == name]
    return yaml.safe_load(file.read_text("utf-8"))["jobs"]


@pytest.mark.parametrize("name", [file.stem for file in FILES])
def test_each_step_of_a_workflow_runs_or_uses_something(name):
    steps = [step for job in jobs(name).values() for step in job["steps"]]
    assert steps
    assert [step for step in steps if ("run" in step) == ("uses" in step)] == []


def test_the_branch_that_colab_reads_has_all_that_the_site_offers():
    book = jobs("book")
    kept = [step["with"] for step in book["check"]["steps"] if step.get("with", {}).get("name") == downloads.BRANCH]
    assert kept == [{"name": downloads.BRANCH, "path": "_build/html/downloads"}]
    commands = " ".join(step.get("run", "") for step in book["downloads"]["steps"])
    assert f"git init -q -b {downloads.BRANCH}" in commands
    assert "git add ." in commands
