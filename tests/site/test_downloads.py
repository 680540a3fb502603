"""What is taken away from the site works elsewhere."""

import importlib
import json
import os
import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import nbformat
import pytest

from bookbuilder.paths import Repo

ROOT = Path(__file__).parents[2]
FORMULA = re.compile(r"\$\$.+?\$\$|(?<![\\$])\$[^$]+\$", re.S)

RUN = """
import json, sys, nbformat, nbclient, derived
notebook = nbformat.read(sys.argv[1], as_version=4)
client = nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3")
client.execute()
bundles = [output.data for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
rows = [bundle["application/vnd.derived.findings+json"]["rows"] for bundle in bundles
        if "application/vnd.derived.findings+json" in bundle]
print(json.dumps({"derived": derived.__file__, "verdicts": [row["verdict"] for row in rows[0]]}))
"""


def quickest() -> str:
    """The chapter that took the least time in the build: each ran there, here it is asked what wheel and zip lack."""
    repo = Repo(ROOT)
    found = {slug: json.loads(repo.findings(slug).read_text("utf-8"))["seconds"] for slug in repo.chapters()}
    return min(found, key=found.__getitem__)


@pytest.fixture
def wheel(site: Path) -> Path:
    (wheel,) = (site / "downloads").glob("*.whl")
    return wheel


def alone(row: dict, absent: set[str]) -> str:
    """The verdict on a row where there are only wheel and zip: no real weights and data."""
    return "not run" if row["tier"] == "ci" and row["id"] in absent else row["verdict"]


def test_a_downloaded_notebook_runs_with_only_the_wheel_and_its_zip(site, wheel, tmp_path):
    target, folder = tmp_path / "installed", tmp_path / "unpacked"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target"]
    subprocess.run([*pip, str(target), str(wheel)], check=True)
    environment = os.environ | {"PYTHONPATH": str(target), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    slug = quickest()
    with zipfile.ZipFile(site / f"downloads/{slug}.zip") as pack:
        pack.extractall(folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    command = [sys.executable, "-c", RUN, f"{slug}.ipynb"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.strip().splitlines()[-1])
    assert Path(result["derived"]).is_relative_to(target), "the checkout was used instead of the wheel"
    rows = [row for row in json.loads((ROOT / "results/ledger.json").read_text()) if row["paper"] == slug]
    claims = importlib.import_module(f"derived.papers.{slug}.claims").CLAIMS
    absent = {claim.id for claim in claims if claim.experiment and claim.experiment.needs}
    assert result["verdicts"] == [alone(row, absent) for row in rows]
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before, "a notebook writes no files"


def test_downloaded_notebooks_hold_no_outputs_and_students_get_no_solutions(site, wheel):
    for path in (site / "downloads").glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        first = next(cell for cell in notebook.cells if cell.cell_type == "code")
        assert f"pip install ./{wheel.name}" in first.source, "without the package it says how to get it"
        assert not any(cell.get("outputs") for cell in notebook.cells)
        tagged = [cell for cell in notebook.cells if "solution" in cell.metadata.get("tags", [])]
        assert bool(tagged) != path.stem.endswith(("-student", "-homework"))


def read(path: Path, kind: str) -> list[str]:
    return [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == kind]


def formulas(cells: list[str]) -> Counter:
    """The formulas of some text by how often they stand there, but for spaces, line ends and numbers."""
    found = FORMULA.findall("\n\n".join(cells))
    return Counter("".join(re.sub(r"\\tag\{[\d.]+\}", "", formula).split()) for formula in found)


def test_downloaded_notebooks_keep_every_line_of_code_and_every_formula(site):
    for source in (ROOT / "notebooks").glob("*.ipynb"):
        downloaded = site / "downloads" / source.name
        assert read(downloaded, "code")[1:] == read(source, "code")[1:], "the first names the command for the wheel"
        assert formulas(read(source, "markdown")) - formulas(read(downloaded, "markdown")) == Counter()
