"""What every race shares: a command line, interleaved timing, peak memory in a process of its own, and a JSON file
written whole.

A contender is a module-level function of the inputs that a module-level builder makes, so that a child process can
import both.
"""

import argparse
import gc
import json
import math
import multiprocessing
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from derived.book.house import processor

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of the table: medians in milliseconds, ratio peer / ours, extra peak memory in MB."""

    name: str
    ours: str
    peer: str
    ours_ms: float
    peer_ms: float
    ratio: float
    ratio_low: float  # 5 % and 95 % quantiles of the ratio within one round of the interleaved runs
    ratio_high: float
    target: float
    met: bool
    ours_peak_mb: float
    peer_peak_mb: float
    largest_gap: float
    rounds: int


def interleaved(contenders: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each contender in each round; a round runs all of them, starting with another one each time."""
    for run in contenders.values():
        run()
    names, seconds = list(contenders), {name: [] for name in contenders}
    for turn in range(rounds):
        for name in names[turn % len(names) :] + names[: turn % len(names)]:
            start = time.perf_counter()
            contenders[name]()
            seconds[name].append(time.perf_counter() - start)
    return seconds


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
    torch.set_num_threads(threads)
    inputs = build(**sizes)
    run(build(**{name: max(1, size // 16) for name, size in sizes.items()}))  # libraries load outside the count
    gc.collect()
    _forget_peak()
    before = _resident_mb("VmRSS")
    run(inputs)
    queue.put(_resident_mb("VmHWM") - before)


def peak_mb(build: Callable, sizes: dict, run: Callable, threads: int) -> float:
    """The memory that ``run(build(**sizes))`` adds to the peak of a fresh process, beyond its inputs."""
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    child = context.Process(target=_measure_peak, args=(build, sizes, run, threads, queue))
    child.start()
    child.join()
    if child.exitcode != 0:
        raise RuntimeError(f"{run.__name__} ended with exit code {child.exitcode} on {sizes}")
    return queue.get()


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
    """One race: results compared first (``gap`` raises if they differ), then interleaved times, then peak memory."""
    inputs = build(**sizes)
    largest = gap(inputs, ours(inputs), peer(inputs))
    seconds = interleaved({"ours": lambda: ours(inputs), "peer": lambda: peer(inputs)}, rounds)
    ratios = sorted(b / a for a, b in zip(seconds["ours"], seconds["peer"], strict=True))
    medians = {who: statistics.median(times) for who, times in seconds.items()}
    ratio = medians["peer"] / medians["ours"]
    return Row(
        name=name,
        ours=ours.__doc__.strip().rstrip("."),
        peer=peer.__doc__.strip().rstrip("."),
        ours_ms=1e3 * medians["ours"],
        peer_ms=1e3 * medians["peer"],
        ratio=ratio,
        ratio_low=ratios[math.floor(0.05 * (rounds - 1))],
        ratio_high=ratios[math.ceil(0.95 * (rounds - 1))],
        target=target,
        met=ratio >= target,
        ours_peak_mb=peak_mb(build, sizes, ours, threads),
        peer_peak_mb=peak_mb(build, sizes, peer, threads),
        largest_gap=largest,
        rounds=rounds,
    )


def write(path: Path, rows: list[Row], *, threads: int, dtype: str) -> None:
    """Write the table with its circumstances: under a temporary name first, so that a killed run leaves no half."""
    document = {
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "threads": threads,
        "dtype": dtype,
        "date": datetime.now(UTC).date().isoformat(),
        "rows": [{key: _rounded(value) for key, value in asdict(row).items()} for row in rows],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".json.tmp")
    temporary.write_text(json.dumps(document, indent=1) + "\n")
    os.replace(temporary, path)


def _rounded(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def command(
    paper: str, races: Callable[[bool, int, int], Iterable[Row]], *, rounds: int, quick_rounds: int, dtype: str
) -> None:
    """The command line of a script: run ``races(quick, rounds, threads)``, say each row, write the JSON.

    A full run writes results/<paper>/bench.json, which the book shows. It goes under _build/ where there is one
    already, and so does a quick run, whose sizes are too small to report.
    """
    parser = argparse.ArgumentParser(description=f"Races of {paper}.")
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds, to see that it runs")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--output", type=Path, help="where the JSON goes")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = []
    for row in races(arguments.quick, quick_rounds if arguments.quick else rounds, arguments.threads):
        rows.append(row)
        print(
            f"{row.name:70s} ours {row.ours_ms:9.3f} ms  peer {row.peer_ms:11.3f} ms  ratio {row.ratio:7.2f} "
            f"(target {row.target:g}, {'met' if row.met else 'missed'})  "
            f"peak {row.ours_peak_mb:.0f} / {row.peer_peak_mb:.0f} MB  gap {row.largest_gap:.1e}",
            flush=True,
        )
    kept, aside = ROOT / f"results/{paper}/bench.json", ROOT / f"_build/bench/{paper}.json"
    path = arguments.output or (aside if arguments.quick or kept.exists() else kept)
    write(path, rows, threads=arguments.threads, dtype=dtype)
    book = "" if arguments.quick or path != aside else f"; to make it the book's: cp {path} {kept}"
    print(f"{paper}: written to {path}{book}")
