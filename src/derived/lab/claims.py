"""Claims: statements of a paper, their criteria, and how an estimate is judged.

    claim       a statement, its source, its evidence (an experiment, or a check cell of the page), and a criterion
    verdict     holds · fails · refuted (a tempting reading of our own: nobody's failure) · undecided (the
                interval straddles) · reported (no pass or fail) · not run

Criteria are written before the first run. The verdict that is expected of a claim, and the dated changes of its terms,
are data, results/ledger.json and the changes.yml beside each chapter's records, which the builder reads. Nothing is run
here: ``lab.study`` runs experiments and makes the rows of the ledger.
"""

import math
import pkgutil
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any, Literal

from derived.lab.effect import Published
from derived.lab.experiment import Experiment
from derived.lab.measure import Measure
from derived.lab.names import TIERS
from derived.lab.sources import NO_TOPICS
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
    """One row of the ledger, before anything ran; made by the words below it: ``identity``, ``bound``, ``refuted``, …

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

OF_BOUND = "of its bound"
RECORDED = ("cpu", "gpu")


def _claim(kind: Kind, id: str, statement: str, accept: Range, criterion: str, **facts: Any) -> Claim:
    return Claim(id=id, statement=statement, kind=kind, accept=(accept.low, accept.high), criterion=criterion, **facts)


def bound(
    id: str,
    statement: str,
    experiment: type[Experiment],
    measure: Measure,
    proof: str,
    quantity: str = "largest ratio to the bound",
    **facts: Any,
) -> Claim:
    """One thing is at most another: ``proof`` is the label of the page's proof, the worst ratio looks for its slips."""
    facts = {"unit": OF_BOUND, "experiment": experiment, "measure": measure, "proof": proof} | facts
    return _claim("bound", id, statement, at_most(1.0), f"{quantity}: at most $1$, and the proof", **facts)


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
    """A statement that could not be tested: ``reason`` says why, and names the nearest thing that was run."""
    return Claim(id=id, statement=statement, kind="measured", reason=reason, **{"scale": {}} | facts)


def collect(name: str) -> tuple[tuple[Claim, ...], tuple[type[Experiment], ...]]:
    """A paper's claims, in the order of their numbers and letters, and its experiments, in the order in which their
    topics come first there: ``CLAIMS, EXPERIMENTS = collect(__name__)`` in the paper's module ``claims``.

    A class from which others derive is no experiment itself unless a claim rests on it.
    """
    modules = dict(_topics(name.rpartition(".")[0]))
    stated = [(claim, topic) for topic, module in modules.items() for claim in _stated(module)]
    stated = sorted(stated, key=lambda pair: _place(pair[0].id))
    claims, topics = [claim for claim, _ in stated], [*dict.fromkeys(topic for _, topic in stated)]
    ordered = sorted(modules, key=lambda topic: topics.index(topic) if topic in topics else len(topics))
    defined = [experiment for topic in ordered for experiment in _defined(modules[topic])]
    rested_on, bases = {claim.experiment for claim in claims}, {base for one in defined for base in one.__mro__[1:]}
    return tuple(claims), tuple(one for one in defined if one in rested_on or one not in bases)


def _topics(paper: str) -> list[tuple[str, ModuleType]]:
    """The modules of a paper by name, without its packages (``model``, ``data``) and what states nothing."""
    found = pkgutil.iter_modules(import_module(paper).__path__)
    names = [each.name for each in found if not each.ispkg and each.name not in NO_TOPICS]
    return [(name, import_module(f"{paper}.{name}")) for name in names]


def _stated(file: ModuleType) -> list[Claim]:
    """The claims that a topic states, alone or in tuples, each once."""
    held = [one for each in vars(file).values() for one in (each if isinstance(each, tuple) else (each,))]
    return [*{id(one): one for one in held if isinstance(one, Claim)}.values()]


def _defined(file: ModuleType) -> Iterator[type[Experiment]]:
    for each in vars(file).values():
        if isinstance(each, type) and issubclass(each, Experiment) and each.__module__ == file.__name__:
            yield each


def _place(id: str) -> list[tuple[int, str]]:
    """The place of a claim: numbers before letters, numbers by their size.

    >>> sorted(["OLS-10.b", "OLS-9", "OLS-E1.a", "OLS-10.a", "OLS-9b"], key=_place)
    ['OLS-9', 'OLS-9b', 'OLS-10.a', 'OLS-10.b', 'OLS-E1.a']
    """
    parts = re.findall(r"\d+|[^\d.]+", id.partition("-")[2])
    return [(int(part), "") if part.isdigit() else (sys.maxsize, part) for part in parts]
