"""The ledger: each statement of a paper as one typed row, what we measured, and a verdict.

    claim       a statement, where it stands, the experiment whose rows are its evidence, and a criterion
    study       one experiment as a chapter sees it: the rows made just now, and the records
    verdict     holds · fails · refuted (a tempting reading of our own making: no failure of anybody) · undecided (the
                interval straddles) · reported (no pass or fail) · not run

    terms       what a verdict rests on: statement, criterion, accepted range, and the experiment's configuration

Terms are written before the first run. What of them changes after rows exist stands in the claim as a dated ``Change``.
Nothing here runs an experiment twice.
"""

import datetime
import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import pandas as pd

from derived.lab.experiment import Experiment, resolve_device, run_experiment
from derived.lab.findings import COLUMNS
from derived.lab.measure import Measure
from derived.lab.names import TIERS
from derived.lab.record import Record, code_changed, disagreements, load, remake
from derived.lab.stats import Estimate

Kind = Literal["identity", "bound", "counterexample", "statistic", "measured"]
Source = Literal["paper", "digest", "repo", "prior", "ours"]
Verdict = Literal["holds", "fails", "refuted", "undecided", "reported", "not run"]

AS_RETOLD = "as retold; the paper's own text was not seen"


@dataclass(frozen=True)
class Range:
    """Where a value or an interval must lie, and the words for it, made from the same numbers."""

    low: float
    high: float
    words: str
    outside: str  # what refutes


def _written(number: float, name: str = "") -> str:
    digits, _, exponent = f"{number:.10g}".partition("e")
    if exponent and not name:
        name = rf"{digits}\cdot10^{{{int(exponent)}}}".removeprefix(r"1\cdot")
    return f"${name or digits}$"


def within(centre: float, reach: float, name: str = "") -> Range:
    """From ``centre - reach`` to ``centre + reach``; ``name`` is how the centre is written, such as ``\\frac23``.

    >>> within(2, 0.25).words
    'within $2$ ± $0.25$'
    """
    words = f"{_written(centre, name)} ± {_written(reach)}"
    return Range(centre - reach, centre + reach, f"within {words}", f"outside {words}")


def between(low: float, high: float, name: str = "") -> Range:
    """From ``low`` to ``high``; ``name`` is how the two ends are written."""
    words = f"${name or f'[{low:.10g}, {high:.10g}]'}$"
    return Range(low, high, f"within {words}", f"outside {words}")


def at_most(high: float, name: str = "") -> Range:
    """Up to a number, that number included."""
    return Range(-math.inf, high, f"at most {_written(high, name)}", f"above {_written(high, name)}")


def at_least(low: float, name: str = "") -> Range:
    """From a number on, that number included."""
    return Range(low, math.inf, f"at least {_written(low, name)}", f"below {_written(low, name)}")


def exactly(value: float, name: str = "") -> Range:
    """One number."""
    return Range(value, value, f"exactly {_written(value, name)}", f"other than {_written(value, name)}")


