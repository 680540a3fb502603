"""Numbers of the ledger in prose: the role {claim}`ID` of a chapter's text and of its report.

{claim}`CAC-12.a`              the value of the claim's row: of this build where it ran, else of its largest record
{claim}`CAC-12.a interval`     its interval, [low, high]
{claim}`CAC-12.a n`            the number of instances
{claim}`CAC-12.a:.1%`          any of them in a format of Python's, three significant digits without one
"""

import re
from collections.abc import Sequence
from typing import Any

from nbformat import NotebookNode

from bookbuilder.paths import UserError

ROLE = re.compile(r"\{claim\}`(?P<id>[A-Z]+-[\w.]+?)(?: (?P<part>interval|n))?(?::(?P<form>[^`]+))?`")


def fill(slug: str, notebook: NotebookNode, rows: Sequence[dict[str, Any]]) -> None:
    """Replace the role in the text and the captions of a notebook; raise UserError for a claim without the number."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = filled(slug, cell.source, rows)
        elif caption := cell.metadata.get("mystnb", {}).get("figure", {}).get("caption"):
            cell.metadata["mystnb"]["figure"]["caption"] = filled(slug, caption, rows)


def filled(slug: str, text: str, rows: Sequence[dict[str, Any]]) -> str:
    """Return a text with the role replaced; raise UserError for a claim without the number."""
    by_id = {row["id"]: row for row in rows if row["headline"]}
    return ROLE.sub(lambda role: _number(slug, by_id.get(role["id"]), **role.groupdict()), text)


def _number(slug: str, row: dict[str, Any] | None, id: str, part: str | None, form: str | None) -> str:
    if row is None:
        raise UserError(f"{slug}: its text has {{claim}}`{id}`, and no claim is called so")
    wanted = ("low", "high") if part == "interval" else (part or "value",)
    numbers = [row[name] for name in wanted]
    if None in numbers and (part != "interval" or numbers == [None, None]):
        raise UserError(f"{slug}: its text has {{claim}}`{id}`, whose row has no {part or 'value'} ({row['verdict']})")
    if part == "n":
        return f"{row['n']:{form or ','}}"
    if part == "interval":
        low, high = (None if number is None else _written(number, form) for number in numbers)
        return f"[{low or '−∞'}, {high or '∞'}]"
    return _written(numbers[0], form)


def _written(number: float, form: str | None) -> str:
    """A number with a proper minus sign, three significant digits without a format."""
    text = f"{number:{form}}" if form else f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.3g}"
    return text.replace("-", "−")
