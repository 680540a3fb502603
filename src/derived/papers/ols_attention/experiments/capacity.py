"""Capacities of associative memories, from linear to exponential in the number of spins (OLS-15).

N   number of spins
K   number of patterns at the edge: one bit in a hundred moves, or the chance that all patterns stay is one half
F   interaction, E = -sum_mu F(xi_mu . sigma)
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model import capacity as closed
from ..model import hopfield


@dataclass(frozen=True, kw_only=True)
class PolynomialCapacity(Experiment):
    """OLS-15: patterns at a one-step bit error of 1 %, F = u^n; the published claim is a power N^{n-1}."""

    sizes_2: tuple[int, ...] = (32, 64, 128, 256)
    sizes_3: tuple[int, ...] = (32, 64, 128, 256)
    sizes_4: tuple[int, ...] = (16, 32, 64)
    error: float = 0.01
    replicates: int = 8
    trials: int = 16

    tiers: ClassVar = {
        "ci": {"sizes_2": (32, 64, 128), "sizes_3": (24, 40, 64), "sizes_4": (20, 32, 48)},
        "cpu": {
            **{"sizes_2": (32, 64, 128, 256), "sizes_3": (32, 64, 128), "sizes_4": (16, 32, 64)},
            **{"trials": 8, "replicates": 16},
        },
        "gpu": {},
    }

    def conditions(self) -> list[dict]:
        sizes = {2: self.sizes_2, 3: self.sizes_3, 4: self.sizes_4}
        return [{"degree": degree, "N": N} for degree, row in sizes.items() for N in row]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        degree, N = condition["degree"], condition["N"]
        generator = stream(seed, "polynomial capacity", degree, N, device=device)
        sizes = {"replicates": self.replicates, "trials": self.trials}
        edge = hopfield.capacity(N, degree, self.error, generator=generator, dtype=dtype, **sizes)
        theory = closed.capacity_theory(N, degree, self.error)
        return rows({"replicate": range(self.replicates)}, {"K": edge.K, "theory": theory})


@dataclass(frozen=True, kw_only=True)
class ExponentialCapacity(Experiment):
    """OLS-15: F = e^u. ``typical``: K at a bit error of 1 %; ``all``: K at which all patterns stay with chance 1/2."""

    typical_sizes: tuple[int, ...] = (10, 12, 14, 16, 18, 20, 22, 24)
    all_sizes: tuple[int, ...] = (12, 16, 20, 24)
    replicates: int = 24
    trials: int = 256

    tiers: ClassVar = {
        "ci": {"typical_sizes": (10, 12, 14), "all_sizes": (8, 10, 12, 14), "replicates": 16},
        "cpu": {"typical_sizes": (10, 12, 14, 16), "all_sizes": (10, 12, 14, 16, 18)},
        "gpu": {},
    }

    def conditions(self) -> list[dict]:
        sizes = {"typical": self.typical_sizes, "all": self.all_sizes}
        return [{"notion": notion, "N": N} for notion, row in sizes.items() for N in row]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, notion = condition["N"], condition["notion"]
        generator = stream(seed, "exponential capacity", notion, N, device=device)
        if notion == "typical":
            trials = max(1, min(64, round(2**18 / 2**N)))  # about as many tests at every N
            sizes = {"replicates": self.replicates, "trials": trials, "num_tests": 512}
            K = hopfield.capacity(N, "exp", 0.01, generator=generator, **sizes).K
            return rows({"replicate": range(self.replicates)}, {"K": K, "theory": 0.02 * 2.0**N})
        K = self._half_odds(N, generator)
        return rows({"replicate": range(self.replicates)}, {"K": K, "theory": closed.all_fixed_capacity(N)})

    def _half_odds(self, N: int, generator: torch.Generator) -> np.ndarray:
        """Per replicate the K at which half of its draws keep all patterns, interpolated in ln K on a grid of ratio
        sqrt(2); NaN where the share does not cross 1/2 between K = 2 and 2^N."""
        sizes, shares = [], []
        while not shares or (shares[-1].max() >= 0.5 and sizes[-1] < 2**N):
            sizes.append(round(2 ** (1 + len(sizes) / 2)))
            fixed = hopfield.all_fixed(N, sizes[-1], "exp", trials=self.replicates * self.trials, generator=generator)
            shares.append(fixed.reshape(self.replicates, self.trials).double().mean(dim=-1).cpu().numpy())
        crossings = np.full(self.replicates, np.nan)
        for replicate, course in enumerate(np.array(shares).T):
            after = int(np.argmax(course < 0.5))  # the first size below even odds; 0: it never crosses
            if after:
                low, high = course[after - 1], course[after]
                step = (low - 0.5) / (low - high)
                crossings[replicate] = sizes[after - 1] * (sizes[after] / sizes[after - 1]) ** step
        return crossings
