"""Attention over the whole past: what it reads from a component, and what becomes of it when it feeds on itself (SA-8,
SA-9).

symbol   name     meaning                                                                 axes
L_k      limit    V grad Lambda_k(K^T q), what a head reads in component k                (K, p)
t        t        tokens seen                                                             scalar
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from scipy import stats

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.attention import (
    RunningSoftmaxAttention,
    readout_covariance_gaussian,
    self_fed_attention,
    tilted_mean_gaussian,
)
from ..model.core import record_times

#: Two Gaussian components in the plane, and one head.
MEANS = ((0.0, 0.0), (1.0, -0.5))
COVARIANCES = (((1.0, 0.3), (0.3, 0.5)), ((0.4, -0.2), (-0.2, 0.8)))
QUERY, KEY, VALUE = (1.0, -0.5, 0.5), ((0.5, 0.0), (0.2, 0.4), (0.0, 1.0)), ((1.0, 0.5), (0.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class Readout(Experiment):
    """SA-8: one head on two Gaussian components that share their normals. Rows: component, group, t, rmse (of the
    read-out to its own limit), apart (distance of the two limits), ratio (rmse / apart), scaled (t times the mean
    square over its limit), reading (first coordinate, of the group's first replicate), limit (of it).
    """

    groups: int = 20
    size: int = 100
    steps: int = 4096
    first: int = 128
    points: int = 6

    tiny: ClassVar = {"groups": 2, "size": 10, "steps": 64, "first": 16, "points": 3}
    deterministic: ClassVar = {"apart": 1e-12, "limit": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"component": component} for component in range(2)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        query, key, value = (torch.tensor(each, dtype=dtype, device=device) for each in (QUERY, KEY, VALUE))
        head, theta = RunningSoftmaxAttention(query, key, value), key.mT @ query
        means, covariances = (torch.tensor(each, dtype=dtype, device=device) for each in (MEANS, COVARIANCES))
        limits = [value @ tilted_mean_gaussian(*each, theta) for each in zip(means, covariances, strict=True)]
        mean, covariance = means[condition["component"]], covariances[condition["component"]]
        limit, spread = limits[condition["component"]], torch.linalg.cholesky(covariance)
        predicted = torch.trace(value @ readout_covariance_gaussian(covariance, theta) @ value.mT)
        generator, times = stream(seed, "tokens"), record_times(self.steps, self.points, self.first)
        found, reading = [], []
        for t in range(1, self.steps + 1):
            normal = torch.randn(self.groups * self.size, 2, generator=generator, dtype=dtype).to(device)
            head.update(mean + normal @ spread.mT)
            if t in times:
                read = head.read().unflatten(0, (self.groups, self.size))
                found.append((read - limit).square().sum(dim=-1).mean(dim=-1))
                reading.append(read[:, 0, 0])
        square, t = torch.stack(found), torch.tensor(times, dtype=dtype, device=device).unsqueeze(-1)
        apart = torch.linalg.vector_norm(limits[0] - limits[1])
        columns = {"rmse": square.sqrt(), "apart": apart, "ratio": square.sqrt() / apart}
        columns |= {"scaled": t * square / predicted, "reading": torch.stack(reading), "limit": limit[0]}
        return rows({"t": times, "group": range(self.groups)}, columns)


@dataclass(frozen=True, kw_only=True)
class SelfFed(Experiment):
    """SA-9: heads that read the share of ones in their own samples, prior tokens of weight 2 and 3. feed "uniform":
    equal scores (Polya's urn); "fading": ln 0.9 per step of age. Rows: feed, replicate, x (running mean at the last
    step, by stochastic approximation at 1/n), off (x - 2/5), early (the same after a quarter of the steps), level
    (distribution function of Beta(2, 3) at x).
    """

    ones: float = 2.0
    zeros: float = 3.0
    fade: float = 0.9
    replicas: int = 10_000
    steps: int = 1000

    tiny: ClassVar = {"replicas": 300, "steps": 200}

    def conditions(self) -> list[dict]:
        return [{"feed": feed} for feed in ("uniform", "fading")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        fade = None if condition["feed"] == "uniform" else self.fade
        generator = stream(seed, "urn")
        sizes = (self.ones, self.zeros, self.steps, self.replicas)
        written, _ = self_fed_attention(*sizes, generator=generator, fade=fade)
        x = written.mean(dim=0).numpy()
        even = self.ones / (self.ones + self.zeros)
        columns = {"x": x, "off": x - even, "early": written[: self.steps // 4].mean(dim=0).numpy() - even}
        columns["level"] = stats.beta.cdf(x, self.ones, self.zeros)
        return rows({"replicate": range(self.replicas)}, columns)
