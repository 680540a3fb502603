"""The driver: runs the chapters that changed, in parallel processes with one thread each, and owns the exit code.

key       what an executed chapter depends on: its cells, the files of the laboratory and its paper, its results,
          which of its real weights and data are here, tier, seed, device kind, Python, the lock; same key, no run
outcome   per chapter: its findings, or one line saying why it has none
"""

import ast
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from bookbuilder.notebook import form, notebook_claims
from bookbuilder.paths import Repo, UserError, cell_name, end_children, has_cuda, processor, write_whole
from bookbuilder.run.guard import source_faults
from derived.lab import intact
from derived.lab.findings import COLUMNS
from derived.lab.real import pinned
from derived.lab.sources import PACKAGE_ROOT, chapter_files, file_hash

LIMITS = {"ci": 600, "cpu": 3 * 3600, "gpu": 3 * 3600}  # seconds a chapter may take
ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
}
# Personal settings of Python, notebooks and figures stay out of the book's chapters.
PERSONAL = ("PYTHON", "IPYTHON", "MATPLOTLIBRC", "MPLBACKEND")
BUILDER = (
    "run/worker.py",
    "run/guard.py",
    "notebook/notebook_claims.py",
    "notebook/statements.py",
)  # findings pass these
# A lane imports these once for all its chapters, which takes five seconds; the second is what an optimiser imports.
# Not where there is a card, since a process that has touched one cannot fork.
SHARED = ("torch", "torch._dynamo", "pandas", "scipy.optimize", "scipy.stats", "matplotlib.pyplot")
REPORT_EVERY = 60  # seconds between two progress lines of a chapter


@dataclass(frozen=True)
class Outcome:
    """The result of one chapter: findings or an error, and whether it ran."""

    slug: str
    findings: dict[str, Any] | None
    error: str | None = None
    cached: bool = False


@contextlib.contextmanager
def build_lock(repo: Repo, work: str = "build") -> Iterator[None]:
    """Hold a lock against a second build or recording; it is released when the process ends."""
    repo.build.mkdir(exist_ok=True)
    with open(repo.build / f".{work}.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another {work} of this checkout is running; wait for it or stop it") from None
        yield


def device_kind(device: str) -> str:
    """Resolve the device: auto is CUDA if available."""
    return "cuda" if device != "cpu" and has_cuda() else "cpu"


def running_cell(partial: Path) -> str:
    """Find the cell that a chapter has reached, from its half executed notebook."""
    try:
        cells = json.loads(partial.read_text("utf-8"))["cells"]
    except (OSError, ValueError):
        return "an unknown cell"
    cells = [cell for cell in cells if "injected-parameters" not in cell["metadata"].get("tags", [])]
    # Ignore the status: after a crash papermill marks unstarted cells "completed".
    begun = [n for n, cell in enumerate(cells, 1) if cell["metadata"]["papermill"]["start_time"]]
    return cell_name(begun[-1], cells[begun[-1] - 1]["source"]) if begun else "its first cell"


def cells_code(slug: str, notebook: dict[str, Any]) -> str:
    """Join the code of a notebook as one module without magics; raise UserError for a cell that is no Python."""
    code = []
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] == "code":
            lines = "".join(cell["source"]).splitlines()
            code.append("\n".join("pass" if line.startswith(("%", "!")) else line for line in lines))
            try:
                ast.parse(code[-1])
            except SyntaxError as error:
                where = f"{cell_name(number, cell['source'])}, line {error.lineno}"
                raise UserError(f"{slug}: {where}: no Python: {error.msg}") from None
    return "\n".join(code)


def faults_of(repo: Repo, slug: str, notebook: dict[str, Any]) -> list[str]:
    """One line per fault of a notebook's source; they are printed before anything runs."""
    found = [f"{slug}: {fault}" for fault in source_faults(notebook) + notebook_claims.faults(notebook)]
    return found + form.faults(repo.root, slug, notebook)


