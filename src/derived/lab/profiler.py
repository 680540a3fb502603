"""A sampling profiler of a page: which function of the package is running, twenty times a second."""

import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

PACKAGE = str(Path(__file__).parents[1])
PAUSE = 0.05  # seconds between two samples
MOST = 5  # functions that are named

_samples: Counter[str] = Counter()
_sampling = threading.Lock()  # held by the one thread that samples


def start() -> None:
    """Forget earlier samples, and sample the calling thread until the process ends."""
    _samples.clear()
    if _sampling.acquire(blocking=False):
        threading.Thread(target=_sample, args=[threading.get_ident()], daemon=True).start()


def busiest() -> dict[str, float]:
    """The share of samples in each of the busiest functions, by "module.function": the innermost one of the package
    counts, along with what it calls in other libraries. Empty without samples."""
    return {name: count / _samples.total() for name, count in _samples.most_common(MOST)}


def _sample(thread: int) -> None:
    while True:
        time.sleep(PAUSE)
        name = _innermost(sys._current_frames().get(thread))
        if name:
            _samples[name] += 1


def _innermost(frame: FrameType | None) -> str:
    while frame and not frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    if not frame:
        return ""
    function = frame.f_code.co_qualname.partition(".<locals>")[0]  # what a function defines inside counts as its own
    return f"{Path(frame.f_code.co_filename).stem}.{function}"
