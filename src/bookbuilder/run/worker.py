"""Executes chapters with papermill, one after another: ``python -m bookbuilder.run.worker MODULES`` reads jobs.

A line of the standard input is the JSON of a job (see ``driver.py``). Each chapter runs in a fork of this process, and
on Linux its kernel in a fork of that, so what MODULES name is imported once; the exit code of a chapter is a line of
the standard output. The executed notebook and the findings are written whole, the findings last; a chapter that does
not run leaves one line in the file ``error`` beside its half executed notebook, and exit code 1.
"""

import asyncio
import contextlib
import ctypes
import datetime
import hashlib
import importlib
import json
import multiprocessing
import os
import platform
import re
import resource
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import nbformat
import papermill
from ipykernel.kernelapp import IPKernelApp
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from bookbuilder.notebook import notebook_claims
from bookbuilder.paths import cell_name, end_children, write_whole
from bookbuilder.run.driver import running_cell
from bookbuilder.run.guard import output_faults, private, proof_faults
from derived.lab.findings import FINDINGS

PARAMETERS = ["tier", "seed", "device"]
HEADING = re.compile(r"^#{1,3} (.+)$", re.M)


class Fork(multiprocessing.get_context("fork").Process):
    """A forked kernel, with the methods of ``subprocess.Popen`` that Jupyter calls."""

    stdin = stdout = stderr = None
    arguments: list[str]

    def run(self) -> None:
        os.setsid()
        asyncio.set_event_loop(asyncio.new_event_loop())  # in place of the one that waits for this kernel
        IPKernelApp.launch_instance([*self.arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])

    def poll(self) -> int | None:
        return self.exitcode

    def wait(self) -> int | None:
        self.join()
        return self.exitcode

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


class Forking(LocalProvisioner):
    """Forks this process, which has imported torch and the tables, where Jupyter would start a Python."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        self.process = Fork()
        self.process.arguments = cmd[3:]  # after the Python, -m and its module
        self.process.start()
        self.pid = self.process.pid
        return self.connection_info


class OwnKernel(AsyncKernelManager):
    """Starts a kernel of the Python that runs the builder, whatever kernels Jupyter finds on this machine."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if sys.platform == "linux":  # elsewhere system libraries do not survive a fork
            self.provisioner = Forking(kernel_spec=self.kernel_spec, parent=self)

    @property
    def kernel_spec(self) -> KernelSpec:
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="Python 3", language="python")


class ChapterError(Exception):
    """One line that names the failing cell and the cause."""


def _cell_name(notebook: nbformat.NotebookNode, source: str) -> str:
    cells = [cell for cell in notebook.cells if "injected-parameters" not in cell.metadata.get("tags", [])]
    return cell_name(next((i for i, cell in enumerate(cells, 1) if cell.source == source), 0), source)