def chapter_key(repo: Repo, slug: str, parameters: dict[str, Any]) -> str:
    """Hash everything that the executed chapter depends on."""
    notebook = read_notebook(repo, slug)
    results = [path for path in (repo.root / "results" / slug).rglob("*") if path.is_file() and path.name[0] != "."]
    builder = [PACKAGE_ROOT.parent / "bookbuilder" / name for name in BUILDER]
    parts = [
        json.dumps([notebook["cells"], notebook["metadata"]], sort_keys=True),
        file_hash([*chapter_files(slug), *builder], PACKAGE_ROOT.parent),
        file_hash(results, repo.root),
        json.dumps(pinned.state(slug)),
        json.dumps(parameters | {"device": device_kind(parameters["device"])}, sort_keys=True),
        platform.python_version(),
        repo.lock.read_text("utf-8"),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _keys(repo: Repo, slugs: Sequence[str], parameters: dict[str, Any], known: Sequence[str]) -> dict[str, str]:
    """The key of each chapter; UserError with the faults that are known and those of all chapters."""
    keys, faults = {}, [*known]
    for slug in slugs:
        try:
            notebook = read_notebook(repo, slug)
            cells_code(slug, notebook)  # before anything is asked of cells that are no Python
            faults += faults_of(repo, slug, notebook) + _damaged(repo, slug)
            keys[slug] = chapter_key(repo, slug, parameters)
        except UserError as error:
            faults.append(str(error))
    if faults:
        raise UserError("\nderived: ".join(faults))
    return keys


def _damaged(repo: Repo, slug: str) -> list[str]:
    """One line per record of a paper that was edited or is not whole."""
    return [
        f"{slug}: {intact.damaged(place, f'derived record {slug} {place.parent.name} --tier {place.name}')}"
        for place in sorted((repo.root / "results" / slug).glob("*/[!.]*/"))
        if intact.contents(place) is None
    ]


def read_notebook(repo: Repo, slug: str) -> dict[str, Any]:
    """Read a chapter's source."""
    try:
        notebook = json.loads(repo.notebook(slug).read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{slug}: notebooks/{slug}.ipynb is not there") from None
    except ValueError as error:
        raise UserError(f"{slug}: notebooks/{slug}.ipynb is not valid JSON ({error})") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) and isinstance(notebook.get("metadata"), dict) else None
    parts = {"cell_type", "metadata", "source"}
    if not isinstance(cells, list) or not all(isinstance(cell, dict) and parts <= {*cell} for cell in cells):
        raise UserError(f"{slug}: notebooks/{slug}.ipynb is no notebook: it lacks metadata, cells, or a part of a cell")
    return notebook


def read_findings(repo: Repo, slug: str) -> dict[str, Any] | None:
    """Read the findings of a chapter's last run if its executed notebook is complete and matches."""
    try:
        findings = json.loads(repo.findings(slug).read_text("utf-8"))
        content = repo.executed(slug).read_bytes()
        whole = hashlib.sha256(content).hexdigest() == findings["executed_sha256"]
        whole &= repo.is_essay(slug) or _are_rows(findings["rows"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return findings if whole else None


def _are_rows(rows: list[dict[str, Any]]) -> bool:
    """Whether there are rows of a ledger, with all their columns."""
    return bool(rows) and all(row.keys() >= {*COLUMNS} for row in rows)


def _device_name(kind: str) -> str:
    return "CUDA device" if kind == "cuda" else processor()


def _job(repo: Repo, slug: str, key: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "slug": slug,
        "essay": repo.is_essay(slug),
        "key": key,
        "parameters": parameters,
        "device_name": _device_name(device_kind(parameters["device"])),
        "notebook": str(repo.notebook(slug)),
        "executed": str(repo.executed(slug)),
        "findings": str(repo.findings(slug)),
        "partial": str(repo.build / "running" / slug / f"{slug}.ipynb"),
    }


@dataclass
class _Running:
    slug: str
    lane: subprocess.Popen  # the process that runs it
    partial: Path
    started: float
    limit: float
    code: int | None = None  # its exit code
    reported: float = 0.0  # seconds from the start to its last progress line

    def finished(self) -> bool:
        if select.select([self.lane.stdout], [], [], 0)[0]:
            self.code = int(self.lane.stdout.readline() or self.lane.wait())
            return True
        if time.monotonic() - self.started < self.limit:
            return False
        self.kill()
        return True

    def kill(self) -> None:
        """Stop the lane, the chapter and its kernel."""
        with contextlib.suppress(psutil.NoSuchProcess):
            end_children(self.lane.pid)
        self.lane.kill()
        self.lane.wait()

    def error(self) -> str | None:
        """One line if the chapter failed, None if it ran."""
        if self.code == 0:
            return None
        if time.monotonic() - self.started >= self.limit:
            return f"stopped at its limit of {self.limit:.0f} s, in {running_cell(self.partial)}"
        error, log = (self.partial.with_name(name) for name in ("error", "log"))
        if error.exists():
            return error.read_text("utf-8")
        last = log.read_text("utf-8", "replace").strip().splitlines()[-1:] or ["no message"]
        return f"its process ended with code {self.code}: {last[0][:200]}"

    def report(self) -> None:
        """Print a progress line of a chapter that takes long."""
        elapsed = time.monotonic() - self.started
        if elapsed >= self.reported + REPORT_EVERY:
            self.reported = elapsed
            print(f"{self.slug}: {elapsed:.0f} s so far, in {running_cell(self.partial)}", flush=True)


def _lane(modules: Sequence[str]) -> subprocess.Popen:
    """Start a process that imports ``modules`` and runs chapters one after another."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(PERSONAL)}
    environment |= ONE_THREAD | {"PYTHONHASHSEED": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    environment["PYTHONPATH"] = str(PACKAGE_ROOT.parent)  # the package that the builder is part of, and no other
    environment["PYTHONWARNINGS"] = "ignore:IProgress not found"  # from transformers
    environment["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # which a page would keep
    environment |= {"MATPLOTLIBRC": os.devnull, "MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    command = [sys.executable, "-m", "bookbuilder.run.worker", *modules]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "errors": "replace"}
    return subprocess.Popen(command, env=environment, **pipes)


def _start(job: dict[str, Any], lane: subprocess.Popen, limit: float) -> _Running:
    """Give a chapter, in an empty folder, to a lane."""
    partial = Path(job["partial"])
    shutil.rmtree(partial.parent, ignore_errors=True)
    partial.parent.mkdir(parents=True)
    (partial.parent / "log").touch()
    print(json.dumps(job), file=lane.stdin, flush=True)
    return _Running(job["slug"], lane, partial, time.monotonic(), limit)


def _expected(repo: Repo, slug: str, tier: str, findings: dict[str, Any] | None) -> str:
    """Estimate a chapter's duration from its last run at this tier, or from its records."""
    if findings and findings["tier"] == tier:
        return f", {findings['seconds']:.0f} s last time"
    seconds = 0.0
    for path in (repo.root / "results" / slug).glob(f"*/{tier}/record.json"):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):  # a damaged record is named by the chapter
            seconds += json.loads(path.read_text("utf-8"))["seconds"]
    return f", its records took {seconds:.0f} s" if seconds else ""


def run_chapters(
    repo: Repo,
    slugs: Sequence[str],
    parameters: dict[str, Any],
    jobs: int,
    limit: float | None = None,
    faults: Sequence[str] = (),
) -> list[Outcome]:
    """Execute every chapter whose key has changed, ``jobs`` at a time; return outcomes in the order of the slugs.

    UserError, before anything runs, for these ``faults`` and all that the sources show."""
    limit = limit or LIMITS[parameters["tier"]]
    outcomes: dict[str, Outcome] = {}
    waiting: list[dict[str, Any]] = []
    for slug, key in _keys(repo, slugs, parameters, faults).items():
        findings = read_findings(repo, slug)
        if findings and findings["key"] == key:
            outcomes[slug] = Outcome(slug, findings, cached=True)
            continue
        waiting.append(_job(repo, slug, key, parameters))
        tier = parameters["tier"]
        print(f"{slug}: to run at tier {tier}{_expected(repo, slug, tier, findings)}", flush=True)
    running: list[_Running] = []
    lanes: list[subprocess.Popen] = []
    shared = SHARED if len(waiting) > jobs and device_kind(parameters["device"]) == "cpu" else ()
    if waiting:
        _note_run(repo, slugs, parameters, ended=False)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                busy = [chapter.lane for chapter in running]
                idle = [lane for lane in lanes if lane not in busy and lane.poll() is None]
                lanes += [] if idle else [_lane(shared)]
                running.append(_start(waiting.pop(0), (idle or lanes)[-1], limit))
            select.select([chapter.lane.stdout for chapter in running], [], [], 0.05)  # or until one has ended
            for chapter in running:
                chapter.report()
            for chapter in [chapter for chapter in running if chapter.finished()]:
                running.remove(chapter)
                error = chapter.error()
                findings = None if error else read_findings(repo, chapter.slug)
                error = error or (None if findings else "report(...) left no rows of a ledger")
                outcomes[chapter.slug] = Outcome(chapter.slug, findings, error)
                print(
                    f"{chapter.slug}: {'FAILED' if error else 'done'} in {time.monotonic() - chapter.started:.1f} s",
                    flush=True,
                )
    finally:
        for chapter in running:
            chapter.kill()
        for lane in lanes:
            lane.communicate()  # closes its input, which ends it
    if not any(outcome.error for outcome in outcomes.values()):
        _note_run(repo, slugs, parameters, ended=True)
    return [outcomes[slug] for slug in slugs]


def _note_run(repo: Repo, slugs: Sequence[str], parameters: dict[str, Any], ended: bool) -> None:
    """Note the run that begins or has ended, so that nobody takes the findings of an earlier one for its own."""
    note = {"slugs": [*slugs], "tier": parameters["tier"], "seed": parameters["seed"], "ended": ended}
    write_whole(repo.build / "last_run.json", json.dumps(note))


def unfinished(repo: Repo) -> str:
    """The command that repeats the last run if it was stopped or a chapter failed in it, else an empty string."""
    try:
        note = json.loads((repo.build / "last_run.json").read_text("utf-8"))
        again = f"derived run {' '.join(note['slugs'])} --tier {note['tier']} --seed {note['seed']}"
        return "" if note["ended"] else again
    except (OSError, ValueError, KeyError, TypeError):
        return ""
