"""Fills a tier: makes the records that it lacks, those first that say most for their hours, for so many minutes.

Each is made by a process of its own, ``derived record``, which keeps every finished condition. What runs when the time
is over is stopped; the same command goes on where it was, so that a machine that is lent for minutes fills a tier.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from derived.book.house import House, UserError
from derived.book.judge import recording
from derived.book.record import cost
from derived.lab.record import slot
from derived.lab.study import absence

PRESS = (sys.executable, "-m", "derived.book.cli")
GRACE = 20  # seconds in which a stopped run keeps what is finished


@dataclass(frozen=True)
class Lacking:
    """An experiment without a record at a tier: the rows that it would decide, and its cost on this machine."""

    paper: str
    experiment: str
    rows: int
    cost: cost.Cost | None
    obstacle: str  # why it cannot be made here, empty if it can

    @property
    def worth(self) -> float:
        """Rows that a predicted second decides; what was not counted comes last."""
        return self.rows / max(1.0, self.cost.seconds) if self.cost else 0.0

    def __str__(self) -> str:
        rows = f"{self.rows} row{'s' * (self.rows != 1)}"
        return f"{self.paper}/{self.experiment}: {rows}, {self.obstacle or self.cost or 'not counted'}"


def lacking(house: House, papers: Iterable[str], tier: str, device: str) -> list[Lacking]:
    """List the records that a tier lacks, those that decide most rows a second first."""
    kind, name = recording.machine(device)
    found = []
    for paper in papers:
        claims = recording.claims_of(paper)
        for one in (each for each in claims.EXPERIMENTS if tier in each.tiers):
            decided = sum(claim.experiment is one and tier in claim.judged_at for claim in claims.CLAIMS)
            if decided and not slot(paper, one.__name__, tier).exists():
                predicted = _here(cost.predicted(house, cost.name_of(paper, one.__name__, tier)), kind, name)
                too_large = f"needs {predicted.memory / cost.GIGA:.2g} GB" if predicted and not predicted.fits else ""
                found.append(Lacking(paper, one.__name__, decided, predicted, absence(one) or too_large))
    return sorted(found, key=lambda each: (bool(each.obstacle), -each.worth))


def _here(costs: Sequence[cost.Cost], kind: str, name: str) -> cost.Cost | None:
    """Choose the cost on the card that is here; the largest card stands for one that is not listed."""
    if not costs or kind == "cpu":
        return next(iter(costs), None)
    return next((on for on in costs if on.card in name), costs[-1])


def fill(chosen: Sequence[Lacking], tier: str, device: str, jobs: int, minutes: float) -> bool:
    """Make records one after the other; false if the time was over before the last. UserError names what failed."""
    end, failed = time.monotonic() + 60 * minutes, []
    options = ["--tier", tier, "--device", device, *(["--jobs", str(jobs)] if jobs else [])]
    for each in (one for one in chosen if not one.obstacle):
        print(each, flush=True)
        code = ended([*PRESS, "record", each.paper, each.experiment, *options], end - time.monotonic())
        if code is None:
            return False
        if code:
            failed.append(f"{each.paper}/{each.experiment}")
    if failed:
        raise UserError(f"not made, for the reasons above: {', '.join(failed)}")
    return True


def ended(command: Sequence[str], seconds: float) -> int | None:
    """Run a command; its exit code, or None if it was stopped when the time was over."""
    process = subprocess.Popen(command)
    try:
        return process.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            _stop(process)


def _stop(process: subprocess.Popen) -> None:
    """Interrupt a process, as a user does, and kill it if that does not end it."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
