"""Finds out which code of the papers an answer runs, however it reaches it.

answer   a function, a class, or an object that can be called
entry    the function through which a check calls it
may      what the answer may run of the code of papers; a check itself runs what it likes
"""

import contextlib
import functools
import inspect
import itertools
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

PAPERS = str(Path(__file__).parents[1] / "papers")
LIBRARIES = (*{sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")}, "<frozen")


@contextlib.contextmanager
def borrowed(answer: Any, may: Sequence[Callable], entry: Callable) -> Iterator[set[str]]:
    """Collect the names of what the answer is, or calls, of the code of papers while the block runs."""
    allowed = {code for each in may for code in _codes(each)}
    used = {_name(code) for code in _codes(answer) if _in_papers(code) and code not in allowed}

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and _in_papers(frame.f_code) and (called := _called(frame, allowed, entry.__code__)):
            used.add(_name(called))

    before = sys.getprofile(), threading.getprofile()
    sys.setprofile(watch)
    threading.setprofile(watch)
    try:
        yield used
    finally:
        sys.setprofile(before[0])
        threading.setprofile(before[1])


def _called(frame: FrameType, allowed: Set[CodeType], entry: CodeType) -> CodeType | None:
    """Find the code of a paper that the answer has called; None if the check has, or if it may be called."""
    at: FrameType | None = frame
    called = None
    while at is not None and at.f_code not in allowed:
        if at.f_code.co_filename == entry.co_filename:
            return called if at.f_code is entry else None
        ours = at.f_globals.get("__name__", "").startswith("derived.")
        if not ours and not at.f_code.co_filename.startswith(LIBRARIES):
            return called
        called = at.f_code if _in_papers(at.f_code) else called
        at = at.f_back
    return called if at is None else None  # the end of a stack: of a thread that the answer has started


def _codes(answer: Any) -> Iterator[CodeType]:
    """The code that runs when an answer is called: of a partial its function's, of a class that of its methods."""
    answer = inspect.unwrap(answer) if callable(answer) else answer
    if isinstance(answer, functools.partial):
        yield from _codes(answer.func)
    elif code := getattr(answer, "__code__", None):
        yield code
    elif callable(answer):
        kind = answer if isinstance(answer, type) else type(answer)
        functions = (vars(base).values() for base in kind.__mro__)
        yield from (each.__code__ for each in itertools.chain(*functions) if isinstance(each, FunctionType))


def _in_papers(code: CodeType) -> bool:
    return code.co_filename.startswith(PAPERS)


def _name(code: CodeType) -> str:
    name = code.co_qualname.split(".<locals>")[0]
    return Path(code.co_filename).name if name.startswith("<") else name
