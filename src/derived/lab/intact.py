"""Check that the files of a record are unchanged. Nothing heavy is imported here.

seal    the checksum of record.json over everything in it but itself
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

TABLES = {"rows.parquet": "rows", "ci.parquet": "ci_rows"}  # the files of a record, each with its field


def seal(head: Mapping[str, Any]) -> str:
    """The checksum of a head, as its checksums have it under record.json."""
    sums = {key: value for key, value in head["checksums"].items() if key != "record.json"}
    return hashlib.sha256(json.dumps({**head, "checksums": sums}, sort_keys=True).encode()).hexdigest()


def contents(place: Path) -> tuple[dict[str, Any], dict[str, bytes]] | None:
    """The head of a record without its checksums, and its tables as bytes; None if a file is damaged or was edited."""
    try:
        head = json.loads((place / "record.json").read_text("utf-8"))
        tables = {name: (place / name).read_bytes() for name in TABLES}
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in tables.items()}
        if head["checksums"] != sums | {"record.json": seal(head)}:
            return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return {key: value for key, value in head.items() if key != "checksums"}, tables


def damaged(place: Path, command: str) -> str:
    """Say that a record is damaged; ``command`` remakes it."""
    name = "/".join(place.parts[-3:])
    return f"the record {name} is truncated or was edited (its checksums do not fit); make it again: {command}"
