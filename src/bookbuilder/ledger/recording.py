"""Makes records: the conditions of an experiment through an executor, each kept as it finishes, then one whole record.

A run that is interrupted continues where it stopped as long as configuration, seed, device and code are the same.
"""

import contextlib
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

from bookbuilder.ledger import workers
from bookbuilder.paths import Repo, UserError, write_whole
from derived.lab.experiment import Experiment, run_condition, run_experiment
from derived.lab.record import Record, RecordError, read, remake, save, slot, sweep, versions
from derived.lab.sources import PACKAGE_ROOT, file_hash, source_files
from derived.lab.study import absence, judged_by

Measured = tuple[pd.DataFrame, float, float]  # rows, seconds, peak memory in MB


class TimeIsOver(Exception):
    """The seconds that a recording was given are over; what is finished is kept."""


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


def choose(paper: str, names: Sequence[str], tier: str) -> list[type[Experiment]]:
    """Choose the named experiments, or all of the paper's that have the tier."""
    known = {experiment.__name__: experiment for experiment in claims_of(paper).EXPERIMENTS}
    for name in names:
        if name not in known:
            raise UserError(f"{paper} has no experiment {name!r}; it has {', '.join(known)}")
        if tier not in known[name].tiers:
            raise UserError(f"{name} is not offered at tier {tier}; it has {', '.join(known[name].tiers)}")
    chosen = [known[name] for name in names] or [one for one in known.values() if tier in one.tiers]
    if not chosen:
        raise UserError(f"{paper} has no experiment at tier {tier}")
    return chosen


def history(repo: Repo, experiment: type[Experiment], uncommitted: bool) -> dict[str, str]:
    """Find the ``commit`` that holds an experiment's sources, or say why there is ``no_commit``.

    UserError if sources are not committed or git refuses the checkout, unless the record may say so.
    """
    name = f"{experiment.paper()}/{experiment.__name__}"
    try:
        commit, top = _git(repo, "rev-parse", "HEAD").strip(), _git(repo, "rev-parse", "--show-toplevel").strip()
        if Path(top).resolve() != repo.root.resolve():
            raise GitError(f"{repo.root} is no repository: it lies in {top}")
        files = [str(path) for path in source_files(experiment.__module__)]
        changed = _git(repo, "diff", "--name-only", "HEAD", "--", *files).split()
        changed += _git(repo, "ls-files", "--others", "--", *files).split()
    except GitError as error:
        if uncommitted:
            return {"commit": "", "no_commit": str(error)}
        cure = "mend it, or let the record say so: --uncommitted"
        raise UserError(f"{name}: git names no commit: {error}; {cure}") from None
    if not changed:
        return {"commit": commit}
    if uncommitted:
        return {"commit": commit, "no_commit": f"it does not hold {', '.join(changed)}"}
    raise UserError(f"{name}: not committed: {', '.join(changed)}; commit it, or let the record say so: --uncommitted")


class GitError(Exception):
    """What git says, in one line."""


