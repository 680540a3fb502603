"""Arguments of public functions, checked by their annotations: a failure is one sentence that says what was given and
what would be right.

A whole number is a float and NumPy's numbers are numbers, as in Python. Axes of one name have one length in a call, and
none is empty. What is mathematically wrong, such as a probability above one, the functions refuse themselves.
"""

import functools
import inspect
import itertools
import re
import reprlib
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from numbers import Complex, Integral, Real
from typing import Any, Literal

import numpy as np
import torch
from beartype import BeartypeConf, FrozenDict
from beartype.door import is_bearable
from jaxtyping import jaxtyped

NUMBERS = BeartypeConf(hint_overrides=FrozenDict({int: Integral, float: Real, complex: Complex}))
ARRAY = float | list | tuple | np.ndarray | torch.Tensor  # in place of NumPy's ArrayLike, which lets strings pass
ARRAYS = torch.Tensor | np.ndarray
ENTRIES = {"Float": "floating", "Int": "integer", "Bool": "boolean", "Shaped": "", "Num": "numeric"}
WORDS = {
    int: "an integer",
    float: "a number",
    str: "a string",
    bool: "True or False",
    torch.Generator: "a torch.Generator, such as lab.rng.stream(0, 'noise')",
    torch.dtype: "a dtype of torch, such as torch.float64",
    torch.Tensor: "a torch.Tensor",
    np.ndarray: "a NumPy array",
    list: "a list",
    tuple: "a tuple",
}

ENTRANCES = (
    "__init__",
    "__new__",
    "__call__",
    "forward",
)  # of a class; other methods may be given nothing, as a stream is


def checked(thing: Any) -> Any:
    """A function that checks its arguments before it runs, or a class whose public methods do, changed in place.

    >>> from jaxtyping import Float
    >>> from torch import Tensor
    >>> @checked
    ... def fit(X: Float[Tensor, "*batch n d"], Y: Float[Tensor, "*batch n q"]): ...
    >>> fit([[1.0]], torch.ones(1, 1))
    Traceback (most recent call last):
    ValueError: fit: X is a list; give a floating torch.Tensor of shape (*batch, n, d)
    >>> fit(torch.ones(4, 2), torch.ones(3, 1))
    Traceback (most recent call last):
    ValueError: fit: Y has the shape (3, 1) beside X (4, 2); give a floating torch.Tensor of shape (*batch, n, q)
    """
    if inspect.isfunction(thing):
        return _checked(thing)
    if inspect.isclass(thing):
        for base in thing.__mro__:
            if base.__module__.partition(".")[0] == "derived":
                _check_methods(base)
    return thing


def _check_methods(base: type) -> None:
    for name, method in list(vars(base).items()):
        if name.startswith("_") and name not in ENTRANCES:
            continue
        if isinstance(method, classmethod | staticmethod):
            setattr(base, name, type(method)(_checked(method.__func__)))
        elif inspect.isfunction(method):
            setattr(base, name, _checked(method, empty=name not in ENTRANCES))


