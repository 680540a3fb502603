"""Makes records: the conditions of an experiment through an executor, each kept as it finishes, then one whole record.

A run that is interrupted continues where it stopped as long as configuration, seed, device and code are the same.
"""

import contextlib
import dataclasses
import datetime
import hashlib
import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import torch
from tqdm import tqdm

from derived.book.house import House, UserError, write_whole
from derived.book.judge import changes
from derived.book.record import workers
from derived.lab.experiment import Experiment, run_experiment
from derived.lab.record import Record, RecordError, code_changed, load, read, remake, save, slot, sweep, versions
from derived.lab.sources import source_files, source_hash
from derived.lab.study import Study, absence, staleness, terms

Measured = tuple[pd.DataFrame, float, float]  # rows, seconds, peak memory in MB


def measured(function: Callable[..., pd.DataFrame], *args: Any, **kwargs: Any) -> Measured:
    """Call a function that returns rows; return also its seconds and peak memory (of the GPU if one was used).

    On a core its seconds are those in which it had the core: other work on the machine does not count.
    """
    torch.set_num_threads(1)
    _forget_peak_memory()
    clock = time.monotonic if torch.cuda.is_available() else time.process_time
    started = clock()
    rows = function(*args, **kwargs)
    if torch.cuda.is_available() and torch.cuda.max_memory_allocated():
        peak = torch.cuda.max_memory_allocated() / 2**20
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform == "linux" else 2**20)
    return rows, clock() - started, peak


def _forget_peak_memory() -> None:
    """Reset the count of peak memory, so that a condition does not inherit that of the one before.

    Only Linux can (proc(5), clear_refs); elsewhere the peak since the worker started is an upper bound.
    """
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def claims_of(paper: str) -> ModuleType:
    """Import the module with a paper's CLAIMS and EXPERIMENTS."""
    name = f"derived.papers.{paper}.claims"
    try:
        return importlib.import_module(name)
    except Exception as error:
        raise UserError(f"{name} cannot be imported: {type(error).__name__}: {error}") from None


def _all_experiments(paper: str) -> dict[str, type[Experiment]]:
    return {experiment.__name__: experiment for experiment in claims_of(paper).EXPERIMENTS}


def choose(paper: str, names: Sequence[str], tier: str) -> list[type[Experiment]]:
    """Choose the named experiments, or all of the paper's that have the tier."""
    known = _all_experiments(paper)
    for name in names:
        if name not in known:
            raise UserError(f"{paper} has no experiment {name!r}; it has {', '.join(known)}")
        if tier not in known[name].tiers:
            raise UserError(f"{name} is not offered at tier {tier}; it has {', '.join(known[name].tiers)}")
    chosen = [known[name] for name in names] or [one for one in known.values() if tier in one.tiers]
    if tier == "ci":
        raise UserError("tier ci runs live in every build and has no records: use cpu or gpu")
    if not chosen:
        raise UserError(f"{paper} has nothing at tier {tier}: its claims of that cost do not exist")
    return chosen


def history(house: House, experiment: type[Experiment], uncommitted: bool) -> str:
    """Find the commit that holds an experiment's sources; empty if the checkout has no history.

    UserError if sources are not committed, unless the record may name them.
    """

    def git(*arguments: str) -> str:
        try:
            done = subprocess.run(["git", "-C", str(house.root), *arguments], capture_output=True, text=True)
        except FileNotFoundError:
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    commit, top = git("rev-parse", "HEAD"), git("rev-parse", "--show-toplevel")
    if not commit or Path(top).resolve() != house.root.resolve():
        return ""
    files = [str(path) for path in source_files(experiment.__module__)]
    changed = f"{git('diff', '--name-only', 'HEAD', '--', *files)}\n{git('ls-files', '--others', '--', *files)}".split()
    if not changed:
        return commit
    if uncommitted:
        return f"{commit}, but for {', '.join(changed)}"
    raise UserError(
        f"{experiment.paper()}/{experiment.__name__}: not committed: {', '.join(changed)}; commit it, "
        "or let the record say so: --uncommitted"
    )


def check_seed(experiment: type[Experiment], tier: str, seed: int) -> None:
    """Refuse to overwrite a record of another seed."""
    paper, name = experiment.paper(), experiment.__name__
    with contextlib.suppress(RecordError):  # a damaged one may be made again
        old = read(slot(paper, name, tier), remake(paper, name, tier))
        if old is not None and old.seed != seed:
            raise UserError(
                f"{paper}/{name}/{tier}: there is a record of seed {old.seed}, which the book shows; to have one of "
                f"seed {seed} in its place, delete results/{paper}/{name}/{tier} first"
            )


