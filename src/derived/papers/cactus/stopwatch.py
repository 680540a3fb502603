"""The time on a device."""

import time

import torch


def now(device: torch.device) -> float:
    """Seconds on a steady clock, read once the device's queue is empty."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
