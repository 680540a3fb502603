"""Randomness by name: every random call takes a generator made here.

    g = stream(seed, "init", layer)

Two streams with different names are independent for all practical purposes; the same seed and name give the same
numbers on every machine, whatever ran before. Nothing in this project sets a global seed.
"""

import hashlib
import numbers

import torch


def stream(seed: int, *names: str | int, device: str | torch.device = "cpu") -> torch.Generator:
    """A generator whose state is a hash of the seed and the names.

    Give ``device`` only for bulk noise drawn on an accelerator: CUDA's numbers differ from the CPU's, so initial states
    and small draws are made on the CPU and moved.
    """
    if isinstance(seed, bool) or not isinstance(seed, numbers.Integral):
        raise ValueError(
            f"the seed {seed!r} is no whole number: a stream's numbers must not depend on how it is rounded"
        )
    label = repr((int(seed), *names)).encode()
    state = int.from_bytes(hashlib.sha256(label).digest()[:8], "big") >> 1  # manual_seed takes a signed 64-bit number
    return torch.Generator(device=device).manual_seed(state)
