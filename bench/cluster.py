"""What it costs to hand a condition to a worker, and how much faster several workers are: results/cluster.json.

A condition waits and computes nothing, so the numbers are those of the scheduling, whatever the machine has of cores.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar

import pandas as pd
from distributed import LocalCluster
from harness import ROOT

from derived.book.house import processor, write_whole
from derived.book.record import workers
from derived.lab.experiment import Experiment

NUMBERS = (1, 2, 4)  # of workers


@dataclass(frozen=True, kw_only=True)
class Waits(Experiment):
    """Conditions that wait."""

    number: int = 200
    seconds: float = 0.0
    tiers: ClassVar = {"ci": {"number": 8}, "cpu": {}}

    def conditions(self) -> list[dict]:
        return [{"place": place} for place in range(self.number)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        time.sleep(self.seconds)
        return pd.DataFrame({"waited": [self.seconds]})


def taken(executor: Executor, waits: Waits) -> float:
    """Measure the seconds from the first condition handed over to the last one back."""
    started = time.perf_counter()
    for each in [executor.submit(workers.attempted, waits, one, 0, "cpu") for one in waits.conditions()]:
        each.result()
    return time.perf_counter() - started


@contextmanager
def cluster(number: int) -> Iterator[Executor]:
    """Open a Dask scheduler and workers of one thread on this machine, as a recording reaches them by address."""
    local = LocalCluster(n_workers=number, threads_per_worker=1, dashboard_address=None)
    with local, workers.workers(number, local.scheduler_address) as executor:
        yield executor


def measured(opened: Callable[[int], AbstractContextManager[Executor]], name: str, rounds: int) -> Iterator[dict]:
    """Yield a row for each number of workers: milliseconds per empty condition, and how much shorter the waiting is."""
    empty, long = Waits(), Waits(number=24, seconds=0.25)
    for number in NUMBERS:
        with opened(number) as executor:
            taken(executor, replace(empty, number=8 * number))  # imports
            costs = [1000 * taken(executor, empty) / empty.number for _ in range(rounds)]
            ups = [long.number * long.seconds / taken(executor, long) for _ in range(rounds)]
        row = {"scheduler": name, "workers": number}
        for column, values in (("ms", costs), ("speedup", ups)):
            ends = {f"{column}_low": min(values), f"{column}_high": max(values)}
            row |= {column: statistics.median(values), **ends}
        print(row, flush=True)
        yield {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}


def main() -> None:
    """Measure both schedulers and write the file that the status page shows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=ROOT / "results/cluster.json")
    arguments = parser.parse_args()
    local = measured(lambda number: workers.workers(number, ""), "processes of one machine", arguments.rounds)
    rows = [*local, *measured(cluster, "Dask", arguments.rounds)]
    busy = os.getloadavg()[0] > os.cpu_count()
    head = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "device": processor(),
        "rounds": arguments.rounds,
        "busy": busy,
    }
    waits = asdict(Waits(number=24, seconds=0.25))
    document = head | {"distributed": version("distributed"), "waits": waits, "rows": rows}
    write_whole(arguments.output, json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
