"""What somebody reran: a small file for results/attested/, which a pull request can add.

machine   its class: system, processor, device, cores and memory; nothing that names a person or a computer
judged    by paper and claim, the verdict of the last run and the hash of the terms that it was judged by

Two files of one class of machine with the same versions and seed are one: the newer takes the place of the older.
"""

import hashlib
import json
import os
import platform
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import psutil
from pydantic import StringConstraints

from derived.book import written
from derived.book.house import House, UserError, processor, write_whole
from derived.book.judge import ledger
from derived.book.run.driver import read_findings

FOLDER = "results/attested"
VERDICT = "holds|fails|refuted|undecided|reported"
Judged = Annotated[str, StringConstraints(pattern=rf"^({VERDICT}) [0-9a-f]{{16}}$")]


class Attested(written.Shape):
    """The file."""

    date: Annotated[str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$")]
    machine: dict[str, str]
    versions: dict[str, str]
    tier: Literal["ci", "cpu", "gpu"]
    seed: int
    judged: dict[str, dict[str, Judged]]


def attest(house: House) -> Path:
    """Write the file of the last run; UserError where chapters ran at several tiers or seeds, or none did."""
    found = {slug: run for slug in house.chapters() if (run := read_findings(house, slug))}
    if not found:
        raise UserError("nothing ran here yet: run `make site` first")
    if len({(run["tier"], run["seed"], run["device_name"]) for run in found.values()}) > 1:
        raise UserError("the chapters last ran at several tiers, seeds or devices; run them all alike first")
    first = next(iter(found.values()))
    tier, seed = first["tier"], first["seed"]
    judged = {slug: _judged(run["rows"], tier) for slug, run in found.items()}
    told = Attested(
        date=datetime.now(UTC).date().isoformat(),
        machine=_machine(first["device_name"]),
        versions=first["versions"],
        tier=tier,
        seed=seed,
        judged={slug: rows for slug, rows in judged.items() if rows},
    ).model_dump()
    same = json.dumps([told[name] for name in ("machine", "versions", "tier", "seed")], sort_keys=True)
    file = house.root / FOLDER / f"{hashlib.sha256(same.encode()).hexdigest()[:12]}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, json.dumps(told, indent=1) + "\n")
    return file


def _judged(rows: Sequence[dict[str, Any]], tier: str) -> dict[str, str]:
    """The rows that this run itself judged: those of its tier, not those of records."""
    ran = [row for row in rows if row["tier"] == tier and row["verdict"] != "not run"]
    return {row["id"]: f"{row['verdict']} {row['terms']}" for row in ran}


def _machine(device: str) -> dict[str, str]:
    gigabytes = (
        2 ** (round(psutil.virtual_memory().total / 2**30) - 1).bit_length()
    )  # rounded up: a class, no fingerprint
    cores = str(os.cpu_count())
    kind = {"system": platform.system(), "processor": processor(), "device": device}
    return kind | {"cores": cores, "memory": f"at most {gigabytes} GiB"}


def rows(path: Path) -> list[dict[str, Any]]:
    """The verdicts of a file as rows of a ledger, with their terms; UserError for another shape."""
    told = written.read(path, Attested)
    return [
        {"paper": slug, "id": claim, "tier": told.tier, "seed": told.seed, "verdict": said[0], "terms": said[1]}
        for slug, judged in told.judged.items()
        for claim, said in ((claim, one.split()) for claim, one in judged.items())
    ]


def reruns(root: Path, ours: Sequence[dict[str, Any]]) -> dict[tuple[str, str, str], tuple[int, int]]:
    """By row of the book, on how many machines it was rerun at the book's seed by the terms of today, and how many gave
    its verdict."""
    known, reran, same = {ledger.key(row): row for row in ours}, Counter(), Counter()
    for path in sorted((root / FOLDER).glob("*.json")):
        for row in rows(path):
            mine = known.get(ledger.key(row))
            if mine and row["seed"] == 0 and row["terms"] == mine["terms"]:
                reran[ledger.key(row)] += 1
                same[ledger.key(row)] += row["verdict"] == mine["verdict"]
    return {key: (count, same[key]) for key, count in reran.items()}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file that ``derived compare`` takes: of `derived claims --json`, or of `derived attest`."""
    attested = path.is_file() and re.match(r"\s*\{", path.read_text("utf-8", "replace"))
    return rows(path) if attested else ledger.read_rows(path)


def differences(committed: Sequence[dict[str, Any]], given: Sequence[dict[str, Any]]) -> list[str]:
    """One line per row whose verdict differs, and per row that was judged by other terms."""
    terms = {ledger.key(row): row.get("terms") for row in committed}
    other = [row for row in given if row.get("terms") and terms.get(ledger.key(row), row["terms"]) != row["terms"]]
    lines = [f"{row['paper']} {row['id']} ({row['tier']}): judged by other terms than ours" for row in other]
    return ledger.differences(committed, [row for row in given if row not in other]) + lines
