"""The dated changes of claims after rows existed: changes.yml beside a chapter's records, to which entries
are only ever added."""

import datetime
import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import Field, StringConstraints

from derived.book import written
from derived.book.house import UserError, write_whole

Words = Annotated[str, StringConstraints(min_length=1)]
Kind = Literal["words", "criterion", "range", "measure", "unit", "size", "merged", "left", "late", "expected"]
IN_WORDS: dict[Kind, str] = {
    "words": "the sentence, and nothing that is judged",
    "criterion": "what must hold",
    "range": "the limits",
    "measure": "how the number is made",
    "unit": "what counts as one, or what the value is given in",
    "size": "sizes, cases and settings of the experiment",
    "merged": "several rows became one",
    "left": "the row left the ledger",  # textbook, a second code of one formula, could not fail, …
    "late": "written after rows or a pilot had been seen",
    "expected": "the expected verdict, and none of the terms",
}


class Change(written.Shape):
    """One entry of the file; ``what`` and ``why`` are whole sentences."""

    date: datetime.date
    claims: Annotated[list[Words], Field(min_length=1)]
    kind: Kind
    what: Words
    why: Words


def file(paper: str) -> str:
    """The path of a paper's file."""
    return f"results/{paper}/changes.yml"


def read(root: Path) -> dict[str, list[dict[str, str]]]:
    """The changes of each claim, oldest first; UserError for a file that has another shape."""
    found: dict[str, list[dict[str, str]]] = {}
    for change in sorted(_all(root), key=lambda one: one.date):
        for claim in change.claims:
            found.setdefault(claim, []).append(change.model_dump(mode="json", exclude={"claims"}))
    return found


def _all(root: Path) -> list[Change]:
    found = []
    for path in sorted(root.glob(file("*"))):
        try:
            found += written.read(path, list[Change])
        except UserError as error:
            raise UserError(f"{path.parent.name}/{error}") from None
    return found


def today(root: Path) -> datetime.date:
    """The day, as the clock has it; UserError for a clock set back, whose entries would be told before older ones."""
    day = datetime.datetime.now(datetime.UTC).date()
    last = max(_all(root), key=lambda one: one.date, default=None)
    if last and day < last.date:
        raise UserError(f"the clock says {day}, and a change of {last.claims[0]} is of {last.date}: set the clock")
    return day


def add(root: Path, paper: str, claims: Sequence[str], kind: Kind, what: str, why: str) -> None:
    """Add an entry of today to a paper's file."""
    entry = {"date": today(root), "claims": [*claims], "kind": kind, "what": what, "why": why}
    text = yaml.safe_dump([entry], sort_keys=False, allow_unicode=True, width=116)
    path = root / file(paper)
    write_whole(path, (path.read_text("utf-8") if path.is_file() else "") + text)


def of_terms(changed: Iterable[dict[str, str]]) -> list[str]:
    """A short hash of each change of a claim's terms, for the committed ledger. The kind is no part of it."""
    told = [[one["date"], one["what"], one["why"]] for one in changed if one["kind"] != "expected"]
    return [hashlib.sha256(json.dumps(each).encode()).hexdigest()[:8] for each in told]