def _git(repo: Repo, *arguments: str) -> str:
    command = ["git", "-C", str(repo.root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as error:
        raise GitError(f"git cannot be started ({error.strerror})") from None
    if done.returncode:
        raise GitError(" ".join(done.stderr.split()) or f"git {arguments[0]} ended with code {done.returncode}")
    return done.stdout


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
    repo: Repo,
    paper: str,
    names: Sequence[str],
    tier: str,
    seed: int,
    device: str,
    jobs: int,
    scheduler: str = "",
    uncommitted: bool = False,
    seconds: float | None = None,
) -> None:
    """Run and save the records of a paper's experiments at a tier; ``jobs`` 0: a process per core, on a card one.

    TimeIsOver once it took ``seconds``; the same call goes on where it was.
    """
    end = None if seconds is None else time.monotonic() + seconds
    sweep(paper)
    chosen = choose(paper, names, tier)
    for experiment in chosen:
        check_seed(experiment, tier, seed)
        if absent := absence(experiment):
            raise UserError(f"{paper}/{experiment.__name__}: what it needs is {absent}")
        history(repo, experiment, uncommitted)
    here = "" if scheduler else workers.machine(device)[0]
    with workers.workers(jobs or _processes(here), scheduler) as executor:
        kind, device_name = executor.submit(workers.machine, device).result() if scheduler else workers.machine(device)
        for experiment in chosen:
            commit = history(repo, experiment, uncommitted)  # once more: the experiment before it may take hours
            drafts = drafts_of(repo, experiment, tier, seed, kind)
            try:
                fresh = _record_one(experiment, tier, seed, kind, device_name, executor, drafts, commit, end)
            except BrokenProcessPool:
                name = experiment.__name__
                raise UserError(f"{name}: a worker was killed (out of memory?); finished conditions are kept") from None
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


def drafts_of(repo: Repo, experiment: type[Experiment], tier: str, seed: int, device: str) -> Path:
    """Return the folder of finished conditions for this configuration, seed, device and the code as it is now."""
    code = file_hash(source_files(experiment.__module__), PACKAGE_ROOT)
    same = json.dumps([experiment.at(tier).configuration(), seed, device, code], sort_keys=True)
    name = hashlib.sha256(same.encode()).hexdigest()[:16]
    return repo.build / "record" / experiment.paper() / experiment.__name__ / f"{tier}-{name}"


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


def kept(file: Path) -> Measured | None:
    """Load a finished condition; None if it is missing or damaged."""
    try:
        rows = pd.read_parquet(file)
        return rows, rows.attrs["seconds"], rows.attrs["peak"]
    except (OSError, ValueError, KeyError):  # a file that is no parquet is a ValueError of pyarrow
        return None


def _began(drafts: Path, experiment: type[Experiment], tier: str) -> dict[str, Any]:
    """Note when a record was begun and what judges its rows; a run that continues keeps both."""
    note = drafts / "began.json"
    if not note.exists():
        claims = claims_of(experiment.paper()).CLAIMS
        stood = {claim.id: judged_by(claim) for claim in claims if claim.experiment is experiment}
        write_whole(note, json.dumps({"started": _now(), "terms": stood}))
    return json.loads(note.read_text("utf-8"))


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _record_one(
    experiment: type[Experiment],
    tier: str,
    seed: int,
    device: str,
    device_name: str,
    executor: Executor,
    drafts: Path,
    commit: Mapping[str, str],
    end: float | None,
) -> Record:
    began = _began(drafts, experiment, tier)
    ci_rows = _ci_rows(experiment, seed, executor, end)
    results = _conditions(experiment.at(tier), seed, device, executor, drafts, end)
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
        **commit,
        **began,
        rows=pd.concat([rows for rows, _, _ in results], ignore_index=True),
        ci_rows=ci_rows,
    )


def _left(end: float | None) -> float | None:
    """Return the seconds until a time, None where there is none."""
    return None if end is None else max(0.0, end - time.monotonic())


def _ci_rows(experiment: type[Experiment], seed: int, executor: Executor, end: float | None) -> pd.DataFrame:
    """Make the rows of the small size (ci) that later decide whether the record is stale; none without such a size."""
    if "ci" not in experiment.tiers:
        return pd.DataFrame()
    future = executor.submit(measured, run_experiment, experiment.at("ci"), seed=seed, device="cpu")
    try:
        rows, *_ = future.result(_left(end))
    except TimeoutError:
        raise TimeIsOver from None
    if "failure" in rows:
        failures = rows["failure"].dropna()
        name = f"{experiment.paper()}/{experiment.__name__}"
        raise UserError(f"{name} at the small size (ci): {len(failures)} conditions failed ({failures.iloc[0]})")
    return rows


def _conditions(
    sized: Experiment, seed: int, device: str, executor: Executor, drafts: Path, end: float | None
) -> list[Measured]:
    """Return the rows of every condition in order, from drafts or run now."""
    conditions = list(sized.conditions())
    results = {index: found for index in range(len(conditions)) if (found := kept(drafts / f"{index}.parquet"))}
    futures: dict[Any, int] = {
        executor.submit(measured, run_condition, sized, condition, seed, device): index
        for index, condition in enumerate(conditions)
        if index not in results
    }
    seconds = 0.1 if sys.stderr.isatty() else 60  # between two states of the bar
    name = type(sized).__name__
    try:
        finished = as_completed(futures, _left(end))
        for future in tqdm(finished, total=len(futures), desc=name, mininterval=seconds):
            results[futures[future]] = workers.result_of(future, conditions[futures[future]])
            _keep_finished(drafts, {future: futures[future]})
    except BaseException as error:
        _keep_finished(drafts, futures)  # what ended beside the one that stopped
        if isinstance(error, TimeoutError):
            raise TimeIsOver from None
        raise
    return [results[index] for index in sorted(results)]
