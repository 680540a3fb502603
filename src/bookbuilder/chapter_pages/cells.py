"""How cell output is shown on the site: checks on one line, answers hidden, each solution in its own fold.

cell     a cell of an executed notebook; the notebook that people download keeps it as it is
"""

import html
import re
from itertools import pairwise

import nbformat
from nbformat import NotebookNode

# What check, at_most, refute and confirm of lab.page say.
CHECK = re.compile(
    r"(?:(?:worst gap (?P<gap>\S+),|at most) (?P<share>\S+) of its bound, n = (?P<n>\d+)"
    r"|(?P<refuted>refuted by \S+ times its limit), n = \d+)(?P<claim> \(\S+\))?"
    r"(?:; the control has (?P<control>\S+) times the bound)?|true in \d+ of \d+: (?P<fact>.+)"
)
RIGHT = re.compile(r"(?:(?:\([a-z]\) )?right\s)+")  # what the check of an exercise says, with a letter for each part
SOLUTION = re.compile(r"^(?P<fence>`{3,}|:{3,})(?=\{solution)")


def tidy(notebook: NotebookNode) -> None:
    """Show checks as short lines, hide that the solutions of exercises are right, and put their code in their box."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [_said(output) for output in _joined(cell.outputs)]
    for above, cell in pairwise(notebook.cells):
        if {"solution", "hide-cell"} <= {*cell.metadata.get("tags", [])} and not cell.get("outputs"):
            _put_into(above, cell)


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Join the pieces of a stream, which a kernel may send separately."""
    whole: list[NotebookNode] = []
    for output in outputs:
        last = whole[-1] if whole else None
        if last and output.output_type == last.output_type == "stream" and output.name == last.name:
            last["text"] += output["text"]
        else:
            whole.append(output)
    return whole


def _said(output: NotebookNode) -> NotebookNode:
    """Rewrite a stream that holds only checks, or only "right"; return any other output unchanged."""
    text = output.get("text", "") if output.output_type == "stream" and output.name == "stdout" else ""
    found = [CHECK.fullmatch(line) for line in text.splitlines()]
    if found and all(found):
        return _html(_checked(found), text)
    if RIGHT.fullmatch(text):
        return _html('<p class="checked solved">The folded solution passes this check.</p>', text)
    return output


def _html(said: str, text: str) -> NotebookNode:
    return nbformat.v4.new_output("display_data", {"text/html": said, "text/plain": text.strip()})


def _checked(found: list[re.Match[str]]) -> str:
    if len(found) == 1:
        return f'<p class="checked">{_gap(found[0])}</p>'
    share = max((match["share"] or "0" for match in found), key=float)
    lines = "".join(f"<li>{_gap(match)}</li>" for match in found)
    exact = float(share) == 0 and all(match["gap"] or match["fact"] or match["refuted"] for match in found)
    title = "all exact" if exact else f"the tightest at {html.escape(share)} of its bound"
    return f'<details class="checked"><summary>{len(found)} checks, {title}</summary><ul>{lines}</ul></details>'


def _gap(match: re.Match[str]) -> str:
    """Write a check in words; ``n`` counts the numbers compared, so a single one needs no count."""
    if match["fact"]:
        return f"true: {html.escape(match['fact'])}"
    claim = html.escape(match["claim"] or "")
    if match["control"]:
        claim += f"; the control has {match['control']} times the bound"
    if match["refuted"]:
        return match["refuted"] + claim
    num = int(match["n"])
    if match["gap"] is None:
        return f"at most {match['share']} of its bound" + (f" in {num:,} numbers" if num > 1 else "") + claim
    if float(match["gap"]) == 0:
        return ("no gap at all" if num == 1 else f"no gap at all in {num:,} numbers") + claim
    which = "gap" if num == 1 else f"worst gap of {num:,}:"
    return f"{which} {match['gap']}, {match['share']} of its bound{claim}"


def _put_into(box: NotebookNode, cell: NotebookNode) -> None:
    """Move the code of a solution's cell to the end of the box above it, if there is one."""
    lines = box.source.rstrip().splitlines()
    first = next((place for place, line in enumerate(lines) if SOLUTION.match(line)), None)
    if box.cell_type != "markdown" or first is None or lines[-1].strip() != SOLUTION.match(lines[first])["fence"]:
        return
    fence = "`" * 6  # longer than any fence inside
    opened = SOLUTION.sub(fence, lines[first])
    box.source = "\n".join([*lines[:first], opened, *lines[first + 1 : -1], "", "```python", cell.source, "```", fence])
    cell.metadata["tags"] = [*cell.metadata["tags"], "remove-cell"]
