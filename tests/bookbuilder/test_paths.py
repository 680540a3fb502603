"""What the machine has: a CUDA device counts only with a torch that can use it; peak memory is a condition's own."""

import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
import torch

from bookbuilder import paths
from bookbuilder.ledger import recording


@pytest.mark.parametrize(
    ("device", "build", "visible", "answer"),
    [
        (True, "12.8", None, True),
        (True, None, None, False),  # a CPU wheel on a GPU machine
        (False, "12.8", None, False),
        (True, "12.8", "-1", False),
        (True, "12.8", "", False),
        (True, "12.8", "1", True),
    ],
)
def test_a_cuda_device_counts_only_with_a_torch_built_for_it(device, build, visible, answer, tmp_path, monkeypatch):
    place = tmp_path / "nvidiactl"
    if device:
        place.touch()
    monkeypatch.setattr(paths, "NVIDIA_DEVICE", place)
    monkeypatch.setattr(paths, "_torch_cuda", lambda: build)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert paths.has_cuda() is answer


def test_the_build_of_torch_is_read_without_importing_it():
    import torch

    assert paths._torch_cuda() == torch.version.cuda


def test_a_process_ends_those_that_it_started():
    asleep = "[sys.executable, '-c', 'import time; time.sleep(20)']"
    code = f"import subprocess, sys; child = subprocess.Popen({asleep}); end_children(); print(child.wait(5))"
    code = f"from bookbuilder.paths import end_children; {code}"
    made = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert made.stdout == f"-{signal.SIGKILL:d}\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux forgets a peak")
def test_a_condition_does_not_inherit_the_peak_memory_of_the_one_before():
    def rows(megabytes: int) -> pd.DataFrame:
        return pd.DataFrame({"sum": [np.ones((megabytes, 2**17)).sum()]})

    *_, large = recording.measured(rows, 400)
    *_, small = recording.measured(rows, 1)
    assert large - small > 300


@pytest.mark.skipif(torch.cuda.is_available(), reason="on a GPU the clock counts")
def test_a_condition_takes_the_seconds_of_its_core():
    def asleep() -> pd.DataFrame:
        time.sleep(0.5)
        return pd.DataFrame()

    assert recording.measured(asleep)[1] < 0.25