@dataclass(frozen=True)
class Change:
    """What of a claim's terms changed after rows existed; ``what`` and ``why`` are whole sentences."""

    date: str  # ISO 8601, the day
    what: str
    why: str

    def __post_init__(self) -> None:
        datetime.date.fromisoformat(self.date)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One row of the ledger, before anything ran; made by the words below it: ``identity``, ``bound``, ``refuted``, …

    ``accept`` is the range in which the statement holds. For an identity and a bound the value is the worst ratio of a
    gap to its derived bound; for a counterexample it is the size of the violation by an exact witness, and anything
    above ``accept`` refutes the statement; for a statistic the whole interval must lie inside.
    """

    id: str
    statement: str  # one whole sentence of maths, $…$, that can be read alone
    plain: str = ""  # the same in plain words; the few claims that have it stand first in the chapter's table
    source: Source = "ours"
    where: str = "–"
    paper_value: str = "–"
    kind: Kind
    criterion: str = "–"
    unit: str = ""  # of the value: share, nats, percentage points, of its bound, …
    experiment: type[Experiment] | None = None  # None: nothing that could be run; `reason` says why and what was
    measure: Measure | None = None
    accept: tuple[float, float] = (float("-inf"), 1.0)
    proof: str = ""  # label of the page's proof; a bound without one can at best be undecided
    expected: Mapping[str, Verdict] = field(default_factory=dict)  # by tier
    judged_at: tuple[str, ...] = TIERS  # a training cut short at a small tier compares code, and judges nothing
    reason: str = ""
    amends: str | None = None
    changed: tuple[Change, ...] = ()  # oldest first

    def __post_init__(self) -> None:
        if [change.date for change in self.changed] != sorted(change.date for change in self.changed):
            raise ValueError(f"{self.id}: its changes stand in another order than that of their dates")
        unknown = {*self.expected, *self.judged_at} - {*TIERS}
        if unknown or not {*self.expected.values()} <= {*get_args(Verdict)}:
            raise ValueError(f"{self.id}: expected {dict(self.expected)} names no tier or verdict that there is")

    def judge(self, estimate: Estimate) -> tuple[Verdict, str]:
        """The verdict on an estimate, and the reason where it needs one. NaN decides nothing."""
        low, high = self.accept
        value = estimate.value
        if self.kind == "measured":
            return "reported", ""
        if math.isnan(value) or not estimate.n > 0:
            return "undecided", f"no number from {estimate.n} instances"
        if self.kind == "statistic":
            below, above = (value if bound is None else bound for bound in (estimate.low, estimate.high))
            if low <= below and above <= high:
                return "holds", ""
            if above < low or below > high:
                return "fails", ""
            return "undecided", "the interval straddles the criterion"
        inside = low <= value <= high
        if self.kind == "counterexample":
            if inside:
                return "undecided", f"no witness among {estimate.n}"
            return ("refuted", "") if self.source == "ours" else ("fails", "refuted by a witness")
        if self.kind == "bound" and inside and not self.proof:
            return "undecided", f"no counterexample in {estimate.n}; no proof on the page"
        return ("holds", "") if inside else ("fails", "")


# The words in which every paper states its claims. ``facts`` are the fields of Claim: source, where, paper_value, …


def holds(*tiers: str) -> dict[str, Verdict]:
    """What is expected: that the statement holds at these tiers."""
    return dict.fromkeys(tiers, "holds")


def fails(*tiers: str) -> dict[str, Verdict]:
    """What is expected: that the statement fails at these tiers."""
    return dict.fromkeys(tiers, "fails")


def undecided(*tiers: str) -> dict[str, Verdict]:
    """What is expected: that the rows of these tiers do not decide."""
    return dict.fromkeys(tiers, "undecided")


OF_BOUND = "of its bound"
RECORDED = ("cpu", "gpu")


def _claim(kind: Kind, id: str, statement: str, accept: Range, criterion: str, **facts: Any) -> Claim:
    facts = {"expected": holds("ci")} | facts
    return Claim(id=id, statement=statement, kind=kind, accept=(accept.low, accept.high), criterion=criterion, **facts)


def identity(
    id: str,
    statement: str,
    experiment: type[Experiment],
    measure: Measure,
    quantity: str = "largest gap over its derived rounding bound",
    accept: Range = at_most(1.0),  # noqa: B008
    **facts: Any,
) -> Claim:
    """Two things are equal: the worst gap against a bound that is derived, over all instances."""
    facts = {"unit": OF_BOUND, "experiment": experiment, "measure": measure} | facts
    return _claim("identity", id, statement, accept, f"{quantity}: {accept.words}", **facts)


def bound(
    id: str,
    statement: str,
    experiment: type[Experiment],
    measure: Measure,
    proof: str,
    quantity: str = "largest ratio to the bound",
    accept: Range = at_most(1.0),  # noqa: B008
    **facts: Any,
) -> Claim:
    """One thing is at most another: ``proof`` is the label of the page's proof, the worst ratio looks for its slips."""
    facts = {"unit": OF_BOUND, "experiment": experiment, "measure": measure, "proof": proof} | facts
    return _claim("bound", id, statement, accept, f"{quantity}: {accept.words}, and the proof", **facts)


def refuted(
    id: str,
    statement: str,
    experiment: type[Experiment],
    measure: Measure,
    quantity: str,
    accept: Range,
    **facts: Any,
) -> Claim:
    """A statement that one exact witness outside ``accept`` refutes; one of our own making is put up for that, and what
    would be "fails" of a paper is "refuted" here."""
    facts = {"experiment": experiment, "measure": measure, "expected": fails("ci"), "source": "ours"} | facts
    if facts["source"] == "ours":
        said = {tier: "refuted" if verdict == "fails" else verdict for tier, verdict in facts["expected"].items()}
        facts["expected"] = said
    return _claim("counterexample", id, statement, accept, f"refuted by {quantity} {accept.outside}", **facts)


def statistic(
    id: str,
    statement: str,
    experiment: type[Experiment],
    measure: Measure,
    quantity: str,
    accept: Range,
    **facts: Any,
) -> Claim:
    """A number with an interval over independent draws, the whole of which must lie in ``accept``."""
    facts = {"experiment": experiment, "measure": measure} | facts
    return _claim("statistic", id, statement, accept, f"{quantity}: 99.9 % interval {accept.words}", **facts)


