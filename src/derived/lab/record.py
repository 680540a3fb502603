"""Records: the rows of a longer run, kept as three small files that are written whole or not at all.

    results/<paper>/<Experiment>/<tier>/record.json   configuration, seed, versions, device, cost, commit, checksums
    results/<paper>/<Experiment>/<tier>/rows.parquet  the rows
    results/<paper>/<Experiment>/<tier>/ci.parquet    the rows of the same code at the small size (ci)

A record of another configuration, or one whose bytes were changed, is refused. It is *stale* only when the ci rows that
it was made with disagree with the ones made now; code may move freely.
"""

import hashlib
import importlib.metadata
import io
import json
import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from derived.lab.experiment import Experiment
from derived.lab.intact import TABLES, contents, damaged, seal
from derived.lab.sources import PACKAGE_ROOT

VERSIONS_OF = ("torch", "numpy", "scipy", "pandas", "matplotlib")
ROUNDING = 1e-6  # what float32 leaves of a zero, times something of order one
FACTOR, FACTOR_OF_ROUNDING = 2.0, 100.0  # between the middles of two columns that are still the same


class RecordError(Exception):
    """A record that must not be used, with the command that makes it again."""


def results_root() -> Path:
    """``results/`` of the checkout; without one, the folder ``results`` beside the running notebook."""
    checkout = PACKAGE_ROOT.parents[1]
    return (checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()) / "results"


def versions() -> dict[str, str]:
    """Python and the libraries that numbers depend on."""
    return {"python": platform.python_version()} | {name: importlib.metadata.version(name) for name in VERSIONS_OF}


@dataclass(frozen=True, kw_only=True)
class Record:
    """One run of one experiment at one tier, with all that is needed to judge and to repeat it."""

    paper: str
    experiment: str
    tier: str
    seed: int
    configuration: Mapping[str, Any]
    versions: Mapping[str, str]
    device: str  # cpu or cuda
    device_name: str
    seconds: float  # summed over the conditions; of the core since 2026-11-27, by the clock before and on a GPU
    peak_memory_mb: float
    date: str  # ISO 8601, UTC
    commit: str = ""  # that holds the sources, and which of them it does not hold; empty where there is no history
    no_commit: str = ""  # why the repository holds no such commit
    started: str = ""  # ISO 8601, UTC; empty in a record of the first edition, which did not note it
    terms: Mapping[str, str] = field(default_factory=dict)  # of each claim on these rows, ``study.judged_by`` then
    rows: pd.DataFrame = field(repr=False)
    ci_rows: pd.DataFrame = field(repr=False)


def slot(paper: str, experiment: str, tier: str) -> Path:
    """The folder of a record, present or not."""
    return results_root() / paper / experiment / tier


def remake(paper: str, experiment: str, tier: str) -> str:
    """The command that makes a record."""
    return f"derived record {paper} {experiment} --tier {tier}"


def _bytes(record: Record) -> dict[str, bytes]:
    tables = {name: _parquet(getattr(record, field)) for name, field in TABLES.items()}
    head = {key: value for key, value in record.__dict__.items() if key not in TABLES.values()}
    head["checksums"] = {name: hashlib.sha256(content).hexdigest() for name, content in tables.items()}
    head["checksums"]["record.json"] = seal(head)
    return tables | {"record.json": (_indented(head) + "\n").encode()}


