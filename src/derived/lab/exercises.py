"""Exercises that check themselves: a reader's answer is tried at points that no page shows.

label      of the exercise in its notebook, as in ``check("cac-ex-tv", gamma_tv)``
point      the arguments of one trial by name; ``draw(generator)`` makes one, POINTS of them are tried
Derive     a number, an array or a function, compared with what the package computes
Implement  a function or class, held to properties: the theorems of the chapter
mistakes   wrong answers that are common, by what is wrong with them; the tests refuse each one

A paper's ``exercises.py`` has the exercises of its chapter by label and ``check = checker(EXERCISES)``. A check prints
one line for each answer and never raises: "right", "no answer yet", or "not right" with a point where it is not.
"""

import contextlib
import inspect
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from derived.lab.rng import stream

POINTS = 20
FLOAT32 = 1e-5  # of the size of numbers: what some hundred steps in single precision may lose; such answers are welcome
STOPS = (Exception, SystemExit)  # exceptions an answer may raise; KeyboardInterrupt is not caught
Point = dict[str, Any]
Draw = Callable[[torch.Generator], Point]


class Wrong(Exception):
    """What is wrong with an answer, in words that do not give the right one."""


# What is drawn --------------------------------------------------------------------------------------------------------


def ranges(**limits: tuple[float, float]) -> Draw:
    """Points whose arguments are independent and uniform between their limits: floats of two significant digits, or
    whole numbers where both limits are.

    >>> ranges(q=(0.0, 1.0), n=(2, 9))(stream(0, "an example"))
    {'q': 0.88, 'n': 9}
    """

    def draw(generator: torch.Generator) -> Point:
        return {name: _between(low, high, generator) for name, (low, high) in limits.items()}

    return draw


def _between(low: float, high: float, generator: torch.Generator) -> float | int:
    if isinstance(low, int) and isinstance(high, int):
        return int(torch.randint(low, high + 1, (), generator=generator))
    return float(f"{low + (high - low) * torch.rand((), generator=generator, dtype=torch.float64).item():.2g}")


# What an answer is ----------------------------------------------------------------------------------------------------


def number(value: Any) -> np.ndarray:
    """A number or array of any kind (float, NumPy, torch, Fraction, sympy, lists of them) as float64; Wrong where it is
    none, or not real."""
    try:
        if isinstance(value, torch.Tensor):
            value = value.detach().cpu().to(torch.complex128 if value.is_complex() else torch.float64).numpy()
        elif isinstance(value, list | tuple):
            value = np.array([number(each) for each in value])
        elif isinstance(value, str | bytes):
            raise TypeError
        array = np.asarray(value)
        array = np.vectorize(complex, otypes=[complex])(array) if array.dtype == object else array
        if np.iscomplexobj(array) and not np.allclose(array.imag, 0, atol=1e-9):
            raise Wrong("yours is not real")
        return array.real.astype(np.float64)
    except (TypeError, ValueError):
        raise Wrong(f"a number is asked for, yours is of type {type(value).__name__}") from None


def call(answer: Callable, **arguments: Any) -> Any:
    """The answer at a point: arguments go by name, those with a name of the reader's own in the order of the text.
    Arrays are copies, which it may overwrite. What stops on floats is tried again with NumPy's arrays and with torch's
    tensors."""
    first = None
    for kind in (_copied, np.array, lambda given: torch.tensor(np.asarray(given))):
        try:
            return _call(answer, {name: kind(given) for name, given in arguments.items()})
        except Wrong:
            raise
        except Exception as error:
            first = first or error
    raise first


