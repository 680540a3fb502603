"""Makes a homework that carries what it needs of the package in itself, for Colab, Kaggle or any Jupyter with numpy
and torch: nothing is installed, nothing is fetched.

held      the files of the package that the notebook imports, with the exercises sealed, and three small libraries
apart     what is too large to be carried: arguments are not checked, and scipy is asked for when it is called
"""

import base64
import importlib.metadata
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from derived.book.teach import sealing
from derived.lab.sources import PACKAGE_ROOT, imported_files

CARRIED = ("jaxtyping", "wadler_lindig", "lazy_loader")
UNCHECKED = '"""Arguments are not checked here."""\n\n\ndef checked(thing):\n    return thing\n'
CELL = """# Nothing is to be installed: the package, as far as this notebook needs it, is in this cell.
import base64, io, sys, tempfile, zipfile

held = {held!r}
folder = tempfile.mkdtemp()
zipfile.ZipFile(io.BytesIO(base64.b85decode(held))).extractall(folder)
sys.path.insert(0, folder)

from derived.lab.absent import stand_in

stand_in("scipy")"""


def carrying(slug: str, homework: NotebookNode) -> NotebookNode:
    """Put into the first code cell of a chapter's homework what the others import."""
    copy = nbformat.from_dict(homework)
    code = [cell for cell in copy.cells if cell.cell_type == "code"]
    held = base64.b85encode(_zipped(slug, "\n".join(cell.source for cell in code[1:]))).decode()
    code[0].source = CELL.format(held=held)
    code[0].metadata["jupyter"] = {"source_hidden": True}
    return copy


def _zipped(slug: str, code: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as closed:
        for name, raw in [*_own(slug, code), *_others()]:
            closed.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), raw, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _own(slug: str, code: str) -> Iterator[tuple[str, str]]:
    """The files of the package that the code imports."""
    asked = f"{code}\nimport derived.lab.absent, derived.papers.{slug}.exercises\n"
    needed = [path for path in imported_files(asked) if path != PACKAGE_ROOT / "lab/arguments.py"]
    for path in needed:
        name, text = f"derived/{path.relative_to(PACKAGE_ROOT).as_posix()}", path.read_text("utf-8")
        yield name, sealing.sealed(slug, text) if path.parts[-2:] == (slug, sealing.EXERCISES) else text
    yield "derived/lab/arguments.py", UNCHECKED


def _others() -> Iterator[tuple[str, bytes]]:
    """The small libraries with their licences."""
    for library in CARRIED:
        held = importlib.metadata.distribution(library)
        for file in held.files or ():
            if file.suffix == ".py" or file.name in ("METADATA", "py.typed") or "licen" in file.name.lower():
                yield Path(str(file)).as_posix(), file.read_binary()