def record(
    house: House,
    paper: str,
    names: Sequence[str],
    tier: str,
    seed: int,
    device: str,
    jobs: int,
    scheduler: str = "",
    uncommitted: bool = False,
) -> None:
    """Run and save the records of a paper's experiments at a tier; ``jobs`` 0: a process per core, on a card one."""
    changes.today(house.root)  # of a clock set back the rows would be older than what was written before them
    sweep(paper)
    chosen = choose(paper, names, tier)
    for experiment in chosen:
        check_seed(experiment, tier, seed)
        if absent := absence(experiment):
            raise UserError(f"{paper}/{experiment.__name__}: what it needs is {absent}")
        history(house, experiment, uncommitted)
    here = "" if scheduler else machine(device)[0]
    with workers.workers(jobs or _processes(here), scheduler) as executor:
        kind, device_name = executor.submit(workers.machine, device).result() if scheduler else machine(device)
        for experiment in chosen:
            commit = history(house, experiment, uncommitted)  # once more: the experiment before it may take hours
            drafts = _drafts(house, experiment, tier, seed, kind, source_hash(experiment.__module__))
            with _told_if_killed(experiment.__name__, "finished conditions are kept"):
                fresh = _record_one(experiment, tier, seed, kind, device_name, executor, drafts, commit)
            settle(fresh)
            shutil.rmtree(drafts, ignore_errors=True)


def _processes(device: str) -> int:
    """Count the processes at a time where none are asked for: conditions that share a card may not fit its memory."""
    return 1 if device == "cuda" else os.cpu_count() or 1


def settle(fresh: Record) -> None:
    """Save a record and say so; one with failed conditions is an error and replaces none."""
    name = f"{fresh.paper}/{fresh.experiment}/{fresh.tier}"
    failures = fresh.rows["failure"].dropna() if "failure" in fresh.rows else []
    if len(failures) and slot(fresh.paper, fresh.experiment, fresh.tier).exists():
        raise UserError(f"{name}: {len(failures)} conditions failed ({failures.iloc[0]}); the old record stays")
    place = save(fresh)
    if len(failures):
        raise UserError(f"{name}: recorded with {len(failures)} failed conditions ({failures.iloc[0]})")
    print(f"{name}: {len(fresh.rows)} rows in {fresh.seconds:.0f} s -> {place}", flush=True)


def _drafts(house: House, experiment: type[Experiment], tier: str, seed: int, device: str, code: str) -> Path:
    """Return the folder of finished conditions for this configuration, seed, device and code."""
    same = json.dumps([experiment.at(tier).configuration(), seed, device, code], sort_keys=True)
    name = hashlib.sha256(same.encode()).hexdigest()[:16]
    return house.build / "record" / experiment.paper() / experiment.__name__ / f"{tier}-{name}"


def _keep(drafts: Path, index: int, result: Measured) -> None:
    """Save one finished condition, whole or not at all."""
    rows, seconds, peak = result
    drafts.mkdir(parents=True, exist_ok=True)
    rows.attrs = {"seconds": seconds, "peak": peak}
    rows.to_parquet(drafts / f".{index}.part", index=False)
    os.replace(drafts / f".{index}.part", drafts / f"{index}.parquet")


def _keep_finished(drafts: Path, futures: Mapping[Future, int]) -> None:
    """Save the conditions that succeeded; ``futures`` maps to their numbers."""
    for future, index in futures.items():
        if future.done() and not future.cancelled() and future.exception() is None:
            result = future.result()
            if "failure" not in result[0]:
                _keep(drafts, index, result)


def _kept(drafts: Path, index: int) -> Measured | None:
    """Load a finished condition; None if it is missing or damaged."""
    try:
        rows = pd.read_parquet(drafts / f"{index}.parquet")
        return rows, rows.attrs["seconds"], rows.attrs["peak"]
    except (OSError, ValueError, KeyError):  # a file that is no parquet is a ValueError of pyarrow
        return None


def _began(drafts: Path, experiment: type[Experiment], tier: str) -> dict[str, Any]:
    """Note when a record was begun and the terms of its claims; a run that continues keeps both."""
    note = drafts / "began.json"
    if not note.exists():
        claims = claims_of(experiment.paper()).CLAIMS
        stood = {claim.id: terms(claim, tier)["terms"] for claim in claims if claim.experiment is experiment}
        write_whole(note, json.dumps({"started": _now(), "terms": stood}))
    return json.loads(note.read_text("utf-8"))


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def machine(device: str) -> tuple[str, str]:
    """Find the kind of a device of this machine, and its name; UserError if it is not there."""
    try:
        return workers.machine(device)
    except ValueError as error:
        raise UserError(str(error)) from None


def _record_one(
    experiment: type[Experiment],
    tier: str,
    seed: int,
    device: str,
    device_name: str,
    executor: Executor,
    drafts: Path,
    commit: str,
) -> Record:
    code = source_hash(experiment.__module__)
    began = _began(drafts, experiment, tier)
    ci_rows = _ci_rows(experiment, seed, executor)
    results = _conditions(experiment.at(tier), seed, device, executor, drafts)
    return Record(
        paper=experiment.paper(),
        experiment=experiment.__name__,
        tier=tier,
        seed=seed,
        configuration=experiment.at(tier).configuration(),
        versions=versions(),
        device=device,
        device_name=device_name,
        seconds=sum(seconds for _, seconds, _ in results),
        peak_memory_mb=max(peak for _, _, peak in results),
        date=_now(),
        commit=commit,
        source_hash=code,
        **began,
        rows=pd.concat([rows for rows, _, _ in results], ignore_index=True),
        ci_rows=ci_rows,
    )


