"""A small checkout of its own for the press, with chapters that need no torch, and the command line on it."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parents[2]
ROW = {
    **{"id": "T-1", "paper": "toy", "kind": "identity", "statement": "$1=1$", "source": "ours", "where": "here"},
    **{"paper_value": "1", "tier": "ci", "device": "cpu", "seed": 0, "value": 0.5, "low": None, "high": None, "n": 3},
    **{
        "criterion": "at most 1",
        "plain": "",
        "unit": "of its bound",
        "accept": [None, 1.0],
        "configuration": {"draws": 10},
        "terms": "0123456789abcdef",
        "experiment": "Toy",
        "proof": "",
        "verdict": "holds",
        "reason": "",
        "amends": None,
        "headline": True,
    },
}
COMMITTED = ROW | {"expected": "holds", "registered": None, "changed": []}  # as the committed ledger has it


def write_ledger(root: Path, *rows: dict) -> None:
    (root / "results/ledger.json").write_text(json.dumps(rows))


def report_cell(on_page: Sequence[str] = (), **changes) -> str:
    """A cell that leaves findings as ``report(...)`` does, without importing the laboratory."""
    findings = {"rows": [ROW | changes], "records": [], "on_page": [*on_page]}
    return textwrap.dedent(f"""\
        from IPython.display import display
        display({{"application/vnd.derived.findings+json": {findings!r}, "text/html": "<p>ledger</p>"}}, raw=True)""")


def write_chapter(
    root: Path, slug: str, *cells: str, parameters: str = 'tier = "ci"\nseed = 0\ndevice = "auto"'
) -> None:
    """A chapter with the given code cells after the parameters."""
    notebook = nbformat.v4.new_notebook(
        cells=[
            nbformat.v4.new_markdown_cell(f"# {slug}\n\n<!-- at a glance -->", id="title"),
            nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}, id="parameters"),
            *[nbformat.v4.new_code_cell(cell, id=f"cell-{index}") for index, cell in enumerate(cells)],
        ],
        metadata={"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
    )
    (root / "notebooks").mkdir(exist_ok=True)
    (root / "notebooks" / f"{slug}.ipynb").write_text(nbformat.writes(notebook))


def write_toc(root: Path, *slugs: str) -> None:
    chapters = "".join(f"      - file: notebooks/{slug}\n" for slug in slugs)
    (root / "book").mkdir(exist_ok=True)
    (root / "book" / "_toc.yml").write_text(
        f"format: jb-book\nroot: book/intro\nparts:\n  - caption: Chapters\n    chapters:\n{chapters}"
    )


def make_house(root: Path) -> Path:
    """A checkout with the package's source and the lock, no chapters yet, and their claims registered."""
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "template", root / "template")
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    (root / "results").mkdir()
    registered = COMMITTED | {"verdict": None}
    write_ledger(root, *(registered | {"paper": slug, "tier": t} for slug in ("toy", "other") for t in ("ci", "cpu")))
    return root


def environment(root: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def derived(root: Path, *arguments: str, timeout: float = 120) -> subprocess.CompletedProcess:
    """Run the command line of a checkout."""
    command = [sys.executable, "-m", "derived.book.cli", *arguments]
    return subprocess.run(
        command, cwd=root, env=environment(root), capture_output=True, text=True, timeout=timeout, check=False
    )


def findings(root: Path, slug: str) -> dict:
    return json.loads((root / "_build" / "findings" / f"{slug}.json").read_text())
