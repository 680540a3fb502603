"""Streams that stay too long: larger steps against heavy-tailed stays (SA-6), and the explorer.

symbol   name    meaning                                                                      axes
beta     beta    tail of the stays, P(tau > t) = t^-beta                                      scalar
alpha    alpha   step exponent, a_n = n^-alpha                                                (A,)
x_n      x       iterate of x <- x + a_n (Y_n - x); the mean of Y is 1/2                      (R,) or (A, R)
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import lowest
from derived.lab.rng import stream

from .data import HeavyTailedRenewal
from .model.core import StepSize, robbins_monro

FAR = 0.3  # an excursion: farther than this from the mean 1/2


def to_data(x: Tensor, y: Tensor) -> Tensor:
    """h(x, y) = y - x."""
    return y - x


def excursions(x: Tensor, windows: tuple[int, ...], first: int) -> Tensor:
    """Whether |x_n - 1/2| > FAR for some n in [N, 2N], for each window N, from x at n = first, first + 1, ..."""
    far = (x - 0.5).abs() > FAR
    return torch.stack([far[N - first : 2 * N - first + 1].any(dim=0) for N in windows])


@dataclass(frozen=True, kw_only=True)
class Line(Experiment):
    """SA-6: whether excursions in [N, 2N] become more or less frequent as N grows, a tenth "below" and "above" the line
    alpha = 1/beta. Data "as drawn", and "shuffled" in time (the control), seen from the stream's own mean. Rows: beta,
    data, side, replicate, early, late (an excursion in the first and in the last window), trend (late - early, with the
    other sign above the line). Both sides share data."""

    betas: tuple[float, ...] = (1.3, 1.4, 1.5)
    offset: float = 0.1
    windows: tuple[int, int] = (2**10, 2**14)
    replicas: int = 2500
    block: int = 250

    tiers: ClassVar = {"ci": {"windows": (2**8, 2**10), "replicas": 100, "block": 100}, "cpu": {}}
    tiny: ClassVar = {"windows": (16, 64), "replicas": 20, "block": 20}

    def conditions(self) -> list[dict]:
        return [{"beta": beta, "data": data} for beta in self.betas for data in ("as drawn", "shuffled")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        beta, last, found = condition["beta"], 2 * self.windows[1], []
        sides = {"below": 1 / beta - self.offset, "above": 1 / beta + self.offset}
        steps = torch.stack([StepSize.power(1.0, alpha).values(last) for alpha in sides.values()], dim=1).unsqueeze(-1)
        times = [n for N in self.windows for n in range(N, 2 * N + 1)]
        for block in range(self.replicas // self.block):
            y = HeavyTailedRenewal(beta).draw(last, self.block, stream(seed, "trend", block)).y
            if condition["data"] == "shuffled":
                order = torch.rand(last, self.block, generator=stream(seed, "mixed", block)).argsort(dim=0)
                y = y.gather(0, order) - y.mean(dim=0) + 0.5
            start = torch.full((len(sides), self.block), 0.5, dtype=dtype, device=device)
            x = robbins_monro(to_data, y.to(device), steps, start, record=times).x
            far = (x - 0.5).abs() > FAR
            found.append(torch.stack([part.any(dim=0) for part in far.split([N + 1 for N in self.windows])]))
        early, late = torch.cat(found, dim=-1).double()  # (sides, R) each
        trend = (late - early) * torch.tensor([[1.0], [-1.0]]).to(late)
        index = {"side": list(sides), "replicate": range(early.shape[1])}
        return rows(index, {"early": early, "late": late, "trend": trend})


@dataclass(frozen=True, kw_only=True)
class PhaseDiagram(Experiment):
    """Explorer of SA-6: share of replicas with an excursion in [N, 2N]. Rows: beta, alpha, N, share,
    replicas. All alpha share data."""

    betas: tuple[float, ...] = (1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.25, 2.5)
    alphas: tuple[float, ...] = (0.51, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
    windows: tuple[int, ...] = (2**7, 2**9, 2**11, 2**13)
    replicas: int = 200

    tiers: ClassVar = {"ci": {"windows": (2**7, 2**9), "replicas": 60}, "cpu": {}}
    tiny: ClassVar = {"betas": (1.2, 2.5), "windows": (16, 64), "replicas": 20}

    def conditions(self) -> list[dict]:
        return [{"beta": beta} for beta in self.betas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        first, last = self.windows[0], 2 * self.windows[-1]
        data = HeavyTailedRenewal(condition["beta"])
        y = data.draw(last, self.replicas, stream(seed, "phase")).y.to(device)
        steps = torch.stack([StepSize.power(1.0, alpha).values(last) for alpha in self.alphas], dim=1)
        start = torch.full((len(self.alphas), self.replicas), 0.5, dtype=dtype, device=device)
        x = robbins_monro(to_data, y, steps.unsqueeze(-1), start, record=range(first, last + 1)).x
        share = excursions(x, self.windows, first).double().mean(dim=-1)
        return rows({"N": self.windows, "alpha": self.alphas}, {"share": share, "replicas": self.replicas})


@dataclass(frozen=True, kw_only=True)
class SamplePaths(Experiment):
    """Explorer of SA-6: one path for each beta and alpha. Rows: beta, alpha, n, x, y. All beta share uniforms."""

    betas: tuple[float, ...] = (1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.25, 2.5)
    alphas: tuple[float, ...] = (0.51, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
    steps: int = 8192
    points: int = 256

    tiers: ClassVar = {"ci": {"steps": 2048, "points": 64}, "cpu": {}}
    tiny: ClassVar = {"betas": (1.5,), "steps": 64, "points": 8}

    def conditions(self) -> list[dict]:
        return [{"beta": beta} for beta in self.betas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        y = HeavyTailedRenewal(condition["beta"]).draw(self.steps, 1, stream(seed, "path")).y.to(device)
        steps = torch.stack([StepSize.power(1.0, alpha).values(self.steps) for alpha in self.alphas], dim=1)
        start = torch.full((len(self.alphas), 1), 0.5, dtype=dtype, device=device)
        times = range(self.steps // self.points, self.steps + 1, self.steps // self.points)
        x = robbins_monro(to_data, y, steps.unsqueeze(-1), start, record=times).x.squeeze(dim=-1)
        seen = y[torch.tensor(times) - 1]
        return rows({"n": times, "alpha": self.alphas}, {"x": x, "y": seen})


EXPERIMENTS = (Line, PhaseDiagram, SamplePaths)

# Claims: criteria and expected verdicts were written before the run ---------------------------------------------------

TREND = measure.mean("trend", "data == 'as drawn'", unit=["beta", "replicate"], by=["side"], decides=lowest)

CLAIMS = (
    statistic(
        "SA-6.g",
        r"For stays of tail $t^{-\beta}$ excursions of the iterate in $[N,2N]$ become more frequent as $N$ grows where $\alpha=\frac1\beta-0.1$, and less frequent where $\alpha=\frac1\beta+0.1$.",
        Line,
        TREND,
        r"share of streams with $\lvert x_n-\frac12\rvert>0.3$ for some $n$ in $[N,2N]$, its change from $N=2^{10}$ to $2^{14}$ (above the line its fall), mean over $\beta=1.3,1.4,1.5$, the lesser of two sides",
        at_least(0.01),
        unit="share",
        judged_at=RECORDED,
        plain="With steps well above 1/n a learner swings more and more often where stays are long, and settles where they are short.",
        control=measure.mean("trend", "data == 'shuffled'", unit=["beta", "replicate"], by=["side"], decides=lowest),
        horizon="$N=2^{14}$",
    ),
)


def sides(rows: pd.DataFrame) -> tuple[float, float]:
    """Mean shares on and below the line alpha = 1/beta, and above it."""
    below = rows["alpha"] * rows["beta"] <= 1
    return float(rows.loc[below, "share"].mean()), float(rows.loc[~below, "share"].mean())
