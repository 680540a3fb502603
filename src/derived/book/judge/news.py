"""Keeps what accepting a ledger changed, in results/news.json."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from derived.book import written
from derived.book.house import write_whole

FILE = "results/news.json"

Row = dict[str, Any]


class Changed(written.Shape):
    """A verdict that changed."""

    id: str
    tier: str
    before: str
    after: str


class Record(written.Shape):
    """The changes of one chapter in one accepted ledger."""

    date: str
    paper: str
    claims: int
    gone: list[str] = Field(default_factory=list)
    verdicts: list[Changed]


def compared(before: Sequence[Row], after: Sequence[Row], date: str) -> list[dict[str, Any]]:
    """Compare two ledgers: one record per paper in which anything changed."""
    old = {(row["paper"], row["id"], row["tier"]): row["verdict"] for row in before}
    known = dict.fromkeys(key[:2] for key in old)
    found = []
    for paper in dict.fromkeys(row["paper"] for row in after):
        rows = [row for row in after if row["paper"] == paper]
        verdicts = [
            {"id": row["id"], "tier": row["tier"], "before": was, "after": row["verdict"]}
            for row in rows
            if (was := old.get((paper, row["id"], row["tier"]), row["verdict"])) != row["verdict"]
        ]
        now = {row["id"] for row in rows}
        new = {claim for claim in now if (paper, claim) not in known}
        gone = [claim for name, claim in known if name == paper and claim not in now]
        if new or gone or verdicts:
            found.append({"date": date, "paper": paper, "claims": len(new), "gone": gone, "verdicts": verdicts})
    return found


def read(root: Path) -> list[dict[str, Any]]:
    """Read the records of accepted ledgers, oldest first."""
    return [record.model_dump(exclude_unset=True) for record in written.read(root / FILE, list[Record])]


def add(root: Path, records: Sequence[dict[str, Any]]) -> None:
    """Append the records of a newly accepted ledger."""
    if records:
        write_whole(root / FILE, json.dumps([*read(root), *records], indent=1, ensure_ascii=False) + "\n")
