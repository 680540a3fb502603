"""The clock of the sampler alone.

symbol     name     meaning                              axes
B, m, V    -        sequences, drafts per block, tokens  scalar
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..model.sampler import accept_reject
from .matching import rule_of
from .stopwatch import now


@dataclass(frozen=True, kw_only=True)
class SamplerTime(Experiment):
    """CAC-14: the clock of the sampler alone, rules taking turns; float32 laws from a softmax of noise.

    The budget is so small that some blocks are cut, as exact sampling cuts nearly all: a rejection costs the rows that
    it reads. Each time is that of a call right after the same call untimed, so that no rule is timed on what another
    one has left in caches and in the allocator. Rows: B, V, repeat; seconds of exact (SpS), cactus, tas (which reads
    all rows), and of rows (two (B, V) tables read once: the least that a rejection costs); cut, the share of blocks in
    which Cactus rejects a draft.
    """

    batches: tuple[int, ...] = (1, 16, 64, 256)
    sizes: tuple[int, ...] = (32_000, 152_000)
    m: int = 10
    delta: float = 1e-3
    repeats: int = 60

    tiers: ClassVar = {
        "ci": {"batches": (2,), "sizes": (1000,), "m": 3, "repeats": 5},
        "cpu": {"batches": (1, 16), "repeats": 40},
        "gpu": {},
    }
    tiny: ClassVar = {"sizes": (20,), "repeats": 3}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"B": B, "V": V} for B in self.batches for V in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        B, V = condition["B"], condition["V"]
        on = partial(stream, seed, device=device)
        noise = torch.randn(B, self.m + 1, V, generator=on("rows", B, V), dtype=dtype, device=device)
        q = torch.softmax(2 * noise, dim=-1)
        p = torch.softmax(2 * noise[:, : self.m] + noise.roll(1, dims=-1)[:, : self.m], dim=-1)
        drafted = torch.multinomial(p.flatten(0, 1), 1, generator=on("drafts", B, V)).view(B, -1)
        rules = {"exact": rule_of("cactus", 0.0), "cactus": rule_of("cactus", self.delta), "tas": rule_of("tas", 0.09)}
        generator, times = on("uniforms"), {name: [] for name in (*rules, "rows")}
        for _ in range(self.repeats):
            for name, rule in rules.items():
                times[name].append(_timed(partial(accept_reject, p, drafted, q, rule, generator), device))
            times["rows"].append(_timed(lambda: (p[:, 0].sum(dim=-1), q[:, 0].sum(dim=-1)), device))
        cut = accept_reject(p, drafted, q, rules["cactus"], on("cut")).n_accepted < self.m
        return pd.DataFrame({"repeat": range(self.repeats), **times, "cut": float(cut.double().mean())})


def _timed(call: Callable[[], object], device: torch.device) -> float:
    """Seconds of a call right after the same call, the device's queue empty before and after."""
    call()
    begun = now(device)
    call()
    return now(device) - begun
