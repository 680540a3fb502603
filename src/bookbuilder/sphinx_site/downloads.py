"""Makes the downloads: clean notebooks, student versions, homework, and the package as a wheel.

A downloaded notebook plus the one command that its first cell names runs, with or without the repository, and reads in
any Jupyter.
"""

import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from bookbuilder.chapter_pages.plain import PARSER, Known, plain
from bookbuilder.teach.homework import homework, is_solution

PUBLIC = {"whole": "{}.ipynb", "student": "{}-student.ipynb", "homework": "{}-homework.ipynb"}
INSTALL = "pip install -e ."  # what the first code cell of every source notebook says


class BuildError(Exception):
    """A file that the site needs could not be made; one line."""


def build_wheel(root: Path, into: Path) -> Path:
    """Build the package as a wheel in the folder ``into``."""
    into.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace")
    wheels = list(into.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        last = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise BuildError(f"the package's wheel could not be built: {last[-1].strip()}")
    return wheels[0]


CPU = "--extra-index-url https://download.pytorch.org/whl/cpu"  # a version "+cpu" goes before the same without it


def install_command(repository: str, wheel: str) -> str:
    """Write the command that installs the package for a downloaded notebook, and a CPU-only alternative."""
    command = f"pip install git+{repository}" if repository else f"pip install ./{wheel}"
    return f"{command}   On Linux without a GPU, to save several GB of CUDA libraries:  {command} {CPU}"


def clean(notebook: NotebookNode, command: str) -> NotebookNode:
    """Remove the outputs of a notebook and the command for a checkout."""
    copy = nbformat.from_dict(notebook)
    code = [cell for cell in copy.cells if cell.cell_type == "code"]
    for cell in code:
        cell.outputs, cell.execution_count = [], None
    for cell in code[:1]:
        cell.source = cell.source.replace(INSTALL, command)
    return copy


def student(notebook: NotebookNode) -> NotebookNode:
    """Remove the cells tagged ``solution``, keeping text that follows a solution's box in its cell."""
    copy = nbformat.from_dict(notebook)
    copy.cells = [cell for cell in map(_for_students, copy.cells) if cell is not None]
    return copy


def _for_students(cell: NotebookNode) -> NotebookNode | None:
    if not is_solution(cell):
        return cell
    tokens = PARSER.parse(cell.source) if cell.cell_type == "markdown" else []
    ends = [token.map[1] for token in tokens if token.info.startswith("{solution}")]
    rest = "\n".join(cell.source.split("\n")[ends[-1] :]).strip() if ends else ""
    if not rest:
        return None
    cell.source = rest
    cell.metadata["tags"] = [tag for tag in cell.metadata["tags"] if tag != "solution"]
    return cell


def versions(source: NotebookNode, executed: NotebookNode, command: str, known: Known) -> dict[str, NotebookNode]:
    """Make a chapter's downloads by kind: ``whole``, ``student``, and ``homework`` and ``solved`` if it has any."""
    whole = clean(source, command)
    found = {"whole": whole, "student": student(whole)}
    found["homework"] = homework(known.slug, whole, executed, solved=False)
    found["solved"] = homework(known.slug, whole, executed, solved=True)
    return {kind: plain(notebook, known) for kind, notebook in found.items() if notebook is not None}
