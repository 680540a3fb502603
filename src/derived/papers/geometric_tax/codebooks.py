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

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure, stats
from derived.lab.claims import at_most, computed, on_page, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import farthest_from, highest
from derived.lab.plot import (
    BLUE,
    COLOURS,
    DASHED,
    INK,
    RED,
    THEORY,
    apart,
    beside,
    largest,
    panel_label,
    points,
    shades,
)
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .data.systems import lorenz
from .model import integrators
from .model.codebooks import KMeansCodebook, LearnedCodebook, UniformQuantizer, shannon_lower_bound, zador_law

LORENZ_DIMENSION = 2.06
#: Name: dimension, differential entropy, and ||p||_{d / (d + 2)}; of the attractor neither is known.
SOURCES = {
    "line": (1, 0.0, 1.0),
    "square": (2, 0.0, 1.0),
    "cube": (3, 0.0, 1.0),
    "lorenz": (LORENZ_DIMENSION,) + 2 * (np.nan,),
}


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


# Claims: GT-5, GT-6: codebooks. Criteria and expected verdicts were written before the run.

KMEANS = "codebook == 'k-means'"


def curve(rows: pd.DataFrame) -> pd.Series:
    """Mean distortion of k-means on the attractor for each K."""
    some = measure.chosen(rows, f"source == 'lorenz' and {KMEANS}")
    return measure.by_draw(some["distortion"], some, ["K"]).mean()


def misfits(rows: pd.DataFrame) -> tuple[float, float, int]:
    """Largest relative misfit of a / ln K + b, and of a K^-b in logarithms, both by least squares of relative errors."""
    found = curve(rows)
    K, D = found.index.to_numpy(dtype=float), found.to_numpy()
    design = np.stack([1 / np.log(K), np.ones_like(K)], axis=1) / D[:, None]
    rival = design @ np.linalg.lstsq(design, np.ones_like(D), rcond=None)[0] - 1
    power = np.exp(np.polyval(np.polyfit(np.log(K), np.log(D), 1), np.log(K))) / D - 1
    return float(np.abs(rival).max()), float(np.abs(power).max()), len(K)


def rival_misfit(rows: pd.DataFrame) -> Estimate:
    """Misfit of the fit in 1 / ln K over that of a power of K."""
    rival, power, n = misfits(rows)
    return Estimate(rival / power, n)


CLAIMS = (
    statistic(
        "GT-5.b",
        r"The distortion of k-means falls as $K^{-2/d}$: in one, two and three dimensions, and on the Lorenz attractor with $d=2.06$.",
        Clouds,
        measure.jointly(
            lambda rows, level: stats.slope(
                np.log(np.sort(rows["K"].unique())),
                np.log(rows.pivot(index="replicate", columns="K", values="distortion").to_numpy())
                / (2 / rows["d"].iloc[0]),
                level,
            ),
            ["source"],
            farthest_from(-1),
            KMEANS,
        ),
        r"slope in $\ln K$ over $2/d$, the farthest of four sources",
        within(-1, 0.1),
        source="prior",
        where="Zador",
        unit="ratio",
        amends="GT-6.a",
        control="A slope of zero is what codes that learn nothing have, and it lies outside the range.",
    ),
    on_page(
        "GT-5.c",
        source="prior",
        control="A theorem on every codebook: each one is a trial of it, and none does nothing.",
    ),
    statistic(
        "GT-5.d",
        "A sequence of tokens sees below a bin: nine tokens place the middle value better than its own token does.",
        Windows,
        measure.mean("share", "window == 9", by=["K"], decides=highest),
        "error from nine tokens over error from one, the largest over codebooks",
        at_most(0.85),
        unit="ratio",
        control=measure.mean("share", "window == 1", by=["K"], decides=highest),
        comparison=("three tokens", measure.mean("share", "window == 3", by=["K"], decides=highest)),
    ),
    computed(
        "GT-6.a",
        r"The error that Shannon's theorem allows a codebook of $K$ values falls as $a/\ln K+b$.",
        Clouds,
        rival_misfit,
        r"largest misfit of $a/\ln K+b$ over that of a power of $K$, k-means on the Lorenz attractor",
        at_most(1),
        source="repo",
        where="notebook on learned codebooks: a fit of noise sensitivities, named Shannon's bound",
        unit="times",
        control="The claim itself fails, since a power of the number of codes fits better.",
        scale={},
    ),
)


# Figures: What a codebook loses, and what bins with a constant each lose: rows in, a figure with its alt text as label
# out.
#
# mark                   meaning
# filled, open marker    recorded, live; bars are 99.9 % intervals over replicates
# thin line              a power of K, slope -2 / d, through the last point
# dashed line            Shannon's bound (left); the fit a / ln K + b, by least squares (right)

SOURCE_NAMES = {"line": "line", "square": "square", "cube": "cube", "lorenz": "Lorenz attractor"}


