"""Subjects of tasks: what is asked about, an expression over a pencil's functions, and how its arguments are drawn.

call     an expression such as ``kept(p, q, cactus(delta))``, in which the drawn arguments stand by name
draw     by argument one of
         ``0.1..0.9``   a number of two digits          ``1..5``        a whole number
         ``law 3``      probabilities in tenths         ``list 3``      numbers of one decimal, from -2 to 2
         ``table 2 3``  rows of such numbers
pencil   the names of a paper's mechanism in plain Python
"""

import ast
import functools
import itertools
import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Point = dict[str, Any]
Pencil = Mapping[str, Any]


def pencil(source: str) -> dict[str, Any]:
    """The names that a pencil defines."""
    names: dict[str, Any] = {"__name__": "pencil"}
    exec(_compiled(source, "exec"), names)
    return names


@dataclass(frozen=True)
class Subject:
    """A quantity of a chapter in words, the call that computes it, and how arguments are drawn."""

    words: str
    call: str
    draw: Mapping[str, str]

    def point(self, generator: random.Random) -> Point:
        """Draw arguments."""
        return {name: _drawn(kind, generator) for name, kind in self.draw.items()}

    def admits(self, point: Point) -> bool:
        """Whether these are arguments of the kinds that are drawn, of any number of digits."""
        return point.keys() == self.draw.keys() and all(_fits(kind, point[name]) for name, kind in self.draw.items())

    @property
    def by_chance(self) -> bool:
        """Whether the call draws at random, so that no theory gives its value."""
        return "random." in self.call

    def arguments(self) -> str:
        """The arguments and their kinds, in words.

        >>> Subject("", "", {"x": "0.1..0.9", "n": "1..5", "p": "law 3", "M": "table 2 2"}).arguments()
        '`x` a number from 0.1 to 0.9, `n` a whole number from 1 to 5, `p` 3 probabilities, `M` 2 rows of 2 numbers'
        """
        return ", ".join(f"`{name}` {_in_words(kind)}" for name, kind in self.draw.items())

    def value(self, names: Pencil, point: Point) -> Any:
        """Compute the quantity at a point."""
        return eval(_compiled(self.call, "eval"), dict(names) | _copied(point))

    def slots(self) -> list[tuple]:
        """The single numbers among the arguments, by name and place; entries of a law are not free."""
        found = []
        for name, kind in self.draw.items():
            what, *sizes = kind.split()
            if ".." in what:
                found.append((name,))
            elif what == "list":
                found += [(name, i) for i in range(int(sizes[0]))]
            elif what == "table":
                found += [(name, i, j) for i in range(int(sizes[0])) for j in range(int(sizes[1]))]
        return found


_compiled = functools.cache(lambda source, mode: compile(source, "<pencil>", mode))


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _drawn(kind: str, generator: random.Random) -> Any:
    what, *sizes = kind.split()
    if ".." in what:
        low, high = (ast.literal_eval(end) for end in what.split(".."))
        whole = isinstance(low, int) and isinstance(high, int)
        return generator.randint(low, high) if whole else _short(generator.uniform(low, high), low, high)
    if what == "law":
        cuts = [0, *sorted(generator.sample(range(1, 10), int(sizes[0]) - 1)), 10]
        return [(b - a) / 10 for a, b in itertools.pairwise(cuts)]
    if what == "list":
        return [round(generator.uniform(-2, 2), 1) for _ in range(int(sizes[0]))]
    if what == "table":
        return [_drawn(f"list {sizes[1]}", generator) for _ in range(int(sizes[0]))]
    raise ValueError(f"{kind!r} is no way to draw an argument: low..high, law n, list n, table n m")


def _in_words(kind: str) -> str:
    what, *sizes = kind.split()
    if ".." in what:
        low, high = what.split("..")
        return f"a {'number' if '.' in low else 'whole number'} from {low} to {high}"
    words = {"law": "{} probabilities", "list": "{} numbers", "table": "{} rows of {} numbers"}
    return words[what].format(*sizes)


def _short(value: float, low: float, high: float) -> float:
    return min(high, max(low, float(f"{value:.2g}")))


def _fits(kind: str, value: Any) -> bool:
    what, *sizes = kind.split()
    if ".." in what:
        low, high = (ast.literal_eval(end) for end in what.split(".."))
        whole = isinstance(low, int) and isinstance(high, int)
        return isinstance(value, int if whole else int | float) and low <= value <= high
    if what == "table":
        return (
            isinstance(value, list)
            and len(value) == int(sizes[0])
            and all(_fits(f"list {sizes[1]}", row) for row in value)
        )
    if not (isinstance(value, list) and len(value) == int(sizes[0]) and all(map(_is_number, value))):
        return False
    return what == "list" or (min(value) >= 0 and math.isclose(sum(value), 1, abs_tol=1e-9))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def flat(value: Any) -> list[float]:
    """The numbers of a value in order, lists of lists included.

    >>> flat([[1, 2.0], 3])
    [1.0, 2.0, 3.0]
    """
    if isinstance(value, Mapping):
        value = [*value.items()]
    if isinstance(value, list | tuple | set | frozenset):
        return [number for each in value for number in flat(each)]
    return [float(value)]


def at(point: Point, slot: tuple) -> Any:
    """The number at a place of a point."""
    name, *places = slot
    value = point[name]
    for place in places:
        value = value[place]
    return value


def moved(point: Point, slot: tuple, value: float) -> Point:
    """The point with another number at one place."""
    copy = _copied(point)
    name, *places = slot
    held: Any = copy
    for step in (name, *places)[:-1]:
        held = held[step]
    held[(name, *places)[-1]] = value
    return copy


def named(slot: tuple) -> str:
    """A place as one writes it.

    >>> named(("S", 0, 1))
    'S[0][1]'
    """
    return slot[0] + "".join(f"[{place}]" for place in slot[1:])


def told(point: Point) -> str:
    """A point as arguments of a call.

    >>> told({"x": 0.5, "p": [0.2, 0.8]})
    'x=0.5, p=[0.2, 0.8]'
    """
    return ", ".join(f"{name}={value}" for name, value in point.items())