def _copied(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return given.clone()
    return given.copy() if isinstance(given, np.ndarray) else given


def _call(answer: Callable, arguments: Point) -> Any:
    if hasattr(answer, "free_symbols") and not callable(answer):  # a formula of sympy's
        return answer.subs({each: arguments[each.name] for each in answer.free_symbols if each.name in arguments})
    try:
        parameters = [*inspect.signature(answer).parameters.values()]
    except (TypeError, ValueError):  # some functions written in C do not tell
        return answer(*arguments.values())
    left, by_place, by_name, skipped = dict(arguments), [], {}, False
    own = [name for name in arguments if name not in {each.name for each in parameters}]
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            by_place, left = [*by_place, *left.values()], {}
        elif each.kind is each.VAR_KEYWORD:
            by_name, left = by_name | left, {}
        else:
            name = each.name if each.name in left else next((name for name in own if name in left), None)
            if name is None:
                skipped = True
            elif each.kind is each.KEYWORD_ONLY or skipped:
                by_name[each.name] = left.pop(name)
            else:
                by_place.append(left.pop(name))
    return answer(*by_place, **by_name)


def ask(answer: Any, shape: tuple[int, ...] | None = (), **arguments: Any) -> np.ndarray:
    """The answer at a point as float64 of the shape that is asked for (None for any); Wrong where it has another, and
    where it is NaN."""
    given = number(call(answer, **arguments) if arguments else answer)
    if np.isnan(given).any():  # which no comparison would refuse
        raise Wrong("yours is nan")
    if shape is not None and given.shape != shape:
        raise Wrong(f"{_shape(shape)} is asked for, yours is {_shape(given.shape)}")
    return given


def _shape(shape: tuple[int, ...]) -> str:
    return f"an array of shape {shape}" if shape else "one number"


def described(value: Any) -> str:
    """A value in a few characters.

    >>> described(0.30001), described([0.25, 0.75]), described(torch.zeros(3, 4))
    ('0.3', '(0.25, 0.75)', 'an array of shape (3, 4)')
    """
    if not isinstance(value, float | int | list | tuple | np.ndarray | torch.Tensor):
        return str(value)
    array = number(value)
    if array.ndim == 0:
        return f"{array:.4g}"
    if array.ndim > 1 or array.size > 8:
        return _shape(array.shape)
    return f"({', '.join(f'{each:.4g}' for each in array)})"


def _at(point: Point) -> str:
    return f"at {', '.join(f'{name} = {described(value)}' for name, value in point.items())}" if point else ""


# The two kinds that check themselves ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Derive:
    """A number or array, or with ``draw`` a function of the arguments that it draws.

    right      what the package computes, a function of the same arguments; it is asked when the answer is checked
    digits     significant digits that the text asks for: half a unit of the last one is the tolerance
    low, high  bounds that the reader can know; a counterexample names the one that is broken
    mistakes   by what is wrong, an answer: a function of the same arguments, or what ``right`` would return

    >>> tv = Derive(lambda q, delta: min(q + delta, 1), ranges(q=(0.1, 1.0), delta=(0.1, 0.9)), high=1)
    >>> checker({"ex": tv})("ex", lambda delta, q: q + delta)
    not right: at q = 0.7, delta = 0.37 yours is 1.07, above 1
    """

    right: Callable[..., Any]
    draw: Draw | None = None
    digits: int = 4
    low: float = -np.inf
    high: float = np.inf
    mistakes: Mapping[str, Any] = field(default_factory=dict)

    def judge(self, label: str, answer: Any) -> None:
        """Wrong where the answer is not right; a common mistake is named, and rounding too early."""
        try:
            self._compare(label, answer, self.right)
        except Wrong as wrong:
            raise Wrong(f"{wrong}{self._hint(label, answer)}") from None

    def _hint(self, label: str, answer: Any) -> str:
        for words, mistake in self.mistakes.items():
            with contextlib.suppress(Exception):
                self._compare(label, answer, mistake)
                return f"; {words}"
        for digits in range(self.digits - 1, 1, -1):
            with contextlib.suppress(Wrong):
                replace(self, digits=digits)._compare(label, answer, self.right)
                return f"; it is right to {digits} significant digits, {self.digits} are asked for"
        return ""

    def _compare(self, label: str, answer: Any, right: Any) -> None:
        """Wrong where the two differ at a point."""
        if self.draw and not callable(answer) and not hasattr(answer, "free_symbols"):
            raise Wrong(f"a function is asked for, yours is of type {type(answer).__name__}")
        for point in points(label, self.draw):
            wanted = number(right(**point) if callable(right) else right)
            try:
                given = ask(answer, wanted.shape, **point)
            except Wrong as wrong:
                raise Wrong(f"{_at(point)} {wrong}".strip()) from None
            except STOPS as error:
                raise Wrong(f"{_at(point)} yours stops with {type(error).__name__}: {error}".strip()) from None
            if not self._near(given, wanted):
                beyond = f", above {self.high:g}" if np.any(given > self.high) else ""
                beyond = f", below {self.low:g}" if np.any(given < self.low) else beyond
                raise Wrong(f"{_at(point)} yours is {described(given)}{beyond}".strip())

    def _near(self, given: np.ndarray, right: np.ndarray) -> bool:
        """Within half a unit of the last digit, which rounding to ``digits`` can change, and float64's own rounding."""
        size = np.where((right == 0) | ~np.isfinite(right), 0.1, np.abs(right))  # of zero, decimals
        rounding = 1e-12 * np.max(size, initial=1.0, where=np.isfinite(right))
        tolerance = 0.5 * 10.0 ** (np.floor(np.log10(size)) + 1 - self.digits) + rounding
        return bool(np.all((given == right) | (np.abs(given - right) <= tolerance)))


@dataclass(frozen=True)
class Implement:
    """A function or class that has certain properties.

    properties  each is called as ``f(answer, **point)`` with those arguments of the point that it names, and returns
                None where it holds, else what went wrong, a clause such as "its divergence is 1.4 budgets"
    draw        points with the arguments of all of them
    mistakes    by what is wrong, an implementation: the chapter's own mutations first

    >>> def never_above_one(answer, q):
    ...     return f"it is {ask(answer, q=q):.2g}, above 1" if ask(answer, q=q) > 1 else None
    >>> checker({"ex": Implement((never_above_one,), ranges(q=(0.0, 1.0)))})("ex", lambda q: 2 * q)
    not right: at q = 0.65: it is 1.3, above 1
    """

    properties: Sequence[Callable[..., str | None]]
    draw: Draw
    mistakes: Mapping[str, Callable] = field(default_factory=dict)

    def judge(self, label: str, answer: Any) -> None:
        """Wrong where a property is lost."""
        if not callable(answer):
            raise Wrong(f"a function or class is asked for, yours is of type {type(answer).__name__}")
        for holds in self.properties:
            names = [*inspect.signature(holds).parameters][1:]
            for drawn in points(label, self.draw):
                point = {name: drawn[name] for name in names}
                try:
                    said = holds(answer, **point)
                except Wrong as wrong:
                    said = f"{wrong}, where it is tried whether it {holds.__name__.strip('_').replace('_', ' ')}"
                except STOPS as error:
                    said = f"yours stops with {type(error).__name__}: {error}"
                if said:
                    raise Wrong(f"{_at(point)}: {said}")


def points(label: str, draw: Draw | None) -> Iterator[Point]:
    """Draw the points of an exercise; a single one without arguments if it has no ``draw``."""
    generator = stream(0, "exercise", label)
    return (draw(generator) for _ in range(POINTS)) if draw else iter([{}])


# The check ------------------------------------------------------------------------------------------------------------

Exercise = Derive | Implement
Exercises = Mapping[str, Exercise | Sequence[Exercise]]


def judged(label: str, exercise: Exercise, answer: Any) -> str:
    """What a check says of one answer, in a line; what the answer itself prints, logs or warns of is not shown."""
    if answer is ...:
        return "no answer yet"
    unheard = io.StringIO()  # nbgrader takes a line on stderr for a failure
    try:
        with (
            contextlib.redirect_stdout(unheard),
            contextlib.redirect_stderr(unheard),
            warnings.catch_warnings(action="ignore"),
        ):
            exercise.judge(label, answer)
    except Wrong as wrong:
        return f"not right: {' '.join(str(wrong).split())}"
    except STOPS as error:  # a page runs on, whatever a reader gives
        return f"not right: it stops with {type(error).__name__}: {error}"
    return "right"


def checker(exercises: Exercises) -> Callable[..., None]:
    """The ``check`` of a chapter: ``check(label, answer)``, or as many answers as the exercise has parts."""

    def check(label: str, *answers: Any) -> None:
        """Print the judgement of each answer, a line each; never raises for an answer."""
        parts = _parts(exercises, label)
        if len(parts) != len(answers):
            print(f"not right: {label!r} asks for {len(parts)} answers, here are {len(answers)}")
            return
        for letter, part, answer in zip("abcdefgh", parts, answers, strict=False):
            print(f"({letter}) " * (len(parts) > 1) + judged(label, part, answer))

    return check


def share(exercises: Exercises, label: str, *answers: Any) -> float:
    """The share of an exercise's parts that are right, for a grader: whatever an answer prints."""
    parts = _parts(exercises, label)
    said = [judged(label, part, answer) for part, answer in zip(parts, answers, strict=False)]
    return said.count("right") / max(1, len(parts))


def _parts(exercises: Exercises, label: str) -> list[Exercise]:
    asked = exercises.get(label, ())
    return [asked] if isinstance(asked, Exercise) else [*asked]