def rates(rows: pd.DataFrame) -> Figure:
    """Error against K for four sources (left); on the attractor a power of K and the fit a / ln K + b (right); rows of
    ``Clouds``."""
    rows = rows[rows["codebook"] == "k-means"]
    figure, axes = plt.subplots(1, 2, figsize=(7.8, 3.5))
    slopes = {}
    for (source, name), color in zip(SOURCE_NAMES.items(), COLOURS, strict=False):
        part = rows[rows["source"] == source]
        shown = part.assign(distortion=part["distortion"] / (1 if source != "lorenz" else _size(part)))
        points(axes[0], shown, "K", "distortion", color)
        mean = largest(shown).groupby("K")[["distortion", "slb", "d"]].mean()
        K = mean.index.to_numpy(float)
        axes[0].plot(K, mean["distortion"].iloc[-1] * (K / K[-1]) ** (-2 / mean["d"].iloc[0]), **THEORY)
        if source != "lorenz":
            axes[0].plot(K, mean["slb"], **DASHED)
        beside(axes[0], K[-1], mean["distortion"].iloc[-1], name, color, fontsize=9)
        slopes[name] = np.polyfit(np.log(K), np.log(mean["distortion"]), 1)[0]
    axes[0].set(xscale="log", yscale="log", xlabel="codes $K$", ylabel=r"error $\Delta_K$")
    axes[0].set_xlim(None, rows["K"].max() * 6)
    panel_label(axes[0], "power laws, and Shannon's bound")
    off = _fits(axes[1], rows[rows["source"] == "lorenz"])
    said = ", ".join(f"{name} {slope:.2f}" for name, slope in slopes.items())
    figure.set_label(
        f"Error of k-means codes against their number, on logarithmic axes, with slopes {said}; all lie above "
        f"Shannon's bound. On the attractor the fit of a constant over ln K is off by {off['log']:.0%} at its worst "
        f"point, the power of K by {off['power']:.0%}."
    )
    return figure


def _size(part: pd.DataFrame) -> float:
    """What makes the coarsest error of the attractor 0.4: its units are none of the cubes'."""
    return 2.5 * part.loc[part["K"] == part["K"].min(), "distortion"].mean()


def _fits(ax, part: pd.DataFrame) -> dict[str, float]:
    """Both fits by least squares on the attractor, as shares of what was measured; returns their worst errors."""
    mean = largest(part).groupby("K")["distortion"].mean()
    K, D = mean.index.to_numpy(float), mean.to_numpy()
    a, b = np.polyfit(1 / np.log(K), D, 1)
    slope, level = np.polyfit(np.log(K), np.log(D), 1)
    fits = {"log": a / np.log(K) + b, "power": np.exp(level) * K**slope}
    ax.plot(K[[0, -1]], [1, 1], color=INK, linewidth=0.8)  # no farther, or it would run through the labels
    shares = [fit / D for fit in fits.values()]
    places = apart([share[-1] for share in shares], 0.08 * np.ptp(shares))
    for share, color, words, place in zip(shares, (RED, BLUE), ("$a/\\ln K+b$", "power of $K$"), places, strict=True):
        ax.plot(K, share, "o-", color=color, markersize=4)
        beside(ax, K[-1], place, words, color, fontsize=9)
    ax.set(xscale="log", xlabel="codes $K$", ylabel="fit over measured error")
    ax.set_xlim(None, K[-1] * 8)
    panel_label(ax, "two fits, on the attractor")
    return {name: float(np.abs(fit / D - 1).max()) for name, fit in fits.items()}


def risk(rows: pd.DataFrame) -> Figure:
    """Risk of bins with one constant each against their number, for several N; rows of ``Regressogram``."""
    table = largest(rows)
    figure, ax = plt.subplots(figsize=(5.2, 3.5))
    samples, best = sorted(table["N"].unique()), {}
    for N, color in zip(samples, shades(len(samples)), strict=True):
        part = table[table["N"] == N]
        mean = part.groupby("K")["mean_risk"].mean()
        best[N] = part["K_best"].mean()
        ax.plot(mean.index, mean, color=color)
        ax.plot(best[N], part["risk"].mean(), "o", color=color)
        beside(ax, mean.index[-1], mean.iloc[-1], f"$N$ = {N}", color, fontsize=9)
    exact = table.drop_duplicates("K").sort_values("K")
    ax.plot(exact["K"], exact["reconstruction"], **DASHED)
    ax.set(xscale="log", yscale="log", xlabel="bins $K$", ylabel="risk")
    ax.set_xlim(None, table["K"].max() * 3.2)
    ax.set_ylim(max(exact["reconstruction"].min(), table["mean_risk"].min() / 6), None)
    said = ", ".join(f"{K:.0f} for N = {N}" for N, K in best.items())
    figure.set_label(
        f"Risk of one constant per bin against the number of bins, a valley for each number of samples, while the "
        f"error of the bins alone falls. Least at {said}."
    )
    return figure
