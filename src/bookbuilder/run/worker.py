"""Executes one chapter with papermill, in a separate process: ``python -m bookbuilder.run.worker JOB``.

JOB is the JSON of a job (see ``driver.py``). The executed notebook and the findings are written whole, the findings
last; a chapter that does not run leaves one line in the file ``error`` beside its half executed notebook, and exit
code 1.
"""

import contextlib
import ctypes
import datetime
import hashlib
import json
import platform
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
import papermill
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError
from traitlets.config import Config

from bookbuilder.notebook import notebook_claims
from bookbuilder.paths import cell_name, end_children, exit_with_parent, write_whole
from bookbuilder.run.driver import running_cell
from bookbuilder.run.guard import output_faults, private, proof_faults
from derived.lab.findings import FINDINGS

PARAMETERS = ["tier", "seed", "device"]
HEADING = re.compile(r"^#{1,3} (.+)$", re.M)


class OwnKernel(AsyncKernelManager):
    """Starts a kernel of the Python that runs the builder, whatever kernels Jupyter finds on this machine."""

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


def main() -> None:
    """Run the job given as JSON and report its outcome in the last line."""
    job = json.loads(sys.argv[1])
    exit_with_parent(job["driver"])
    _adopt()
    try:
        run(job)
    except ChapterError as error:
        write_whole(Path(job["partial"]).with_name("error"), str(error))
        sys.exit(1)
    finally:
        end_children()


if __name__ == "__main__":
    main()
