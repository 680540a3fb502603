"""Takes in what another machine sends back: its log, with the records in it as text.

A record is compared with the order before it replaces anything: paper, tier, seed, configuration, the hash of the code,
the columns of its rows, and that every condition is there.
"""

import base64
import binascii
import dataclasses
import io
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from derived.book.away.there import BEGIN, END
from derived.book.house import House, UserError
from derived.book.judge import recording
from derived.lab.experiment import Experiment
from derived.lab.record import Record, RecordError, code_changed, read, slot


def take(
    house: House, lines: Iterable[str], chosen: Sequence[type[Experiment]], tier: str, seed: int, uncommitted: bool
) -> None:
    """Show a log and save its records as they come; UserError, at the end, for all that is wrong or missing."""
    awaited = {one.__name__: one for one in chosen}
    wrong = []
    for line in blocks(lines):
        if not isinstance(line, bytes):
            print(line, flush=True)
            wrong += [line.partition("derived: ")[2]] if line.startswith("derived: ") else []
            continue
        try:
            record = opened(line)
            experiment = awaited.get(record.experiment)
            if experiment is None or (record.paper, record.tier) != (experiment.paper(), tier):
                raise UserError(f"{record.paper}/{record.experiment}/{record.tier} was not asked for, and is left out")
            del awaited[record.experiment]
            admit(house, record, experiment, seed, uncommitted)
        except UserError as error:
            wrong.append(str(error))
    if awaited and not wrong:
        wrong.append(f"{', '.join(awaited)} did not come back; what did is saved, the same command continues")
    if wrong:
        raise UserError("; ".join(dict.fromkeys(wrong)))


def blocks(lines: Iterable[str]) -> Iterator[str | bytes]:
    """Split a log into its lines and the records in it; a service may have written something before each line."""
    block: list[str] | None = None
    for line in map(str.rstrip, lines):
        if line.endswith(BEGIN):
            block = []
        elif block is None:
            yield line
        elif line.endswith(END):
            yield "".join(block).encode()
            block = None
        else:
            block += line.split()[-1:]


def opened(block: bytes) -> Record:
    """Read a record from its text; UserError if it was damaged on its way."""
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            tarfile.open(fileobj=io.BytesIO(base64.b64decode(block, validate=True))) as archive,
        ):
            archive.extractall(folder, filter="data")
            [head] = Path(folder).glob("*/*/*/record.json")
            return read(head.parent, "the same command")
    except (tarfile.TarError, OSError, EOFError, ValueError, binascii.Error, RecordError) as error:
        raise UserError(f"a record was damaged on its way, nothing was replaced ({error})") from None


def admit(house: House, record: Record, experiment: type[Experiment], seed: int, uncommitted: bool) -> None:
    """Save a record that is what was asked for, with the commit that holds its code."""
    name = f"{record.paper}/{record.experiment}/{record.tier}"
    if found := faults(record, experiment, seed):
        raise UserError(f"{name} came back and is refused, nothing was replaced: {', '.join(found)}")
    recording.check_seed(experiment, record.tier, seed)
    commit = recording.history(house, experiment, uncommitted)
    here = known(record)
    if here is not None and here.date == record.date and here.rows.equals(record.rows):
        print(f"{name}: already here", flush=True)
    else:
        recording.settle(dataclasses.replace(record, commit=commit))


def known(record: Record) -> Record | None:
    """Read the record that has the place of another; None for none or a damaged one."""
    try:
        return read(slot(record.paper, record.experiment, record.tier), "")
    except RecordError:
        return None


def faults(record: Record, experiment: type[Experiment], seed: int) -> list[str]:
    """List what keeps a record from being the one that was asked for."""
    sized = experiment.at(record.tier)
    found = {
        f"it is of seed {record.seed}, not {seed}": record.seed != seed,
        "it is of another configuration": record.configuration != sized.configuration(),
        "it was made by other code than is here": code_changed(record, experiment),
    }
    return [words for words, wrong in found.items() if wrong] or misshapen(record, sized)


def misshapen(record: Record, sized: Experiment) -> list[str]:
    """List what its rows lack: a condition, or a column that its rows at tier ci have."""
    found = []
    if "failure" not in record.rows and len(record.ci_rows) and list(record.rows) != list(record.ci_rows):
        found.append("its columns are not those of tier ci")
    conditions = sized.conditions()
    keys = list(conditions[0])
    if absent := [key for key in keys if key not in record.rows]:
        return [*found, f"its rows have no {', '.join(absent)}"]
    there = {tuple(row) for row in record.rows[keys].itertuples(index=False)} if keys else {()}
    missing = [each for each in conditions if tuple(each.values()) not in there]
    return [*found, *([f"{len(missing)} of {len(conditions)} conditions are missing"] if missing else [])]
