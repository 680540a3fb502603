"""Makes the records that a tier lacks, those with the most claims first, for so many minutes."""

import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bookbuilder.ledger import recording
from bookbuilder.paths import Repo, UserError
from derived.lab.experiment import Experiment
from derived.lab.record import RecordError, load, slot
from derived.lab.study import absence


@dataclass(frozen=True)
class Missing:
    """An experiment without a record, how many claims rest on it, and what is known of its time."""

    experiment: type[Experiment]
    claims: int
    seconds: float | None  # of the record that it had, else of its longest finished condition; None if neither is there
    absent: str  # of its data, and how to fetch them
    stalled: bool  # an earlier run ended before its first condition did

    def __str__(self) -> str:
        name = f"{self.experiment.paper()}/{self.experiment.__name__}"
        took = "its time is not known" if self.seconds is None else f"{self.seconds:.0f} s last time"
        return f"{name}: {self.claims} claim{'s' * (self.claims != 1)}, {self.absent or took}"


def missing(repo: Repo, papers: Iterable[str], names: Sequence[str], tier: str, seed: int, kind: str) -> list[Missing]:
    """List what has no record at a tier that can be loaded, those with the most claims first and after them
    what an earlier run had too little time for, so that every run gets somewhere."""
    found = []
    for paper in papers:
        claims = recording.claims_of(paper)
        for one in recording.choose(paper, names, tier) if names else claims.EXPERIMENTS:
            if tier in one.tiers and not _recorded(one, tier):
                count = sum(claim.experiment is one and tier in claim.judged_at for claim in claims.CLAIMS)
                took = _took(repo, one, tier, seed, kind)
                begun = recording.drafts_of(repo, one, tier, seed, kind).exists()
                found.append(Missing(one, count, took, absence(one), begun and took is None))
    return sorted(found, key=lambda each: (each.stalled, -each.claims))


def _recorded(experiment: type[Experiment], tier: str) -> bool:
    try:
        return load(experiment, tier) is not None
    except RecordError:
        return False


def _took(repo: Repo, experiment: type[Experiment], tier: str, seed: int, kind: str) -> float | None:
    """Seconds of the record that is there and cannot be loaded, else of the longest condition that an interrupted run
    has finished, since each run goes on by conditions."""
    try:
        head = slot(experiment.paper(), experiment.__name__, tier) / "record.json"
        return json.loads(head.read_text("utf-8"))["seconds"]
    except (OSError, ValueError, KeyError, TypeError):
        drafts = recording.drafts_of(repo, experiment, tier, seed, kind)
        kept = [recording.kept(file) for file in drafts.glob("[0-9]*.parquet")]
        return max((result[1] for result in kept if result), default=None)


def make(repo: Repo, chosen: Sequence[Missing], minutes: float | None, **options) -> bool:
    """Make records one after the other; false if something is left for the next time. UserError names what failed."""
    end, left, failed = None if minutes is None else time.monotonic() + 60 * minutes, False, []
    for each in chosen:
        seconds = None if end is None else max(0.0, end - time.monotonic())
        if each.absent or (seconds is not None and seconds < (each.seconds or 0.1)):
            print(f"{each}: left out", flush=True)
            left |= not each.absent
            continue
        print(each, flush=True)
        try:
            recording.record(repo, each.experiment.paper(), [each.experiment.__name__], seconds=seconds, **options)
        except recording.TimeIsOver:
            left = True
        except UserError as error:
            failed.append(str(error))
    if failed:
        raise UserError("\nderived: ".join(failed))
    return not left