def _ci_rows(experiment: type[Experiment], seed: int, executor: Executor) -> pd.DataFrame:
    """Make the rows at tier ci that later decide whether the record is stale; none without such a tier."""
    if "ci" not in experiment.tiers:
        return pd.DataFrame()
    rows, *_ = executor.submit(measured, run_experiment, experiment.at("ci"), seed=seed, device="cpu").result()
    if "failure" in rows:
        failures = rows["failure"].dropna()
        name = f"{experiment.paper()}/{experiment.__name__}"
        raise UserError(f"{name} at tier ci: {len(failures)} conditions failed ({failures.iloc[0]})")
    return rows


def _conditions(sized: Experiment, seed: int, device: str, executor: Executor, drafts: Path) -> list[Measured]:
    """Return the rows of every condition in order, from drafts or run now."""
    conditions = list(sized.conditions())
    results = {index: kept for index in range(len(conditions)) if (kept := _kept(drafts, index)) is not None}
    futures: dict[Any, int] = {
        executor.submit(measured, workers.attempted, sized, condition, seed, device): index
        for index, condition in enumerate(conditions)
        if index not in results
    }
    seconds = 0.1 if sys.stderr.isatty() else 60  # between two states of the bar
    name = type(sized).__name__
    try:
        for future in tqdm(as_completed(futures), total=len(futures), desc=name, mininterval=seconds):
            results[futures[future]] = workers.result_of(future, conditions[futures[future]])
            _keep_finished(drafts, {future: futures[future]})
    except BaseException:
        _keep_finished(drafts, futures)  # what ended beside the one that stopped
        raise
    return [results[index] for index in sorted(results)]


def rehash(house: House, paper: str, names: Sequence[str], jobs: int) -> None:
    """Note today's code in the records of a paper whose experiments still give the same rows at tier ci.

    The rows are compared as the page compares them (``staleness``); of a clock, that is all but its seconds. The record
    keeps the commit that made it, and notes the day and the commit of this comparison. Where the rows disagree, or
    where there is nothing to compare, the record stays as it is and is named. Sources must be committed.
    """
    pending = _recorded_before(paper, names)
    today = {one: (history(house, one, uncommitted=False), source_hash(one.__module__)) for one, _ in pending}
    refused = []
    with workers.workers(jobs, "") as executor:
        live = {
            (experiment, record.seed): executor.submit(
                run_experiment, experiment.at("ci"), seed=record.seed, device="cpu"
            )
            for experiment, record in pending
            if "ci" in experiment.tiers and not absence(experiment)
        }
        for experiment, record in pending:
            name = f"{paper}/{experiment.__name__}/{record.tier}"
            if absent := absence(experiment):
                refused.append(f"{name}: what it needs is {absent}")
                continue
            with _told_if_killed(name, "what was noted before stays"):
                ran = live.get((experiment, record.seed))
                rows = ran.result() if ran else pd.DataFrame()
            refusal = _refusal(experiment, record, rows)
            if refusal:
                refused.append(f"{name}: {refusal}; make it again: {remake(paper, experiment.__name__, record.tier)}")
                continue
            commit, code = today[experiment]
            noted = f"{_now()[:10]} at {commit[:10]}".removesuffix(" at ")
            save(dataclasses.replace(record, source_hash=code, rehashed=noted))
            print(f"{name}: the same {len(rows)} rows at tier ci; noted", flush=True)
    if refused:
        raise UserError("\nderived: ".join(refused))


def _refusal(experiment: type[Experiment], record: Record, rows: pd.DataFrame) -> str:
    """Say why a record keeps its old hash; empty if its rows at tier ci are unchanged."""
    study = Study(experiment, "ci", record.seed, "cpu", rows, {record.tier: record})
    reasons = staleness(claims_of(record.paper).CLAIMS, study, record)
    if reasons is None:
        return "nothing of it can be compared at tier ci"
    return f"today's code gives other rows ({'; '.join(reasons)})" if reasons else ""


@contextlib.contextmanager
def _told_if_killed(name: str, left: str):
    """Turn the death of a worker into one clear line that names what is left of its work."""
    try:
        yield
    except BrokenProcessPool:
        raise UserError(f"{name}: a worker was killed (out of memory?); {left}") from None


def _recorded_before(paper: str, names: Sequence[str]) -> list[tuple[type[Experiment], Record]]:
    """List the records, of the named experiments or all, made by other code than today's."""
    known = _all_experiments(paper)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(f"{paper} has no experiment {unknown[0]!r}; it has {', '.join(known)}")
    chosen = [known[name] for name in names or known]
    try:
        found = [(one, load(one, tier)) for one in chosen for tier in one.tiers if tier != "ci"]
    except RecordError as error:
        raise UserError(str(error)) from None
    return [(one, record) for one, record in found if record is not None and code_changed(record, one)]
