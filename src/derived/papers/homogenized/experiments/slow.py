"""The slow overlap at low temperature: cosines of images, one layer of a pair in a uniform cloud, paths."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.cloud import cloud_layer, image, return_probability, vmf_mean_ratio


@dataclass(frozen=True, kw_only=True)
class Cosines(Experiment):
    """HT-11: kappa = d (r - E cos(Ax, Ay)) / (r (1 - r^2)) for products of Gaussian matrices.

    The first-order change of the cosine has mean zero and is taken out. Rows: d, factors, replicate, kappa.
    """

    r: float = 0.5
    widths: tuple[int, ...] = (16, 64)
    replicates: int = 48
    samples: int = 100_000

    tiers: ClassVar = {"ci": {"samples": 12_000}, "cpu": {}}
    tiny: ClassVar = {"replicates": 4, "samples": 100}

    def conditions(self) -> list[dict]:
        return [{"d": d, "factors": factors} for d in self.widths for factors in (1, 2)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, factors = condition["d"], condition["factors"]
        R = torch.full((self.replicates * self.samples,), self.r, device=device, dtype=dtype)
        pair = image(R, d, factors, generator=stream(seed, "cosines", d, factors, device=device))
        kappa = d * (self.r - pair.cosine + pair.control) / (self.r * (1 - self.r**2))
        means = kappa.reshape(self.replicates, self.samples).mean(dim=-1)
        return rows({"replicate": range(self.replicates)}, {"kappa": means})


@dataclass(frozen=True, kw_only=True)
class SlowDrift(Experiment):
    """HT-12: one layer of a pair in a uniform cloud at beta = infinity, V and -V in pairs, on the clock tau/d.

    Rows: d, factors, R, replicate, drift (over -R(1-R^2)), bracket (over 2(1-R^2)^2).
    """

    cases: tuple[tuple[int, int], ...] = ((24, 2), (40, 2), (40, 1), (40, 0))
    overlaps: tuple[float, ...] = (0.4, 0.7)
    h: float = 1e-3
    replicates: int = 32
    samples: int = 100_000

    tiers: ClassVar = {
        "ci": {"cases": ((40, 2),), "samples": 30_000},
        "cpu": {"samples": 50_000},
    }
    tiny: ClassVar = {"replicates": 4, "samples": 100}

    def conditions(self) -> list[dict]:
        return [{"d": d, "factors": factors, "R": R} for d, factors in self.cases for R in self.overlaps]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, factors, R = (condition[name] for name in ("d", "factors", "R"))
        start = torch.full((self.replicates * self.samples,), R, device=device, dtype=dtype)
        g = stream(seed, "slow drift", d, factors, str(R), device=device)
        up, down = cloud_layer(start, self.h, d, factors, generator=g)
        drift = d * ((up + down) / 2 - R) / self.h / (-R * (1 - R**2))
        bracket = d * ((up - down) / 2).square() / self.h / (2 * (1 - R**2) ** 2)
        columns = {"drift": drift, "bracket": bracket}
        shape = (self.replicates, self.samples)
        means = {name: value.reshape(shape).mean(dim=-1) for name, value in columns.items()}
        return rows({"replicate": range(self.replicates)}, means)


@dataclass(frozen=True, kw_only=True)
class FiniteBeta(Experiment):
    """HT-18: the same drift at finite beta, from the exact barycentre of a uniform cloud, and at beta = infinity.

    Rows: d, ratio (beta_eff / d), replicate, drift (the coefficient of -R(1-R^2) on the clock tau/d), and coldest, the
    same at beta = infinity for the same query-key matrices.
    """

    widths: tuple[int, ...] = (32, 64, 128)
    R: float = 0.5
    ratios: tuple[float, ...] = (1.0, 10.0, 100.0)
    replicates: int = 32
    samples: int = 20_000

    tiers: ClassVar = {"ci": {"samples": 12_000}, "cpu": {}}
    tiny: ClassVar = {"widths": (8, 16), "replicates": 4, "samples": 100}

    def conditions(self) -> list[dict]:
        return [{"d": d, "ratio": ratio} for d in self.widths for ratio in self.ratios]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, ratio, R = condition["d"], condition["ratio"], self.R
        start = torch.full((self.replicates, self.samples), R, device=device, dtype=dtype)
        pair = image(start, d, 2, generator=stream(seed, "finite beta", d, device=device))
        x, y = (
            torch.from_numpy(vmf_mean_ratio(d, (ratio * d * size).cpu().numpy()))
            for size in (pair.length_x, pair.length_y)
        )
        cosine, control = pair.cosine.cpu(), pair.control.cpu()
        # s(x, x) and s(x, y) of m = A_d(beta |A x|) A x / |A x|; the control of mean zero is taken out of the cosine.
        own = ((x.square() + y.square()) / 2).mean(dim=-1)
        shared = (x * y * cosine).mean(dim=-1) - (x * y).mean(dim=-1) * control.mean(dim=-1)
        moments = {"drift": (shared, own), "coldest": ((cosine - control).mean(dim=-1), 1.0)}
        rates = {
            name: ((d - 2 + R**2) * s_xy - (d - 1) * R * s_xx) / (-R * (1 - R**2))
            for name, (s_xy, s_xx) in moments.items()
        }
        return rows({"replicate": range(self.replicates)}, rates)


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
        R = torch.full((self.replicates,), math.tanh(self.y0), device=device, dtype=dtype)
        g, returned = stream(seed, "slow paths", k, device=device), torch.zeros_like(R, dtype=torch.bool)
        for _ in range(round(self.time * self.d / self.h)):
            R = cloud_layer(R, self.h, self.d, k, generator=g)[0]
            returned |= R <= 0
        chances = {
            "recurrent": return_probability(self.y0, 1.0, self.time),
            "transient": return_probability(self.y0, 0.0),
        }
        y = torch.atanh(R.clamp(-1 + 1e-15, 1 - 1e-15)).cpu().numpy()
        return pd.DataFrame(
            {"replicate": range(self.replicates), "returned": returned.cpu().numpy(), "y": y, **chances}
        )
