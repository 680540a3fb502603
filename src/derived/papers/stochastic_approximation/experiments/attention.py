"""Attention over the whole past: what it reads from a component, and what becomes of it when it feeds on itself (SA-8,
SA-9).

symbol   name     meaning                                                                 axes
L_k      limit    V grad Lambda_k(K^T q), what a head reads in component k                (K, p)
t        t        tokens seen                                                             scalar
p_n      read     what a head reads before it writes token n                              (N, R)
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import stats
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.attention import (
    RunningSoftmaxAttention,
    readout_covariance_gaussian,
    self_fed_attention,
    tilted_mean_discrete,
    tilted_mean_gaussian,
)
from ..model.chains import invariant_laws
from ..model.core import record_times

EPSILON = float(np.finfo(float).eps)
#: Two Gaussian components in the plane, and one head.
MEANS = ((0.0, 0.0), (1.0, -0.5))
COVARIANCES = (((1.0, 0.3), (0.3, 0.5)), ((0.4, -0.2), (-0.2, 0.8)))
QUERY, KEY, VALUE = (1.0, -0.5, 0.5), ((0.5, 0.0), (0.2, 0.4), (0.0, 1.0)), ((1.0, 0.5), (0.0, 1.0))
CHAINS = {"sticky": ((0.8, 0.2), (0.2, 0.8)), "fair": ((0.5, 0.5), (0.5, 0.5))}


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
class Tilted(Experiment):
    """SA-8: m + Sigma theta against E[y e^{theta.y}] / E e^{theta.y} by Gauss-Hermite quadrature in the plane. Rows:
    instance, gap, bound (rounding of sums of nodes^2 terms; at |theta| <= 1 sixty nodes are exact to rounding)."""

    instances: int = 20
    nodes: int = 60

    tiny: ClassVar = {"instances": 3}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        g, node = stream(seed, "tilted"), np.polynomial.hermite_e.hermegauss(self.nodes)
        places, mass = (torch.as_tensor(each) for each in node)
        grid = torch.cartesian_prod(places, places)
        weight = torch.outer(mass, mass).flatten() / (2 * np.pi)
        mean, theta = torch.randn(2, self.instances, 2, generator=g, dtype=dtype)
        theta = theta / (1 + torch.linalg.vector_norm(theta, dim=-1, keepdim=True))
        spread = torch.randn(self.instances, 2, 2, generator=g, dtype=dtype) / 2
        found = []
        for m, L, tilt in zip(mean, spread, theta, strict=True):
            y = m + grid @ L.mT
            tilted = weight * torch.exp(y @ tilt)
            off = tilted @ y / tilted.sum() - tilted_mean_gaussian(m, L @ L.mT, tilt)
            size = tilted @ y.abs() / tilted.sum()
            found.append((off.abs().max().item(), 4 * self.nodes**2 * EPSILON * size.max().item()))
        gap, bound = zip(*found, strict=True)
        return rows({"instance": range(self.instances)}, {"gap": gap, "bound": bound})


@dataclass(frozen=True, kw_only=True)
class EqualMarginals(Experiment):
    """SA-8: limits of heads on two chains with one marginal, exactly. Keys and values see a "token" s, or whether a
    "pair" of neighbours is equal. Rows: keys, theta, sticky, fair (the limits), apart."""

    thetas: tuple[float, ...] = (-2.0, -1.0, 0.0, 0.5, 1.0, 2.0)

    deterministic: ClassVar = {"sticky": 1e-10, "fair": 1e-10}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        state = np.arange(2.0)
        found = []
        for theta in self.thetas:
            limits = {"token": {}, "pair": {}}
            for name, P in CHAINS.items():
                law = invariant_laws(np.asarray(P))[0]
                pairs, equal = (law[:, None] * np.asarray(P)).flatten(), np.eye(2).flatten()
                limits["token"][name] = tilted_mean_discrete(law, theta * state, state)
                limits["pair"][name] = tilted_mean_discrete(pairs, theta * equal, equal)
            found += [{"keys": keys, "theta": theta, **each} for keys, each in limits.items()]
        table = pd.DataFrame(found)
        return table.assign(apart=(table["sticky"] - table["fair"]).abs())


@dataclass(frozen=True, kw_only=True)
class SelfFed(Experiment):
    """SA-9: heads that read the share of ones in their own samples, prior tokens of weight 2 and 3. feed "uniform":
    equal scores (Polya's urn); "fading": ln 0.9 per step of age. Rows: feed, replicate, x (running mean at the last
    step, by stochastic approximation at 1/n), off (x - 2/5), level (distribution function of Beta(2, 3) at x),
    gap (largest, of the read-out to softmax over the stored tokens), bound.
    """

    ones: float = 2.0
    zeros: float = 3.0
    fade: float = 0.9
    replicas: int = 10_000
    steps: int = 1000
    stored: int = 200  # replicas whose read-out is compared; of the others gap and bound are 0 and 1

    tiny: ClassVar = {"replicas": 300, "steps": 200, "stored": 5}

    def conditions(self) -> list[dict]:
        return [{"feed": feed} for feed in ("uniform", "fading")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        fade = None if condition["feed"] == "uniform" else self.fade
        generator = stream(seed, "urn")
        sizes = (self.ones, self.zeros, self.steps, self.replicas)
        written, read = self_fed_attention(*sizes, generator=generator, fade=fade)
        x = written.mean(dim=0).numpy()
        gap, bound = np.zeros(self.replicas), np.ones(self.replicas)
        gap[: self.stored] = self.gaps(written[:, : self.stored], read[:, : self.stored], fade or 1.0)
        bound[: self.stored] = 4 * self.steps * EPSILON
        columns = {"x": x, "off": x - self.ones / (self.ones + self.zeros), "gap": gap, "bound": bound}
        columns["level"] = stats.beta.cdf(x, self.ones, self.zeros)
        return rows({"replicate": range(self.replicas)}, columns)

    def gaps(self, written: Tensor, read: Tensor, fade: float) -> np.ndarray:
        """Softmax over the prior tokens and all stored ones, at 24 times: the largest gap of each replica."""
        prior = torch.tensor([self.ones, self.zeros], dtype=written.dtype).log()
        worst = torch.zeros(written.shape[1], dtype=written.dtype)
        for n in record_times(self.steps - 1, 24):
            age = torch.arange(n - 1, -1, -1, dtype=written.dtype)
            scores = torch.cat([prior, age * np.log(fade)])
            tokens = torch.cat([torch.tensor([[1.0], [0.0]]).to(written).expand(2, written.shape[1]), written[:n]])
            worst = torch.maximum(worst, (torch.softmax(scores, dim=0) @ tokens - read[n]).abs())
        return worst.numpy()
