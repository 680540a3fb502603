"""What a codebook of K points must lose (GT-5), the fit that is called Shannon's (GT-6), and bins with a free constant
each (GT-8: the rival mechanism).

symbol   name        meaning                                                             axes
K        K           codes                                                               scalar
d        d           dimension; of the Lorenz attractor 2.06                             scalar
Delta    distortion  mean square distance to the nearest code, on fresh points           scalar
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.systems import lorenz
from ..model import integrators
from ..model.codebooks import (
    KMeansCodebook,
    LearnedCodebook,
    UniformQuantizer,
    gaussian_lloyd_max,
    shannon_lower_bound,
    zador_law,
)

LORENZ_DIMENSION = 2.06
#: Name: dimension, differential entropy, and ||p||_{d / (d + 2)}; of the attractor neither is known.
SOURCES = {
    "line": (1, 0.0, 1.0),
    "square": (2, 0.0, 1.0),
    "cube": (3, 0.0, 1.0),
    "lorenz": (LORENZ_DIMENSION,) + 2 * (np.nan,),
}
NORMAL = 0.5 * math.log(2 * math.pi * math.e)


def gaussian_density_norm(d: int) -> float:
    """||p||_{d/(d+2)} of the standard normal in d dimensions: 2 pi ((d + 2) / d)^((d + 2) / 2)."""
    return 2 * math.pi * ((d + 2) / d) ** ((d + 2) / 2)


@dataclass(frozen=True, kw_only=True)
class Scalar(Experiment):
    """GT-5: the best quantiser of N(0, 1). Rows: K, distortion, scaled = K^2 Delta, slb (Shannon's bound), zador, left
    (mean square error of floor bins answered at their left edge, over that of the middle, 2^18 uniforms on a grid)."""

    codes: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

    tiny: ClassVar = {"codes": (2, 8, 512)}
    deterministic: ClassVar = {"distortion": 1e-8, "left": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        u = (torch.arange(2**18, dtype=dtype, device=device) + 0.5) / 2**18
        found = []
        for K in self.codes:
            distortion = gaussian_lloyd_max(K).distortion
            left, middle = (UniformQuantizer(K, 0.0, 1.0, rule) for rule in ("left", "middle"))
            errors = [(u - each.decode(each.encode(u))).square().mean().item() for each in (left, middle)]
            row = {
                "K": K,
                "distortion": distortion,
                "scaled": K**2 * distortion,
                "slb": shannon_lower_bound(NORMAL, 1, K),
            }
            row |= {"zador": zador_law(gaussian_density_norm(1), 1, K), "left": errors[0] / errors[1]}
            found.append(row | {"same_width": errors[0] / (left.width**2 / 12)})
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class Clouds(Experiment):
    """GT-5, GT-6: k-means and running means ("learned") on uniform clouds and on the Lorenz attractor, judged on fresh
    points. Rows: source, d, codebook, K, replicate, distortion, slb, zador (NaN for the
    attractor), scaled = K^(2/d) Delta."""

    codes: tuple[int, ...] = (8, 16, 32, 64, 128, 256, 512)
    n: int = 40_000
    replicates: int = 6
    learned: bool = True

    tiers: ClassVar = {
        "ci": {"codes": (8, 16, 32, 64), "n": 3072, "learned": False},
        "cpu": {"codes": (8, 16, 32, 64, 128, 256), "n": 16_384},
    }
    tiny: ClassVar = {"codes": (4, 8, 16), "n": 400, "replicates": 2, "learned": True}

    def conditions(self) -> list[dict]:
        return [{"source": source} for source in SOURCES]

    def points(self, source: str, seed: int, name: str) -> Tensor:
        """Points (replicates, n, d): uniform in a cube, or states on the attractor, far apart in time."""
        if source != "lorenz":
            shape = (self.replicates, self.n, SOURCES[source][0])
            return torch.rand(*shape, generator=stream(seed, name, source), dtype=torch.float64)
        paths = max(64, self.n // 64)
        states = lorenz(self.replicates * paths, 64, time=12.6, burn_in=10.0, generator=stream(seed, name, source))
        return states.reshape(self.replicates, -1, 3)[:, : self.n]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, entropy, norm = SOURCES[condition["source"]]
        train, fresh = (self.points(condition["source"], seed, name).to(device) for name in ("train", "fresh"))
        found = []
        for replicate, (x, y) in enumerate(zip(train, fresh, strict=True)):
            for K in self.codes:
                g = stream(seed, "start", condition["source"], replicate, K)
                books = {"k-means": KMeansCodebook.fit(x, K, g)}
                if self.learned:
                    books["learned"] = LearnedCodebook.fit(x, K, g)
                for name, book in books.items():
                    loss = book.distortion(y).item()
                    row = {"codebook": name, "d": d, "K": K, "replicate": replicate, "distortion": loss}
                    row |= {"slb": shannon_lower_bound(entropy, d, K), "scaled": loss * K ** (2 / d)}
                    found.append(row | {"zador": zador_law(norm, d, K) if d in (1, 2, 3) else np.nan})
        return pd.DataFrame(found)


@dataclass(frozen=True, kw_only=True)
class Windows(Experiment):
    """GT-5: tokens in sequence see far below a bin. The value of x in the middle of a window of tokens, by least
    squares from the middles of their bins. Rows: K, window, replicate, rmse (fresh paths), one (of the token
    alone), share."""

    codes: tuple[int, ...] = (8, 16, 32, 64)
    windows: tuple[int, ...] = (1, 3, 5, 9)
    n: int = 200
    L: int = 512
    replicates: int = 6

    tiers: ClassVar = {"ci": {"n": 24, "L": 128}, "cpu": {}}
    tiny: ClassVar = {"codes": (8, 32), "n": 8, "L": 64, "replicates": 2}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        time = 25 * (self.L - 1) / 511  # the step of the published data, 25 / 511
        paths = lorenz(2 * self.replicates * self.n, self.L, time=time, burn_in=10.0, generator=stream(seed, "paths"))
        found = []
        for replicate, x in enumerate(paths[..., 0].to(device).unflatten(0, (self.replicates, 2, self.n))):
            low, high = x.min().item(), x.max().item()
            for K in self.codes:
                bins = UniformQuantizer(K, low, high)
                seen = bins.decode(bins.encode(x))
                errors = {window: self.error(x, seen, window) for window in self.windows}
                found += [
                    {
                        "K": K,
                        "window": w,
                        "replicate": replicate,
                        "rmse": e,
                        "bin_rmse": errors[1],
                        "share": e / errors[1],
                    }
                    for w, e in errors.items()
                ]
        return pd.DataFrame(found)

    def error(self, x: Tensor, seen: Tensor, window: int) -> float:
        """Fitted on the first half of the paths, judged on the second; each centre of a window counts."""
        parts = seen.unfold(-1, window, 1)
        target = x[..., window // 2 : x.shape[-1] - window // 2]
        design = torch.cat([parts, torch.ones_like(parts[..., :1])], dim=-1).flatten(1, 2)
        fit = torch.linalg.lstsq(design[0], target[0].reshape(-1, 1)).solution
        return (design[1] @ fit - target[1].reshape(-1, 1)).square().mean().sqrt().item()


@dataclass(frozen=True, kw_only=True)
class Channel(Experiment):
    """GT-5: bits that the Lorenz system makes per sample, against the log2 K = 8 that a token carries. Rows: replicate,
    exponent (nats per unit of time), bits (per sample of 25 / 511), capacity."""

    replicates: int = 64
    steps: int = 20_000
    dt: float = 0.01

    tiers: ClassVar = {"ci": {"replicates": 32, "steps": 3000}, "cpu": {}}
    tiny: ClassVar = {"replicates": 8, "steps": 1000}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        start = lorenz(self.replicates, 2, time=0.1, burn_in=20.0, generator=stream(seed, "start"))[:, -1].mT.to(device)
        exponent = integrators.lyapunov_exponent(integrators.lorenz, start, dt=self.dt, steps=self.steps)
        columns = {"exponent": exponent, "bits": exponent * 25 / 511 / math.log(2), "capacity": 8.0}
        return rows({"replicate": range(self.replicates)}, columns)


@dataclass(frozen=True, kw_only=True)
class Regressogram(Experiment):
    """GT-8: one free constant per bin, learned from N noisy samples of sin(2 pi x). Rows: N, group, K_best (least risk
    over the grid, by a parabola in ln K through the least three), risk (there), K, mean_risk, reconstruction (what
    K bins lose with all the data in the world), at the middle N only for each K."""

    samples: tuple[int, ...] = (250, 1000, 4000, 16000)
    noise: float = 0.5
    groups: int = 12
    size: int = 200

    tiers: ClassVar = {
        "ci": {"samples": (250, 1000, 4000), "size": 60, "groups": 8},
        "cpu": {},
    }
    tiny: ClassVar = {"samples": (250, 2000), "groups": 2, "size": 50}

    def conditions(self) -> list[dict]:
        return [{"N": N} for N in self.samples]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, found = condition["N"], []
        grid = np.unique(np.round(2 * 1.25 ** np.arange(24)).astype(int))
        grid = grid[grid <= N // 4]
        replicas = self.groups * self.size
        risks = np.zeros((replicas, len(grid)))
        for first in range(0, replicas, 100):
            g = stream(seed, "regressogram", N, first)
            x = torch.rand(min(100, replicas - first), N, generator=g, dtype=dtype).to(device)
            y = torch.sin(2 * math.pi * x) + self.noise * torch.randn(*x.shape, generator=g, dtype=dtype).to(device)
            for place, K in enumerate(grid):
                risks[first : first + len(x), place] = self.risk(x, y, int(K)).cpu().numpy()
        exact = np.array([self.reconstruction(int(K)) for K in grid])
        for group, risk in enumerate(risks.reshape(self.groups, self.size, -1).mean(axis=1)):
            best, least = _vertex(np.log(grid), risk)
            one = {"N": N, "group": group, "K": grid, "mean_risk": risk, "reconstruction": exact}
            found.append(pd.DataFrame(one | {"K_best": np.exp(best), "risk": least}))
        return pd.concat(found, ignore_index=True)

    def risk(self, x: Tensor, y: Tensor, K: int) -> Tensor:
        """int (f - f_hat)^2 for each data set: what the bin cannot say, and how far its constant is off; 0 where
        empty."""
        edges = torch.linspace(0, 1, K + 1, dtype=x.dtype, device=x.device)
        mean = (torch.cos(2 * math.pi * edges[:-1]) - torch.cos(2 * math.pi * edges[1:])) * K / (2 * math.pi)
        k = (x * K).floor().long().clamp(0, K - 1)
        count = torch.zeros(len(x), K, dtype=x.dtype, device=x.device).scatter_add_(1, k, torch.ones_like(y))
        total = torch.zeros_like(count).scatter_add_(1, k, y)
        return self.reconstruction(K) + (total / count.clamp(min=1) - mean).square().mean(dim=1)

    @staticmethod
    def reconstruction(K: int) -> float:
        """int (f - its mean over the bin)^2, exactly: 1/2 - the mean square of the bin means."""
        edges = np.linspace(0, 1, K + 1)
        mean = -np.diff(np.cos(2 * math.pi * edges)) * K / (2 * math.pi)
        return float(0.5 - np.mean(mean**2))


def _vertex(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Where a parabola through the five points around the least one is least, and how much it is there."""
    at = int(np.clip(y.argmin(), 2, len(y) - 3))
    part = slice(at - 2, at + 3)
    a, b, c = np.polyfit(x[part] - x[at], y[part], 2)
    shift = float(np.clip(-b / (2 * a), x[part][0] - x[at], x[part][-1] - x[at])) if a > 0 else 0.0
    return float(x[at] + shift), float(a * shift**2 + b * shift + c)
