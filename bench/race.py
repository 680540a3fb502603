"""Times one operation of the package against one peer: ``python bench/<slug>.py [--quick | --keep]``.

Results are compared before any clock starts. Then both run in turns, so that drift of the machine cancels in the ratio
of each turn. Every number of threads has a process of its own, since libraries choose their threads only once.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch.utils.benchmark import Timer

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Race:
    """An operation of the package and its strongest peer; the docstrings of ``ours`` and ``peer`` name them."""

    name: str
    build: Callable[..., Any]  # makes the inputs from ``sizes``
    ours: Callable[[Any], Any]
    peer: Callable[[Any], Any]
    check: Callable[[Any, Any, Any], None]  # of inputs, our result and the peer's; SystemExit where they differ
    sizes: dict[str, int]
    toy: dict[str, int]  # sizes for tests and --quick
    dtype: str = "float64"
    needs: str = ""  # the package that the peer needs, where the book does not
    note: str = ""  # what a reader of the ratio must know


def require(condition: bool, message: str) -> None:
    """End a race whose results are not the same."""
    if not condition:
        raise SystemExit(message)


def race(
    name: str,
    ours: Callable[[], Any],
    peer: Callable[[], Any],
    check: Callable[[Any, Any], None],
    threads: int,
    turns: int = 15,
    seconds: float = 0.1,
) -> dict[str, Any]:
    """Compare both results, then time both in turns of at least ``seconds``.

    A row has both medians in ms, and the median and quartiles of the peer's time over ours in the same turn."""
    check(ours(), peer())
    timers = [Timer("run()", globals={"run": call}, num_threads=threads) for call in (ours, peer)]
    times = [[], []]
    for turn in range(turns):
        for who in (0, 1) if turn % 2 == 0 else (1, 0):
            times[who].append(timers[who].blocked_autorange(min_run_time=seconds).median)
    low, median, high = statistics.quantiles((b / a for a, b in zip(*times, strict=True)), n=4, method="inclusive")
    numbers = dict(zip(("ours_ms", "peer_ms"), (1e3 * statistics.median(each) for each in times), strict=True))
    numbers |= {"ratio": median, "ratio_low": low, "ratio_high": high}
    numbers = {key: float(f"{value:.4g}") for key, value in numbers.items()}
    return {"name": name, "threads": threads, **numbers, "interval": "quartiles", "rounds": turns}


def run(each: Race, threads: int, toy: bool, **options: Any) -> dict[str, Any]:
    """Build the inputs of a race and run it in this process."""
    inputs = each.build(**(each.toy if toy else each.sizes))
    name = f"{each.name} (run at small sizes)" if toy else each.name
    ours, peer, check = (partial(call, inputs) for call in (each.ours, each.peer, each.check))
    return race(name, ours, peer, check, threads, **options)


def circumstances() -> dict[str, str]:
    """Name the processor and its cores, today's date and the version of torch."""
    info = Path("/proc/cpuinfo")
    text = info.read_text("utf-8", "replace") if info.exists() else ""
    names = [line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")]
    where = f"{names[0] if names else platform.processor() or platform.machine()}, {os.cpu_count()} cores"
    return {"machine": where, "date": datetime.now(UTC).date().isoformat(), "torch": torch.__version__}


def command(slug: str, each: Race) -> None:
    """Run a race at one and at two threads and write _build/bench/<slug>.json, or with --keep what the book shows."""
    parser = argparse.ArgumentParser(description=f"Race of {slug}: {each.name}.")
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--quick", action="store_true", help="small sizes and three turns, to see that it runs")
    sizes.add_argument("--keep", action="store_true", help=f"write results/{slug}/bench.json, which the book shows")
    parser.add_argument("--threads", type=int, help="race in this process at so many threads, and print the row")
    arguments = parser.parse_args()
    if each.needs and find_spec(each.needs) is None:
        return print(f'{slug}: skipped, no {each.needs} here; pip install -e ".[bench]" brings it')
    if arguments.threads:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-arguments.threads :])
        short = {"turns": 3, "seconds": 0.01} if arguments.quick else {}
        return print(json.dumps(run(each, arguments.threads, arguments.quick, **short) | circumstances()))
    rows = []
    for threads in ("1", "2"):
        limits = {"OMP_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads, "OMP_WAIT_POLICY": "PASSIVE"}
        call = [sys.executable, *sys.argv, "--threads", threads]
        done = subprocess.run(call, env=os.environ | limits, stdout=subprocess.PIPE, text=True)
        require(done.returncode == 0, f"{slug}: the race at {threads} threads ended with {done.returncode}")
        rows.append(json.loads(done.stdout.splitlines()[-1]))
        name = rows[-1].pop("name")
        print(name, "at {threads} threads: ratio {ratio} [{ratio_low}, {ratio_high}]".format(**rows[-1]), flush=True)
    path = ROOT / (f"results/{slug}/bench.json" if arguments.keep else f"_build/bench/{slug}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {"name": name, "ours": each.ours.__doc__, "peer": each.peer.__doc__, "dtype": each.dtype}
    path.write_text(json.dumps(facts | {"note": each.note, "measured": rows}, indent=1) + "\n", "utf-8")
    print(f"{slug}: written to {path}")
