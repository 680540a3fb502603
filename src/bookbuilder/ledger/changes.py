"""The dated changes of criteria of recorded claims: results/changes.yml, which only grows."""

import datetime
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from bookbuilder import yaml_io

FILE = "results/changes.yml"
Words = Annotated[str, StringConstraints(min_length=1)]
# late: written after rows or a pilot had been seen
Kind = Literal["criterion", "range", "measure", "unit", "late"]


class Change(yaml_io.Shape):
    """One entry of the file; ``what`` and ``why`` are whole sentences."""

    date: datetime.date
    claims: Annotated[list[Words], Field(min_length=1)]
    kind: Kind
    what: Words
    why: Words


def read(root: Path) -> dict[str, list[dict[str, str]]]:
    """The changes of each claim, oldest first; UserError for a file that has another shape."""
    found: dict[str, list[dict[str, str]]] = {}
    for change in sorted(yaml_io.read(root / FILE, list[Change]), key=lambda one: one.date):
        for claim in change.claims:
            found.setdefault(claim, []).append(change.model_dump(mode="json", exclude={"claims"}))
    return found


def hashes(changed: Iterable[dict[str, str]]) -> list[str]:
    """A short hash of each change of a claim, for the committed ledger. The kind is no part of it."""
    parts = [[one["date"], one["what"], one["why"]] for one in changed]
    return [hashlib.sha256(json.dumps(each).encode()).hexdigest()[:8] for each in parts]
