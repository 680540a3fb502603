"""How much noise other pairs make, and how many pairs a memory of d x h numbers holds."""

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch.nn.functional import normalize

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model import theory


@dataclass(frozen=True, kw_only=True)
class Noise(Experiment):
    """IPT-8.b: the size of what N unrelated pairs add to a logit.

    Unit embeddings in random directions, none of those read is written; keys with entries of variance 1/h; unit
    queries. Rows: N, h, replicate, std (root mean square over logits and queries), theory (sqrt(N / (dh))).
    """

    replicates: int = 64
    counts: tuple[int, ...] = (64, 256, 1024, 4096)
    widths: tuple[int, ...] = (16, 64, 256)
    d: int = 32
    logits: int = 64
    queries: int = 64

    tiers: ClassVar = {"ci": {"replicates": 20, "counts": (64, 256, 1024)}, "cpu": {}}
    tiny: ClassVar = {"replicates": 4, "counts": (32, 128), "widths": (8, 32), "d": 16}
    deterministic: ClassVar = {"theory": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"N": N, "h": h} for N, h in itertools.product(self.counts, self.widths)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, h = condition["N"], condition["h"]
        std = [self.one(N, h, stream(seed, "noise", N, h, r), device, dtype) for r in range(self.replicates)]
        columns = {"d": self.d, "std": torch.stack(std), "theory": theory.logit_noise(N, self.d, h)}
        return rows({"replicate": range(self.replicates)}, columns)

    def one(self, N: int, h: int, draw: torch.Generator, device, dtype) -> torch.Tensor:
        drawn = lambda *shape: torch.randn(*shape, generator=draw, dtype=dtype).to(device)  # noqa: E731
        read, written = (normalize(drawn(number, self.d), dim=-1) for number in (self.logits, N))
        keys, queries = drawn(N, h) / h**0.5, normalize(drawn(self.queries, h), dim=-1)
        return (read @ written.mT @ (keys @ queries.mT)).square().mean().sqrt()


@dataclass(frozen=True, kw_only=True)
class Capacity(Experiment):
    """IPT-8.c and 8.d: right answers against the number of pairs, each key new and each value one of V tokens.

    Rows: d, h, V, replicate, point (place on the grid), pairs, recall (of up to ``asked`` stored pairs, the largest
    logit right), half (pairs at which recall is 1/2, interpolated in the logarithm, the same at every point), rule
    (dh / (2 ln V)), theory (h / (a_V^2 (1/d + 1/V))).
    """

    replicates: int = 64
    sizes: tuple[tuple[int, int, int], ...] = (
        *((32, 64, 256), (64, 32, 256), (64, 64, 256), (64, 128, 256), (128, 64, 256)),
        *((64, 64, 8), (64, 64, 16), (128, 64, 16), (64, 64, 64), (64, 64, 4096)),
    )
    asked: int = 256
    shares: tuple[float, ...] = (0.125, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0)

    tiers: ClassVar = {"ci": {"replicates": 16}, "cpu": {"replicates": 24}}
    tiny: ClassVar = {"replicates": 4, "sizes": ((16, 16, 32), (32, 16, 4)), "asked": 64}
    deterministic: ClassVar = {"rule": 1e-12, "theory": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"d": d, "h": h, "V": V} for d, h, V in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, h, V = (condition[name] for name in ("d", "h", "V"))
        theory_of_few = theory.capacity_of_few(d, h, V)
        pairs = [max(1, round(share * theory_of_few)) for share in self.shares]
        draws = [[stream(seed, "capacity", d, h, V, N, r) for N in pairs] for r in range(self.replicates)]
        recall = np.array(
            [
                [self.recall(d, h, V, N, draw, device, dtype) for N, draw in zip(pairs, each, strict=True)]
                for each in draws
            ]
        )
        half = [np.exp(np.interp(-0.5, -one, np.log(pairs))) for one in np.minimum.accumulate(recall, axis=1)]
        index = {"replicate": range(self.replicates), ("point", "pairs"): (range(len(pairs)), pairs)}
        rules = {"rule": theory.capacity(d, h, V), "theory": theory_of_few}
        return rows(index, {"recall": recall, "half": np.array(half)[:, None]} | rules)

    def recall(self, d: int, h: int, V: int, N: int, draw: torch.Generator, device, dtype) -> float:
        drawn = lambda *shape: torch.randn(*shape, generator=draw, dtype=dtype).to(device)  # noqa: E731
        e, keys = normalize(drawn(V, d), dim=-1), drawn(N, h) / h**0.5
        tokens = torch.randint(V, (N,), generator=draw).to(device)
        asked = keys[: self.asked]
        answers = (e @ (e[tokens].mT @ keys @ asked.mT)).argmax(dim=0)
        return (answers == tokens[: self.asked]).double().mean().item()
