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
    label = repr((int(seed), *map(_plain, names))).encode()
    state = int.from_bytes(hashlib.sha256(label).digest()[:8], "big") >> 1  # manual_seed takes a signed 64-bit number
    return torch.Generator(device=device).manual_seed(state)


def _plain(name: str | int) -> str | int | float:
    """The name as Python's own string or number, whose ``repr`` is the same everywhere."""
    if isinstance(name, str):
        return str(name)
    if isinstance(name, bool) or not isinstance(name, numbers.Real):
        raise ValueError(f"the name {name!r} of a stream is no string and no number; give str or int")
    return int(name) if isinstance(name, numbers.Integral) else float(name)
