"""Predict, then run: a forecast is sealed before anything can run, and scored by how well it was calibrated.

sign     does the quantity rise, fall or stay when one number changes: a probability for each
order    which of three calls gives the least, which the most: a guess, and the probability that it is right
number   an interval that holds the value of one call with probability 0.8, or none

seal     a file with the forecast, when it was made, and a digest of both; whoever has the digest sees a later change

Each score is proper: nobody gains by saying what they do not believe. Who knows nothing and says so has 0 points, who
is sure and right has 1, and who is sure and wrong loses. A ``Forecast`` holds its questions alone; an ``Outcome`` has
the code besides, and computes nothing without a seal.
"""

import hashlib
import itertools
import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from derived.lab.subjects import Pencil, Point, Subject, at, flat, moved, named, pencil, told

HELD = 0.8
SIGNS = ("rises", "falls", "stays")
LEAST = 0.01  # the least probability that is scored


@dataclass(frozen=True)
class Task:
    """A subject, the number that changes and what it becomes, and three calls."""

    subject: Subject
    slot: tuple
    point: Point
    to: float
    calls: Sequence[Point]


def task(names: Pencil, subject: Subject, slot: tuple, generator: random.Random) -> Task:
    """Draw a task about a subject that can be ordered, and one of its numbers, which may grow or shrink."""
    while True:
        point, other, *calls = (subject.point(generator) for _ in range(5))
        if at(point, slot) != at(other, slot) and _differ(names, subject, calls):
            return Task(subject, slot, point, at(other, slot), calls)


def can_be_ordered(names: Pencil, subject: Subject) -> bool:
    """Whether a value is one number, and three drawn calls often have three values."""
    draw = random.Random("ordered")
    if len(flat(subject.value(names, subject.point(draw)))) > 1:
        return False
    ordered = (True for _ in range(50) if _differ(names, subject, [subject.point(draw) for _ in range(3)]))
    return len([*itertools.islice(ordered, 5)]) == 5


def _differ(names: Pencil, subject: Subject, calls: Sequence[Point]) -> bool:
    values = sorted(flat(subject.value(names, each))[0] for each in calls)
    return all(sign(low, high) == "rises" for low, high in itertools.pairwise(values))


def sign(before: float, after: float) -> str:
    """Which way a value goes, rounding apart.

    >>> sign(1.0, 2.0), sign(2.0, 2.0 + 1e-12)
    ('rises', 'stays')
    """
    if abs(after - before) <= 1e-9 * max(1.0, abs(before)):
        return "stays"
    return "rises" if after > before else "falls"


def sign_points(said: Mapping[str, float], happened: str) -> float:
    """The logarithmic score of three probabilities: 0 for a third each, 1 for certainty.

    >>> round(sign_points({"rises": 1 / 3, "falls": 1 / 3, "stays": 1 / 3}, "falls"), 9)
    0.0
    """
    return 1 + math.log(max(LEAST, said[happened])) / math.log(3)


def order_points(sure: float, right: bool) -> float:
    """The logarithmic score of one order of six, the others sharing what is left.

    >>> round(order_points(1 / 6, True), 9), round(order_points(1 / 6, False), 9)
    (0.0, 0.0)
    """
    return 1 + math.log(max(LEAST, sure if right else (1 - sure) / 5)) / math.log(6)


def interval_loss(low: float, high: float, value: float) -> float:
    """The interval score of Winkler for probability 0.8: its width, and ten times what it misses by."""
    return high - low + 2 / (1 - HELD) * max(0.0, low - value, value - high)


def number_points(interval: Sequence[float] | None, value: float, usual: Sequence[float]) -> float:
    """How much less an interval loses than that of somebody who knows how values are spread and nothing else.

    >>> number_points(None, 0.5, [0, 1]), number_points((0.5, 0.5), 0.5, [0, 1])
    (0.0, 1.0)
    """
    if interval is None:
        return 0.0
    spread = sorted(usual)
    ends = [spread[round(share * (len(spread) - 1))] for share in ((1 - HELD) / 2, (1 + HELD) / 2)]
    nothing = sum(interval_loss(*ends, each) for each in spread) / len(spread)
    return max(-2.0, 1 - interval_loss(*interval, value) / max(nothing, 1e-12))


