"""Attention over the whole past: what it reads from a component, and what becomes of it when it feeds on itself (SA-8,
SA-9).

symbol   name     meaning                                                                 axes
L_k      limit    V grad Lambda_k(K^T q), what a head reads in component k                (K, p)
t        t        tokens seen                                                             scalar
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import stats

from derived.lab import measure
from derived.lab.claims import at_most, on_page, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import farthest_from
from derived.lab.plot import BLUE, COLOURS, DASHED, RED, THEORY, beside, panel_label, plain_log, points
from derived.lab.rng import stream

from .measures import law_distance
from .model.attention import (
    RunningSoftmaxAttention,
    readout_covariance_gaussian,
    self_fed_attention,
    tilted_mean_gaussian,
)
from .model.core import record_times

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


# Claims: SA-8 and SA-9: attention as an average. Criteria and expected verdicts were written before the run, unless a
# claim says otherwise.

END = "t == t.max()"

SCALED = measure.mean("scaled", END, by=["component"], decides=farthest_from(1))


def exchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Readout`` in which each component is given the predicted variance of the other."""
    predicted = rows["t"] * rows["rmse"] ** 2 / rows["scaled"]
    own = predicted.groupby(rows["component"]).first()
    return rows.assign(scaled=rows["scaled"] * predicted / rows["component"].map(lambda one: own.drop(one).iloc[0]))


CLAIMS = (
    statistic(
        "SA-8.a",
        r"Softmax attention with fixed query over the whole past of independent Gaussian tokens converges to the tilted mean of its component, $V\nabla\Lambda_\omega(K^\top q)$, at the rate $t^{-1/2}$.",
        Readout,
        measure.power("rmse", "t", unit=["group"], by=["component"], decides=farthest_from(-0.5)),
        "slope of the root mean square distance to that limit, the farther of two components",
        within(-0.5, 0.12, r"-\frac12"),
        unit="exponent",
        plain="A head that reads a long past reads a number that depends only on which component the stream is of.",
        control=measure.power(  # the distance to the limit of the other component
            "(apart**2 + rmse**2) ** 0.5", "t", unit=["group"], by=["component"], decides=farthest_from(-0.5)
        ),
        horizon="$t=4{,}096$",
    ),
    on_page("SA-8.b"),
    on_page("SA-8.c"),
    statistic(
        "SA-8.d",
        r"On independent Gaussian tokens with $\theta^\top\Sigma\theta$ of $0.09$ and of $0.28$, $t\,{\rm Cov}$ of the reading tends to $e^{\theta^\top\Sigma\theta}V(\Sigma+\Sigma\theta\theta^\top\Sigma)V^\top$.",
        Readout,
        SCALED,
        "$t$ times the mean square distance over the trace, the farther of two components",
        within(1, 0.15),
        unit="ratio",
        control=lambda rows: SCALED(exchanged(rows)),
        where="of the matrix the trace is judged",
        horizon="$t=4{,}096$",
    ),
    statistic(
        "SA-9.b",
        r"Fed with its own samples, a head of equal scores beside a prompt of two ones and three zeros settles at a random point of law Beta$(2,3)$.",
        SelfFed,
        law_distance("level", "feed == 'uniform'"),
        "largest distance to the distribution function of Beta(2, 3) (interval: DKW)",
        at_most(0.05),
        unit="probability",
        control=law_distance("level", "feed == 'fading'"),
        horizon="$n=1{,}000$",
    ),
    statistic(
        "SA-9.c",
        r"Fed with its own samples, a head whose scores fall by a constant per step of age, beside a prompt that keeps its scores, has the same average in every run.",
        SelfFed,
        measure.mean("off**2 - 0.4 * early**2", "feed == 'fading'"),
        r"mean square distance of the running mean to $\frac25$ at $n=1{,}000$, less $0.4$ of that at $n=250$",
        at_most(0.0),
        unit="square distance",
        control=measure.mean("off**2 - 0.4 * early**2", "feed == 'uniform'"),  # a random limit keeps its distance
        horizon="$n=1{,}000$",
    ),
)


# Figures: Attention over the whole past: rows in, a figure with its alt text as label out.
#
# mark               meaning
# blue, orange       components, or uniform and fading scores
# dashed             the limits V (m + Sigma theta)
# line in INK        predicted size of the error; density of the Beta law


def readouts(rows: pd.DataFrame) -> Figure:
    """What a head reads from two components, and its error; rows of ``Readout``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4))
    words = []
    for component, part in rows.groupby("component"):
        color, limit = COLOURS[component], part["limit"].iloc[0]
        for _, path in part.groupby("group"):
            left.plot(path["t"], path["reading"], color=color, linewidth=0.7, alpha=0.5)
        left.axhline(limit, **DASHED)
        beside(left, part["t"].max(), limit, f"component {component + 1}", color, (0, 9), ha="right", fontsize=9)
        points(right, part, "t", "rmse", color)
        t = np.array([part["t"].min(), part["t"].max()], dtype=float)
        predicted = float((part["rmse"] ** 2 * part["t"] / part["scaled"]).mean()) ** 0.5
        right.plot(t, predicted * t**-0.5, **THEORY)
        last = part[part["t"] == part["t"].max()]
        words.append(f"component {component + 1}: limit {limit:.2f}, error {last['rmse'].mean():.3f} at the end")
    left.set(xscale="log", xlabel="tokens $t$", ylabel="first coordinate of $o_t$")
    right.set(xscale="log", yscale="log", xlabel="tokens $t$", ylabel="root mean square error")
    for ax in (left, right):
        plain_log(ax.xaxis, (128, 512, 2048))
    plain_log(right.yaxis, (0.02, 0.05, 0.1))
    panel_label(left, "what one head reads")
    panel_label(right, "and how far it is off")
    figure.set_label(
        f"Read-out of one head against the number of tokens, on two components; {'; '.join(words)}. Errors lie on the "
        "predicted lines of slope minus one half."
    )
    return figure


def self_fed(rows: pd.DataFrame, paths: pd.DataFrame) -> Figure:
    """Heads that feed on their own samples; rows of ``SelfFed``, and paths: feed, replicate, n, read."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3), sharey=True, width_ratios=(1.6, 1))
    words, edges = [], np.linspace(0, 1, 41)
    for color, feed in ((BLUE, "uniform"), (RED, "fading")):
        for _, path in paths[paths["feed"] == feed].groupby("replicate"):
            left.plot(path["n"], path["read"], color=color, linewidth=0.6, alpha=0.5)
        ends = rows.loc[rows["feed"] == feed, "x"]
        style = {"density": True, "orientation": "horizontal", "histtype": "step", "color": color}
        right.hist(ends, edges, label=f"{feed} scores", **style)
        words.append(f"{feed} scores: mean {ends.mean():.2f}, standard deviation {ends.std():.3f}")
    grid = np.linspace(0, 1, 201)
    right.plot(stats.beta.pdf(grid, 2, 3), grid, **THEORY)
    left.set(xscale="log", xlabel="tokens written, $n$", ylabel="share of ones")
    plain_log(left.xaxis, (1, 10, 100, 1000))
    right.set(xlabel="density of the end", xlim=(0, 6))
    right.legend(fontsize=8)
    panel_label(left, "from one prompt")
    panel_label(right, "1000 tokens on")
    figure.set_label(
        f"Heads that read the share of ones among their own samples, after the same prompt. At the end, "
        f"{'; '.join(words)}. With uniform scores the ends have the density of Beta(2, 3)."
    )
    return figure
