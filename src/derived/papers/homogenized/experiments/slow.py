"""The slow overlap at low temperature: paths of a pair in a uniform cloud."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..model.cloud import cloud_layer, return_probability


@dataclass(frozen=True, kw_only=True)
class SlowPaths(Experiment):
    """HT-13: pairs in a uniform cloud at beta = infinity, over the slow time t = tau/d: who returns to overlap 0?

    Rows: factors, replicate, returned, y (artanh R at the end), recurrent and transient: the probabilities of a return
    by then for kappa = 1 and at all times for kappa = 0.
    """

    d: int = 256
    y0: float = 1.1
    time: float = 10.0
    h: float = 0.02
    factors: tuple[int, ...] = (2, 0)
    replicates: int = 800

    tiers: ClassVar = {
        "ci": {"d": 64, "h": 0.1, "replicates": 500},
        "cpu": {"h": 0.05, "replicates": 1600},
    }
    tiny: ClassVar = {"d": 8, "time": 0.5, "replicates": 6}

    def conditions(self) -> list[dict]:
        return [{"factors": k} for k in self.factors]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        k = condition["factors"]
        g = stream(seed, "slow paths, drawn again", k, device=device)
        return self._paths(self.d, k, g, device, dtype)

    def _paths(self, d: int, k: int, g: torch.Generator, device, dtype) -> pd.DataFrame:
        R = torch.full((self.replicates,), math.tanh(self.y0), device=device, dtype=dtype)
        returned = torch.zeros_like(R, dtype=torch.bool)
        for _ in range(round(self.time * d / self.h)):
            R = cloud_layer(R, self.h, d, k, generator=g)[0]
            returned |= R <= 0
        chances = {
            "recurrent": return_probability(self.y0, 1.0, self.time),
            "transient": return_probability(self.y0, 0.0),
        }
        y = torch.atanh(R.clamp(-1 + 1e-15, 1 - 1e-15)).cpu().numpy()
        return pd.DataFrame(
            {"replicate": range(self.replicates), "returned": returned.cpu().numpy(), "y": y, **chances}
        )


@dataclass(frozen=True, kw_only=True)
class SlowWidths(SlowPaths):
    """HT-13: the same for A = W W'^T at a quarter and at four times the width. Rows: d, and those of ``SlowPaths``."""

    h: float = 0.05
    widths: tuple[int, ...] = (64, 1024)
    replicates: int = 4800

    tiers: ClassVar = {"ci": {"h": 0.1, "widths": (8, 32), "replicates": 400}, "cpu": {}}
    tiny: ClassVar = {"time": 0.5, "replicates": 6}

    def conditions(self) -> list[dict]:
        return [{"d": d} for d in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        g = stream(seed, "slow paths by width", condition["d"], device=device)
        return self._paths(condition["d"], 2, g, device, dtype).assign(factors=2)


@dataclass(frozen=True, kw_only=True)
class SlowSteps(SlowPaths):
    """HT-13: the same for A = W W'^T at one width and several steps. Rows: h, and those of ``SlowPaths``."""

    d: int = 128
    steps: tuple[float, ...] = (0.2, 0.1, 0.05, 0.025)
    replicates: int = 6400

    tiers: ClassVar = {"ci": {"d": 16, "steps": (0.4, 0.2, 0.1), "replicates": 200}, "cpu": {}}
    tiny: ClassVar = {"d": 8, "time": 0.5, "replicates": 6}

    def conditions(self) -> list[dict]:
        return [{"h": h} for h in self.steps]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        g = stream(seed, "slow paths by step", str(condition["h"]), device=device)
        return replace(self, h=condition["h"])._paths(self.d, 2, g, device, dtype).assign(factors=2)
