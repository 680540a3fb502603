"""The running function of the package is named with its share; other code is not."""

import signal
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from derived.lab import profiler


def busy(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        sorted(-each for each in range(1000))


def one_long_call(values):
    """One call of a library, interrupted only at its end."""
    sorted(values)


@pytest.fixture
def stopped():
    """Sampling ends with the test."""
    yield
    signal.setitimer(signal.ITIMER_PROF, 0)


@pytest.fixture
def ours(stopped, monkeypatch):
    """This file is the package."""
    monkeypatch.setattr(profiler, "PACKAGE", str(Path(__file__)))
    monkeypatch.setattr(profiler, "PAUSE", 0.002)
    profiler.start()


def test_the_running_function_is_named_with_its_share(ours):
    busy(0.6)
    found = profiler.busiest()
    assert max(found, key=found.get) == "test_profiler.busy"
    assert found["test_profiler.busy"] > 0.5
    assert sum(found.values()) <= 1 + 1e-12


def test_a_call_that_cannot_be_interrupted_counts_by_its_seconds(ours):
    values = np.random.default_rng(0).standard_normal(1_000_000).tolist()
    before = time.process_time()
    busy(0.2)
    middle = time.process_time()
    one_long_call(values)
    long, short = time.process_time() - middle, middle - before
    found = profiler.busiest()
    assert long > short / 2
    assert found["test_profiler.one_long_call"] == pytest.approx(long / (long + short), abs=0.1)


def test_a_new_page_forgets_earlier_samples(ours):
    busy(0.3)
    profiler.start()
    assert "test_profiler.busy" not in profiler.busiest()


def test_no_other_thread_reads_the_frames(ours):
    threads = threading.active_count()
    profiler.start()
    assert threading.active_count() == threads


def test_code_outside_the_package_is_not_named(stopped, monkeypatch):
    monkeypatch.setattr(profiler, "PACKAGE", "/nowhere")
    profiler.start()
    busy(0.2)
    assert profiler.busiest() == {}


def test_an_import_is_no_function(ours, tmp_path, monkeypatch):
    source = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end:\n    pass\n"
    monkeypatch.setattr(profiler, "PACKAGE", str(tmp_path))
    exec(compile(source, str(tmp_path / "imported.py"), "exec"))
    assert profiler.busiest() == {}


def test_a_system_without_such_a_timer_has_no_samples(monkeypatch):
    monkeypatch.delattr(signal, "setitimer")
    profiler.start()
    busy(0.1)
    assert profiler.busiest() == {}


def test_a_sample_may_come_while_the_busiest_are_asked_for(monkeypatch):
    class Sampled(Counter):
        def items(self):
            for each in super().items():
                self[f"module.new{len(self)}"] += 1.0  # as a signal between two turns of the loop
                yield each

    monkeypatch.setattr(profiler, "_seconds", Sampled({"": 1.0, "module.function": 3.0}))
    assert profiler.busiest() == {"module.function": 1.0}
