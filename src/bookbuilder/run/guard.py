"""Find faults in a chapter's source before it runs, and in its outputs before they are kept.

fault    one line: the cell, what is wrong there, and what to do
"""

import json
import re
import socket
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bookbuilder.paths import cell_name

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,}|:{3,})(?P<words>.*)$")
_SOLUTION = re.compile(r"^\s*[`:~]{3,}\{solution(?:-start)?\}", re.M)
_LABEL = re.compile(r"^\s*:label:\s*(\S+)", re.M)
_MOST = 2_000_000  # letters of one output: a whole page weighs less than 2 MB


def source_faults(notebook: Mapping[str, Any]) -> list[str]:
    """List the faults of a chapter's source."""
    faults = []
    for number, cell in enumerate(notebook["cells"], 1):
        if cell["cell_type"] != "markdown":
            continue
        text, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
        found = [*_unclosed(text)]
        if _SOLUTION.search(text) and "solution" not in tags:
            found.append("a {solution} outside of a cell with the tag `solution` stays in the students' notebook")
        faults += [f"{cell_name(number, text)}: {one}" for one in found]
    return faults


def _unclosed(text: str) -> Iterator[str]:
    """Find fences and displays of a Markdown cell that are not closed."""
    fences: list[tuple[int, str, bool]] = []  # line, mark, and whether it holds code and not Markdown
    display = 0
    for number, line in enumerate(text.splitlines(), 1):
        match = _FENCE.match(line)
        mark, words = (match["mark"], match["words"].strip()) if match else ("", "")
        top = fences[-1] if fences else (0, "", False)
        if mark and not words and mark[0] == top[1][:1] and len(mark) >= len(top[1]):
            fences.pop()
        elif top[2]:
            continue
        elif mark and (mark[0] != ":" or words.startswith("{")) and mark[0] not in words:
            code = not words.startswith("{") or words.startswith(("{code", "{raw", "{math", "{mermaid"))
            fences.append((number, mark, code))
        elif re.sub(r"`[^`]*`", "", line).count("$$") % 2:
            display = 0 if display else number
    for number, mark, _ in fences:
        yield f"line {number}: {mark} is opened and not closed"
    if display:
        yield f"line {display}: $$ is opened and not closed"


def labels(notebook: Mapping[str, Any]) -> set[str]:
    """Find the labels of the directives on a page."""
    return {label for cell in notebook["cells"] for label in _LABEL.findall("".join(cell["source"]))}


def proof_faults(notebook: Mapping[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Find claims whose ``proof`` is no label of the page."""
    there = labels(notebook)
    wrong = {row["id"]: row["proof"] for row in rows if row["proof"] and row["proof"] not in there}
    return [f"claim {name} rests on {label!r}, a label that the page has not" for name, label in wrong.items()]


def private(*folders: Path) -> dict[str, str]:
    """List texts that belong to this machine, such as its folders and user, each with a name."""
    known = {f"{folder}/": "the working directory" for folder in folders}
    known |= {f"{Path.home()}/": "the home directory", f"{tempfile.gettempdir()}/": "a temporary path"}
    host = socket.gethostname()
    if len(host) > 5 and re.search(r"[0-9-]", host):  # a shorter or plainer one may be a word of the page
        known[host] = "the name of this machine"
    return {text: name for text, name in known.items() if text != "//"}


def output_faults(notebook: Mapping[str, Any], machine: Mapping[str, str]) -> list[str]:
    """Find warnings, and texts of the machine, in the outputs of an executed chapter."""
    cells = [cell for cell in notebook["cells"] if "injected-parameters" not in cell["metadata"].get("tags", [])]
    faults = []
    for number, cell in enumerate(cells, 1):
        for output in cell.get("outputs", []):
            texts = _texts(output)
            warned = re.search(r"\b\w*Warning: .*", texts[0]) if output.get("name") == "stderr" else None
            found = [f"it warns: {warned[0]}; mend what it warns of"] if warned else []
            if (size := len(json.dumps(output))) > _MOST:
                found.append(f"its output has {size / 1e6:.0f} MB, and no page shows over {_MOST / 1e6:.0f}; show less")
            for text, name in [] if found else machine.items():
                place = re.compile(rf"[^\n]{{0,80}}(?<![\w.-]){re.escape(text)}[^\n]{{0,80}}")
                if there := next(filter(None, map(place.search, texts)), None):
                    found.append(f"its output shows {name} ({text}); do not print it: {there[0].strip()}")
            faults += [f"{cell_name(number, cell['source'])}: {one}" for one in found]
    return faults


def _texts(output: Mapping[str, Any]) -> list[str]:
    """Yield the texts of an output: a stream, or its textual representations."""
    found = [output.get("text", "")] + [
        data for kind, data in output.get("data", {}).items() if kind.startswith("text/")
    ]
    return ["".join(text) for text in found]
