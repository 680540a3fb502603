"""How experiments grow: what each would do at one size after another, up to where the memory of a core ends.

scaling.yml            which field grows, and the exponents that theory gives to time and memory of large sizes
results/scaling.json   what was counted at each size (``counting.by_size``)

seconds   as predicted for a core from the count (``cost``), moved so that they pass through those of the record
exponent  of a power of the size: counted over the last doubling, and carried on from there
"""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import yaml

from derived.book.house import House, write_whole
from derived.book.record import cost

FILE = "results/scaling.json"
NEAR = 0.15  # how far the exponent of one doubling may be from that of all large sizes
Points = Sequence[tuple[float, float]]


def stated() -> dict[str, dict[str, Any]]:
    """Read, by experiment, what grows and the exponents that theory gives, with the reason."""
    return _written()["experiments"]


def uncounted(slug: str) -> dict[str, str]:
    """Read why costly experiments of a chapter are not counted, by their names."""
    return {name.split("/")[1]: why for name, why in _written()["uncounted"].items() if name.split("/")[0] == slug}


@functools.cache
def _written() -> dict[str, dict[str, Any]]:
    return yaml.safe_load(resources.files("derived.book").joinpath("scaling.yml").read_text("utf-8"))


def counts(house: House) -> dict[str, list[tuple[int, dict[str, float]]]]:
    """Read what was counted, by experiment: size and count."""
    return json.loads((house.root / FILE).read_text("utf-8"))


def keep(house: House, found: Mapping[str, Sequence[tuple[int, Mapping[str, float]]]]) -> None:
    """Note counts by size, a line for each."""
    known = (counts(house) if (house.root / FILE).is_file() else {}) | found
    lines = [f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, known[name])) + "\n]" for name in sorted(known)]
    write_whole(house.root / FILE, "{\n" + ",\n".join(lines) + "\n}\n")


def exponent(points: Points) -> float:
    """Find the power of the size between the last two points.

    >>> exponent([(1, 5), (10, 2), (20, 16)])
    3.0
    """
    (x, low), (y, high) = points[-2:]
    return math.log(high / low) / math.log(y / x)


def at(points: Points, size: float) -> float:
    """Read a value at any size: on a straight line in logarithms between two points, or beyond the nearest two.

    >>> round(at([(1, 1), (2, 4), (4, 16)], 3)), round(at([(1, 1), (2, 4), (4, 16)], 8))
    (9, 64)
    """
    last = next((place for place in range(1, len(points)) if points[place][0] >= size), len(points) - 1)
    x, low = points[last - 1]
    return low * (size / x) ** exponent(points[last - 1 : last + 1])


@dataclass(frozen=True)
class Growth:
    """Time or memory over the size: what was counted, what the record measured, and the exponents."""

    what: str
    unit: str
    counted: Points
    measured: tuple[float, float]
    expected: float  # exponent by theory

    @property
    def found(self) -> float:
        """The exponent that was counted."""
        return exponent(self.counted)

    @property
    def agrees(self) -> bool:
        """Whether theory and count have the same exponent, as near as sizes so small can tell."""
        return abs(self.found - self.expected) <= NEAR


@dataclass(frozen=True)
class Scale:
    """How one experiment grows."""

    name: str
    size: str
    why: str
    growths: tuple[Growth, Growth]  # seconds and gigabytes
    end: float  # size at which memory ends; infinite where memory does not grow

    @property
    def ends(self) -> str:
        """Where memory ends, in words: two digits of the size."""
        return f"at {self.size} of about {float(f'{self.end:.2g}'):,.0f}" if math.isfinite(self.end) else "nowhere"


def of(name: str, record: Mapping[str, Any], counted: Sequence[tuple[int, Mapping[str, float]]]) -> Scale:
    """Put the counts of an experiment beside its record at tier cpu (as record.json has it)."""
    said, core = stated()[name], cost.cards()[0]
    here = record["configuration"][said["size"]]
    here = max(here) if isinstance(here, list) else here
    seconds = [(size, cost.on(core, count).seconds) for size, count in counted]
    level = record["seconds"] / at(seconds, here)
    held = [(size, count["held"] / cost.GIGA) for size, count in counted if count.get("held")]  # none is seen of a few
    growths = (
        Growth("time", "s", [(size, level * each) for size, each in seconds], (here, record["seconds"]), said["time"]),
        Growth("memory", "GB", held, (here, record["peak_memory_mb"] * 2**20 / cost.GIGA), said["memory"]),
    )
    (size, full), power = held[-1], exponent(held)
    end = size * (core["memory"] / full) ** (1 / power) if power > NEAR else math.inf
    return Scale(name.split("/")[1], said["size"], said["why"], growths, end)


