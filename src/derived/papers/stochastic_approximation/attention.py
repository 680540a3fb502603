"""Attention over the whole past: what it reads from a world, and what becomes of it when it feeds on itself (SA-8,
SA-9).

symbol   name     meaning                                                                 axes
L_k      limit    V grad Lambda_k(K^T q), what a head reads in world k                    (K, p)
t        t        tokens seen                                                             scalar
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import stats as distributions

from derived.lab import measure
from derived.lab.claims import at_most, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import farthest_from
from derived.lab.plot import BLUE, COLOURS, RED, THEORY, beside, panel_label, plain_log
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate

from .model.attention import (
    RunningSoftmaxAttention,
    readout_covariance_gaussian,
    self_fed_attention,
    tilted_mean_gaussian,
)
from .model.core import record_times

#: Two Gaussian worlds in the plane, and one head.
MEANS = ((0.0, 0.0), (1.0, -0.5))
COVARIANCES = (((1.0, 0.3), (0.3, 0.5)), ((0.4, -0.2), (-0.2, 0.8)))
QUERY, KEY, VALUE = (1.0, -0.5, 0.5), ((0.5, 0.0), (0.2, 0.4), (0.0, 1.0)), ((1.0, 0.5), (0.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class Readout(Experiment):
    """SA-8: one head on two Gaussian worlds that share their normals. Rows: world, group, t, rmse (of the read-out to
    its own limit), apart (distance of the two limits), scaled (t times the mean square over its limit)."""

    groups: int = 20
    size: int = 100
    steps: int = 4096
    first: int = 128
    points: int = 6

    tiny: ClassVar = {"groups": 2, "size": 10, "steps": 64, "first": 16, "points": 3}
    deterministic: ClassVar = {"apart": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"world": world} for world in range(2)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        query, key, value = (torch.tensor(each, dtype=dtype, device=device) for each in (QUERY, KEY, VALUE))
        head, theta = RunningSoftmaxAttention(query, key, value), key.mT @ query
        means, covariances = (torch.tensor(each, dtype=dtype, device=device) for each in (MEANS, COVARIANCES))
        limits = [value @ tilted_mean_gaussian(*each, theta) for each in zip(means, covariances, strict=True)]
        mean, covariance = means[condition["world"]], covariances[condition["world"]]
        limit, spread = limits[condition["world"]], torch.linalg.cholesky(covariance)
        predicted = torch.trace(value @ readout_covariance_gaussian(covariance, theta) @ value.mT)
        generator, times, found = stream(seed, "tokens"), record_times(self.steps, self.points, self.first), []
        for t in range(1, self.steps + 1):
            normal = torch.randn(self.groups * self.size, 2, generator=generator, dtype=dtype).to(device)
            head.update(mean + normal @ spread.mT)
            if t in times:
                read = head.read().unflatten(0, (self.groups, self.size))
                found.append((read - limit).square().sum(dim=-1).mean(dim=-1))
        square, t = torch.stack(found), torch.tensor(times, dtype=dtype, device=device).unsqueeze(-1)
        columns = {"rmse": square.sqrt(), "apart": torch.linalg.vector_norm(limits[0] - limits[1])}
        columns["scaled"] = t * square / predicted
        return rows({"t": times, "group": range(self.groups)}, columns)


@dataclass(frozen=True, kw_only=True)
class SelfFed(Experiment):
    """SA-9: heads that read the share of ones beside a prompt of two ones and three zeros. feed "own words": in prompt
    and own samples (Polya's urn); "prompt alone": in the prompt, whatever they wrote. Rows: feed, replicate, x (share
    of ones written), level (distribution function of Beta(2, 3) at x), early (the share after a tenth of the steps).
    """

    ones: float = 2.0
    zeros: float = 3.0
    replicas: int = 10_000
    steps: int = 1000

    tiny: ClassVar = {"replicas": 300, "steps": 200}

    def conditions(self) -> list[dict]:
        return [{"feed": feed} for feed in ("own words", "prompt alone")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        heavy = 1.0 if condition["feed"] == "own words" else 1e12  # a prompt beside which own samples weigh nothing
        sizes = (heavy * self.ones, heavy * self.zeros, self.steps, self.replicas)
        written, _ = self_fed_attention(*sizes, generator=stream(seed, "urn"))
        x = written.mean(dim=0).numpy()
        columns = {"x": x, "level": distributions.beta.cdf(x, self.ones, self.zeros)}
        return rows({"replicate": range(self.replicas)}, columns | {"early": written[: self.steps // 10].mean(dim=0)})


EXPERIMENTS = (Readout, SelfFed)

# Claims: criteria and expected verdicts were written before the run ---------------------------------------------------


def distribution_distance(level: str, where: str) -> measure.Measure:
    """sup |F_n - F| of independent draws, from the column that holds F at each draw.

    Its interval is that of Dvoretzky, Kiefer, Wolfowitz and Massart: sup |F_n - F_true| <= sqrt(ln(2/(1 - level)) / 2n)
    with at least the probability ``level``, whatever the true distribution. ValueError for a draw without a level.
    """

    def one(rows: pd.DataFrame) -> Estimate:
        found = np.sort(measure.chosen(rows, where)[level].to_numpy(dtype=float))
        n = len(found)
        if not np.isfinite(found).all():
            raise ValueError(f"{(~np.isfinite(found)).sum()} of {n} draws have no level")
        edges = np.arange(n + 1) / n
        distance = float(max((edges[1:] - found).max(), (found - edges[:-1]).max()))
        reach = float(np.sqrt(np.log(2 / (1 - LEVEL)) / (2 * n)))
        return Estimate(distance, n, max(0.0, distance - reach), distance + reach)

    return one


SLOPE = {"unit": ["group"], "by": ["world"], "decides": farthest_from(-0.5)}

CLAIMS = (
    statistic(
        "SA-8.a",
        r"Softmax attention with fixed query over the whole past of independent Gaussian tokens converges to the tilted mean of its world, $V\nabla\Lambda_k(K^\top q)$, at the rate $t^{-1/2}$.",
        Readout,
        measure.power("rmse", "t", **SLOPE),
        "slope of the root mean square distance to that limit, the farther of two worlds",
        within(-0.5, 0.12, r"-\frac12"),
        unit="exponent",
        plain="A head that reads a long past reads a number that depends only on which world the stream is of.",
        control=measure.power("(apart**2 + rmse**2) ** 0.5", "t", **SLOPE),  # the distance to the other world's limit
        horizon="$t=4{,}096$",
    ),
    statistic(
        "SA-9.b",
        r"Fed with its own samples, a head of equal scores beside a prompt of two ones and three zeros settles at a random point with the distribution Beta$(2,3)$.",
        SelfFed,
        distribution_distance("level", "feed == 'own words'"),
        "largest distance to the distribution function of Beta(2, 3) (interval: DKW)",
        at_most(0.05),
        unit="probability",
        source="prior",
        plain="A model that averages over its own output settles, at a random point.",
        control=distribution_distance("level", "feed == 'prompt alone'"),
        horizon="$n=1{,}000$",
    ),
)


# Figure: rows in, a figure with its alt text as label out -------------------------------------------------------------


def self_fed(rows: pd.DataFrame, paths: pd.DataFrame) -> Figure:
    """Heads that feed on their own samples; rows of ``SelfFed``, and paths: replicate, n, share."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(6.4, 3.4), sharey=True, width_ratios=(1.5, 1))
    for place, (_, path) in enumerate(paths.groupby("replicate")):
        left.plot(path["n"], path["share"], color=COLOURS[place % len(COLOURS)], linewidth=0.9, alpha=0.8)
    words, edges = [], np.linspace(0, 1, 41)
    for color, (feed, part) in zip((BLUE, RED), rows.groupby("feed"), strict=True):
        style = {"density": True, "orientation": "horizontal", "histtype": "step", "color": color}
        right.hist(part["x"], edges, **style)
        words.append(f"{feed}: mean {part['x'].mean():.2f}, standard deviation {part['x'].std():.3f}")
    grid = np.linspace(0, 1, 201)
    right.plot(distributions.beta.pdf(grid, 2, 3), grid, **THEORY)
    beside(right, 1.6, 0.64, "fed with its own\nwords: Beta(2, 3)", BLUE)
    beside(right, 2.2, 0.46, "prompt alone", RED)
    left.set(xscale="log", xlabel="tokens written, $n$", ylabel="share of ones")
    plain_log(left.xaxis, (1, 10, 100, 1000))
    right.set(xlabel="density after 1000 tokens", xlim=(0, 6))
    panel_label(left, "one prompt, many runs: each settles elsewhere")
    panel_label(right, "where they end")
    figure.set_label(
        f"Heads that read the share of ones beside a prompt of two ones and three zeros. After 1000 tokens, "
        f"{'; '.join(words)}. Fed with their own words they end with the density of Beta(2, 3)."
    )
    return figure
