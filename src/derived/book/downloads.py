"""What the site offers to take away: clean notebooks, their student versions, and the package as a wheel.

A downloaded notebook plus the one command that its first cell names runs, with or without the repository.
"""

import subprocess
import sys
from pathlib import Path

import nbformat

INSTALL = "pip install -e ."  # what the first code cell of every source notebook says


class BuildError(Exception):
    """Something that the site needs could not be made; one line."""


def build_wheel(root: Path, into: Path) -> Path:
    """The package as a wheel in the folder ``into``."""
    into.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    wheels = list(into.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        last = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise BuildError(f"the package's wheel could not be built: {last[-1].strip()}")
    return wheels[0]


CPU = (
    "   On Linux torch brings several GB of CUDA libraries; without a GPU, first:  "
    "pip install torch --index-url https://download.pytorch.org/whl/cpu"
)


def install_command(repository: str, wheel: str) -> str:
    """The command that installs the package beside a downloaded notebook, and what it costs."""
    return (f"pip install git+{repository}" if repository else f"pip install ./{wheel}") + CPU


def clean(notebook: nbformat.NotebookNode, command: str) -> nbformat.NotebookNode:
    """A notebook without outputs, the card's placeholder and the command of a checkout."""
    copy = nbformat.from_dict(notebook)
    for cell in copy.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        cell.source = "\n".join(line for line in cell.source.splitlines() if line.strip() != "<!-- at a glance -->")
    first = next((cell for cell in copy.cells if cell.cell_type == "code"), None)
    if first is not None:
        first.source = first.source.replace(INSTALL, command)
    return copy


def student(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """A notebook without the cells that are tagged ``solution``."""
    copy = nbformat.from_dict(notebook)
    copy.cells = [cell for cell in copy.cells if "solution" not in cell.metadata.get("tags", [])]
    return copy


def write_notebooks(source: Path, into: Path, command: str) -> None:
    """The clean notebook and its student version, from a source notebook."""
    notebook = clean(nbformat.read(source, as_version=4), command)
    nbformat.write(notebook, into / source.name)
    nbformat.write(student(notebook), into / f"{source.stem}-student.ipynb")
