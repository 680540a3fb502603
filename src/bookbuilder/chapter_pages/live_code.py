"""*Try it*: the last lines of the chapter's reference program, which the reader can change and run in the page.

`src/derived/papers/<slug>/reference.py` ends in a program under `if __name__ == "__main__":`, which begins with a
comment: a sentence and a list of things to try. The page shows it, with what it printed and plotted when the book was
built, at the end of the section `The question`, and the lines before it beside it. `_static/try.js` runs both in the
browser and draws what the program plots.
"""

import json
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from bookbuilder.chapter_pages import pages
from bookbuilder.paths import UserError

SECTION, HEADING = "## The question", "### Try it"
ASK = "Change a line of the program below and press *Run*. For example:"
MAIN = '\nif __name__ == "__main__":\n'
LIMIT = 60  # seconds
# Runs the file as the page does: what it prints, then in one line its curves and its result.
RUN = """\
import json, sys
shown = []
def plot(x, curves, label=""):
    shown.append({"x": list(x), "curves": {name: list(y) for name, y in curves.items()}, "label": label})
names = {"__name__": "__main__", "plot": plot}
with open(sys.argv[1], encoding="utf-8") as file:
    exec(compile(file.read(), sys.argv[1], "exec"), names)
print("\\n" + json.dumps({"curves": shown, "result": names.get("result")}))
"""


@dataclass(frozen=True)
class Reference:
    """A reference program in its parts."""

    mechanism: str
    lead: str  # what its last lines show
    things: str  # to try, a list
    program: str


def reference(root: Path, slug: str) -> Path:
    """Return the path of a chapter's reference program."""
    return root / f"src/derived/papers/{slug}/reference.py"


def add(root: Path, slug: str, notebook: NotebookNode) -> None:
    """Add the program, where the chapter has one, to the end of the section that shows the mechanism."""
    path = reference(root, slug)
    if not path.is_file():
        return
    sections = [(place, line) for place, cell in enumerate(notebook.cells) for line in _headings(cell)]
    lines = [line for _, line in sections]
    if SECTION not in lines:
        raise UserError(f"{slug}: reference.py needs the section {SECTION!r} in the notebook")
    places = [place for place, _ in sections[lines.index(SECTION) + 1 :]] or [len(notebook.cells)]
    notebook.cells.insert(_split(notebook, places[0]), new_markdown_cell(_shown(slug, path)))


def _split(notebook: NotebookNode, place: int) -> int:
    """Cut a cell that ends a section and begins the next one in two; return the place of the second."""
    cell = notebook.cells[place] if place < len(notebook.cells) else None
    begins = cell and re.search(r"^(?:\([\w-]+\)=\n)?## ", cell.source, re.M)
    if not begins or not cell.source[: begins.start()].strip():
        return place
    notebook.cells.insert(place, new_markdown_cell(cell.source[: begins.start()].rstrip()))
    cell.source = cell.source[begins.start() :]
    return place + 1


def _headings(cell: NotebookNode) -> list[str]:
    return re.findall(r"^## .*$", cell.source, re.M) if cell.cell_type == "markdown" else []


def _shown(slug: str, path: Path) -> str:
    parts = read(path)
    text, recorded = run(path)
    values = {"mechanism": parts.mechanism, "program": parts.program, "text": text, "recorded": recorded}
    box = pages.raw(pages.html("try.html", **values))
    return f"{HEADING}\n\n{parts.lead}\n\n{ASK}\n\n{parts.things}\n\n{box}"


def read(path: Path) -> Reference:
    """Read a reference program: its mechanism, the comment that begins its last lines, and these."""
    mechanism, main, tail = path.read_text("utf-8").partition(MAIN)
    comment, _, program = textwrap.dedent(tail).partition("\n\n")
    lines = [line.removeprefix("# ") for line in comment.splitlines() if line.startswith("# ")]
    first = next((place for place, line in enumerate(lines) if line.startswith("- ")), 0)
    if not main or not first or len(lines) != len(comment.splitlines()):
        raise UserError(
            f"{path.parent.name}: reference.py ends in {MAIN.strip()!r}; below it a comment, a sentence and a list "
            "of things to try, an empty line, and the program"
        )
    return Reference(mechanism.strip(), "\n".join(lines[:first]), "\n".join(lines[first:]), program.strip())


def run(path: Path) -> tuple[str, dict[str, Any]]:
    """Run a program; return what it printed, and its curves and result."""
    command = [sys.executable, "-I", "-c", RUN, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT)
    if done.returncode:
        raise UserError(f"{path.parent.name}: reference.py: {done.stderr.strip().splitlines()[-1]}")
    text, _, recorded = done.stdout.rstrip("\n").rpartition("\n")
    return text.rstrip("\n"), json.loads(recorded)
