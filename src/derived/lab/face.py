"""The public face of a paper: few names, each loaded on first use, with its arguments checked by their annotations.

What a room imports from another room is the plain function, which checks no shape, type or dtype. A class is checked in
place when the face is first asked for it, so that it stays one class wherever it is imported.
"""

import sys
from collections.abc import Callable
from typing import Any

import lazy_loader


def attach(package: str, submod_attrs: dict[str, list[str]]) -> tuple[Callable, Callable, list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package whose modules offer these names."""
    load, names, offered = lazy_loader.attach(package, submod_attrs=submod_attrs)

    def __getattr__(name: str) -> Any:
        thing = load(name)
        if name in offered:
            from .arguments import checked  # torch and beartype, which a face loads on first use alone

            thing = checked(thing)
            setattr(sys.modules[package], name, thing)
        return thing

    return __getattr__, names, offered
