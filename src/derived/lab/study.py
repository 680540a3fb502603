"""The ledger: the experiments of a chapter, and one row for each claim and tier, with its verdict.

    study   one experiment as a chapter sees it: the rows made just now, and the records
    absent  what an experiment ``needs`` of real weights and data and is not here: its record speaks for it
    terms   what a verdict rests on: statement, criterion, accepted range, and the experiment's configuration
    row     a claim at a tier; the headline is the row of the largest tier that ran

Nothing here runs an experiment twice.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from derived.lab.claims import Claim, Verdict
from derived.lab.effect import Published, effect, see, undecided
from derived.lab.experiment import Experiment, resolve_device, run_experiment
from derived.lab.findings import COLUMNS, JUDGED, hashed, kind_of
from derived.lab.names import SIZES, TIERS
from derived.lab.real import pinned
from derived.lab.record import Record, disagreements, load, remake, strayed
from derived.lab.stats import Estimate

CLOCK = ("seconds", "times as long")  # units of what a clock says, which depends on what else the machine does
FACTS = ("date", "seconds", "peak_memory_mb", "device_name", "no_commit")  # of a record, for the pages
Check = tuple[str, Estimate, Estimate | None]  # a call of a check cell, what it found, and its control's
FROM_A_SUMMARY = "from a summary; the paper itself was not seen"


@dataclass(frozen=True)
class Study:
    """One experiment as a chapter sees it: live rows of this run, and the records of the larger tiers."""

    experiment: type[Experiment]
    tier: str  # of the live rows
    seed: int
    device: str  # cpu or cuda
    live: pd.DataFrame = field(repr=False)
    records: Mapping[str, Record] = field(repr=False)
    absent: str = ""  # what is not here and the command that fetches it: ``live`` are then a record's small rows (ci)

    @property
    def rows(self) -> pd.DataFrame:
        """All rows with the columns ``tier`` and ``recorded``: records first, then the live ones."""
        tables = [record.rows.assign(tier=tier, recorded=True) for tier, record in self.records.items()]
        return pd.concat([*tables, self.live.assign(tier=self.tier, recorded=False)], ignore_index=True)

    @property
    def largest(self) -> str:
        """The largest tier that ran; the live one where it was recorded, too."""
        return max([self.tier, *self.records], key=TIERS.index)

    @property
    def best(self) -> pd.DataFrame:
        """The rows of the largest tier that ran."""
        return self.live if self.largest == self.tier else self.records[self.largest].rows

    @property
    def sizes(self) -> Experiment:
        """The experiment with the sizes of these rows."""
        return self.experiment.at(self.largest)

    def provenance(self) -> list[str]:
        """Where the numbers come from, for a caption: each record, and what was run live."""
        records = [
            f"{SIZES[tier]}: {record.device_name}, {record.date[:10]}, seed {record.seed}"
            for tier, record in self.records.items()
        ]
        size = SIZES["ci"] if self.tier == "ci" else f"in this build at tier {self.tier}"
        live = f"small, recorded with tier {[*self.records][-1]}" if self.absent else size
        return [*records, f"{live}, seed {self.seed}"]


def study(experiment: type[Experiment], tier: str, seed: int, device: str) -> Study:
    """Run an experiment at a tier (or the largest one below it that the experiment has) and load its records.

    Where what it ``needs`` is not here, its record speaks for it, and nothing runs.
    ValueError for a tier that there is not; RuntimeError, with its cause, for a condition that failed, and for an
    experiment that has neither what it needs nor a record.
    """
    if tier not in TIERS:
        raise ValueError(f"tier {tier!r} is unknown: use {', '.join(TIERS)}")
    offered = [name for name in TIERS[: TIERS.index(tier) + 1] if name in experiment.tiers]
    if not offered:
        raise ValueError(f"{experiment.__name__} has no tier up to {tier}; it has {', '.join(experiment.tiers)}")
    kind = resolve_device(device).type
    found = {name: load(experiment, name) for name in TIERS if name in experiment.tiers and name != "ci"}
    records = {name: record for name, record in found.items() if record is not None}
    if absent := absence(experiment):
        if not records:
            raise RuntimeError(f"{experiment.__name__} has no record, and what it needs is {absent}")
        record = [*records.values()][-1]
        return Study(experiment, "ci", record.seed, record.device, record.ci_rows, records, absent)
    live = run_experiment(experiment.at(offered[-1]), seed=seed, device=device)
    if "failure" in live:
        row = live[live["failure"].notna()].iloc[0].dropna()
        condition, cause = row.drop(["failure", "traceback"]).to_dict(), row["failure"]
        raise RuntimeError(f"{experiment.__name__} at tier {offered[-1]}: the condition {condition} failed: {cause}")
    return Study(experiment, offered[-1], seed, kind, live, records)


def absence(experiment: type[Experiment]) -> str:
    """What an experiment ``needs`` (names of ``lab.real.pinned``) and is not here; empty if it needs nothing more."""
    missing = pinned.missing(experiment.needs)
    return pinned.not_here(missing) if missing else ""


def _measure(claim: Claim, rows: pd.DataFrame) -> tuple[Estimate | None, Verdict, str]:
    if "failure" in rows.columns:
        failed = rows["failure"].dropna()
        return None, "undecided", f"{len(failed)} conditions failed, the first with {failed.iloc[0]}"
    try:
        estimate = claim.measure(rows)
    except ValueError as error:  # an interval that the rows do not allow
        return None, "undecided", str(error)
    except (LookupError, TypeError, ArithmeticError, NameError) as error:  # rows that lack what the measure reads
        return None, "undecided", f"its rows cannot be measured: {type(error).__name__}: {error}"
    return estimate, *claim.judge(estimate)


def _judged(claim: Claim, rows: pd.DataFrame) -> dict[str, Any]:
    """Judge a claim by rows: estimate, verdict, reason and effect, and by the same criterion control and comparison."""
    estimate, verdict, reason = _measure(claim, rows)
    found = {"estimate": estimate, "verdict": verdict, "reason": reason}
    if callable(claim.control):
        found["control"] = _arm(*_measure(replace(claim, measure=claim.control), rows))
    if claim.comparison:
        name, measure = claim.comparison
        found["comparison"] = {"name": name} | _arm(*_measure(replace(claim, measure=measure), rows))
    published = claim.paper_value
    if estimate is not None and isinstance(published, Published):
        ours = _measure(replace(claim, measure=published.ours), rows)[0] if published.ours else estimate
        found["effect"] = ours and {
            name: number if name == "unit" else _finite(number) for name, number in effect(published, ours).items()
        }
    return found


def _arm(estimate: Estimate | None, verdict: Verdict, reason: str) -> dict[str, Any]:
    numbers = {name: _finite(getattr(estimate, name, None)) for name in ("value", "low", "high")}
    return {**numbers, "n": estimate.n if estimate else None, "verdict": verdict, "reason": reason}


def _finite(number: float | None) -> float | None:
    """A number as JSON has it; None for NaN and infinities."""
    return float(number) if number is not None and math.isfinite(number) else None


def terms(claim: Claim, tier: str) -> dict[str, Any]:
    """What the verdict at a tier rests on, as JSON has it; ``terms`` is its hash."""
    fixed = {
        "statement": claim.statement,
        "criterion": claim.criterion,
        "accept": [_finite(end) for end in claim.accept],
        "configuration": claim.experiment.at(tier).configuration() if claim.experiment else None,
    }
    return fixed | {"terms": hashed(fixed)}


def judged_by(claim: Claim) -> str:
    """The hash of criterion, accepted range and unit, which a record notes when it is begun."""
    ends = [_finite(end) for end in claim.accept]
    return hashed({"criterion": claim.criterion, "accept": ends, "unit": claim.unit})


TAKEN_OVER = ("id", "kind", "plain", "source", "where", "unit", "amends", "proof", "horizon", "made_of")


def _row(claim: Claim, paper: str, tier: str, **found: Any) -> dict[str, Any]:
    estimate: Estimate | None = found.pop("estimate", None)
    numbers = {name: _finite(getattr(estimate, name, None)) for name in ("value", "low", "high")}
    why = undecided(estimate, claim.accept, claim.matters) if estimate and found["verdict"] == "undecided" else None
    row = {
        **{name: getattr(claim, name) for name in TAKEN_OVER},
        **terms(claim, tier),
        "experiment": claim.experiment.__name__ if claim.experiment else None,
        **{"paper": paper, "tier": tier, "device": None, "seed": None, "headline": False, "effect": None},
        **{"paper_value": str(claim.paper_value), "scale": claim.scale_at(tier)},
        "control": claim.control if isinstance(claim.control, str) else None,
        "comparison": None,
        "undecided": why,
        "sees": _finite(see(estimate)) if estimate else None,
        **{**numbers, "n": estimate.n if estimate else None},
        **found,
    }
    if estimate is not None and numbers["value"] is None:
        row["reason"] = "; ".join(part for part in ("the value is not a finite number", row["reason"]) if part)
    if row["verdict"] == "fails" and claim.source == "digest":
        row["reason"] = "; ".join(part for part in (FROM_A_SUMMARY, row["reason"]) if part)
    return {name: row[name] for name in COLUMNS}


def _rows_of(claim: Claim, paper: str, found: Study | None) -> list[dict[str, Any]]:
    """One row per tier that the claim's experiment has, the headline marked."""
    if claim.experiment is None:
        return [_row(claim, paper, "gpu", verdict="not run", reason=claim.reason) | {"headline": True}]
    rows = []
    for tier in (name for name in claim.judged_at if name in claim.experiment.tiers):
        record = found.records.get(tier)
        if tier == found.tier and found.absent:
            rows.append(_row(claim, paper, tier, verdict="not run", reason=found.absent))
            continue
        if tier == found.tier:  # a rerunner's own run of a recorded tier stands here, with ours named in the reason
            made = _judged(claim, found.live) | {"device": found.device, "seed": found.seed}
            if record is not None:
                ours, ours_verdict, _ = _measure(claim, record.rows)
                value = "no value" if ours is None else f"{ours.value:.4g}"
                said = f"ours, recorded: {value}, {ours_verdict}"
                made["reason"] = "; ".join(part for part in (made["reason"], said) if part)
        elif record is not None:
            made = _judged(claim, record.rows) | {"device": record.device_name, "seed": record.seed}
        else:
            command = "make site" if tier == "ci" else remake(paper, claim.experiment.__name__, tier)
            reason = f"no {tier} run here yet: {command}" if tier == "ci" else f"not recorded at {tier} yet: {command}"
            rows.append(_row(claim, paper, tier, verdict="not run", reason=reason))
            continue
        rows.append(_row(claim, paper, tier, **made))
    ran = [row for row in rows if row["verdict"] != "not run"]
    (ran or rows)[-1]["headline"] = True
    return rows