def computed(
    id: str,
    statement: str,
    experiment: type[Experiment],
    measure: Measure,
    quantity: str,
    accept: Range,
    **facts: Any,
) -> Claim:
    """A number in which there is no chance, such as a recurrence carried far: it must lie in ``accept``."""
    facts = {"experiment": experiment, "measure": measure} | facts
    return _claim("statistic", id, statement, accept, f"{quantity}: {accept.words}", **facts)


def reported(id: str, statement: str, experiment: type[Experiment], measure: Measure, unit: str, **facts: Any) -> Claim:
    """A number that is only told, with its interval: nothing passes or fails."""
    facts = {"judged_at": TIERS} | facts
    return Claim(
        id=id,
        statement=statement,
        kind="measured",
        experiment=experiment,
        measure=measure,
        unit=unit,
        expected=dict.fromkeys(facts["judged_at"], "reported"),
        **facts,
    )


def unseen(id: str, statement: str, reason: str, **facts: Any) -> Claim:
    """A statement that could not be tested: ``reason`` says why, and what the nearest thing is that was run."""
    return Claim(id=id, statement=statement, kind="measured", reason=reason, **facts)


@dataclass(frozen=True)
class Study:
    """One experiment as a chapter sees it: live rows of this run, and the records of the larger tiers."""

    experiment: type[Experiment]
    tier: str  # of the live rows
    seed: int
    device: str  # cpu or cuda
    live: pd.DataFrame = field(repr=False)
    records: Mapping[str, Record] = field(repr=False)

    @property
    def rows(self) -> pd.DataFrame:
        """All rows with the columns ``tier`` and ``recorded``: records first, then the live ones."""
        tables = [record.rows.assign(tier=tier, recorded=True) for tier, record in self.records.items()]
        return pd.concat([*tables, self.live.assign(tier=self.tier, recorded=False)], ignore_index=True)

    @property
    def best(self) -> pd.DataFrame:
        """The rows of the largest tier that ran."""
        larger = [tier for tier in self.records if TIERS.index(tier) > TIERS.index(self.tier)]
        return self.records[max(larger, key=TIERS.index)].rows if larger else self.live

    def provenance(self) -> str:
        """Where the numbers come from, for a caption."""
        records = [
            f"recorded at tier {tier} on {record.device_name}, {record.date[:10]}, seed {record.seed}"
            for tier, record in self.records.items()
        ]
        return "; ".join([*records, f"live at tier {self.tier}, seed {self.seed}"])


def study(experiment: type[Experiment], tier: str, seed: int, device: str) -> Study:
    """Run an experiment at a tier (or the largest one below it that the experiment has) and load its records."""
    if tier not in TIERS:
        raise ValueError(f"tier {tier!r} is unknown: use {', '.join(TIERS)}")
    offered = [name for name in TIERS[: TIERS.index(tier) + 1] if name in experiment.tiers]
    if not offered:
        raise ValueError(f"{experiment.__name__} has no tier up to {tier}; it has {', '.join(experiment.tiers)}")
    live = run_experiment(experiment.at(offered[-1]), seed=seed, device=device)
    found = {name: load(experiment, name) for name in TIERS if name in experiment.tiers and name != "ci"}
    records = {name: record for name, record in found.items() if record is not None}
    return Study(experiment, offered[-1], seed, resolve_device(device).type, live, records)


def _measure(claim: Claim, rows: pd.DataFrame) -> tuple[Estimate | None, Verdict, str]:
    if "failure" in rows.columns:
        failed = rows["failure"].dropna()
        return None, "undecided", f"{len(failed)} conditions failed, the first with {failed.iloc[0]}"
    try:
        estimate = claim.measure(rows)
    except ValueError as error:  # an interval that the rows do not allow
        return None, "undecided", str(error)
    return estimate, *claim.judge(estimate)


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
    return fixed | {"terms": hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()[:16]}


TAKEN_OVER = ("id", "kind", "plain", "source", "where", "paper_value", "unit", "amends", "proof")


def _row(claim: Claim, paper: str, tier: str, **found: Any) -> dict[str, Any]:
    estimate: Estimate | None = found.pop("estimate", None)
    numbers = {name: _finite(getattr(estimate, name, None)) for name in ("value", "low", "high")}
    row = {
        **{name: getattr(claim, name) for name in TAKEN_OVER},
        **terms(claim, tier),
        "experiment": claim.experiment.__name__ if claim.experiment else None,
        **{"changed": [asdict(change) for change in claim.changed], "paper": paper, "tier": tier, "device": None},
        **{**numbers, "n": estimate.n if estimate else None, "expected": claim.expected.get(tier), "headline": False},
        **found,
    }
    if estimate is not None and numbers["value"] is None:
        row["reason"] = "; ".join(part for part in ("the value is not a finite number", row["reason"]) if part)
    if row["verdict"] == "fails" and claim.source == "digest":
        row["reason"] = "; ".join(part for part in (AS_RETOLD, row["reason"]) if part)
    return {name: row[name] for name in COLUMNS}


