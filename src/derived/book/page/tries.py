"""*Try it*: a short program over the chapter's pencil that the reader can change and run in the page.

`pencil/try_<slug>.py` is the program; its docstring says what to try. The page shows it, with what it printed and
plotted when the book was built, at the end of the chapter's mechanism. `_static/try.js` runs it in the browser.
`pencil/exercise_<slug>.py` is an exercise of the chapter in the same place: a docstring that begins with its label, a
function without a body, and the check. The exercise in the text links to it.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from derived.book.house import UserError
from derived.book.page import pages

SECTION, HEADING = "## Mechanism", "### Try it"
ANSWER = 'In plain Python it can be answered in this page: <a href="#try-it">Try it</a>.'
ASK = "Change a line of the program below and press *Run*. For example:"
LIMIT = 60  # seconds
# Runs a program as the page does: what it prints, then in one line its curves and its result.
RUN = """\
import json, runpy, sys
sys.path.insert(0, sys.argv[1])
done = runpy.run_path(sys.argv[2], run_name="__main__")
import picture
print("\\n" + json.dumps({"curves": picture.shown, "result": done.get("result")}))
"""


def add(root: Path, slug: str, notebook: NotebookNode) -> None:
    """Add the program, where the chapter has one, to the end of the section of the mechanism."""
    program = root / f"pencil/try_{slug}.py"
    if not program.is_file():
        return
    sections = [(place, line) for place, cell in enumerate(notebook.cells) for line in _headings(cell)]
    lines = [line for _, line in sections]
    if SECTION not in lines:
        raise UserError(f"{slug}: pencil/try_{slug}.py needs the section {SECTION!r} in the notebook")
    places = [place for place, _ in sections[lines.index(SECTION) + 1 :]] or [len(notebook.cells)]
    asked = _exercise(root, slug, notebook)
    notebook.cells.insert(_split(notebook, places[0]), new_markdown_cell(_shown(root, slug, program, asked)))


def _exercise(root: Path, slug: str, notebook: NotebookNode) -> list[dict[str, Any]]:
    """The program of the exercise with its title, where there is one; its text in the notebook gets a link here."""
    program = root / f"pencil/exercise_{slug}.py"
    if not program.is_file():
        return []
    code = program.read_text("utf-8").strip()
    label = (ast.get_docstring(ast.parse(code)) or "").partition(":")[0]
    for cell in notebook.cells:
        if found := re.search(rf"^```{{exercise}} (.*)\n:label: {re.escape(label)}\n(?s:.*?)^```$", cell.source, re.M):
            end = found.end() - len("```")
            cell.source = f"{cell.source[:end]}\n{ANSWER}\n{cell.source[end:]}"
            text, recorded = run(program)
            return [{"name": f"Exercise: {found[1]}", "code": code, "text": text, "recorded": recorded}]
    raise UserError(f"pencil/{program.name}: its docstring begins with {label!r}, which is no exercise of {slug}")


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


def _shown(root: Path, slug: str, program: Path, asked: list[dict[str, Any]]) -> str:
    lead, things, code = read(program)
    text, recorded = run(program)
    files = {name: (root / f"pencil/{name}.py").read_text("utf-8") for name in (slug, "picture")}
    programs = [{"name": "The mechanism", "code": code, "text": text, "recorded": recorded}, *asked]
    values = {"slug": slug, "programs": programs, "files": files}
    return f"{HEADING}\n\n{lead}\n\n{ASK}\n\n{things}\n\n" + pages.raw(pages.html("try.html", **values))


def read(program: Path) -> tuple[str, str, str]:
    """Read a program: its first sentences, the list of things to try, and its code without that docstring."""
    text = program.read_text("utf-8")
    tree = ast.parse(text)
    lead, _, things = (ast.get_docstring(tree) or "").partition("\n\n")
    if not things.startswith("- "):
        raise UserError(
            f"pencil/{program.name}: its docstring is a sentence, an empty line, and a list of things to try"
        )
    return lead, things, "\n".join(text.splitlines()[tree.body[0].end_lineno :]).strip()


def run(program: Path) -> tuple[str, dict[str, Any]]:
    """Run a program; return what it printed, and its curves and result."""
    command = [sys.executable, "-I", "-c", RUN, str(program.parent), str(program)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=LIMIT)
    if done.returncode:
        raise UserError(f"pencil/{program.name}: {done.stderr.strip().splitlines()[-1]}")
    text, _, recorded = done.stdout.rstrip("\n").rpartition("\n")
    return text.rstrip("\n"), json.loads(recorded)