def _row_on_page(claim: Claim, paper: str, checks: Sequence[Check], seed: int) -> dict[str, Any]:
    """The row of a claim that check cells decide: the worst of them, all instances summed. The builder fills in what
    the notebook holds, statement, terms and proof; it refuses a bound without a proof before anything runs."""
    if not checks:
        reason = "no check that names it has run"
        return _row(claim, paper, "ci", verdict="not run", reason=reason) | {"headline": True}
    kind = kind_of(call for call, _, _ in checks)
    unit, criterion = JUDGED[kind]
    judged = replace(claim, kind=kind, unit=unit, criterion=criterion)
    estimate = Estimate(max(found.value for _, found, _ in checks), sum(found.n for _, found, _ in checks))
    verdict, reason = replace(judged, proof="on the page").judge(estimate)
    found = {"estimate": estimate, "verdict": verdict, "reason": reason, "device": "cpu", "headline": True}
    controls = [control for _, _, control in checks if control is not None]
    if controls:  # the one that comes nearest to passing
        control = min(controls, key=lambda one: one.value)
        found["control"] = _arm(control, "holds" if control.value <= 1 else "fails", "")
    return _row(judged, paper, "ci", **found, seed=seed)


def ledger(
    paper: str,
    claims: Sequence[Claim],
    studies: Sequence[Study],
    checks: Mapping[str, Sequence[Check]] = MappingProxyType({}),
    seed: int = 0,
) -> list[dict[str, Any]]:
    """The rows of a chapter: one per claim and tier, in the order of the claims. ``checks`` has by id what the page's
    check cells found with this ``seed``."""
    by_class = {found.experiment: found for found in studies}
    missing = {claim.experiment.__name__ for claim in claims if claim.experiment and claim.experiment not in by_class}
    if missing:
        raise ValueError(f"claims rest on experiments that the chapter did not run: {', '.join(sorted(missing))}")
    ids = [claim.id for claim in claims]
    unknown = {claim.amends for claim in claims if claim.amends} - set(ids)
    if len(set(ids)) < len(ids) or unknown:
        raise ValueError(f"the claims of {paper} repeat an id or amend one that is not there: {sorted(unknown) or ids}")
    return [
        row
        for claim in claims
        for row in (
            [_row_on_page(claim, paper, checks.get(claim.id, ()), seed)]
            if claim.kind == "on page"
            else _rows_of(claim, paper, by_class.get(claim.experiment))
        )
    ]


