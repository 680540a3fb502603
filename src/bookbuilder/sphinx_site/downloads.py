"""Makes the downloads: clean notebooks, student versions, homework, their records, and the package as a wheel.

A downloaded notebook plus the one command that its first cell names runs, with or without the repository, and reads in
any Jupyter. Its records lie in the folder ``results`` beside it: in its zip, and in the branch that Colab reads.

downloads/<slug>.ipynb, <slug>-student.ipynb, <slug>-homework.ipynb
downloads/results/<slug>/..., results/ledger.json    the records of all chapters, and their rows of the ledger
downloads/<slug>.zip, <slug>-student.zip             a notebook with its own records and rows
"""

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from bookbuilder.chapter_pages.plain import Known, plain
from bookbuilder.ledger.ledger import committed
from bookbuilder.paths import Repo, UserError
from bookbuilder.teach.homework import homework, is_solution

PUBLIC = {"whole": "{}.ipynb", "student": "{}-student.ipynb", "homework": "{}-homework.ipynb"}
ZIPPED = {"whole": "{}.zip", "student": "{}-student.zip"}  # homework needs no records
BRANCH = "downloads"  # of the repository: the workflow puts this folder there, and Colab opens its notebooks
DATE = (1980, 1, 1, 0, 0, 0)  # of each file of a zip, so that equal files make equal zips
INSTALL = "pip install -e ."  # what the first code cell of every source notebook says


def build_wheel(root: Path, into: Path) -> Path:
    """Build the package as a wheel in the folder ``into``."""
    into.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, errors="replace")
    wheels = list(into.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        last = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise UserError(f"the package's wheel could not be built: {last[-1].strip()}")
    return wheels[0]


def install_command(repository: str, wheel: str, pack: str) -> str:
    """Write the command that fetches package and records, for the text of a string of Python; a second line of advice.

    Without a repository the wheel is installed, and the records are those of the zip ``pack``.
    """
    cpu = "on Linux without a GPU first:  pip install torch --index-url https://download.pytorch.org/whl/cpu"
    if not repository:
        return rf"pip install ./{wheel}\nThe records are the folder results of {pack}, kept beside the notebook; {cpu}"
    clone = f"git clone -q --depth 1 -b {BRANCH} {repository} chapters && cp -r chapters/results ."
    return rf"pip install git+{repository} && {clone}\nIn Colab put ! before it; {cpu}"


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
    """Remove the cells tagged ``solution``."""
    copy = nbformat.from_dict(notebook)
    copy.cells = [cell for cell in copy.cells if not is_solution(cell)]
    return copy


def versions(
    source: NotebookNode, executed: NotebookNode, command: Callable[[str], str], known: Known
) -> dict[str, NotebookNode]:
    """Make a chapter's downloads by kind: ``whole``, ``student``, and ``homework`` and ``solved`` if it has any.

    ``command`` writes what the first cell says from the name of the zip that has the records.
    """
    whole, fewer = (clean(source, command(ZIPPED[kind].format(known.slug))) for kind in ("whole", "student"))
    found = {"whole": whole, "student": student(fewer)}
    found["homework"] = homework(known.slug, whole, executed, solved=False)
    found["solved"] = homework(known.slug, whole, executed, solved=True)
    return {kind: plain(notebook, known) for kind, notebook in found.items() if notebook is not None}


def write(folder: Path, slug: str, found: dict[str, NotebookNode]) -> None:
    """Write a chapter's public downloads of these kinds into a folder that has the records; each zip has its own."""
    ours = [row for row in _rows(folder) if row["paper"] == slug]
    records = [path for path in sorted((folder / "results" / slug).rglob("*")) if path.is_file()]
    for kind, notebook in found.items():
        name = PUBLIC[kind].format(slug)
        nbformat.write(notebook, folder / name)
        if kind in ZIPPED:
            files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in (folder / name, *records)}
            write_zip(folder / ZIPPED[kind].format(slug), files | {"results/ledger.json": _text(ours)})


def write_records(repo: Repo, folder: Path, slugs: Sequence[str]) -> None:
    """Copy the records of these chapters and their rows of the committed ledger to ``results`` in a folder."""
    target = folder / "results"
    target.mkdir(parents=True, exist_ok=True)
    for slug in slugs:
        if (repo.root / "results" / slug).is_dir():
            half_saved = shutil.ignore_patterns(".*")
            shutil.copytree(repo.root / "results" / slug, target / slug, ignore=half_saved)
    (target / "ledger.json").write_bytes(_text(row for row in committed(repo) if row["paper"] in slugs))


def _rows(folder: Path) -> list[dict]:
    return json.loads((folder / "results/ledger.json").read_text("utf-8"))


def _text(rows: Iterable[dict]) -> bytes:
    return (json.dumps([*rows], indent=1, ensure_ascii=False) + "\n").encode()


def write_zip(path: Path, files: dict[str, bytes]) -> None:
    """Write a zip whose bytes depend on nothing but the files."""
    with zipfile.ZipFile(path, "w") as pack:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, DATE)
            entry.external_attr = 0o644 << 16
            pack.writestr(entry, content, zipfile.ZIP_DEFLATED)
