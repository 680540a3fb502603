"""A sampling profiler of a page: which function of the package is running, twenty times a second of the processor."""

import signal
import time
from collections import Counter
from pathlib import Path
from types import FrameType

PACKAGE = str(Path(__file__).parents[1])
PAUSE = 0.05  # seconds of the processor between two samples
MOST = 5  # functions that are named

_seconds: Counter[str] = Counter()  # processor seconds by function; under "" other code and all before the start


def start() -> None:
    """Forget earlier samples, and sample the main thread, which must be the caller, until the process ends. Does
    nothing where the system has no such timer. A timer interrupts the thread between two bytecodes; a second thread
    that reads its frames can meet one that has already ended."""
    _seconds.clear()
    _seconds[""] = time.process_time()
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGPROF, _sample)
        signal.siginterrupt(signal.SIGPROF, False)
        signal.setitimer(signal.ITIMER_PROF, PAUSE, PAUSE)


def busiest() -> dict[str, float]:
    """The share of seconds in each of the busiest functions, by "module.function": the innermost one of the package
    counts, along with what it calls in other libraries. Empty without samples."""
    counted = dict(_seconds)  # at once: a sample may come between two turns of a loop
    ours = Counter({name: seconds for name, seconds in counted.items() if name})
    return {name: seconds / ours.total() for name, seconds in ours.most_common(MOST)}


def _sample(_signal: int, frame: FrameType | None) -> None:
    """Count all seconds since the last sample, since a long library call can be sampled only once it returns."""
    name = _innermost(frame)
    _seconds[name] += time.process_time() - _seconds.total()


def _innermost(frame: FrameType | None) -> str:
    """The innermost function of the package; "" where there is none, as while a module is imported from a page."""
    while frame and not (frame.f_code.co_filename.startswith(PACKAGE) and frame.f_code.co_qualname != "<module>"):
        frame = frame.f_back
    if not frame:
        return ""
    function = frame.f_code.co_qualname.partition(".<locals>")[0]  # what a function defines inside counts as its own
    return f"{Path(frame.f_code.co_filename).stem}.{function}"
