"""What every race shares: a command line, interleaved timing, peak memory in a process of its own, and a JSON file
written whole.

A contender is a module-level function of the inputs that a module-level builder makes, so that a child process can
import both. A race has one of ours and any number of others; its headline is the strongest of them.
"""

import argparse
import gc
import importlib
import json
import math
import multiprocessing
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch
from scipy.stats import binom
from threadpoolctl import threadpool_limits

from derived.book.house import processor, write_whole

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
BLOCK = 0.01  # seconds that a turn of a contender lasts at least

Role = Literal["peer", "plain", "author"]


@dataclass(frozen=True, kw_only=True)
class Peer:
    """Who ours is raced against, how its results are compared with ours, and what it stands for."""

    run: Callable[[Any], Any]  # its docstring is its name in the table
    gap: Callable[[Any, Any, Any], float]  # of inputs, our result and this one; SystemExit where they differ
    law: Callable[[Callable, Callable], float] | None = None  # the same of two contenders, on inputs of its own
    role: Role = "peer"  # others never head a race: "plain" is the obvious version, "author" the author's code
    why: str = ""  # why this is no race, where it is none: its row is reported, and says so
    target: float = 1.0  # how many times as long as ours it should take
    memory: float = 0.0  # and how many times the memory
    every: int = 1  # it does one part in ``every`` of the work, and its time counts so many times


@dataclass(frozen=True, kw_only=True)
class Race:
    """One question, our answer to it, and everybody else's: all of them run in turns on the same inputs."""

    name: str
    build: Callable[..., Any]
    sizes: dict[str, int]
    ours: Callable[[Any], Any]
    peers: tuple[Peer, ...]
    rounds: int | None = None  # where the script's number is too many
    work: Callable[[Any], tuple[float, float]] | None = None  # of inputs: bytes that must be moved, and operations
    dtype: torch.dtype = torch.float64  # of these operations
    error: Callable[[Any, Any], float] | None = None  # of inputs and a result: how far from the truth it is


@dataclass(frozen=True, kw_only=True)
class Row:
    """Ours against one peer: medians in milliseconds, extra peak memory in MB.

    ``ratio`` is the median over the rounds of the peer's time over ours in that round, and ``ratio_low``,
    ``ratio_high`` are an interval of this median (``median_interval``). ``headline`` marks the strongest peer of its
    race. The verdict is "undecided" where the interval holds the target, and "reported" where a sentence says ``why``
    this is no race. ``limit`` is the least time that this machine needs for the work, as a share of ours
    (``least_seconds``).
    """

    name: str
    ours: str
    peer: str
    role: Role
    headline: bool
    ours_ms: float
    peer_ms: float
    ratio: float
    ratio_low: float
    ratio_high: float
    target: float
    verdict: str
    ours_peak_mb: float
    peer_peak_mb: float
    largest_gap: float
    ours_error: float | None
    peer_error: float | None
    rounds: int
    limit: float | None = None
    why: str = ""


def use_threads(threads: int) -> None:
    """So many threads for everybody: torch's and those of the other libraries."""
    torch.set_num_threads(threads)
    threadpool_limits(threads)


