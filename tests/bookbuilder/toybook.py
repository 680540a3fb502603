"""A small checkout of its own for the builder, with chapters that need no torch, and the command line on it."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import Executor, Future
from pathlib import Path

import nbformat
import pytest
from typer.testing import CliRunner

from bookbuilder import cli, paths
from bookbuilder.ledger import recording
from bookbuilder.run import driver
from derived import papers
from derived.lab import intact, record, sources

ROOT = Path(__file__).resolve().parents[2]
MADE = ("derived.papers.toy", "derived.papers.my_paper")  # what tests write
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
    **{"control": "", "comparison": None, "undecided": None, "horizon": "", "scale": None},
    **{"made_of": "synthetic", "effect": None, "sees": None},
}
COMMITTED = ROW | {"expected": "holds", "registered": None, "changed": []}  # as the committed ledger has it

EXPERIMENT = textwrap.dedent('''
    """Toy experiments."""

    import os
    import signal
    import time
    from dataclasses import dataclass
    from pathlib import Path
    from typing import ClassVar

    import pandas as pd
    import torch

    from derived.lab.experiment import Experiment
    from derived.lab.rng import stream

    HERE = Path(__file__).parent


    def told(word):
        return (HERE / word).exists()


    @dataclass(frozen=True, kw_only=True)
    class Draws(Experiment):
        """Uniform draws; at tier cpu files beside this one say what becomes of a condition."""

        num: int = 5
        tiers: ClassVar = {"ci": {"num": 2}, "cpu": {}}

        def conditions(self):
            return [{"shift": shift} for shift in (0, 1, 2)]

        def run(self, condition, *, seed, device, dtype):
            if self.num == 5:
                self.live(condition["shift"])
            draw = torch.rand(self.num, generator=stream(seed, "draws"), dtype=dtype, device=device)
            return pd.DataFrame({"replicate": range(self.num), "value": draw.numpy() + condition["shift"]})

        def live(self, shift):
            with open(HERE / "ran", "a") as file:
                file.write(str(shift))
            if told("card"):
                held = HERE / f"held by {os.environ['CARD']}"
                held.touch(exist_ok=False)
                time.sleep(0.1)
                held.unlink()
            if told("slow"):
                time.sleep(1)
            if shift == 1 and told("die"):
                (HERE / "die").unlink()
                os.kill(os.getpid(), signal.SIGKILL)
            if shift == 2 and told("raise"):
                raise ArithmeticError("the last one")
            if shift == 2 and told("stop"):
                raise KeyboardInterrupt


    EXPERIMENTS = (Draws,)
''')

CLAIMS = textwrap.dedent('''
    """Toy claims."""

    from derived.lab import measure
    from derived.lab.claims import reported
    from derived.papers.toy.draws import EXPERIMENTS as EXPERIMENTS
    from derived.papers.toy.draws import Draws

    CLAIMS = (reported("T-1", "The mean is told.", Draws, measure.mean("value"), "nats", judged_at=("ci", "cpu")),)
''')


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


def write_paper(root: Path, experiments: str, claims: str) -> Path:
    """A chapter with a paper: the sources of its experiments and of its claims; returns the paper's package."""
    write_chapter(root, "toy", report_cell())
    package = root / "src/derived/papers/toy"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""Toy."""\n')
    (package / "draws.py").write_text(experiments)
    (package / "claims.py").write_text(claims)
    return package


def write_record(root: Path, **head) -> Path:
    """A record toy/Draws/cpu whose checksums fit; nothing reads its tables."""
    place = root / "results/toy/Draws/cpu"
    place.mkdir(parents=True, exist_ok=True)
    for name in intact.TABLES:
        (place / name).write_bytes(name.encode())
    sums = {name: hashlib.sha256(name.encode()).hexdigest() for name in intact.TABLES}
    sums["record.json"] = intact.seal(head | {"checksums": sums})
    (place / "record.json").write_text(json.dumps(head | {"checksums": sums}))
    return place


def write_toc(root: Path, *slugs: str) -> None:
    chapters = "".join(f"  {slug}: {{}}\n" for slug in slugs)
    (root / "book").mkdir(exist_ok=True)
    (root / "book/chapters.yml").write_text(f"chapters:\n{chapters}parts:\n  - caption: Chapters\n")


def make_house(root: Path) -> Path:
    """A checkout with the package's source, the lock and registered claims; its chapter toy is still to be written."""
    others = {path.name for path in (ROOT / "src/derived/papers").iterdir()} - {"__init__.py", "ols_attention"}
    shutil.copytree(ROOT / "src", root / "src", ignore=shutil.ignore_patterns(*others - {"__pycache__"}))
    shutil.copytree(ROOT / "template", root / "template")
    for name in ("requirements.lock", "pyproject.toml"):
        shutil.copy(ROOT / name, root / name)
    (root / "results").mkdir()
    write_toc(root, "toy")
    registered = COMMITTED | {"verdict": None}
    write_ledger(root, *(registered | {"paper": slug, "tier": t} for slug in ("toy", "other") for t in ("ci", "cpu")))
    return root


class Here(Executor):
    """Does what it is given at once, in this process."""

    def submit(self, function, /, *args, **kwargs):
        future = Future()
        future.set_result(function(*args, **kwargs))
        return future


def environment(root: Path) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}


def start(root: Path, *arguments: str, **options) -> subprocess.Popen:
    """Start the command line of a checkout as a user does, to be killed or interrupted."""
    command = [sys.executable, "-m", "bookbuilder.cli", *arguments]
    return subprocess.Popen(command, cwd=root, env=environment(root), text=True, **options)


def process(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run the command line of a checkout as a user does, with workers of its own."""
    with start(root, *arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        said, complained = running.communicate(timeout=300)
    return subprocess.CompletedProcess(arguments, running.returncode, said, complained)


def derived(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run the command line on a checkout in this process; the chapters run in their own."""
    for name in [name for name in sys.modules if name.startswith(MADE)]:
        del sys.modules[name]  # of an earlier checkout, or changed since
    with pytest.MonkeyPatch.context() as patch:
        move(patch, root)
        done = CliRunner().invoke(cli.app, arguments)
    if not isinstance(done.exception, SystemExit | None):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def move(patch: pytest.MonkeyPatch, root: Path) -> None:
    """Let the builder work on a checkout, its package's files and its records, and not on those of this process."""
    package = root / "src/derived"
    patch.chdir(root)
    for module in (paths, driver, record, recording):
        patch.setattr(module, "PACKAGE_ROOT", package)
    for function in (sources.chapter_files, sources.source_files):
        patch.setattr(function, "__defaults__", (package,))
    patch.setattr(papers, "__path__", [*papers.__path__, str(package / "papers")])
    patch.setattr(sys, "dont_write_bytecode", True)  # a file may change twice within a second


def findings(root: Path, slug: str) -> dict:
    return json.loads((root / "_build" / "findings" / f"{slug}.json").read_text())
