"""The function that works is seen, with what it calls elsewhere; what waits is not."""

import time
from pathlib import Path

import pytest

from derived.lab import stopwatch


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sorted(range(1000))


@pytest.fixture
def ours(monkeypatch):
    """This file is the package."""
    monkeypatch.setattr(stopwatch, "PACKAGE", str(Path(__file__)))
    monkeypatch.setattr(stopwatch, "PAUSE", 0.001)
    stopwatch.start()


def test_the_function_at_work_is_told_with_its_share(ours):
    busy(0.6)
    found = stopwatch.busiest()
    assert max(found, key=found.get) == "test_stopwatch.busy"
    assert found["test_stopwatch.busy"] > 0.5
    assert sum(found.values()) <= 1 + 1e-12


def test_a_page_begins_anew_and_no_second_thread_looks(ours):
    busy(0.3)
    stopwatch.start()
    assert "test_stopwatch.busy" not in stopwatch.busiest()
    assert not stopwatch._watch.acquire(blocking=False)


def test_what_is_not_of_the_package_is_not_told(monkeypatch):
    monkeypatch.setattr(stopwatch, "PACKAGE", "/nowhere")
    stopwatch.start()
    time.sleep(0.1)
    assert stopwatch.busiest() == {}