def read(house: House, slug: str) -> list[Scale]:
    """Read the scales of a chapter's experiments, the costliest first; none of those without a record at tier cpu."""
    found = []
    for name, counted in counts(house).items() if (house.root / FILE).is_file() else ():
        path = house.root / "results" / name / "cpu/record.json"
        if name.split("/")[0] == slug and path.is_file():
            found.append(of(name, json.loads(path.read_text("utf-8")), counted))
    return sorted(found, key=lambda scale: -scale.growths[0].measured[1])


# Picture --------------------------------------------------------------------------------------------------------------

WIDTH, HEIGHT = 300, 190
LEFT, RIGHT, TOP, BOTTOM = 46, 290, 26, 150  # of the frame
POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Picture:
    """A growth on logarithmic axes, in units of its picture."""

    growth: Growth
    counted: str  # points of a line
    beyond: str  # carried on to where memory ends
    theory: str
    dot: tuple[float, float]
    end: float | None
    across: list[tuple[float, str]]  # ticks
    along: list[tuple[float, str]]


def draw(scale: Scale, growth: Growth) -> Picture:
    """Lay out a growth, from its smallest size to a little beyond the largest or to where memory ends."""
    last = growth.counted[-1]
    far = max(last[0], scale.end if math.isfinite(scale.end) else 0) * 1.5
    beyond = [last, (far / 1.5, at(growth.counted, far / 1.5))]
    whole = [*growth.counted, *beyond, growth.measured]
    x0, x1 = math.log10(min(x for x, _ in whole)), math.log10(far)
    y0, y1 = (side(math.log10(y) for _, y in whole) for side in (min, max))
    y0, y1 = y0 - 0.1 * (y1 - y0 + 1), y1 + 0.1 * (y1 - y0 + 1)

    def right(x: float) -> float:
        return round(LEFT + (math.log10(x) - x0) / (x1 - x0) * (RIGHT - LEFT), 1)

    def up(y: float) -> float:
        return round(BOTTOM - (math.log10(y) - y0) / (y1 - y0) * (BOTTOM - TOP), 1)

    def line(points: Points) -> str:
        return " ".join(f"{right(x)},{up(y)}" for x, y in points)

    def theory(x: float) -> tuple[float, float]:
        return x, last[1] * (x / last[0]) ** growth.expected

    lowest = last[0] * (10**y0 / last[1]) ** (1 / growth.expected) if growth.expected else 0
    return Picture(
        growth,
        line(growth.counted),
        line(beyond),
        line([theory(max(lowest, whole[0][0])), theory(far / 1.5)]),
        (right(growth.measured[0]), up(growth.measured[1])),
        right(scale.end) if math.isfinite(scale.end) else None,
        [(right(tick), label) for tick, label in _ticks(x0, x1, (1, 2, 4))],
        [(up(tick), label) for tick, label in _ticks(y0, y1, (1,))],
    )


def _ticks(low: float, high: float, within: Sequence[int]) -> list[tuple[float, str]]:
    """Choose at most five ticks: powers of ten, every second or third of many, more of few."""
    powers = range(math.ceil(low - 1), math.floor(high) + 1)
    every = 1 + len(powers) // 5
    steps = within if len(powers) < 3 else (1,)
    ticks = [step * 10.0**power for power in powers if power % every == 0 for step in steps]
    return [(tick, _said(tick)) for tick in ticks if low <= math.log10(tick) <= high]


def _said(tick: float) -> str:
    """Write a tick: a plain number, or a power of ten.

    >>> _said(0.1), _said(2000), _said(1e5)
    ('0.1', '2000', '10⁵')
    """
    if 0.01 <= tick < 1e4:
        return f"{tick:g}"
    lead, power = f"{tick:e}".split("e")
    lead = "" if float(lead) == 1 else f"{float(lead):g}·"
    return f"{lead}10{str(int(power)).translate(POWERS)}"
