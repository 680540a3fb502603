"""Writes the page of words and letters of the whole book.

term    a word with its meaning and the places where it is set out, from book/glossary.yml
symbol  a row of a chapter's table that begins with "symbol": the letters, their shape, what they mean
letter  one letter of the Latin or the Greek alphabet that heads a formula in the first column
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from nbformat import NotebookNode

from bookbuilder import contents, yaml_io

SEVERAL = 3  # chapters in which a letter stands for something before it is listed
_TABLE = re.compile(r"^\| symbol \|[^\n]*\n\|[-: |]+\|\n(?:\|[^\n]*(?:\n|\Z))+", re.M)
_BAR = re.compile(r"(?<!\\)\|")
_FORMULA = re.compile(r"\$([^$]+)\$")
_LETTER = re.compile(
    r"(?:\\(?:tilde|hat|bar|mathcal|mathbb|dot)\s*)*"
    r"(\\(?:alpha|beta|gamma|delta|(?:var)?epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
    r"|Gamma|Delta|Theta|Lambda|Pi|Sigma|Phi|Psi|Omega)(?![a-zA-Z])|[a-zA-Z](?![a-zA-Z]))"
)


class Term(yaml_io.Shape):
    """An entry of book/glossary.yml."""

    term: str
    means: str
    at: list[str]


class Symbol(NamedTuple):
    """A row of a chapter's table of symbols, as Markdown."""

    symbol: str
    meaning: str


def table(notebook: NotebookNode) -> str:
    """Return a chapter's table of symbols as written, empty if it has none."""
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return next((found[0].rstrip() for text in texts if (found := _TABLE.search(text))), "")


def symbols(rows: str) -> list[Symbol]:
    """Read the rows of a table of symbols."""
    found = [[cell.strip() for cell in _BAR.split(line)[1:-1]] for line in rows.splitlines()[2:]]
    return [Symbol(row[0], row[-1] or row[1]) for row in found]


def letters(symbol: str) -> list[str]:
    """Read the letters that a row defines: the head of each formula and of each part between commas or semicolons,
    ignoring arguments and indices in brackets."""
    parts = (part for formula in _FORMULA.findall(symbol) for part in re.split(r"[,;]", _unbracketed(formula)))
    heads = (_LETTER.match(re.sub(r"^(?:\\[ ,;!]|\s)+", "", part)) for part in parts)
    return list(dict.fromkeys(head[1] for head in heads if head))


def _unbracketed(formula: str) -> str:
    while (shorter := re.sub(r"\([^(){}]*\)|\{[^(){}]*\}", "", formula)) != formula:
        formula = shorter
    return formula


def notation(chapters: Sequence[tuple[int, str, str]]) -> str:
    """Write each chapter's table under its heading: number, heading, table. MyST."""
    parts = (f"## Letters of chapter {number}: {heading}\n\n{rows}" for number, heading, rows in chapters if rows)
    return "\n\n".join(parts)


def shared(chapters: Sequence[tuple[int, str, str]]) -> str:
    """Write the letters that several chapters define. MyST."""
    found: dict[str, dict[int, list[str]]] = {}
    for number, _, rows in chapters:
        for row in symbols(rows) if rows else []:
            for letter in letters(row.symbol):
                found.setdefault(letter, {}).setdefault(number, []).append(f"{row.symbol}: {row.meaning}")
    several = {letter: where for letter, where in found.items() if len(where) >= SEVERAL}
    if not several:
        return "No letter does in the chapters of this build."
    lines = [f"| ${letter}$ | {_meanings(several[letter])} |" for letter in sorted(several, key=_alphabetical)]
    return "\n".join(["| letter | chapter by chapter |", "|---|---|", *lines])


def _meanings(where: dict[int, list[str]]) -> str:
    return "<br>".join(f"**{number}** {'; '.join(rows)}" for number, rows in where.items())


def _alphabetical(letter: str) -> tuple[bool, str, bool]:
    name = letter.removeprefix("\\var").removeprefix("\\")
    return letter.startswith("\\"), name.lower(), name[0].isupper()


def glossary(root: Path, slugs: Iterable[str]) -> str:
    """Write the terms of chapters in this build alphabetically, each with the statements that define it; raise
    UserError for an unknown chapter. MyST."""
    path, there, lines = root / "book/glossary.yml", set(slugs), []
    for one in sorted(yaml_io.read(path, list[Term]), key=lambda one: one.term.lower()):
        where = f"{path.name}: {one.term}"
        found = [yaml_io.parted(at, where) for at in one.at]
        contents.check_chapters(root, [slug for slug, _ in found], where)
        places = [label for slug, label in found if slug in there]
        if places:
            refs = ", ".join(f"{{prf:ref}}`{label}`" for label in places)
            lines += [one.term, f"  {one.means} {refs}", ""]
    return "\n".join(["```{glossary}", *lines, "```"]) if lines else ""