def _parquet(rows: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    rows.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _indented(head: Mapping[str, Any]) -> str:
    """JSON with a line for each field, however long its lists are."""
    lines = (f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def save(record: Record) -> Path:
    """Write a record beside its place and rename it in: a full disk leaves the old one, a kill a whole one or none."""
    place = slot(record.paper, record.experiment, record.tier)
    fresh, old = (place.with_name(f".{place.name}.{kind}-{os.getpid()}") for kind in ("new", "old"))
    try:
        fresh.mkdir(parents=True)
        for name, content in _bytes(record).items():
            with open(fresh / name, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        if place.exists():
            place.rename(old)
        fresh.rename(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        if old.exists() and not place.exists():
            old.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    return place


def sweep(paper: str) -> None:
    """Put right what a killed ``save`` left behind; nobody else may be saving."""
    for left in (results_root() / paper).glob("*/.*.*-*"):
        place = left.with_name(left.name[1:].split(".")[0])
        if ".old-" in left.name and not place.exists():
            left.rename(place)
        else:
            shutil.rmtree(left)


def load(experiment: type[Experiment], tier: str) -> Record | None:
    """The record of an experiment at a tier; None if there is none; RecordError if it must not be used."""
    paper, name = experiment.paper(), experiment.__name__
    record = read(slot(paper, name, tier), remake(paper, name, tier))
    wanted = experiment.at(tier).configuration()
    if record is not None and record.configuration != wanted:
        changed = {k for k in {*wanted, *record.configuration} if wanted.get(k) != record.configuration.get(k)}
        differences = ", ".join(
            f"{k}: recorded {record.configuration.get(k)!r}, now {wanted.get(k)!r}" for k in sorted(changed)
        )
        raise RecordError(
            f"the record {paper}/{name}/{tier} was made with another configuration ({differences}); "
            f"make it again: {remake(paper, name, tier)}"
        )
    return record


def read(place: Path, command: str) -> Record | None:
    """The record in a folder after its checksums, whatever its configuration; ``command`` remakes it."""
    if not place.exists():
        return None
    found = contents(place)
    if found is None:
        raise RecordError(damaged(place, command))
    head, tables = found
    try:
        frames = {TABLES[name]: pd.read_parquet(io.BytesIO(content)) for name, content in tables.items()}
        record = Record(**head, **frames)
    except (KeyError, TypeError, ValueError) as error:
        raise RecordError(
            f"the record {'/'.join(place.parts[-3:])} has not the fields of one ({error}); make it again: {command}"
        ) from None
    if (record.paper, record.experiment, record.tier) != place.parts[-3:]:
        raise RecordError(
            f"the record {'/'.join(place.parts[-3:])} is that of {record.paper}/{record.experiment}/{record.tier}; "
            f"make it again: {command}"
        )
    return record


def disagreements(then: pd.DataFrame, now: pd.DataFrame, deterministic: Mapping[str, float]) -> list[str]:
    """Where two tables of the same conditions differ: shape, keys, counts and strings exactly, and the columns of
    ``deterministic`` by more than their bound on the relative rounding error. Empty if they agree."""
    if list(then.columns) != list(now.columns) or len(then) != len(now):
        return [f"{len(then)} rows of {list(then.columns)} then, {len(now)} rows of {list(now.columns)} now"]
    found = []
    for name in then.columns:
        a, b = then[name].to_numpy(), now[name].to_numpy()
        if pd.api.types.is_float_dtype(then[name].dtype) and pd.api.types.is_float_dtype(now[name].dtype):
            if name not in deterministic:
                continue
            scale = np.maximum(np.abs(a), np.abs(b))
            same = (np.abs(a - b) <= deterministic[name] * scale) | (np.isnan(a) & np.isnan(b)) | (a == b)
        else:
            same = (a == b) | (pd.isna(a) & pd.isna(b))
        if not np.all(same):
            found.append(f"{name}: {int((~same).sum())} of {len(a)} rows differ")
    return found


def strayed(then: pd.DataFrame, now: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """The named columns whose distribution has moved, for numbers that rounding or training makes inexact.

    The count of finite numbers may change by a factor of two, and so may the middle half of the column: two middle
    halves disagree where one ends before half of the other's beginning, or on the other side of zero. Single training
    rows vary between machines; the middle half of their column keeps its range. Where both ends are below
    ``ROUNDING`` the column is one of rounding gaps: it may come to zero, change its sign, or move by a factor of a
    hundred, which is less than what another dtype does.
    """
    found = []
    for name in names:
        a, b = (rows[name].to_numpy(float) for rows in (then, now))
        a, b = a[np.isfinite(a)], b[np.isfinite(b)]
        if max(len(a), len(b)) > FACTOR * min(len(a), len(b)):
            found.append(f"{name}: {len(a)} of {len(then)} numbers finite then, {len(b)} of {len(now)} now")
        elif len(a) and _apart(np.quantile(a, (0.25, 0.75)), np.quantile(b, (0.25, 0.75))):
            found.append(f"{name}: the middle of the column is {np.median(a):.3g} then, {np.median(b):.3g} now")
    return found


def _apart(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two ranges are farther from each other than rounding and training move them."""
    below, above = (a[1], b[0]) if a[1] < b[0] else (b[1], a[0])
    size = max(abs(below), abs(above))
    if size < ROUNDING:
        return below * above > 0 and above - below > (1 - 1 / FACTOR_OF_ROUNDING) * size
    return above - below > (1 - 1 / FACTOR) * size
