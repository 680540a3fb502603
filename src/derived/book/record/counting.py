"""Counts what an experiment would do at a size, from the shapes of its tensors alone: nothing large is computed.

launch      one operation of torch, a kernel on a card
loop        a number of repetitions (steps, generations, …): counted at the small number of tier ci, twice it and four
            times it, and carried on
data        a number of texts or of items that are judged: they stay as few as at tier ci, since training is the cost
held        the bytes of all tensors that live at once, at their most
"""

import contextlib
import dataclasses
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from torch.utils.flop_counter import flop_registry

from derived.book.house import House, UserError
from derived.book.record import cost, scaling
from derived.lab import checks
from derived.lab.experiment import Experiment
from derived.lab.findings import hashed
from derived.lab.record import read, slot
from derived.lab.study import absence

SMALL = 4096  # elements up to which an operation is done: numbers that steer a loop are right
LOOPS = (
    *("steps", "search", "draft_steps", "pretraining", "generations", "founding", "lifetime", "repeats", "rounds"),
    *("timed", "tokens", "iterations", "epochs", "updates"),
)
DATA = ("corpus", "size_of_text", "num_train", "num_test", "judged", "texts", "validation", "test", "few", "prompts")
ENOUGH = 100_000  # operations, after which the conditions that are left count as those before them
FREE = tuple(getattr(torch.ops.aten, name).default for name in ("_local_scalar_dense", "detach", "alias"))  # no kernel
RARE = ("isnan", "isinf", "logical_not", "bitwise_not", "ne", "lt")  # what checks look for: nowhere true
DECOMPOSED = (
    "linalg_eig",
    "linalg_svd",
    "linalg_qr",
    "linalg_inv",
    "linalg_chol",
    "linalg_solve",
    "linalg_lu",
    "cholesky",
)
MISLED = 10  # times as long as counted, a record shows that shapes did not see most of the work
SIZES, PATIENCE = 8, 5  # that are counted of an experiment at most, and seconds of a count after which it is the last
DENSE = 10  # multiply-adds of a decomposition of an n × n matrix, over n³

Count = Counter[str]  # launches, bytes, held, and multiply-adds by their dtype


class Shapes(TorchDispatchMode):
    """Counts operations and passes tensors on that have a shape and one element; true ones where it has no value."""

    def __init__(self, value: float | None) -> None:
        super().__init__()
        self.value = value  # of every real number
        self.found: Count = Counter()
        self._known: dict[Any, tuple[tuple[tuple[str, int], ...], bool, Any]] = {}
        self._writes: dict[Any, list[tuple[int, str]]] = {}
        self._live: list[tuple[StorageWeakRef, int]] = []
        self._held = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # a third of the time: nothing here is compiled

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func not in self._writes:
            self._writes[func] = [
                (place, each.name)
                for place, each in enumerate(func._schema.arguments)
                if each.alias_info is not None and each.alias_info.is_write
            ]
        if func is torch.ops.aten._linalg_check_errors.default:
            return None  # it looks at every number
        if func.is_view or func in FREE:
            return func(*args, **kwargs)
        key = (func, _kind(args), _kind(tuple(kwargs.items())))
        if key not in self._known:
            self._known[key] = _learn(func, args, kwargs)
        count, large, like = self._known[key]
        for name, number in count:
            self.found[name] += number
        if self.value is None:
            given = func(*args, **kwargs)
            return given if self._writes[func] else tree_map_only(torch.Tensor, self._watched, given)
        written = [args[at] if at < len(args) else kwargs.get(name) for at, name in self._writes[func]]
        if not large and not any(_is_stand_in(each) for each in tree_leaves(written)):
            return func(*args, **kwargs)
        if written:
            return (None, written[0], tuple(written))[min(len(func._schema.returns), 2)]
        flag = func._overloadpacket.__name__ not in RARE
        return tree_map_only(torch.Tensor, lambda each: self._stand_in(each, flag), like)

    def _stand_in(self, like: torch.Tensor, flag: bool) -> torch.Tensor:
        value = self.value if like.dtype.is_floating_point else flag if like.dtype == torch.bool else 0
        return self._watched(torch.full((), value, dtype=like.dtype).expand(like.shape))

    def _watched(self, each: torch.Tensor) -> torch.Tensor:
        self._live.append((StorageWeakRef(each.untyped_storage()), each.numel() * each.element_size()))
        self._held += self._live[-1][1]
        if self._held > self.found["held"]:
            self._live = [pair for pair in self._live if not pair[0].expired()]
            self._held = sum(size for _, size in self._live)
            self.found["held"] = max(self.found["held"], self._held)
        return each