def _rows_of(claim: Claim, paper: str, found: Study | None) -> list[dict[str, Any]]:
    """One row per tier that the claim's experiment has, the headline marked."""
    if claim.experiment is None:
        return [_row(claim, paper, "gpu", verdict="not run", reason=claim.reason) | {"headline": True}]
    rows = []
    for tier in (name for name in claim.judged_at if name in claim.experiment.tiers):
        record = found.records.get(tier)
        if tier == found.tier:  # a rerunner's own run of a recorded tier stands here, with ours named in the reason
            estimate, verdict, reason = _measure(claim, found.live)
            device, seed = found.device, found.seed
            if record is not None:
                ours, ours_verdict, _ = _measure(claim, record.rows)
                value = "no value" if ours is None else f"{ours.value:.4g}"
                reason = "; ".join(part for part in (reason, f"ours, recorded: {value}, {ours_verdict}") if part)
        elif record is not None:
            estimate, verdict, reason = _measure(claim, record.rows)
            device, seed = record.device_name, record.seed
        else:
            command = "make site" if tier == "ci" else remake(paper, claim.experiment.__name__, tier)
            reason = f"no {tier} run here yet: {command}" if tier == "ci" else f"not recorded at {tier} yet: {command}"
            rows.append(_row(claim, paper, tier, verdict="not run", reason=reason, expected=None))
            continue
        rows.append(_row(claim, paper, tier, estimate=estimate, verdict=verdict, reason=reason, device=device))
        if seed != 0:
            rows[-1]["expected"] = None  # a rerunner's seed is shown, and judged by no expected verdict
    ran = [row for row in rows if row["verdict"] != "not run"]
    (ran or rows)[-1]["headline"] = True
    return rows


def ledger(paper: str, claims: Sequence[Claim], studies: Sequence[Study]) -> list[dict[str, Any]]:
    """The rows of a chapter: one per claim and tier, in the order of the claims."""
    by_class = {found.experiment: found for found in studies}
    missing = {claim.experiment.__name__ for claim in claims if claim.experiment and claim.experiment not in by_class}
    if missing:
        raise ValueError(f"claims rest on experiments that the chapter did not run: {', '.join(sorted(missing))}")
    ids = [claim.id for claim in claims]
    unknown = {claim.amends for claim in claims if claim.amends} - set(ids)
    if len(set(ids)) < len(ids) or unknown:
        raise ValueError(f"the claims of {paper} repeat an id or amend one that is not there: {sorted(unknown) or ids}")
    return [row for claim in claims for row in _rows_of(claim, paper, by_class.get(claim.experiment))]


def record_states(claims: Sequence[Claim], studies: Sequence[Study]) -> list[dict[str, Any]]:
    """For each record slot of the studies: where it comes from and whether it is still what the code gives."""
    states = []
    for found in studies:
        name, paper = found.experiment.__name__, found.experiment.paper()
        for tier in (tier for tier in found.experiment.tiers if tier != "ci"):
            record = found.records.get(tier)
            facts = {key: getattr(record, key, None) for key in ("date", "seconds", "peak_memory_mb", "device_name")}
            facts["device"] = facts.pop("device_name")
            state = {
                "experiment": name,
                "tier": tier,
                **facts,
                "state": "missing",
                "reasons": [remake(paper, name, tier)],
            }
            if record is not None:
                state["reasons"] = staleness(claims, found, record)
                changed = "code has changed since" if code_changed(record, found.experiment) else "unchanged"
                state["state"] = "stale" if state["reasons"] else changed
            states.append(state)
    return states


def staleness(claims: Sequence[Claim], found: Study, record: Record) -> list[str]:
    """Why a record is stale: its ci rows against the live ones. Compared only where both were made alike."""
    if found.tier != "ci" or found.device != "cpu" or found.seed != record.seed:
        return []
    reasons = disagreements(record.ci_rows, found.live, found.experiment.deterministic)
    if reasons:
        return reasons
    for claim in claims:
        if claim.experiment is not found.experiment or claim.kind != "statistic":
            continue
        then, now = (_measure(claim, rows)[0] for rows in (record.ci_rows, found.live))
        if then is None or now is None or None in (then.error, now.error):
            continue
        if abs(then.value - now.value) > 4 * (then.error**2 + now.error**2) ** 0.5:
            reasons.append(f"{claim.id}: {then.value:.6g} then, {now.value:.6g} now")
    return reasons
