"""Estimates how long a chapter takes to read, from its source notebook.

word     of prose, in text and in boxes
inline   a formula within a line
display  a formula on separate lines
proof    to go over a proof once more, beyond its words and formulas
code     a line of a code cell that the page shows

Silent readers of non-fiction do 238 words a minute (Brysbaert 2019, Journal of Memory and Language 109); here it is
200, since a definition is read twice. The other paces are our estimates, for somebody who follows each step without a
pencil. Solutions and hints are not counted: exercises state their own minutes.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

SECONDS = {"word": 0.3, "inline": 2.0, "display": 15.0, "proof": 60.0, "code": 3.0}
SHORT = "In short"  # the heading of a chapter's summary
UNREAD = {"solution", "remove-cell"}
HIDDEN = {"remove-input", "hide-input", "hide-cell", "parameters", "injected-parameters"}

_HINT = re.compile(r"^```\{admonition\}[^\n]*\n:class: hint.*?^```$", re.S | re.M)
_FENCE = re.compile(r"^\s*[`:]{3,}.*$|^\s*:[a-z-]+:.*$", re.M)  # the lines of a directive that are not read
_TITLE = re.compile(r"^\s*[`:]{3,}\{[a-z:-]+\}[ \t]*(.+)$", re.M)  # but for its title
_DISPLAY = re.compile(
    r"\$\$.+?\$\$(?:[ \t]*\([\w:-]+\))?|^[`:]{3,}\{math\}.*?^[`:]{3,}$"
    r"|\\begin\{(align|gather|equation)\*?\}.+?\\end\{\1\*?\}",
    re.S | re.M,
)
_INLINE = re.compile(r"(?<![\\$])\$[^$\n]+(?:\n[^$\n]+)*\$")
_ROLE = re.compile(r"\{[a-z:]+\}`([^`]*)`")
_PROOF = re.compile(r"^[`:]{3,}\{prf:proof\}", re.M)


class Minutes(NamedTuple):
    """Minutes for the path up to the end of "In short" (None without it), and for the whole chapter."""

    short: int | None
    whole: int


def minutes(notebook: dict[str, Any]) -> Minutes:
    """Estimate the minutes that a notebook takes to read."""
    kept = [cell for cell in notebook["cells"] if not UNREAD & {*cell["metadata"].get("tags", [])}]
    read = [{**cell, "source": piece} for cell in kept for piece in cut(cell)]
    end = _end_of_short(read)
    return Minutes(None if end is None else rounded(seconds(read[:end])), rounded(seconds(read)))


def seconds(cells: Sequence[dict[str, Any]]) -> float:
    """Sum the seconds that some cells take."""
    total = 0.0
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            total += sum(SECONDS[part] * count for part, count in counted(source).items())
        elif cell["cell_type"] == "code" and not HIDDEN & {*cell["metadata"].get("tags", [])}:
            total += SECONDS["code"] * sum(bool(line.strip()) for line in source.splitlines())
    return total


def counted(text: str) -> dict[str, int]:
    """Count the words, formulas and proofs of a piece of Markdown."""
    text = _HINT.sub(" ", text)
    proofs = len(_PROOF.findall(text))
    text, displays = _DISPLAY.subn(" ", re.sub(r"<!--.*?-->", " ", text, flags=re.S))
    text, inlines = _INLINE.subn(" ", text)
    titles = " ".join(_TITLE.findall(text))
    words = re.findall(r"\w[\w'’-]*", _ROLE.sub(r"\1", f"{_FENCE.sub(' ', text)} {titles}"))
    return {"word": len(words), "inline": inlines, "display": displays, "proof": proofs}


def rounded(seconds: float) -> int:
    """Round to whole minutes, and from 20 on to steps of five."""
    exact = seconds / 60
    return max(1, round(exact)) if exact < 20 else 5 * round(exact / 5)


def heading(notebook: dict[str, Any]) -> str:
    """Return the title of a chapter."""
    texts = ("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown")
    lines = (line for text in texts for line in text.splitlines())
    return next((line.removeprefix("# ").strip() for line in lines if line.startswith("# ")), "")


def sections(cell: dict[str, Any]) -> list[str]:
    """List the headings of the second level in a cell."""
    source = "".join(cell["source"])
    return re.findall(r"^## +(.+?) *$", source, re.M) if cell["cell_type"] == "markdown" else []


def cut(cell: dict[str, Any]) -> list[str]:
    """Return the source of a cell, Markdown cut before each heading of the second level."""
    source = "".join(cell["source"])
    return re.split(r"^(?=## )", source, flags=re.M) if cell["cell_type"] == "markdown" else [source]


def _end_of_short(cells: Sequence[dict[str, Any]]) -> int | None:
    """Return the number of pieces before the section that follows the summary."""
    starts = [(place, heading) for place, cell in enumerate(cells) for heading in sections(cell)]
    ends = [place for place, _ in starts[1:]] + [len(cells)]
    return next((end for (_, heading), end in zip(starts, ends, strict=False) if heading == SHORT), None)