def interleaved(contenders: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of a call of each contender in each round; a round runs all of them, starting with another one each time.

    A short call is made several times in a row, ``BLOCK`` seconds in all, and their mean counts: one alone would time
    the caches that the others have just filled. A turn begins with a call that does not count, while the threads of the
    one before go to sleep."""
    names, seconds = list(contenders), {name: [] for name in contenders}
    for run in contenders.values():
        run()
    calls = {name: math.ceil(BLOCK / _mean_seconds(run, 1)) for name, run in contenders.items()}
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            contenders[name]()
            seconds[name].append(_mean_seconds(contenders[name], calls[name]))
    return seconds


def _mean_seconds(run: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - start) / calls


def _resident_mb(field: str) -> float:
    """VmRSS (now) or VmHWM (the peak) of this process. Linux's ru_maxrss would count the parent's peak as well."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines[field].split()[0]) / 2**10


def _forget_peak() -> None:
    """Start the count of the peak anew, where the system can."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")


def _measure_peak(build: Callable, sizes: dict, run: Callable, threads: int, queue: Any) -> None:
    use_threads(threads)
    inputs = build(**sizes)
    run(build(**{name: max(1, size // 16) for name, size in sizes.items()}))  # libraries load outside the count
    gc.collect()
    _forget_peak()
    before = _resident_mb("VmRSS")
    run(inputs)
    queue.put(_resident_mb("VmHWM") - before)


def fresh_processes(script: str) -> multiprocessing.context.BaseContext:
    """A context whose processes have imported the script and done nothing else, where the system can fork one."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    known = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(HERE) not in known:  # or it could not import the script, and every fork of it would
        os.environ["PYTHONPATH"] = os.pathsep.join([str(HERE), *filter(None, known)])
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([script])
    return context


def called(script: str, name: str, argument: Any) -> Any:
    """A function of a script of this folder at an argument; a fresh process finds it by its name."""
    return getattr(importlib.import_module(script), name)(argument)


def peak_mb(build: Callable, sizes: dict, run: Callable, threads: int) -> float:
    """The memory that ``run(build(**sizes))`` adds to the peak of a process of its own, beyond its inputs: the median
    of three processes, since what an allocator gives back differs from one to the next.

    A process is a fork of one that has imported the script and done nothing else, where the system has this.
    """
    context = fresh_processes(Path(sys.argv[0]).stem if build.__module__ == "__main__" else build.__module__)
    found = []
    for _ in range(3):
        queue = context.SimpleQueue()
        child = context.Process(target=_measure_peak, args=(build, sizes, run, threads, queue))
        child.start()
        child.join()
        if child.exitcode != 0:
            raise RuntimeError(f"{name_of(run)} ended with exit code {child.exitcode} on {sizes}")
        found.append(queue.get())
    return statistics.median(found)


def name_of(run: Callable) -> str:
    """What the table calls a contender."""
    return run.__doc__.strip().rstrip(".")


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """The k-th smallest and the k-th largest value, with the largest k for which they hold the median with at least
    95 %, whatever the law; fewer than 6 values give their range, which holds it with less."""
    ordered = sorted(values)
    k = max(int(binom.ppf(0.025, len(ordered), 0.5)), 1)
    return ordered[k - 1], ordered[-k]


def least_seconds(moved: float, operations: float, dtype: torch.dtype) -> float:
    """What this machine needs, at today's number of threads, to copy so many bytes or to do so many operations of a
    matrix product, whichever is longer: each rate is the best of nine."""
    source = torch.ones(2**27 // dtype.itemsize, dtype=dtype)
    target, square = torch.empty_like(source), source[: 2**20].view(1024, 1024)
    copy, product = partial(target.copy_, source), partial(torch.mm, square, square)
    seconds = interleaved({"copy": copy, "product": product}, 9)
    rates = 2 * source.nbytes / min(seconds["copy"]), 2 * 1024**3 / min(seconds["product"])
    return max(moved / rates[0], operations / rates[1])


def verdict(low: float, high: float, target: float) -> str:
    """Whether the whole interval is on one side of the target."""
    return "met" if low >= target else "missed" if high < target else "undecided"


def contest(race: Race, *, rounds: int, threads: int, memory: bool = True) -> list[Row]:
    """All rows of a race, the strongest peer's first: results compared (``gap`` raises if they differ), then times of
    all contenders in turns, then peak memory."""
    peak_of = lambda run: peak_mb(race.build, race.sizes, run, threads) if memory else 0.0  # noqa: E731
    rounds = min(rounds, race.rounds or rounds)
    inputs = race.build(**race.sizes)
    ours = race.ours(inputs)
    gaps, errors = [], []
    for peer in race.peers:
        theirs = peer.run(inputs)
        gaps.append(peer.gap(inputs, ours, theirs))
        if peer.law:
            gaps[-1] = peer.law(race.ours, peer.run)
        errors.append(race.error and race.error(inputs, theirs))
    our_error = race.error and race.error(inputs, ours)
    calls = {"ours": lambda: race.ours(inputs)}
    calls |= {place: partial(peer.run, inputs) for place, peer in enumerate(race.peers)}
    seconds = interleaved(calls, rounds)
    our_peak = peak_of(race.ours)
    our_seconds = statistics.median(seconds["ours"])
    limit = race.work and least_seconds(*race.work(inputs), race.dtype) / our_seconds
    rows = []
    for place, peer in enumerate(race.peers):
        times = [peer.every * each for each in seconds[place]]
        ratios = [theirs / mine for mine, theirs in zip(seconds["ours"], times, strict=True)]
        low, high = median_interval(ratios)
        peak = peak_of(peer.run)
        reached = verdict(low, high, peer.target) if peak >= peer.memory * our_peak else "missed"
        part = f" (1/{peer.every} of the work, time x {peer.every})" if peer.every > 1 else ""
        rows.append(
            Row(
                name=race.name,
                ours=name_of(race.ours),
                peer=name_of(peer.run) + part,
                role="reported" if peer.why else peer.role,
                headline=False,
                ours_ms=1e3 * our_seconds,
                peer_ms=1e3 * statistics.median(times),
                ratio=statistics.median(ratios),
                ratio_low=low,
                ratio_high=high,
                target=peer.target,
                verdict="reported" if peer.why else reached,
                ours_peak_mb=our_peak,
                peer_peak_mb=peak,
                largest_gap=gaps[place],
                ours_error=our_error,
                peer_error=errors[place],
                rounds=rounds,
                limit=limit,
                why=peer.why,
            )
        )
    rows.sort(key=lambda row: (row.role != "peer", row.role != "plain", row.ratio))
    return [replace(rows[0], headline=rows[0].role == "peer"), *rows[1:]]


def race(
    name: str,
    build: Callable,
    sizes: dict,
    ours: Callable,
    peer: Callable,
    *,
    gap: Callable[[Any, Any, Any], float],
    target: float,
    rounds: int,
    threads: int,
) -> Row:
    """The row of a race against one peer."""
    only = Peer(run=peer, gap=gap, target=target)
    return contest(Race(name=name, build=build, sizes=sizes, ours=ours, peers=(only,)), rounds=rounds, threads=threads)[
        0
    ]


def write(
    path: Path,
    rows: list[Row],
    *,
    threads: int,
    dtype: str,
    remark: str = "",
    before: Path | None = None,
) -> None:
    """Write the table with its circumstances, whole or not at all.

    ``before`` is the book's table: a headline that ended there as now keeps its day, and headlines at other numbers of
    threads are carried over (``put_beside``)."""
    here = where_and_when()
    document = here | {
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": threads,
        "dtype": dtype,
        "remark": remark,
        "rows": [
            {key: _rounded(value) for key, value in asdict(row).items() if key != "why" or value}
            | since(row, before, here["date"])
            for row in rows
        ],
        "beside": _beside(before),
    }
    write_whole(path, json.dumps(document, indent=1) + "\n")


def where_and_when() -> dict[str, str]:
    """The kind of this machine, and today's date."""
    return {"machine": f"{processor()}, {os.cpu_count()} cores", "date": datetime.now(UTC).date().isoformat()}


def _beside(table: Path | None) -> list[dict[str, Any]]:
    return json.loads(table.read_text()).get("beside", []) if table and table.is_file() else []


def put_beside(table: Path, path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the book's table with these headlines at another number of threads; they replace earlier ones from the same
    kind of machine."""
    setting = itemgetter("threads", "machine")
    kept = [row for row in _beside(table) if setting(row) not in map(setting, rows)]
    document = json.loads(table.read_text()) | {"beside": [*kept, *rows]}
    write_whole(path, json.dumps(document, indent=1) + "\n")


def since(row: Row, before: Path | None, today: str) -> dict[str, str]:
    """Since when a headline has ended against this peer as it does now."""
    if not row.headline:
        return {}
    held = json.loads(before.read_text())["rows"] if before and before.is_file() else []
    same = [
        old["since"]
        for old in held
        if "since" in old and all(old[key] == getattr(row, key) for key in ("name", "peer", "verdict"))
    ]
    return {"since": same[0] if same else today}


def limits(rows: list[Row]) -> str:
    """A sentence about how near each race's time is to what the machine can do, where that is known."""
    shares = {row.name: f"{row.limit:.1%}" for row in rows if row.limit is not None}
    if not shares:
        return ""
    listed = "; ".join(f"{share} ({name})" for name, share in shares.items())
    return (
        "The least time in which the machine could copy what must be moved, or do the operations as a matrix product, "
        f"both measured in the same run, as a share of ours: {listed}."
    )


def at_threads(threads: int, quick: bool) -> list[dict[str, Any]]:
    """The headlines of this script at another number of threads, by a process of its own: JAX counts them only once."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.json"
        options = ["--threads", str(threads), "--output", str(path), *(["--quick"] if quick else [])]
        flags = f"--xla_cpu_multi_thread_eigen=true intra_op_parallelism_threads={threads}"
        subprocess.run([sys.executable, sys.argv[0], *options], check=True, env=os.environ | {"XLA_FLAGS": flags})
        found = json.loads(path.read_text())
    return [
        {name: found[name] for name in ("threads", "machine", "date")}
        | {key: row[key] for key in ("name", "peer", "ratio", "ratio_low", "ratio_high", "verdict")}
        for row in found["rows"]
        if row["headline"]
    ]


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def show(row: Row) -> None:
    """One line of a run."""
    print(
        f"{row.name + ' | ' + row.peer:110s} ours {row.ours_ms:9.3f} ms  peer {row.peer_ms:11.3f} ms  "
        f"ratio {row.ratio:7.2f} [{row.ratio_low:.2f}, {row.ratio_high:.2f}] (target {row.target:g}, {row.verdict})  "
        f"peak {row.ours_peak_mb:.0f} / {row.peer_peak_mb:.0f} MB  gap {row.largest_gap:.1e}"
        + (f"  error {row.ours_error:.1e} / {row.peer_error:.1e}" if row.ours_error is not None else ""),
        flush=True,
    )


def command(
    paper: str, races: Callable[[bool, int, int], Iterable[Row]], *, rounds: int, quick_rounds: int, dtype: str
) -> None:
    """The command line of a script: run ``races(quick, rounds, threads)``, say each row, write the JSON.

    A full run writes results/<paper>/bench.json, which the book shows. It goes under _build/ where there is one
    already, and so does a quick run, whose sizes are too small to report.
    """
    parser = argparse.ArgumentParser(description=f"Races of {paper}.")
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds, to see that it runs")
    parser.add_argument("--threads", type=int, default=1, help="threads of every contender")
    parser.add_argument("--beside", type=int, help="race at so many threads only; the headlines join the book's table")
    parser.add_argument("--output", type=Path, help="where the JSON goes")
    parser.add_argument("--remark", default="", help="a sentence about the machine for readers of the table")
    arguments = parser.parse_args()
    rounds = quick_rounds if arguments.quick else rounds
    kept, aside = ROOT / f"results/{paper}/bench.json", ROOT / f"_build/bench/{paper}.json"
    path = arguments.output or (aside if arguments.quick or kept.exists() else kept)
    if arguments.beside:
        put_beside(kept, path, at_threads(arguments.beside, arguments.quick))
    else:
        use_threads(arguments.threads)
        rows = []
        for row in races(arguments.quick, rounds, arguments.threads):
            rows.append(row)
            show(row)
        remark = " ".join(filter(None, [arguments.remark, limits(rows)]))
        write(path, rows, threads=arguments.threads, dtype=dtype, remark=remark, before=kept)
    book = "" if arguments.quick or path != aside else f"; to make it the book's: cp {path} {kept}"
    print(f"{paper}: written to {path}{book}")


def contests(races: Callable[[bool], Iterable[Race]]) -> Callable[[bool, int, int], Iterator[Row]]:
    """The races of a script, ``races(quick)``, in the form that ``command`` runs."""

    def rows(quick: bool, rounds: int, threads: int) -> Iterator[Row]:
        use_threads(threads)
        for each in races(quick):
            yield from contest(each, rounds=rounds, threads=threads, memory=threads == 1)

    return rows


def require(condition: bool, message: str) -> None:
    """Refuse a race whose contenders do not do the same."""
    if not condition:
        raise SystemExit(message)


def within(gap: float, bound: float = 1.0) -> float:
    """The gap, if it is no larger than the bound."""
    require(gap <= bound, f"the results differ by {gap:.3g}, more than {bound:.3g}")
    return gap


def authors_code(*names: str) -> Path | None:
    """The folder of an author's code under $AUTHORS, or nothing, which is said.

    Nobody else's code is part of this repository: clone it and name the folder in which the clones are.
    """
    folder = Path(os.environ.get("AUTHORS", "")) / "/".join(names)
    if os.environ.get("AUTHORS") and folder.exists():
        return folder
    print(f"no {'/'.join(names)} under $AUTHORS: the author's code is left out")
    return None