def record_states(claims: Sequence[Claim], studies: Sequence[Study]) -> list[dict[str, Any]]:
    """For each record slot of the studies: where it comes from and whether it is still what the code gives."""
    states = []
    for found in studies:
        name, paper = found.experiment.__name__, found.experiment.paper()
        for tier in (tier for tier in found.experiment.tiers if tier != "ci"):
            record = found.records.get(tier)
            facts = {key: getattr(record, key, None) for key in FACTS}
            facts["device"] = facts.pop("device_name")
            state = {
                "experiment": name,
                "tier": tier,
                **facts,
                "state": "missing",
                "reasons": [remake(paper, name, tier)],
            }
            if record is not None:
                state["state"], state["reasons"] = _state(claims, found, record)
            states.append(state)
    return states


def _state(claims: Sequence[Claim], found: Study, record: Record) -> tuple[str, list[str]]:
    """The state of an existing record, and the message for it."""
    reasons = staleness(claims, found, record)
    if reasons is None:
        return "not compared", []
    return ("stale", reasons) if reasons else ("unchanged", [])


def staleness(claims: Sequence[Claim], found: Study, record: Record) -> list[str] | None:
    """Why a record is stale: its ci rows against the live ones; empty if they agree, None if nothing can be compared.

    They are comparable where both were made alike: at the small size (ci), on a CPU, of one seed. Then shape, keys,
    counts and strings are compared exactly, and each column of ``deterministic`` with its bound. Every other float
    column is compared as a whole (``strayed``), and each statistic with a standard error by four joint ones, for a
    column may keep its place while a mean moves. Of a record with more conditions than the small size has today,
    only today's are compared. What a clock says is not compared: the columns ``clocks``, which statistics read as
    they were, and in an experiment with a claim in a unit of ``CLOCK`` every float that is not ``deterministic``,
    so that only its integers and strings are.
    """
    then, now, exact = asked_for(record.ci_rows, found.experiment), found.live, found.experiment.deterministic
    if found.absent or found.tier != "ci" or found.device != "cpu" or found.seed != record.seed:
        return None
    mine = [claim for claim in claims if claim.experiment is found.experiment]
    timed = any(claim.unit in CLOCK for claim in mine)
    floats = [name for name in then if pd.api.types.is_float_dtype(then[name].dtype) and name not in exact]
    clocks = [name for name in found.experiment.clocks if name in then]
    inexact = [name for name in floats if not timed and name not in clocks]
    if len(then.columns) == len(floats) and not inexact:
        return None
    reasons = disagreements(then, now, exact) or strayed(then, now, inexact)
    if reasons or timed:
        return reasons
    now = now.assign(**{name: then[name].to_numpy() for name in clocks})
    return [moved for claim in mine if (moved := _moved(claim, then, now))]


def asked_for(ci_rows: pd.DataFrame, experiment: type[Experiment]) -> pd.DataFrame:
    """The ci rows of a record of the conditions that the small size has today, in their order."""
    today = pd.DataFrame(experiment.at("ci").conditions())
    return ci_rows.merge(today) if {*today.columns} & {*ci_rows.columns} else ci_rows


def _moved(claim: Claim, then: pd.DataFrame, now: pd.DataFrame) -> str:
    """How a statistic with a standard error differs between two tables; empty if it does not, or has none."""
    if claim.kind != "statistic":
        return ""
    a, b = (_measure(claim, rows)[0] for rows in (then, now))
    words = [f"{one.value:.6g}" if one and math.isfinite(one.value) else "no value" for one in (a, b)]
    if "no value" in words:
        same = words[0] == words[1]
    else:
        same = None in (a.error, b.error) or abs(a.value - b.value) <= 4 * math.hypot(a.error, b.error)
    return "" if same else f"{claim.id}: {words[0]} then, {words[1]} now"
