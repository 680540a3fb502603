"""Carries out an order on the other machine: ``python -m derived.book.away.there`` with its ``src``.

Each record is printed as text as soon as it is whole, so that a log is all that must come back. Finished conditions lie
under ``_build`` beside all parcels, finished records in this one: the same command continues.
"""

import base64
import io
import json
import signal
import sys
import tarfile
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path

from derived.book.house import House, UserError
from derived.book.judge import recording
from derived.lab.experiment import run_experiment
from derived.lab.record import read, slot
from derived.lab.sources import PACKAGE_ROOT

BEGIN, END = "-----BEGIN RECORD-----", "-----END RECORD-----"
CODE = PACKAGE_ROOT.parents[1]


def told(place: Path) -> str:
    """Write the two files of a record as text, between marks."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as archive:
        archive.add(place, "/".join(place.parts[-3:]))
    return "\n".join([BEGIN, *textwrap.wrap(base64.b64encode(buffer.getvalue()).decode(), 76), END])


def recorded(house: House, order: dict, name: str) -> None:
    """Make one record, unless an earlier try has made it, and print it."""
    paper, tier = order["paper"], order["tier"]
    place = slot(paper, name, tier)
    before = read(place, "") if place.exists() else None
    try:
        if before is None or "failure" in before.rows:
            recording.record(house, paper, [name], tier, order["seed"], order["device"], order["jobs"])
    finally:
        if place.exists():
            print(told(place), flush=True)


def tried(house: House, order: dict, name: str) -> None:
    """Run an experiment at the size of a test."""
    experiment = recording.claims_of(order["paper"]).EXPERIMENTS
    [chosen] = [one for one in experiment if one.__name__ == name]
    rows = run_experiment(chosen.at("tiny"), seed=order["seed"], device=recording.workers.machine(order["device"])[0])
    if "failure" in rows:
        raise UserError(f"{name} at size tiny: {rows['failure'].dropna().iloc[0]}")
    print(f"{order['paper']}/{name}: {len(rows)} rows at size tiny, no record", flush=True)


def main(arguments: Sequence[str]) -> int:
    """Do everything that the order names, whatever fails; ``try`` runs it at the size of a test."""
    order = json.loads((CODE / "order.json").read_text("utf-8"))
    house = House(CODE.parents[1])
    do: Callable[[House, dict, str], None] = tried if list(arguments) == ["try"] else recorded
    wrong = 0
    for name in order["experiments"]:
        try:
            do(house, order, name)
        except (UserError, ValueError) as error:
            print(f"derived: {error}", flush=True)
            wrong = 1
    return wrong


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main(sys.argv[1:]))
