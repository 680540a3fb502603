"""Times small pieces of an experiment on the core at hand, and carries them on to all of it.

loop        a number of repetitions: two small numbers of it are timed, and what the second adds is carried on
many        a number of replicates, texts, layers, …: reduced as loops are, where loops alone do not make it short
place       a condition; some of them are timed, and the others follow from these, value by value
pilot       the seconds of a core that all conditions are predicted to take
whole       the seconds that they took, or at least took, where the pilot calls them short: the check of the pilot

All seconds are those in which this process had a core, so that other work on the machine does not count.
"""

import contextlib
import dataclasses
import math
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from derived.book.house import House
from derived.book.record import cost
from derived.book.record.counting import DATA, LOOPS, sizes_of
from derived.lab.experiment import Experiment
from derived.lab.study import absence

BUDGET = {"ci": 0.5, "cpu": 3.0}  # seconds, after which no further condition is timed once ``ENOUGH`` are
ENOUGH, MOST = 8, 4  # conditions that are timed, each value among them; but for no longer than so many budgets
OWN = 0.05  # weight of a value of its own beside the power of its number
SMALLER = {"ci": "tiny", "cpu": "ci"}  # the tier whose numbers a pilot begins with
FIRST, NEXT = 12.0, 6.0  # seconds that one piece may take: while there is none yet, and then
FASTER, FEWER = 8, 500  # by how much a loop grows where twice as many add little; that part of a loop is short
LONG = 2.0  # seconds of a piece in which compiling, reading and the like are no matter
SHORT = 10.0  # seconds up to which an experiment also runs whole
INSIDE = (("generations", "lifetime"), ("generations", "steps"))  # loops and what is repeated in them; others follow
MANY = (
    *("replicates", "instances", "replicas", "groups", "draws", "models", "networks", "batch", "batch_size", "inits"),
    *("probes", "images", "pairs", "trials", "entries", "pieces", "taught", "others", "num", "sentences", "per_era"),
    *("genes", "readouts", "members", "depth", "depth_tanh", "paths", "struck", "held_out", "calibration", "n", *DATA),
)

Numbers = Mapping[str, int]


class Over(BaseException):
    """A piece took longer than it may; no experiment catches this."""


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise Over

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def timed(sized: Experiment, condition: Mapping[str, Any], most: float) -> float:
    """Time a condition; ``Over`` where it takes longer than ``most`` seconds."""
    torch.set_num_threads(1)
    started = time.process_time()
    with _at_most(most):
        sized.run(condition, seed=0, device=torch.device("cpu"), dtype=sized.dtype)
    return time.process_time() - started


def carried(seconds: Callable[[Numbers], float], low: Numbers, true: Numbers, enough: float) -> float:
    """Carry what small numbers take on to the true ones.

    The small numbers are doubled until a run takes ``enough`` seconds, and half as long again as the smallest; where
    that adds little, they grow ``FASTER``. Then each grows alone: what it adds is carried on by its own ratio. What a
    loop and one ``INSIDE`` it add together beyond that is carried on by the product of their ratios.
    """
    base = now = dict(low)
    least = seconds(low)
    if least < LONG:  # the first run also compiles, reads and fills caches
        least = seconds(low)
    before = after = least
    while now != true and (base == now or after < max(enough, 1.5 * least)):
        times = 2 if after > 1.2 * before or base == now else FASTER
        more = {name: min(times * number, true[name]) for name, number in now.items()}
        try:
            base, now, before, after = now, more, after, seconds(more)
        except Over:
            if base == now:
                raise
            break
    if now == true:
        return after
    grown = [name for name in base if now[name] > base[name]]
    ratio = {name: (true[name] - base[name]) / (now[name] - base[name]) for name in grown}
    if len(grown) == 1:
        return before + max(after - before, 0) * ratio[grown[0]]
    adds = {name: max(seconds({**base, name: now[name]}) - before, 0) for name in grown}
    total = before + sum(adds[name] * ratio[name] for name in grown)
    for outer, inner in INSIDE:
        if outer in grown and inner in grown:
            both = seconds({**base, outer: now[outer], inner: now[inner]})
            total += max(both - before - adds[outer] - adds[inner], 0) * ratio[outer] * ratio[inner]
    return total


