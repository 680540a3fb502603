"""The driver: runs the chapters that changed, in parallel processes with one thread each, and owns the exit code.

key       what an executed chapter depends on: its cells, the package's files that it imports, its paper's results,
          tier, seed, device kind, Python, the lock; same key, no run
outcome   per chapter: its findings, or one line saying why it has none
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from derived.book.house import House, UserError, has_cuda, processor
from derived.lab.sources import PACKAGE_ROOT, file_hash, imported_files

LIMITS = {"ci": 600, "cpu": 3 * 3600, "gpu": 3 * 3600}  # seconds a chapter may take
ONE_THREAD = {
    name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
}


@dataclass(frozen=True)
class Outcome:
    """What became of one chapter: findings, or an error; and whether it had to run."""

    slug: str
    findings: dict[str, Any] | None
    error: str | None = None
    cached: bool = False


@contextlib.contextmanager
def alone(house: House, work: str = "build") -> Iterator[None]:
    """Only one build (or one recording) at a time; the lock goes with the process that holds it, however it ends."""
    house.build.mkdir(exist_ok=True)
    with open(house.build / f".{work}.lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another {work} of this checkout is running; wait for it or stop it") from None
        yield


def device_kind(device: str) -> str:
    """What the device will be: auto is CUDA where there is one."""
    return "cuda" if device != "cpu" and has_cuda() else "cpu"


def cells_code(notebook: dict[str, Any]) -> str:
    """The code of a notebook as one module, cell magics left out."""
    cells = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    return "\n".join(line for cell in cells for line in cell.splitlines() if not line.startswith(("%", "!")))


def chapter_key(house: House, slug: str, parameters: dict[str, Any]) -> str:
    """The hash of everything that the executed chapter depends on."""
    notebook = read_notebook(house, slug)
    results = [path for path in (house.root / "results" / slug).rglob("*") if path.is_file() and path.name[0] != "."]
    try:
        imports = imported_files(cells_code(notebook))
    except SyntaxError as error:
        raise UserError(f"{slug}: a code cell is no Python: {error.msg}: {(error.text or '').strip()}") from None
    worker = PACKAGE_ROOT / "book" / "worker.py"
    parts = [
        json.dumps([notebook["cells"], notebook["metadata"]], sort_keys=True),
        file_hash([*imports, worker], PACKAGE_ROOT),
        file_hash(results, house.root),
        json.dumps(parameters | {"device": device_kind(parameters["device"])}, sort_keys=True),
        platform.python_version(),
        house.lock.read_text("utf-8"),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_notebook(house: House, slug: str) -> dict[str, Any]:
    """A chapter's source."""
    try:
        return json.loads(house.notebook(slug).read_text("utf-8"))
    except FileNotFoundError:
        raise UserError(f"{slug}: notebooks/{slug}.ipynb is not there") from None
    except ValueError as error:
        raise UserError(f"{slug}: notebooks/{slug}.ipynb is not valid JSON ({error})") from None


def read_findings(house: House, slug: str) -> dict[str, Any] | None:
    """The findings of a chapter's last run if its executed notebook is whole and belongs to them."""
    try:
        findings = json.loads(house.findings(slug).read_text("utf-8"))
        content = house.executed(slug).read_bytes()
    except (FileNotFoundError, ValueError):
        return None
    return findings if hashlib.sha256(content).hexdigest() == findings.get("executed_sha256") else None


def _device_name(kind: str) -> str:
    return "CUDA device" if kind == "cuda" else processor()


def _job(house: House, slug: str, key: str, parameters: dict[str, Any]) -> dict[str, Any]:
    return {
        "slug": slug,
        "key": key,
        "parameters": parameters,
        "device_name": _device_name(device_kind(parameters["device"])),
        "notebook": str(house.notebook(slug)),
        "executed": str(house.executed(slug)),
        "findings": str(house.findings(slug)),
        "partial": str(house.build / "running" / slug / f"{slug}.ipynb"),
    }


@dataclass
class _Running:
    slug: str
    process: subprocess.Popen
    partial: Path
    started: float
    limit: float

    def finished(self) -> bool:
        if self.process.poll() is not None:
            return True
        if time.monotonic() - self.started < self.limit:
            return False
        self.kill()
        return True

    def kill(self) -> None:
        """Stop the worker and its kernel."""
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = psutil.Process(self.process.pid)
            for process in [*parent.children(recursive=True), parent]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        self.process.wait()

    def error(self) -> str | None:
        """One line if the chapter failed, None if it ran."""
        if self.process.returncode == 0:
            return None
        if time.monotonic() - self.started >= self.limit:
            return f"stopped at its limit of {self.limit:.0f} s, in {self._cell()}"
        lines = (self.process.stdout.read() or "").strip().splitlines()
        with contextlib.suppress(ValueError, IndexError, KeyError, TypeError):
            return json.loads(lines[-1])["error"]
        log = self.partial.parent / "log"
        last = log.read_text("utf-8", "replace").strip().splitlines()[-1:] if log.exists() else []
        return (
            f"its process ended with code {self.process.returncode}: {' '.join([*last, *lines[-1:]]) or 'no message'}"
        )

    def _cell(self) -> str:
        try:
            cells = json.loads(self.partial.read_text("utf-8"))["cells"]
        except (OSError, ValueError):
            return "an unknown cell"
        running = [c for c in cells if c["metadata"].get("papermill", {}).get("status") == "running"]
        return f"the cell «{''.join(running[0]['source']).strip().splitlines()[0]}»" if running else "an unknown cell"


def _start(job: dict[str, Any], limit: float) -> _Running:
    partial = Path(job["partial"])
    partial.parent.mkdir(parents=True, exist_ok=True)
    environment = os.environ | ONE_THREAD | {"PYTHONHASHSEED": "0", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    with open(partial.parent / "log", "w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "derived.book.worker", json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment,
        )
    return _Running(job["slug"], process, partial, time.monotonic(), limit)


def run_chapters(
    house: House, slugs: Sequence[str], parameters: dict[str, Any], jobs: int, limit: float | None = None
) -> list[Outcome]:
    """Execute every chapter whose key has changed, ``jobs`` at a time; the outcomes in the order of the slugs."""
    limit = limit or LIMITS[parameters["tier"]]
    outcomes: dict[str, Outcome] = {}
    waiting: list[dict[str, Any]] = []
    for slug in slugs:
        key, findings = chapter_key(house, slug, parameters), read_findings(house, slug)
        if findings and findings["key"] == key:
            outcomes[slug] = Outcome(slug, findings, cached=True)
            continue
        waiting.append(_job(house, slug, key, parameters))
        about = f", {findings['seconds']:.0f} s last time" if findings else ""
        print(f"{slug}: to run at tier {parameters['tier']}{about}", flush=True)
    running: list[_Running] = []
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                running.append(_start(waiting.pop(0), limit))
            time.sleep(0.05)
            for chapter in [chapter for chapter in running if chapter.finished()]:
                running.remove(chapter)
                error = chapter.error()
                findings = None if error else read_findings(house, chapter.slug)
                outcomes[chapter.slug] = Outcome(chapter.slug, findings, error)
                print(
                    f"{chapter.slug}: {'FAILED' if error else 'done'} in {time.monotonic() - chapter.started:.1f} s",
                    flush=True,
                )
    finally:
        for chapter in running:
            chapter.kill()
    return [outcomes[slug] for slug in slugs]
