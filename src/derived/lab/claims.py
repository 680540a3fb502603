"""Claims: statements of a paper, their criteria, and how an estimate is judged.

    claim       a statement, its source, its evidence (an experiment, or a check cell of the page), and a criterion
    verdict     holds · fails · refuted (a tempting reading of our own: nobody's failure) · undecided (the
                interval straddles) · reported (no pass or fail) · not run

Criteria are written before the first run. The verdict that is expected of a claim, and the dated changes of its terms,
are data, results/ledger.json and the changes.yml beside each chapter's records, which the builder reads. Nothing is run
here: ``lab.study`` runs experiments and makes the rows of the ledger.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from derived.lab.effect import Published
from derived.lab.experiment import Experiment
from derived.lab.measure import Measure
from derived.lab.names import TIERS
from derived.lab.stats import Estimate

Kind = Literal["identity", "bound", "counterexample", "statistic", "measured", "on page"]
Source = Literal["paper", "digest", "repo", "prior", "ours"]
Verdict = Literal["holds", "fails", "refuted", "undecided", "reported", "not run"]
Scale = Literal["paper", "ours", "toy"]
MadeOf = Literal["synthetic", "real data", "real weights"]
SCALES: Mapping[str, Scale] = MappingProxyType({"ci": "toy", "cpu": "ours", "gpu": "paper"})


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


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One row of the ledger, before anything ran; made by the words below it: ``statistic``, …

    ``accept`` is the range in which the statement holds. For an identity and a bound the value is the worst ratio of a
    gap to its derived bound; for a counterexample it is the size of the violation by an exact witness, and anything
    outside ``accept`` refutes the statement, or if it has an interval that as a whole; for a statistic the whole
    interval must lie inside.
    """

    id: str
    statement: str  # one whole sentence of maths, $…$, that can be read alone
    plain: str = ""  # the same in plain words; the few claims that have it stand first in the chapter's table
    source: Source = "ours"
    where: str = "–"
    paper_value: str | Published = "–"
    kind: Kind
    criterion: str = "–"
    unit: str = ""  # of the value: share, nats, percentage points, of its bound, …
    experiment: type[Experiment] | None = None  # None: nothing that could be run; `reason` says why and what was
    measure: Measure | None = None
    accept: tuple[float, float] = (float("-inf"), 1.0)
    proof: str = ""  # label of the page's proof; a bound without one can at best be undecided
    judged_at: tuple[str, ...] = TIERS  # a training cut short at a small tier compares code, and judges nothing
    reason: str = ""
    amends: str | None = None
    control: Measure | str = (
        ""  # a construction that does nothing, on the same rows: it must fail; or why there is none
    )
    comparison: tuple[str, Measure] | None = None  # name and measure of another method, by the same criterion
    horizon: str = ""  # the largest size that was tried, of a claim about all times, large n, a rate, an exponent
    scale: Mapping[str, Scale] | None = None  # by tier, where it is not the one of SCALES; None: exact, without a scale
    made_of: MadeOf = "synthetic"
    matters: float | None = None  # the smallest effect that matters, beyond the end of a range with one end

    def __post_init__(self) -> None:
        if unknown := {*self.judged_at} - {*TIERS}:
            raise ValueError(f"{self.id}: judged at {', '.join(unknown)}; the tiers are {', '.join(TIERS)}")
        if unknown := {*(self.scale or ())} - {*TIERS}:
            raise ValueError(f"{self.id}: a scale at {', '.join(unknown)}; the tiers are {', '.join(TIERS)}")
        value = self.paper_value
        if isinstance(value, Published) and value.ours is None and value.unit != self.unit:
            raise ValueError(f"{self.id}: the paper's number is in {value.unit!r}, ours in {self.unit!r}; say `ours`")

    def scale_at(self, tier: str) -> Scale | None:
        """Whose size the rows of a tier have; None for an exact result, which has none."""
        return None if self.scale is None else (SCALES | self.scale)[tier]

    def judge(self, estimate: Estimate) -> tuple[Verdict, str]:
        """The verdict on an estimate, and the reason where it needs one. NaN decides nothing."""
        low, high = self.accept
        value = estimate.value
        if math.isnan(value) or not estimate.n > 0:
            return "undecided", f"no number from {estimate.n} instances"
        if self.kind == "measured":
            return "reported", ""
        below, above = (value if bound is None else bound for bound in (estimate.low, estimate.high))
        if self.kind == "statistic":
            if low <= below and above <= high:
                return "holds", ""
            if above < low or below > high:
                return "fails", ""
            return "undecided", "the interval straddles the criterion"
        inside = low <= value <= high
        if self.kind == "counterexample":
            if inside:
                return "undecided", f"no witness among {estimate.n}"
            if low <= above and below <= high:
                return "undecided", "the interval straddles the criterion"
            return ("refuted", "") if self.source == "ours" else ("fails", "refuted by a witness")
        if self.kind == "bound" and inside and not self.proof:
            return "undecided", f"no counterexample in {estimate.n}; only a proof on the page makes it hold"
        return ("holds", "") if inside else ("fails", "")


# The words in which every paper states its claims. ``facts`` are the fields of Claim: source, where, paper_value, …

RECORDED = ("cpu", "gpu")


def _claim(kind: Kind, id: str, statement: str, accept: Range, criterion: str, **facts: Any) -> Claim:
    return Claim(id=id, statement=statement, kind=kind, accept=(accept.low, accept.high), criterion=criterion, **facts)


def refuted(
    id: str,
    statement: str,
    experiment: type[Experiment],
    measure: Measure,
    quantity: str,
    accept: Range,
    **facts: Any,
) -> Claim:
    """A statement that one exact witness outside ``accept`` refutes. For a misreading of our own the verdict is
    "refuted" instead of "fails"."""
    facts = {"experiment": experiment, "measure": measure} | facts
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
    facts = {"experiment": experiment, "measure": measure, "scale": {}} | facts
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
    """A number without chance, such as a recurrence carried far: it must lie in ``accept``."""
    facts = {"experiment": experiment, "measure": measure} | facts
    return _claim("statistic", id, statement, accept, f"{quantity}: {accept.words}", **facts)


def reported(id: str, statement: str, experiment: type[Experiment], measure: Measure, unit: str, **facts: Any) -> Claim:
    """A number that is reported with its interval: nothing passes or fails."""
    facts = {"experiment": experiment, "measure": measure, "unit": unit, "scale": {}} | facts
    return Claim(id=id, statement=statement, kind="measured", **facts)


def on_page(id: str, **facts: Any) -> Claim:
    """A claim that the check cell of a numbered statement decides, by ``check``, ``at_most`` or ``refute`` with its id.

    Its kind comes from the call, its statement and its proof from the page; its terms hold the hash of the cell's code.
    Its control stands in the call; a ``control`` here says why there is none.
    """
    return Claim(id=id, statement=f"see the check that prints {id}", kind="on page", **facts)


def unseen(id: str, statement: str, reason: str, **facts: Any) -> Claim:
    """A statement that cannot be judged here: ``reason`` says why, and names the nearest thing that was run. One claim
    speaks for all of a paper's that share a reason."""
    facts = {"scale": {}, "reason": f"cannot be judged here: {reason}"} | facts
    return Claim(id=id, statement=statement, kind="measured", **facts)
