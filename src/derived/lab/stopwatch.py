"""Says in which functions of the package a page spends its time: a thread looks at what is at work, again and again."""

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

PACKAGE = str(Path(__file__).parents[1])
PAUSE = 0.05  # seconds between two looks
MOST = 5  # functions that are told

_seen: Counter[str] = Counter()
_watch = threading.Lock()  # held by the one thread that looks


def start() -> None:
    """Begin anew, and look at the thread that calls this from now on until the process ends."""
    _seen.clear()
    if _watch.acquire(blocking=False):
        threading.Thread(target=_look, args=[threading.get_ident()], daemon=True).start()


def busiest() -> dict[str, float]:
    """The share of the looks that found each of the busiest functions at work, by "module.function"; the innermost one
    of the package counts, with what it calls elsewhere. Empty if nothing was seen."""
    return {name: count / _seen.total() for name, count in _seen.most_common(MOST)}


def _look(thread: int) -> None:
    while True:
        time.sleep(PAUSE)
        name = _innermost(sys._current_frames().get(thread))
        if name:
            _seen[name] += 1


def _innermost(frame: FrameType | None) -> str:
    while frame and not frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_qualname}" if frame else ""
