"""Find the mutant: of some callables one has a broken line; hand in the shortest input that convicts it.

charge    a letter, what its callable should return, and arguments: it convicts where this is right and the callable
          returns something else
length    characters of the arguments, without spaces
points    ten for a witness as short as the shortest known one, none for one as long as drawn ones are, and in between
          in proportion: a loop over drawn inputs convicts, and earns little

A charge needs the right value, which theory gives. One that fails is not told why: else a charge with what a callable
returns would tell the guilty one from the others.
"""

import base64
import json
import math
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from derived.lab.subjects import Point, Subject, flat, pencil

RIGHT, OFF = 0.005, 0.02  # how near a stated value must be, and how far off a broken one, as shares of its size
LETTERS = "ABCDEFGH"
POINTS = 10


def near(one: Any, other: Any, share: float) -> bool:
    """Whether two values agree in all their numbers, up to a share of the size of the first.

    >>> near([1.0, 2.0], [1.001, 2.0], 0.005), near(1.0, [1.0, 1.0], 0.1)
    (True, False)
    """
    try:
        first, second = flat(one), flat(other)
    except (TypeError, ValueError):
        return False
    return len(first) == len(second) and all(
        a == b or abs(a - b) <= share * max(abs(a), 1e-6) for a, b in zip(first, second, strict=True)
    )


def length(point: Point) -> int:
    """The characters of the arguments, without spaces.

    >>> length({"x": 0.5, "p": [1, 0]})
    8
    """
    return len("".join(json.dumps(value).replace(" ", "") for value in point.values()))


def convicts(subject: Subject, healthy: dict, broken: dict, point: Point) -> bool:
    """Whether a broken pencil differs at an admitted point at which both return finite numbers."""
    if not subject.admits(point):
        return False
    try:
        return differ(subject.value(healthy, point), subject.value(broken, point))
    except Exception:  # a mutant may stop in any way
        return False


def differ(right: Any, wrong: Any) -> bool:
    """Whether both values are finite numbers and the second is not what the first is.

    >>> differ(1.0, 1.5), differ(1.0, 1.001), differ(1.0, math.inf)
    (True, False, False)
    """
    try:
        return all(map(math.isfinite, flat(right) + flat(wrong))) and not near(right, wrong, OFF)
    except Exception:  # a mutant may return anything
        return False


class Court:
    """The callables by letter, and the judge of a charge."""

    def __init__(
        self, source: str, subjects: Sequence[Subject], guilty: int, broken: str, shortest: int, usual: int
    ) -> None:
        self._healthy, self._broken = pencil(source), pencil(broken)
        self._subjects, self._guilty, self._shortest, self._usual = subjects, guilty, shortest, usual

    @classmethod
    def read(cls, packed: str) -> "Court":
        """Read a court from what ``pack`` wrote."""
        held = json.loads(zlib.decompress(base64.b85decode(packed)))
        return cls(**held | {"subjects": [Subject(**each) for each in held["subjects"]]})

    def callables(self) -> dict[str, Callable]:
        """The callables by letter: each takes its arguments by name."""
        return {
            letter: self._callable(place) for letter, place in zip(LETTERS, range(len(self._subjects)), strict=False)
        }

    def _callable(self, place: int) -> Callable:
        names = self._broken if place == self._guilty else self._healthy
        return lambda **point: self._subjects[place].value(names, point)

    def charge(self, letter: str, value: Any, **point: Any) -> int:
        """Print and return the points of a charge: that this callable should return this value at this point."""
        place = LETTERS.find(letter) if len(letter) == 1 else -1
        if not 0 <= place < len(self._subjects):
            return _said(0, f"there is no callable {letter!r}")
        subject = self._subjects[place]
        if not subject.admits(point):
            return _said(0, f"no such input: {subject.arguments()}")
        try:
            right = subject.value(self._healthy, point)
        except (ArithmeticError, ValueError, LookupError):
            return _said(0, "nothing is defined there")
        guilty = place == self._guilty and convicts(subject, self._healthy, self._broken, point)
        if not (guilty and near(right, value, RIGHT)):  # one answer: two would tell who is guilty
            return _said(0, f"not convicted: {letter} should return something else, or returns just that")
        points = worth(length(point), self._shortest, self._usual)
        return _said(
            points,
            f"convicted, by {length(point)} characters; the shortest known witness has {self._shortest}, "
            f"a drawn input {self._usual}",
        )


def worth(characters: int, shortest: int, usual: int) -> int:
    """The points of a witness of so many characters.

    >>> worth(6, 6, 12), worth(9, 6, 12), worth(12, 6, 12), worth(40, 6, 12), worth(7, 6, 6)
    (10, 5, 0, 0, 0)
    """
    if characters <= shortest:
        return POINTS
    return POINTS * max(0, usual - characters) // max(1, usual - shortest)


def pack(source: str, subjects: Sequence[Subject], guilty: int, broken: str, shortest: int, usual: int) -> str:
    """Write a court as one string, for a notebook."""
    listed = [{"words": each.words, "call": each.call, "draw": {**each.draw}} for each in subjects]
    held = {"source": source, "subjects": listed, "guilty": guilty, "broken": broken, "shortest": shortest}
    held["usual"] = usual
    return base64.b85encode(zlib.compress(json.dumps(held).encode(), 9)).decode()


def _said(points: int, words: str) -> int:
    print(f"{points} of {POINTS} points: {words}")
    return points
