"""Memory that mixes too slowly for large steps: heavy-tailed sojourns and long-range noise (SA-6, SA-7).

symbol   name    meaning                                                                      axes
beta     beta    tail of the sojourns, P(tau > t) = t^-beta                                   scalar
alpha    alpha   step exponent, a_n = n^-alpha                                                (A,)
H        H       Hurst exponent                                                               scalar
x_n      x       iterate of x <- x + a_n (Y_n - x); the mean of Y is 1/2 (0 for noise)        (R,) or (A, R)
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.environments import FractionalGaussian, HeavyTailedRenewal
from ..model.core import StepSize, record_times, robbins_monro
from ..model.theory import (
    expected_freezes,
    filtered_variance,
    fractional_autocovariance,
    renewal_autocovariance,
    sa_weights,
)

FAR = 0.3  # an excursion: farther than this from the mean 1/2


def to_data(x: Tensor, y: Tensor) -> Tensor:
    """h(x, y) = y - x."""
    return y - x


def excursions(x: Tensor, windows: tuple[int, ...], first: int) -> Tensor:
    """Whether |x_n - 1/2| > FAR for some n in [N, 2N], for each window N, from x at n = first, first + 1, ..."""
    far = (x - 0.5).abs() > FAR
    return torch.stack([far[N - first : 2 * N - first + 1].any(dim=0) for N in windows])


@dataclass(frozen=True, kw_only=True)
class Renewal(Experiment):
    """SA-6: running means (a_n = 1/n) of 0-1 data with heavy-tailed sojourns. Rows: beta, group, n, median (of
    |x - 1/2| over the group), rmse, exact (the root mean square by the exact autocovariance)."""

    beta: float = 1.5
    groups: int = 120
    size: int = 200
    first: int = 2048
    steps: int = 2**16
    points: int = 6

    tiers: ClassVar = {"ci": {"groups": 20, "size": 100, "first": 512, "steps": 2**12, "points": 4}, "cpu": {}}
    tiny: ClassVar = {"groups": 2, "size": 20, "first": 64, "steps": 256, "points": 3}
    deterministic: ClassVar = {"exact": 1e-8}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        times, data = record_times(self.steps, self.points, self.first), HeavyTailedRenewal(self.beta)
        n = torch.tensor(times, dtype=dtype, device=device).unsqueeze(-1)
        median, rmse = [], []
        for group in range(self.groups):
            y = data.draw(self.steps, self.size, stream(seed, "sojourns", group)).y.to(device)
            off = (y.cumsum(dim=0)[n.squeeze(dim=-1).long() - 1] / n - 0.5).abs()
            median.append(off.median(dim=1).values)
            rmse.append(off.square().mean(dim=1).sqrt())
        gamma = renewal_autocovariance(self.beta, self.steps)
        exact = [filtered_variance(np.full(n, 1 / n), gamma) ** 0.5 for n in times]
        columns = {"median": torch.stack(median, dim=1), "rmse": torch.stack(rmse, dim=1)}
        columns["exact"] = np.array(exact)[:, None]
        return rows({"beta": self.beta, "n": times, "group": range(self.groups)}, columns)


@dataclass(frozen=True, kw_only=True)
class Freezes(Experiment):
    """SA-6: excursions and the sojourns that cause them, at beta = 1.5 (threshold 2/3). Rows: alpha, N, replicate,
    excursion (sup over [N, 2N] of |x - 1/2| above 0.3), count (sojourns that start in [N, 2N) and outlast n^alpha),
    predicted (their expected number). All alpha share data."""

    beta: float = 1.5
    windows: tuple[int, ...] = (2**10, 2**11, 2**12, 2**13, 2**14, 2**15)
    replicas: int = 1000
    block: int = 250  # replicas at a time: all their paths in the windows are in memory

    tiers: ClassVar = {"ci": {"windows": (2**9, 2**10, 2**11)}, "cpu": {}}
    tiny: ClassVar = {"windows": (64, 128), "replicas": 40, "block": 20}

    def conditions(self) -> list[dict]:
        return [{"alpha": alpha} for alpha in (0.55, 0.9)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        alpha, first, last = condition["alpha"], self.windows[0], 2 * self.windows[-1]
        reach = last + int(last**alpha) + 1  # a sojourn that starts before `last` shows its length by then
        excursion, count = [], []
        for block in range(self.replicas // self.block):
            y = HeavyTailedRenewal(self.beta).draw(reach, self.block, stream(seed, "freezes", block)).y.to(device)
            times = range(first, last + 1)
            start = torch.full_like(y[0], 0.5)
            x = robbins_monro(to_data, y[:last], StepSize.power(1.0, alpha), start, record=times).x
            excursion.append(excursions(x, self.windows, first))
            count.append(self.counts(y, alpha))
        columns = {"excursion": torch.cat(excursion, dim=1), "count": torch.cat(count, dim=1)}
        columns["predicted"] = np.array([[expected_freezes(self.beta, alpha, 1.0, N)] for N in self.windows])
        return rows({"N": self.windows, "replicate": range(len(columns["count"][0]))}, columns)

    def counts(self, y: Tensor, alpha: float) -> Tensor:
        """Sojourns that start at n in [N, 2N), n counted from 1, and are longer than n^alpha: (windows, R)."""
        switch = y[1:] != y[:-1]  # entry n - 2: a sojourn starts at time n
        sofar = torch.cat([torch.zeros_like(switch[:1], dtype=torch.int32), switch.cumsum(dim=0, dtype=torch.int32)])
        found = []
        for N in self.windows:
            n = torch.arange(N, 2 * N, device=y.device)
            end = n + n.double().pow(alpha).floor().long()
            found.append((switch[n - 2] & (sofar[end - 1] == sofar[n - 1])).sum(dim=0))
        return torch.stack(found)


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
class Shuffled(Experiment):
    """Control of SA-6: each stream as it is, and shuffled in time (its values are kept, its sojourns are gone), at
    n^-0.55. Rows: data, replicate, excursion (more than 0.3 from the stream's own mean for some n in [N, 2N])."""

    beta: float = 1.5
    alpha: float = 0.55
    window: int = 2048
    replicas: int = 400

    tiny: ClassVar = {"window": 512, "replicas": 60}

    def conditions(self) -> list[dict]:
        return [{"data": data} for data in ("as drawn", "shuffled")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        last = 2 * self.window
        y = HeavyTailedRenewal(self.beta).draw(last, self.replicas, stream(seed, "control")).y
        if condition["data"] == "shuffled":
            y = y.gather(0, torch.rand(last, self.replicas, generator=stream(seed, "order")).argsort(dim=0))
        centred = (y - y.mean(dim=0) + 0.5).to(device)
        times, start = range(self.window, last + 1), torch.full_like(centred[0], 0.5)
        x = robbins_monro(to_data, centred, StepSize.power(1.0, self.alpha), start, record=times).x
        return rows({"replicate": range(self.replicas)}, {"excursion": excursions(x, (self.window,), self.window)[0]})


@dataclass(frozen=True, kw_only=True)
class PhaseDiagram(Experiment):
    """Figure and explorer of SA-6: share of replicas with an excursion in [N, 2N]. Rows: beta, alpha, N, share,
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


@dataclass(frozen=True, kw_only=True)
class LongRange(Experiment):
    """SA-7: fractional noise. Rows: H, alpha, group, n, rmse, exact (by the weights of the samples in x_n), target
    (-alpha (1 - H)), ratio (mean square over exact^2), scaled (exact n^-target: flat where the exponent is right)."""

    groups: int = 20
    size: int = 200
    first: int = 512
    steps: int = 2**14
    points: int = 6

    tiers: ClassVar = {
        "ci": {"size": 100, "first": 256, "steps": 2**11, "points": 4},
        "cpu": {},
    }
    tiny: ClassVar = {"groups": 3, "size": 20, "first": 64, "steps": 256, "points": 3}
    deterministic: ClassVar = {"exact": 1e-8, "target": 1e-12, "scaled": 1e-8}

    def conditions(self) -> list[dict]:
        cases = ((0.5, 1.0), (0.65, 1.0), (0.8, 1.0), (0.8, 0.7))
        return [{"H": H, "alpha": alpha} for H, alpha in cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        H, step = condition["H"], StepSize.power(1.0, condition["alpha"])
        times = record_times(self.steps, self.points, self.first)
        y = FractionalGaussian(H).draw(self.steps, self.groups * self.size, stream(seed, "fractional")).y.to(device)
        x = robbins_monro(to_data, y, step, torch.zeros_like(y[0]), record=times).x
        rmse = x.unflatten(1, (self.groups, self.size)).square().mean(dim=2).sqrt().cpu().numpy()
        gamma = fractional_autocovariance(H, self.steps)
        exact = np.array([[filtered_variance(sa_weights(step, n), gamma) ** 0.5] for n in times])
        target = -condition["alpha"] * (1 - H)
        columns = {"rmse": rmse, "exact": exact, "target": target, "ratio": (rmse / exact) ** 2}
        columns["scaled"] = exact * np.array(times)[:, None] ** -target
        return rows({"n": times, "group": range(self.groups)}, columns)
