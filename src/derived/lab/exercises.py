"""Exercises that check themselves: an answer is tried at points that no page shows.

close     a number or array, or with ``draw`` a function, compared with what the package computes
holds     a function or class, held to properties: the theorems of the chapter
point     the arguments of one trial by name; ``draw(generator)`` makes one, POINTS of them are tried
mistakes  at most two common wrong answers, by what is wrong with them; a check names the one that was made

A paper's ``exercises.py`` has the exercises of its chapter by label and ``check = checker(EXERCISES)``. A check prints
one line for each answer and never raises for one: "right", "no answer yet", or "not right" with the arguments at which
it is not.
"""

import copy
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from io import StringIO
from typing import Any, NamedTuple
from warnings import catch_warnings

import numpy as np
import torch

from derived.lab.rng import stream

POINTS, PRINTED = 20, {"threshold": 36, "separator": ", ", "formatter": {"float_kind": "{:.4g}".format}}
FLOAT32 = 1e-5  # of the size of numbers: what some hundred steps in single precision may lose; such answers are welcome
Named = Mapping[str, Any]  # arguments of a trial, or mistakes
Draw = Callable[[torch.Generator], Named]
_asked: dict[str, Named] = {}  # the arguments of the last call of an answer


class Wrong(Exception):
    """What is wrong with an answer, in words that do not give the right one."""


class Exercise(NamedTuple):
    """One answer that is asked for: ``fault(label, answer)`` says what is wrong with it, or nothing."""

    fault: Callable[[str, Any], str]
    right: Any
    draw: Draw | None
    mistakes: Named


def ranges(**limits: tuple[float, float]) -> Draw:
    """Points whose arguments are independent and uniform between their limits: floats of two significant digits, or
    whole numbers where both limits are.

    >>> ranges(q=(0.0, 1.0), n=(2, 9))(stream(0, "an example"))
    {'q': 0.88, 'n': 9}
    """

    def one(low: float, high: float, generator: torch.Generator) -> float | int:
        if isinstance(low, int) and isinstance(high, int):
            return int(torch.randint(low, high + 1, (), generator=generator))
        return float(f"{low + (high - low) * torch.rand((), generator=generator, dtype=torch.float64).item():.2g}")

    return lambda generator: {name: one(*limit, generator) for name, limit in limits.items()}


def number(value: Any) -> np.ndarray:
    """A number, array, tensor or list of numbers as float64; Wrong for anything else, and for NaN."""
    with suppress(TypeError, ValueError):
        array = np.asarray(value.detach().cpu().double() if isinstance(value, torch.Tensor) else value)
        if array.dtype.kind in "biufO" and not np.isnan(array.astype(np.float64)).any():
            return array.astype(np.float64)
    raise Wrong(f"a number is asked for, yours is {value!r:.60}".replace("\n", " "))


def ask(answer: Any, shape: tuple[int, ...] | None = (), **arguments: Any) -> np.ndarray:
    """What an answer returns for arguments, as float64 of a shape (None: any); Wrong where it stops or has another."""
    _asked["last"] = arguments
    try:
        given = number(call(answer, **arguments) if arguments else answer)
        if shape not in (None, given.shape):
            raise Wrong(f"an array of shape {shape} is asked for, yours has {given.shape}; () is one number")
        return given
    except Exception as error:
        wrong = error if isinstance(error, Wrong) else f"yours stops with {type(error).__name__}: {error}"
        raise Wrong(f"{at(arguments)}{wrong}") from None


def call(answer: Callable, **arguments: Any) -> Any:
    """Call an answer with copies of arguments, by name, or in this order where it has other names."""
    if not callable(answer):
        raise Wrong(f"a function is asked for, yours is of type {type(answer).__name__}")
    given = copy.deepcopy(arguments)
    try:
        inspect.signature(answer).bind(**given)
    except (TypeError, ValueError):  # other names; some functions written in C do not tell theirs
        return answer(*given.values())
    return answer(**given)


def at(point: Named) -> str:
    """Say where an answer was tried; arrays are printed.

    >>> at({"n": 3, "q": np.array([0.25, 0.75]), "x": torch.zeros(400)})
    'at n = 3, q = [0.25, 0.75], x = [0, 0, 0, ..., 0, 0, 0]: '
    """
    return f"at {', '.join(f'{name} = {text(value)}' for name, value in point.items())}: " if point else ""