class Forecast:
    """A task to be sealed; ``file`` is handed in, or its digest."""

    def __init__(self, asked: Task, file: str) -> None:
        self.task, self._file = asked, Path(file)

    def questions(self) -> str:
        """The three questions, in words. Markdown."""
        task = self.task
        calls = "\n".join(f"   - {name}: `{told(point)}`" for name, point in zip("ABC", task.calls, strict=True))
        return (
            f"**{task.subject.words}**, `{task.subject.call}`\n\n"
            f"1. *Sign.* At `{told(task.point)}`: what does it do when `{named(task.slot)}` becomes `{task.to}`?\n"
            f"2. *Order.* From the least to the greatest, of\n{calls}\n"
            f"3. *Number.* An interval that holds the value of A with probability {HELD}; `None` if you have none."
        )

    def seal(self, sign: Mapping[str, float], order: str, sure: float, interval: Sequence[float] | None) -> str:
        """Write a forecast once, and return its digest; ValueError for one that is none or comes too late."""
        if set(sign) != set(SIGNS) or min(sign.values()) < 0 or not math.isclose(sum(sign.values()), 1, abs_tol=1e-6):
            raise ValueError(f"give a probability to each of {', '.join(SIGNS)}; they sum to one")
        if sorted(order) != ["A", "B", "C"] or not 0 <= sure <= 1:
            raise ValueError("the order is one such as 'BCA', and sure a probability")
        if interval is not None and not interval[0] <= interval[1]:
            raise ValueError("an interval has its lower end first")
        said = {"sign": {**sign}, "order": order, "sure": sure, "interval": interval and [*interval]}
        if self._file.exists():
            held = self.sealed()
            if held["said"] == said:
                return held["digest"]
            raise ValueError(f"{self._file} has a sealed forecast; the first one counts")
        when = datetime.now(UTC).isoformat(timespec="seconds")
        digest = self._digest(said, when)
        self._file.write_text(json.dumps({"said": said, "when": when, "digest": digest}), "utf-8")
        return digest

    def sealed(self) -> dict[str, Any]:
        """The forecast, when it was sealed, and its digest; ValueError if there is none, or another than was sealed."""
        if not self._file.exists():
            raise ValueError("seal a forecast first")
        held = json.loads(self._file.read_text("utf-8"))
        if held["digest"] != self._digest(held["said"], held["when"]):
            raise ValueError(f"{self._file} was changed after it was sealed")
        return held

    def _digest(self, said: dict[str, Any], when: str) -> str:
        asked = f"{self.task.subject.call} {told(self.task.point)} {self.task.to}"
        return hashlib.sha256(f"{asked} {when} {json.dumps(said, sort_keys=True)}".encode()).hexdigest()[:16]


def came(names: Pencil, task: Task) -> tuple[str, str, float]:
    """Compute what comes of a task: the sign, the order and the number."""
    value = lambda point: flat(task.subject.value(names, point))[0]  # noqa: E731
    values = [value(each) for each in task.calls]
    return (
        sign(value(task.point), value(moved(task.point, task.slot, task.to))),
        "".join("ABC"[place] for place in sorted(range(3), key=values.__getitem__)),
        values[0],
    )


class Outcome:
    """What comes of a sealed forecast."""

    def __init__(self, source: str, forecast: Forecast) -> None:
        self._source, self._forecast = source, forecast

    def happened(self) -> tuple[str, str, float]:
        """Run: the sign, the order and the number; ValueError before the seal."""
        self._forecast.sealed()
        return came(pencil(self._source), self._forecast.task)

    def run(self) -> float:
        """Print what came out and return the points, at most 3; ValueError before the seal."""
        held, subject = self._forecast.sealed(), self._forecast.task.subject
        (went, order, value), said = self.happened(), held["said"]
        draw, names = random.Random("usual"), pencil(self._source)
        usual = [flat(subject.value(names, subject.point(draw)))[0] for _ in range(100)]
        points = (
            sign_points(said["sign"], went),
            order_points(said["sure"], said["order"] == order),
            number_points(said["interval"], value, usual),
        )
        for name, out, point in zip(("sign", "order", "number"), (went, order, f"{value:.4g}"), points, strict=True):
            print(f"{name}: {out}; {point:+.2f} points")
        print(f"{sum(points):.2f} of 3 points, sealed {held['when']} as {held['digest']}")
        return sum(points)
