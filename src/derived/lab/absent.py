"""Stands in for a library that is not installed: it can be imported, and says what to install when it is used."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any


class Absent(ModuleType):
    """A module, function or class of the library, whichever is asked for."""

    __path__: Sequence[str] = ()

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Say what is missing."""
        raise ImportError(f"{self.__name__} is not here: pip install {self.__name__.partition('.')[0]}")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, library: str) -> None:
        self._library = library

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        mine = name.partition(".")[0] == self._library
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if mine else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Absent(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


def stand_in(library: str) -> None:
    """Let a library be imported where it is not installed."""
    if importlib.util.find_spec(library) is None:
        sys.meta_path.append(_Finder(library))