def _is_stand_in(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and 0 in value.stride() and value.numel() > 1


def _kind(value: Any) -> Any:
    """Select what of an argument decides about shapes."""
    if isinstance(value, torch.Tensor):
        return value.shape, value.dtype
    if isinstance(value, list | tuple):
        return tuple(map(_kind, value))
    return None if isinstance(value, torch.Generator) else value


def _learn(func: Any, args: Any, kwargs: Any) -> tuple[tuple[tuple[str, int], ...], bool, Any]:
    """Find what an operation costs, whether it is large, and what it returns, as tensors without memory."""
    given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
    try:
        like, large = _without_memory(func, args, kwargs), True
    except RuntimeError:  # NotImplementedError is one: its shape depends on numbers
        like, large = func(*args, **kwargs), False
    tensors = [*given, *(each for each in tree_leaves(like) if isinstance(each, torch.Tensor))]
    count: Count = Counter(launches=1, bytes=sum(each.numel() * each.element_size() for each in tensors))
    adds = 0
    if func._overloadpacket in flop_registry:
        adds = flop_registry[func._overloadpacket](*args, **kwargs, out_val=like) // 2
    elif func._schema.name.removeprefix("aten::").lstrip("_").startswith(DECOMPOSED) and given[0].ndim > 1:
        adds = DENSE * given[0].numel() * given[0].shape[-1]
    if adds:
        count[str(given[0].dtype).removeprefix("torch.")] = adds
    return tuple(count.items()), large and max((each.numel() for each in tensors), default=0) > SMALL, like


def _without_memory(func: Any, args: Any, kwargs: Any) -> Any:
    def meta(each: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(each.shape, each.stride(), dtype=each.dtype, device="meta")

    args, kwargs = tree_map_only(torch.Tensor, meta, (args, kwargs))
    args, kwargs = tree_map_only(torch.Generator, lambda _: None, (args, kwargs))
    place = {"device": torch.device("meta")} if "device" in kwargs else {}
    return func(*args, **{name: value for name, value in kwargs.items() if name != "pin_memory"} | place)


def count(experiment: type[Experiment], tier: str) -> dict[str, float]:
    """Count the operations of an experiment at a tier: the sum over its conditions, and the most that one holds.

    Its tensors have their true shapes. Where the code looks at numbers that only a true run has, or loops until it has
    found something, what it truly does at tier ci is carried on; where it needs real things, its record at tier cpu.
    """
    if absence(experiment):
        return grown(experiment, tier)
    record = read(slot(experiment.paper(), experiment.__name__, "cpu"), "")
    taken = record.seconds if record else 0
    found = _by_shapes(experiment, tier)
    counted = cost.on(cost.cards()[0], found).seconds
    if found and taken <= MISLED * counted:
        return found | ({"host": round(taken - counted)} if taken >= counted + 1 else {})
    carried = _from_smaller(experiment, tier)  # not believed where a core would be done with it sooner than it was
    return carried if cost.on(cost.cards()[0], carried).seconds >= taken else grown(experiment, tier)


def _growing(experiment: type[Experiment], tier: str) -> dict[str, tuple[int, int]]:
    """Find the numbers that are larger than at tier ci, as pairs."""
    sized, small = experiment.at(tier), experiment.at("ci" if "ci" in experiment.tiers else tier)
    numbers = {name: value for name, value in small.configuration().items() if type(value) is int}
    return {name: (low, getattr(sized, name)) for name, low in numbers.items() if getattr(sized, name) > low > 0}


def _by_shapes(experiment: type[Experiment], tier: str) -> dict[str, float]:
    """Count with stand-ins of one half, then of one: they pass for probabilities, and for sums of these. Empty where
    the code refuses both."""
    sized, growing = experiment.at(tier), _growing(experiment, tier)
    loops = {name: pair for name, pair in growing.items() if name in LOOPS}
    data = {name: low for name, (low, _) in growing.items() if name in DATA}
    for value in (0.5, 1.0):
        with contextlib.suppress(ValueError, RuntimeError, IndexError, ArithmeticError):
            total = _carried_on(dataclasses.replace(sized, **data), loops, value)
            return {key: round(number) for key, number in total.items() if number > 0}
    return {}


def _from_smaller(experiment: type[Experiment], tier: str) -> dict[str, float]:
    """Carry on what an experiment truly does at its smallest tier: a size by the power that twice this size shows, the
    number of a condition by the power that the nearest two show."""
    small, sized = experiment.at(next(iter(experiment.tiers))), experiment.at(tier)
    changed = {
        name: (low, high)
        for name, low in small.configuration().items()
        if (high := sized.configuration()[name]) != low and type(low) in (int, float) and low > 0 and high > 0
    }
    lists = {name: value for name, value in vars(sized).items() if isinstance(value, tuple)}
    wanted = dataclasses.replace(small, **lists).conditions()
    number = len(small.conditions())
    counts = [(each, _share(_counted(small, [place], None), number)) for place, each in enumerate(small.conditions())]
    total, held = Counter(), 0
    for each in wanted:
        one = _like(each, counts)
        held = max(held, one.pop("held", 0))
        total.update(one)
    total["held"] = held
    place = number // 2
    for name, (low, high) in changed.items():
        twice = _counted(dataclasses.replace(small, **{name: type(low)(2 * low)}), [place], None)
        for key, base in _counted(small, [place], None).items():
            total[key] *= (high / low) ** math.log2(max(twice[key], 1) / base)
    return {key: round(number) for key, number in total.items() if number > 0} | {"carried": 1}


def _like(wanted: Mapping[str, Any], counts: Sequence[tuple[Mapping[str, Any], Count]]) -> Count:
    """Carry the counts of conditions on to another one: by the power of the nearest two that differ from it in one
    number, else their mean."""
    for each, one in counts:
        if each == wanted:
            return Counter(one)
    for name, high in wanted.items():
        if type(high) not in (int, float):
            continue
        alike = [(each[name], one) for each, one in counts if {**each, name: high} == wanted]
        alike = sorted((pair for pair in alike if pair[0] > 0 < high), key=lambda pair: abs(math.log(pair[0] / high)))
        if len(alike) > 1:
            (x, first), (y, second) = alike[:2]
            power = {key: math.log(first[key] / second[key]) / math.log(x / y) for key in first if second[key]}
            return Counter({key: round(first[key] * (high / x) ** power.get(key, 0)) for key in first})
    mean = sum((one for _, one in counts), Counter())
    mean["held"] = 0
    return _share(mean, len(counts)) | Counter(held=max(one["held"] for _, one in counts))


def _share(count: Count, number: int) -> Count:
    return Counter({key: each if key == "held" else each // number for key, each in count.items()})


def grown(experiment: type[Experiment], tier: str) -> dict[str, float]:
    """Carry the record of tier cpu on by the growth of its loops and lists, as if a card made up for its other sizes;
    empty without a record."""
    record = read(slot(experiment.paper(), experiment.__name__, "cpu"), "")
    if record is None:
        return {}
    times = 1.0
    for name, high in experiment.at(tier).configuration().items():
        low = record.configuration.get(name)
        if isinstance(low, list) and low and high:
            times *= len(high) / len(low)
        elif name in LOOPS and low:
            times *= high / low
    return {"recorded": round(record.seconds * times, 1)}


def _carried_on(base: Experiment, loops: Mapping[str, tuple[int, int]], value: float) -> Mapping[str, float]:
    """Count with all loops at their small number, twice and four times that, and carry the part that grows on to their
    true numbers: by the product of their ratios where loops are nested, by the mean where one follows another."""
    start = {name: low for name, (low, _) in loops.items()}
    places, one = _enough(dataclasses.replace(base, **start), value)
    two, four = (
        _counted(dataclasses.replace(base, **{name: low * times for name, low in start.items()}), places, value)
        if loops
        else one
        for times in (2, 4)
    )
    ratio = math.prod(high / low for low, high in loops.values())
    total: dict[str, float] = {"held": one["held"]}
    for key in one.keys() - {"held"}:
        first, then = two[key] - one[key], four[key] - two[key]
        if first <= 0 or then <= 0:
            total[key] = one[key]
            continue
        power = min(max(math.log2(then / first), 1), len(loops))
        grows = first / (2**power - 1)
        total[key] = one[key] + grows * (ratio ** (power / len(loops)) - 1)
    return total


def _enough(sized: Experiment, value: float) -> tuple[list[int], Count]:
    """Count conditions spread over all, the rest being taken to be like them; return their places and the count."""
    number = len(sized.conditions())
    spread = sorted(range(number), key=lambda place: (place * 0.618) % 1)  # the first one, then far from one another
    found: Count = Counter()
    held = done = 0
    while done < number and found["launches"] < ENOUGH:
        one = _counted(sized, [spread[done]], value)
        held, done = max(held, one.pop("held", 0)), done + 1
        found.update({key: each // number for key, each in one.items()})
    return spread[:done], Counter({key: each * number // done for key, each in found.items()}) | Counter(held=held)


def _counted(sized: Experiment, places: Sequence[int], value: float | None) -> Count:
    """Count conditions of an experiment and carry the sum on to all; of what is held at once, take the most.

    The checks of values are off, since numbers are not the true ones.
    """
    check, checks._check = checks._check, lambda *_: None
    conditions = sized.conditions()
    total: Count = Counter()
    held = 0
    try:
        for place in places:
            with Shapes(value) as shapes:
                sized.run(conditions[place], seed=0, device=torch.device("cpu"), dtype=sized.dtype)
            held = max(held, shapes.found.pop("held", 0))
            total.update(shapes.found)
    finally:
        checks._check = check
    share = len(places) / len(conditions)
    return Counter({key: round(each / share) for key, each in total.items()}) | Counter(held=held)


def by_size(experiment: type[Experiment], size: str, fixed: Mapping[str, Any]) -> list[tuple[int, dict[str, float]]]:
    """Count the first condition of tier cpu at one value of ``size`` after another, from the record's by fours, until
    a core holds it no more; loops and data are as few as at tier ci, and ``fixed`` fields as given.

    Where the code refuses stand-ins, it truly runs, and ends where that takes more than ``PATIENCE`` seconds.
    """
    few = {name: low for name, (low, _) in _growing(experiment, "cpu").items() if name in (*LOOPS, *DATA)}
    base = dataclasses.replace(experiment.at("cpu"), **few | dict(fixed))
    listed, room = isinstance(getattr(base, size), tuple), cost.cards()[0]["memory"] * cost.GIGA
    first = max(getattr(base, size)) if listed else getattr(base, size)
    for value in (0.5, 1.0, None):
        found: list[tuple[int, dict[str, float]]] = []
        with contextlib.suppress(ValueError, RuntimeError, IndexError, ArithmeticError):
            for number in (first * 4**power for power in range(SIZES)):
                started = time.process_time()
                sized = dataclasses.replace(base, **{size: (number,) if listed else number})
                found.append((number, dict(_counted(sized, [0], value))))
                if found[-1][1].get("held", 0) > room or time.process_time() - started > PATIENCE:
                    break
        if len(found) > 2:
            return found
    raise UserError(f"{experiment.__name__} cannot be counted at three values of {size}")


def grows(experiment: type[Experiment]) -> bool:
    """Whether ``scaling`` says what grows of an experiment, and what it needs is here."""
    return _name(experiment) in scaling.stated() and not absence(experiment)


def keep_by_size(house: House, experiment: type[Experiment]) -> None:
    """Count how an experiment grows, and keep the counts."""
    said = scaling.stated()[_name(experiment)]
    fixed = said.get("fixed", {}).items()
    fixed = {field: tuple(value) if isinstance(value, list) else value for field, value in fixed}
    scaling.keep(house, {_name(experiment): by_size(experiment, said["size"], fixed)})


def _name(experiment: type[Experiment]) -> str:
    return f"{experiment.paper()}/{experiment.__name__}"


def counted(house: House, experiment: type[Experiment]) -> None:
    """Count an experiment at each of its recorded tiers, and keep the counts."""
    for tier in experiment.tiers:
        if tier != "ci":
            name = cost.name_of(experiment.paper(), experiment.__name__, tier)
            cost.keep(house, {name: {"of": sizes_of(experiment, tier), **count(experiment, tier)}})


def uncounted(house: House, chosen: Sequence[type[Experiment]], tier: str) -> list[str]:
    """Name the experiments that were not counted at their sizes of today."""
    known = cost.counts(house)
    entries = [(one.__name__, known.get(cost.name_of(one.paper(), one.__name__, tier), {})) for one in chosen]
    return [name for one, (name, entry) in zip(chosen, entries, strict=True) if entry.get("of") != sizes_of(one, tier)]


def sizes_of(experiment: type[Experiment], tier: str) -> str:
    """Hash the sizes of an experiment at a tier."""
    return hashed(experiment.at(tier).configuration())