def pilot(experiment: type[Experiment], tier: str) -> float | None:
    """Predict the seconds of a core that an experiment takes; None where no piece of it is short enough.

    Loops are reduced to what they are at the smaller tier, and to fewer where they are many; where that does not make
    the first condition short, so is one number after another of those that are ``MANY``, the most reduced first. What
    an experiment refuses is not reduced so far.
    """
    sized, growing = experiment.at(tier), _growing(experiment, tier)
    numbers = {name: value for name, value in vars(sized).items() if name in MANY and type(value) is int}
    fewer = {name: growing.get(name, value // 8) for name, value in numbers.items()}
    others = sorted((name for name in fewer if fewer[name] > 0), key=lambda name: fewer[name] / getattr(sized, name))
    conditions, started = sized.conditions(), time.process_time()
    enough = min(max(BUDGET[tier] / (4 * len(conditions)), 0.05), 1.0)
    loops = {name: low for name, low in growing.items() if name in LOOPS}
    least = {name: min(low, max(getattr(sized, name) // FEWER, 2)) for name, low in loops.items()}
    places, few, found = spread(conditions), {}, {}
    while places and (
        len(found) < 2 or time.process_time() - started < BUDGET[tier] * (1 if _told(conditions, found) else MOST)
    ):
        piece = _Piece(sized, conditions[places[0]], least, enough, NEXT if found else FIRST)
        try:
            found[places[0]] = piece.carried_on(few)
            del places[0]
            continue
        except Exception:  # whatever an experiment says of so few
            if few:
                few.popitem()
            elif least != loops:
                least = loops
                continue
            else:
                raise
        except Over:
            pass
        if found:
            del places[0]
        elif others:
            few |= {others[0]: fewer[others.pop(0)]}
        else:
            return None
    return between(conditions, found)


@dataclasses.dataclass(frozen=True)
class _Piece:
    """A condition, the numbers of its loops where it is short, and how long a run should and may take."""

    sized: Experiment
    condition: Mapping[str, Any]
    loops: Numbers
    enough: float
    most: float

    def carried_on(self, few: Numbers, sized: Experiment | None = None) -> float:
        """Carry on the loops with ``few`` numbers reduced, and with twice as many of one after another of them."""
        sized = sized or self.sized
        if few:
            (name, low), *rest = few.items()
            one, two = (
                self.carried_on(dict(rest), dataclasses.replace(sized, **{name: low * times})) for times in (1, 2)
            )
            return one + max(two - one, 0) * (getattr(self.sized, name) / low - 1)
        true = {name: getattr(sized, name) for name in self.loops}

        def seconds(now: Numbers) -> float:
            return timed(dataclasses.replace(sized, **now), self.condition, self.most)

        return carried(seconds, self.loops, true, self.enough)


def _growing(experiment: type[Experiment], tier: str) -> dict[str, int]:
    """Find the numbers that are smaller at the smaller tier, and what they are there."""
    sized = experiment.at(tier)
    small = vars(experiment.at(SMALLER[tier])).items()
    return {name: low for name, low in small if type(low) is int and getattr(sized, name) > low > 0}


def _size(condition: Mapping[str, Any]) -> float:
    """Multiply the whole numbers of a condition: the logarithm of the product."""
    return sum(math.log(value) for value in condition.values() if type(value) is int and value > 1)


def _values(condition: Mapping[str, Any]) -> set[tuple[str, str]]:
    return {(name, repr(value)) for name, value in condition.items()}


def _told(conditions: Sequence[Mapping[str, Any]], found: Mapping[int, float]) -> bool:
    """Whether enough conditions are timed, and each value among them."""
    seen = set().union(*(_values(conditions[place]) for place in found))
    return len(found) >= ENOUGH and all(_values(condition) <= seen for condition in conditions)


def spread(conditions: Sequence[Mapping[str, Any]]) -> list[int]:
    """Order places: the largest by the product of whole numbers, the smallest, and then those with most new values."""
    left = sorted(range(len(conditions)), key=lambda place: _size(conditions[place]), reverse=True)
    chosen, seen = [], set()
    while left:
        fresh = [len(_values(conditions[place]) - seen) for place in left]
        chosen.append(left.pop(-1 if len(chosen) == 1 else 0 if not chosen else fresh.index(max(fresh))))
        seen |= _values(conditions[chosen[-1]])
    return chosen


def between(conditions: Sequence[Mapping[str, Any]], found: Mapping[int, float]) -> float:
    """Sum the seconds of all places; those of one that was not timed are a product over its values of what each is
    worth in those that were: a power of its number, and a factor of its own."""
    names = sorted({name for condition in conditions for name in condition})
    numbers = [name for name in names if all(_positive(condition.get(name)) for condition in conditions)]
    values = sorted(set().union(*map(_values, conditions)))
    traits = np.array(
        [
            [*(math.log(each[name]) for name in numbers), *(OWN * (value in _values(each)) for value in values)]
            for each in conditions
        ]
    )
    timed = sorted(found)
    seconds = np.log(np.maximum([found[place] for place in timed], 1e-6))
    traits = traits - traits[timed].mean(axis=0)
    worth = np.linalg.lstsq(traits[timed], seconds, rcond=1e-9)[0]
    line = np.exp(seconds.mean() + traits @ worth)
    return float(sum(found.get(place, each) for place, each in enumerate(line)))


def _positive(value: Any) -> bool:
    return type(value) in (int, float) and value > 0


def whole(experiment: type[Experiment], tier: str) -> float:
    """Time all conditions of an experiment, until they have taken twice as long as is short: then they take more."""
    sized, left = experiment.at(tier), 2 * SHORT
    with contextlib.suppress(Over):
        for condition in sized.conditions():
            left -= timed(sized, condition, max(left, 1e-3))
        return 2 * SHORT - max(left, 0)
    return 2 * SHORT


def keep_all(house: House, experiment: type[Experiment]) -> Iterator[str]:
    """Make the pilots of an experiment that are not there at its sizes of today, and say what each gave."""
    for tier in (each for each in SMALLER if each in experiment.tiers):
        known = cost.counts(house).get(cost.name_of(experiment.paper(), experiment.__name__, tier), {})
        if "pilot" not in known or known["of"] != sizes_of(experiment, tier):
            yield keep(house, experiment, tier)


def keep(house: House, experiment: type[Experiment], tier: str) -> str:
    """Make the pilot of an experiment at a tier and, where it is short, the whole; keep both, and say them."""
    name = cost.name_of(experiment.paper(), experiment.__name__, tier)
    if lacking := absence(experiment):
        return f"{name}: {lacking}"
    try:
        seconds = pilot(experiment, tier)
    except Exception as error:  # whatever an experiment says of so few steps; the others go on
        return f"{name}: no pilot, {type(error).__name__}: {error}"
    if seconds is None:
        return f"{name}: no piece of it takes less than {FIRST:.0f} s"
    took = whole(experiment, tier) if seconds < SHORT else None
    entry = {"pilot": round(seconds, 2)} | ({"whole": round(took, 2)} if took else {})
    cost.keep(house, {name: {"of": sizes_of(experiment, tier)} | entry})
    return f"{name}: {cost.spell(seconds)}, took {cost.spell(took) if took else 'longer than is tried'}"
