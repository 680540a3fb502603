"""The running function of the package is named with its share; other code is not."""

import time
from pathlib import Path

import pytest

from derived.lab import profiler


def busy(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        sorted(-each for each in range(1000))


@pytest.fixture
def ours(monkeypatch):
    """This file is the package."""
    monkeypatch.setattr(profiler, "PACKAGE", str(Path(__file__)))
    monkeypatch.setattr(profiler, "PAUSE", 0.001)
    profiler.start()


def test_the_running_function_is_named_with_its_share(ours):
    busy(0.6)
    found = profiler.busiest()
    assert max(found, key=found.get) == "test_profiler.busy"
    assert found["test_profiler.busy"] > 0.5
    assert sum(found.values()) <= 1 + 1e-12


def test_a_new_page_forgets_earlier_samples_and_starts_no_second_thread(ours):
    busy(0.3)
    profiler.start()
    assert "test_profiler.busy" not in profiler.busiest()
    assert not profiler._sampling.acquire(blocking=False)


def test_code_outside_the_package_is_not_named(monkeypatch):
    monkeypatch.setattr(profiler, "PACKAGE", "/nowhere")
    profiler.start()
    time.sleep(0.1)
    assert profiler.busiest() == {}