def _checked(function: Callable, empty: bool = False) -> Callable:
    if hasattr(function, "checks_arguments"):
        return function
    signature, hints = inspect.signature(function), typing.get_type_hints(function)
    single = {p.name for p in signature.parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    hints = {name: _plain(hint) for name, hint in hints.items() if name in single and hint is not Any}

    @functools.wraps(function)
    def call(*args, **kwargs):
        if not torch.compiler.is_compiling():
            try:
                given = signature.bind(*args, **kwargs).arguments
            except TypeError:  # Python says it better
                return function(*args, **kwargs)
            _check(function.__qualname__.removesuffix(".__init__"), hints, given, empty)
        return function(*args, **kwargs)

    call.checks_arguments = True
    return call


def _plain(hint: Any) -> Any:
    """The annotation with one name for what NumPy takes for an array."""
    if not re.search("_SupportsArray|ArrayLike", repr(hint)):  # what NumPy's word is, and what it is called since 3.12
        return hint
    return ARRAY | None if types.NoneType in typing.get_args(hint) else ARRAY


def _check(function: str, hints: Mapping[str, Any], given: Mapping[str, Any], empty: bool) -> None:
    """ValueError for the first argument that is not what its annotation says, or that has no entry unless ``empty``."""
    with jaxtyped("context"):
        for name, value in given.items():
            if name in hints and not _fits(value, hints[name]):
                raise ValueError(f"{function}: {name} {_wrong(name, value, hints, given)}")
            if not empty and isinstance(value, ARRAYS) and 0 in value.shape:
                raise ValueError(f"{function}: {name} has the shape {tuple(value.shape)}; give at least one entry")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is what its annotation says; all entries of a sequence count, beartype draws one."""
    if not is_bearable(value, hint, conf=NUMBERS):
        return False
    kinds = [typing.get_args(each)[0] for each in _choices(hint) if typing.get_origin(each) in (Sequence, list)]
    kinds *= isinstance(value, list | tuple)
    return not kinds or all(any(_fits(entry, kind) for kind in kinds) for entry in value)


def _wrong(name: str, value: Any, hints: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """What is wrong with an argument, and what would be right."""
    choices = _choices(hints[name])
    *others, last = dict.fromkeys(map(_words, choices))
    give = f"; give {', '.join(others)}{' or ' * bool(others)}{last}"
    if not isinstance(value, ARRAYS):
        plain = isinstance(value, Real | str | list | tuple) and not any(hasattr(each, "dim_str") for each in choices)
        return (f"= {reprlib.repr(value)}" if plain else f"is {_kind(value)}") + give
    hint = next((each for each in choices if hasattr(each, "dim_str") and isinstance(value, each.array_type)), None)
    if hint is None:
        return f"is {_kind(value)}{give}"
    if not isinstance(value, hint.dtype[hint.array_type, "..."]):
        return f"has the dtype {value.dtype}{give}"
    before = itertools.takewhile(lambda each: each != name, given)
    shapes = [f"{each} {tuple(given[each].shape)}" for each in before if isinstance(given[each], ARRAYS)]
    return f"has the shape {tuple(value.shape)}{' beside ' * bool(shapes)}{', '.join(shapes)}{give}"


def _choices(hint: Any) -> tuple[Any, ...]:
    """What a union offers but None, or the hint alone."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return tuple(each for part in typing.get_args(hint) if part is not types.NoneType for each in _choices(part))
    return tuple(map(repr, typing.get_args(hint))) if typing.get_origin(hint) is Literal else (hint,)


def _words(hint: Any) -> str:
    """What an annotation asks for."""
    if hasattr(hint, "dim_str"):
        kind = ENTRIES.get(hint.dtype.__name__, hint.dtype.__name__.lower())
        array = "torch.Tensor" if hint.array_type is torch.Tensor else "NumPy array"
        axes = ", ".join(hint.dim_str.replace("#", "").split())
        return f"{_an(f'{kind} {array}'.strip())} of shape ({axes}{',' * (axes.isalnum())})"
    if isinstance(hint, str):  # of a Literal
        return hint
    if hint in WORDS:
        return WORDS[hint]
    if typing.get_origin(hint) is Callable:
        return "a function"
    if typing.get_origin(hint) in (Sequence, Collection, Iterable, list, tuple):
        entries = {int: "integers", float: "numbers", Callable: "functions"}.get(typing.get_args(hint)[0], "entries")
        return f"{_an(typing.get_origin(hint).__name__.lower())} of {entries}"
    return f"a {hint.__name__ if inspect.isclass(hint) and not typing.get_args(hint) else str(hint).split('abc.')[-1]}"


def _kind(value: Any) -> str:
    kind = type(value).__name__
    return WORDS.get(type(value), "None" if value is None else _an(kind))


def _an(words: str) -> str:
    return f"a{'n' * (words[0].lower() in 'aeiou')} {words}"