def _check_parameters(notebook: nbformat.NotebookNode) -> None:
    cells = [cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", [])]
    names = [line.split("=")[0].strip() for cell in cells for line in cell.source.splitlines() if "=" in line]
    if names != PARAMETERS:
        raise ChapterError(f"the parameters cell holds {names}; it must hold exactly {', '.join(PARAMETERS)}")


def _execute(source: Path, partial: Path, parameters: dict[str, Any]) -> nbformat.NotebookNode:
    try:
        papermill.execute_notebook(
            str(source),
            str(partial),
            parameters=parameters,
            kernel_name="python3",
            kernel_manager_class=OwnKernel,
            progress_bar=False,
            record_timing=False,
            cwd=str(partial.parent),
            config=Config({"KernelManager": {"transport": "ipc"}}),
        )
    except PapermillExecutionError as error:
        where = _cell_name(nbformat.read(source, as_version=4), error.source)
        raise ChapterError(
            f"{where} raised {error.ename}: {error.evalue.splitlines()[0] if error.evalue else ''}"
        ) from None
    except DeadKernelError:
        where = running_cell(partial)
        raise ChapterError(f"{where}: the kernel died (out of memory, or a crash in compiled code)") from None
    return nbformat.read(partial, as_version=4)


def tidy(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove papermill's traces, so that two runs are equal byte for byte."""
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        for name in ("papermill", "execution"):
            cell.metadata.pop(name, None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.id = "injected-parameters"
            cell.metadata.tags = ["injected-parameters", "remove-cell"]
        elif not cell.metadata.get("tags", ["-"]):
            del cell.metadata["tags"]
        for output in cell.get("outputs", []):
            if output.output_type == "error":
                raise ChapterError(f"{_cell_name(notebook, cell.source)} raised {output.ename}: {output.evalue}")
    return notebook


def take_findings(notebook: nbformat.NotebookNode) -> dict[str, Any]:
    """Take the data of the chapter's one ``report(...)`` out of its output."""
    found = [
        output.data.pop(FINDINGS)
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if FINDINGS in output.get("data", {})
    ]
    if len(found) != 1:
        raise ChapterError(f"the chapter called report(...) {len(found)} times; it must call it once, at its end")
    return found[0]


def _versions() -> dict[str, str]:
    """The versions of this process; the kernel's own, in its findings, replace them."""
    from importlib.metadata import version

    names = ("torch", "numpy", "scipy", "pandas", "matplotlib", "papermill", "jupyter-book")
    return {"python": platform.python_version()} | {name: version(name) for name in names}


def _written(root: Path, slug: str) -> set[tuple[str, str]]:
    """The files that no cell may write, each with its hash: the sources, the ledger, and the chapter's records."""
    found = [*root.glob("src/**/*.py"), *root.glob("results/*.*"), *root.glob(f"results/{slug}/**/*.*")]
    files = [path for path in found if path.is_file() and path.name[0] != "."]
    return {(str(path.relative_to(root)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files}


def _adopt() -> None:
    """On Linux a process that a kernel leaves behind becomes a child of this one, which ends it."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def run(job: dict[str, Any]) -> None:
    """Execute the chapter of a job and put its two files in place."""
    executed, findings_file = Path(job["executed"]), Path(job["findings"])
    partial = Path(job["partial"])
    source = Path(job["notebook"])
    before = _written(source.parents[1], job["slug"])
    partial.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    try:
        page = nbformat.read(source, as_version=4)
        _check_parameters(page)
        notebook = tidy(_execute(source, partial, job["parameters"]))
        findings = {"rows": [], "records": []} if job["essay"] else take_findings(notebook)
        lost = notebook_claims.unmatched(page, findings.pop("on_page", ()))
        notebook_claims.fill(page, findings["rows"])
        machine = private(partial.parent, source.parents[1])
        faults = lost + output_faults(notebook, machine) + proof_faults(notebook, findings["rows"])
        changed = {path for path, _ in before ^ _written(source.parents[1], job["slug"])}
        faults += [f"{path} changed while it ran; no cell may write there" for path in sorted(changed)]
        if faults:
            raise ChapterError("; ".join(faults))
    finally:
        with contextlib.suppress(FileNotFoundError):
            partial.unlink()
    text = nbformat.writes(notebook) + "\n"
    findings |= {
        "chapter": job["slug"],
        "key": job["key"],
        **job["parameters"],
        "device_name": job["device_name"],
        "seconds": round(time.monotonic() - started, 2),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
        / (1024 if sys.platform == "linux" else 2**20),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "versions": _versions() | findings.get("versions", {}),
        "executed_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }
    write_whole(executed, text)
    write_whole(findings_file, json.dumps(findings, indent=1) + "\n")


def work(job: dict[str, Any]) -> None:
    """Run a job with its output in a file, and end this process."""
    folder, code = Path(job["partial"]).parent, 1
    with open(os.devnull) as nothing, open(folder / "log", "w") as log:
        for number, file in enumerate((nothing, log, log)):
            os.dup2(file.fileno(), number)
    os.environ["IPYTHONDIR"] = str(folder / ".ipython")
    _adopt()
    try:
        run(job)
        code = 0
    except ChapterError as error:
        write_whole(folder / "error", str(error))
    except BaseException:
        traceback.print_exc()
    finally:
        end_children()
        os._exit(code)


def main() -> None:
    """Run each job of the standard input; end, with all children, when the driver ends."""
    driver = os.getppid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver answers it
    answers = open(os.dup(1), "w")  # noqa: SIM115
    os.dup2(2, 1)  # what an import prints is no exit code
    for name in sys.argv[1:]:
        importlib.import_module(name)
    while job := sys.stdin.readline():
        if not (child := os.fork()):
            answers.close()
            work(json.loads(job))
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if os.getppid() != driver:
                return end_children()
            time.sleep(0.02)
        print(os.waitstatus_to_exitcode(ended[1]), file=answers, flush=True)


if __name__ == "__main__":
    main()
