"""What a number format keeps of a write, and how far a clipped write moves an output."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.theory import share_written

BITS = {"bfloat16": 8, "float32": 24}


@dataclass(frozen=True, kw_only=True)
class Clip(Experiment):
    """IPT-16: writes of Frobenius norm tau to a matrix d x h of the initialiser's size, the paper's clip among them.

    What is kept is counted on a sample of ``entries`` weights; what moves, on ``sampled_rows`` of its rows. Rows: tau,
    dtype, replicate, changed (share of weights that one write changes), theory (closed form), after (share that differs
    after ``writes`` independent writes, one by one), moved (largest change of an output over its size after as many
    writes, all alike and in float64), bound (what the norms allow).
    """

    replicates: int = 8
    d: int = 2560
    h: int = 9728
    weight_std: float = 0.02
    norms: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
    writes: int = 32
    entries: int = 1_000_000
    sampled_rows: int = 64
    inputs: int = 16

    tiers: ClassVar = {
        "ci": {"norms": (1e-5, 1e-3, 1e-1), "entries": 250_000},
        "cpu": {},
    }
    tiny: ClassVar = {"replicates": 2, "norms": (1e-5, 1e-1, 10.0), "entries": 20_000, "sampled_rows": 4, "inputs": 2}
    deterministic: ClassVar = {"theory": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"tau": tau, "dtype": name} for tau, name in itertools.product(self.norms, BITS)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        tau, name = condition["tau"], condition["dtype"]
        found = [self.one(tau, name, stream(seed, "clip", tau, r), device) for r in range(self.replicates)]
        columns = dict(zip(("changed", "after", "moved", "bound"), torch.tensor(found).double().mT, strict=True))
        rms = tau / (self.d * self.h) ** 0.5
        theory = share_written(self.weight_std, rms, BITS[name])
        return rows({"replicate": range(self.replicates)}, columns | {"theory": theory})

    def one(self, tau: float, name: str, draw: torch.Generator, device) -> tuple[float, ...]:
        kept, rms = getattr(torch, name), tau / (self.d * self.h) ** 0.5
        drawn = lambda *shape: torch.randn(*shape, generator=draw).to(device)  # noqa: E731
        start = (self.weight_std * drawn(self.entries)).to(kept)
        state, changed = start, 0.0
        for i in range(self.writes):
            state = (state.double() + rms * drawn(self.entries).double()).to(kept)
            changed = changed if i else (state != start).double().mean().item()
        return changed, (state != start).double().mean().item(), *self.moved(tau, drawn)

    def moved(self, tau: float, drawn) -> tuple[float, float]:
        """The largest share by which an output moves, and what the norms allow.

        All writes point one way and one input is their key, which is the worst case. A few rows of the matrix are
        drawn; the size of an output is that of all d rows, a sum of equal parts.
        """
        W, z = self.weight_std * drawn(self.sampled_rows, self.h).double(), drawn(self.inputs, self.h).double()
        value = drawn(self.sampled_rows).double()
        write = tau * torch.outer(value / value.norm(), z[0] / z[0].norm())
        size = (z @ W.mT).norm(dim=-1) * (self.d / self.sampled_rows) ** 0.5
        change = (z @ (self.writes * write).mT).norm(dim=-1)
        return (change / size).max().item(), (self.writes * tau * z.norm(dim=-1) / size).max().item()