def text(value: Any) -> str:
    """Write a number, or an array in one line, to four digits."""
    return " ".join(np.array2string(np.asarray(value), **PRINTED).split())


def _points(label: str, draw: Draw | None) -> list[Named]:
    generator = stream(0, "exercise", label)
    return [draw(generator) for _ in range(POINTS)] if draw else [{}]


def close(right: Any, draw: Draw | None = None, *, digits: int = 4, mistakes: Named | None = None) -> Exercise:
    """Compare with ``right``, a value or a function of the same arguments, to some significant digits.

    >>> tv = close(lambda q, delta: min(q + delta, 1), ranges(q=(0.1, 1.0), delta=(0.1, 0.9)))
    >>> checker({"ex": tv})("ex", lambda delta, q: q + delta)
    not right: at q = 0.7, delta = 0.37: yours is 1.07
    """

    def off(label: str, answer: Any, right: Any, digits: int) -> str:
        for point in _points(label, draw):
            wanted = number(right(**point) if callable(right) else right)
            given = ask(answer, wanted.shape, **point)
            size = np.where(np.isfinite(wanted) & (wanted != 0), np.abs(wanted), 0.1)  # of zero, decimals
            slack = 0.5 * 10.0 ** (np.floor(np.log10(size)) + 1 - digits)  # half a unit of the last digit
            if not np.all((given == wanted) | (np.abs(given - wanted) <= slack + 1e-12 * size.max(initial=1.0))):
                return f"{at(point)}yours is {text(given)}"
        return ""

    def fault(label: str, answer: Any) -> str:
        wrong = off(label, answer, right, digits)
        tried = {words: (other, digits) for words, other in (mistakes or {}).items()}
        tried |= {"it is right to two digits, and more are asked for": (right, 2)}
        named = (words for words, how in tried.items() if not off(label, answer, *how))
        return wrong and "; ".join([wrong, *itertools.islice(named, 1)])

    return Exercise(fault, right, draw, mistakes or {})


def holds(properties: Sequence[Callable], draw: Draw, *, mistakes: Named | None = None) -> Exercise:
    """Hold an answer to properties: each is called as ``f(answer, **point)`` with those arguments that it names, and
    returns None where it holds, else what went wrong, a clause such as "its divergence is 1.4 budgets".

    >>> def never_above_one(answer, q):
    ...     return f"it is {ask(answer, q=q):.2g}, above 1" if ask(answer, q=q) > 1 else None
    >>> checker({"ex": holds((never_above_one,), ranges(q=(0.0, 1.0)))})("ex", lambda q: 2 * q)
    not right: at q = 0.65: it is 1.3, above 1
    """

    def fault(label: str, answer: Any) -> str:
        for one, point in itertools.product(properties, _points(label, draw)):
            if wrong := one(answer, **{name: point[name] for name in [*inspect.signature(one).parameters][1:]}):
                return f"{at(_asked['last'])}{wrong}"
        return ""

    return Exercise(fault, None, draw, mistakes or {})


def judged(label: str, exercise: Exercise, answer: Any) -> str:
    """Judge one answer in a line; what the answer itself prints or warns of is not shown."""
    with redirect_stdout(StringIO()) as unheard, redirect_stderr(unheard), catch_warnings(action="ignore"):
        try:
            wrong = "" if answer is ... else exercise.fault(label, answer)
        except Exception as error:  # a page runs on, whatever a reader gives
            wrong = str(error) if isinstance(error, Wrong) else f"it stops with {type(error).__name__}: {error}"
    return "no answer yet" if answer is ... else f"not right: {' '.join(wrong.split())}" if wrong else "right"


def checker(exercises: Mapping[str, Exercise | Sequence[Exercise]]) -> Callable[..., float | None]:
    """The ``check`` of a chapter: ``check(label, answer)``, or as many answers as the exercise has parts."""

    def check(label: str, *answers: Any, points: float | None = None) -> float | None:
        """Print the judgement of each answer, a line each; with ``points`` return their share that is right instead."""
        parts = [exercises[label]] if isinstance(exercises[label], Exercise) else exercises[label]
        if len(parts) != len(answers):
            return print(f"not right: {label!r} asks for {len(parts)} answers, here are {len(answers)}")
        said = [judged(label, *both) for both in zip(parts, answers, strict=True)]
        lines = (f"({'abcdefgh'[n]}) {line}" if len(said) > 1 else line for n, line in enumerate(said))
        return print("\n".join(lines)) if points is None else round(points * said.count("right") / len(said), 2)

    return check
