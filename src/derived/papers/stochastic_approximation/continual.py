"""Continual learning as tracking: what a constant step keeps and forgets, what 1/n cannot forget (SA-11).

symbol    name      meaning                                                                     axes
k_n       -         the state of the world, +1 or -1, of correlation (1 - epsilon)^j            (N, R)
epsilon   epsilon   how fast it changes                                                         scalar
a         a         constant step                                                               scalar
x_n       x         what the learner holds; its mean is 0, so E x^2 is its variance             (R,)
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import optimize
from torch import Tensor

from derived.lab import measure
from derived.lab.claims import computed, on_page, statistic, unseen, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import farthest_from
from derived.lab.plot import BLUE, GREEN, INK, RED, THEORY, beside, largest, panel_label, plain_log
from derived.lab.rng import stream

from .data.environments import Telegraph
from .model.core import StepSize, record_times, robbins_monro
from .model.theory import best_step, telegraph_mean_variance, telegraph_variance, tracking_error_exact


def to_data(x: Tensor, y: Tensor) -> Tensor:
    """h(x, y) = y - x."""
    return y - x


@dataclass(frozen=True, kw_only=True)
class Tracking(Experiment):
    """SA-11: variance at constant step. Rows: epsilon, a, replicate, square (mean of x^2 over the later steps), exact,
    limit (1 / (1 + epsilon/a)), ratio (square / exact)."""

    replicas: int = 1000
    steps: int = 6000
    burn_in: int = 1500
    every: int = 20

    tiny: ClassVar = {"replicas": 30, "steps": 400, "burn_in": 200}

    def conditions(self) -> list[dict]:
        return [{"epsilon": epsilon, "a": a} for epsilon in (0.001, 0.01, 0.1) for a in (0.01, 0.1)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        epsilon, a = condition["epsilon"], condition["a"]
        y = Telegraph(epsilon).draw(self.steps, self.replicas, stream(seed, "telegraph", a)).y.to(device)
        times = range(self.burn_in, self.steps + 1, self.every)
        x = robbins_monro(to_data, y, StepSize.constant(a), torch.zeros_like(y[0]), record=times).x
        square, exact = x.square().mean(dim=0), float(telegraph_variance(a, epsilon))
        columns = {"square": square, "exact": exact, "limit": 1 / (1 + epsilon / a), "ratio": square / exact}
        return rows({"replicate": range(self.replicas)}, columns)


@dataclass(frozen=True, kw_only=True)
class Average(Experiment):
    """SA-11: variance at a_n = 1/n. Rows: epsilon, n, replicate, x, exact, ratio (x^2 / exact)."""

    epsilon: float = 0.01
    replicas: int = 4000
    steps: int = 4096

    tiny: ClassVar = {"replicas": 100, "steps": 64}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        y = Telegraph(self.epsilon).draw(self.steps, self.replicas, stream(seed, "average")).y.to(device)
        times = record_times(self.steps, 7)
        x = robbins_monro(to_data, y, StepSize.power(), torch.zeros_like(y[0]), record=times).x
        exact = telegraph_mean_variance(times, self.epsilon)[:, None]
        columns = {"x": x, "exact": exact, "ratio": x.cpu().numpy() ** 2 / exact}
        return rows({"epsilon": self.epsilon, "n": times, "replicate": range(self.replicas)}, columns)


@dataclass(frozen=True, kw_only=True)
class BestStep(Experiment):
    """SA-11: the step of least exact error on k_n + sigma xi_n, by a search, against sqrt(2 epsilon)/sigma - epsilon.
    Rows: epsilon, sigma, searched, closed, ratio (searched / closed), excess (error of the closed step over the least).
    """

    epsilons: tuple[float, ...] = (1e-5, 1e-4, 1e-3)
    sigmas: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0)

    tiny: ClassVar = {"epsilons": (1e-3,), "sigmas": (1.0,)}
    deterministic: ClassVar = {"closed": 1e-12, "searched": 1e-4}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        found = []
        for epsilon in self.epsilons:
            for sigma in self.sigmas:
                closed = best_step(epsilon, sigma)

                def error(log_a: float, *case: float) -> float:
                    return float(tracking_error_exact(np.exp(log_a), *case))

                low, high = np.log(closed) - 2, min(np.log(closed) + 2, 0.0)
                options = {"bounds": (low, high), "method": "bounded", "options": {"xatol": 1e-9}}
                best = optimize.minimize_scalar(error, args=(epsilon, sigma), **options)
                row = {"epsilon": epsilon, "sigma": sigma, "searched": float(np.exp(best.x)), "closed": closed}
                found.append(row | {"excess": error(np.log(closed), epsilon, sigma) / best.fun - 1})
        table = pd.DataFrame(found)
        return table.assign(ratio=table["searched"] / table["closed"])


# Claims: SA-11 and SA-13: continual learning as tracking. Criteria and expected verdicts were written before the run,
# unless a claim says otherwise.

CLAIMS = (
    statistic(
        "SA-11.a",
        r"On data $\pm1$ of correlation $(1-\varepsilon)^j$ an iterate of constant step $a$ has variance $\frac{a(1+(1-a)\rho)}{(2-a)(1-(1-a)\rho)}$, $\rho=1-\varepsilon$.",
        Tracking,
        measure.mean("ratio", by=["epsilon", "a"], decides=farthest_from(1)),
        r"variance over the formula, the farthest of six $(\varepsilon,a)$",
        within(1, 0.06),
        unit="ratio",
        control=measure.mean("square / (a / (2 - a))", by=["epsilon", "a"], decides=farthest_from(1)),
        horizon="$6{,}000$ steps",
    ),
    on_page(
        "SA-11.b",
        plain="A constant step is plastic or rigid by one ratio: that of the rate of change to the step.",
    ),
    statistic(
        "SA-11.c",
        r"On data $\pm1$ of correlation $\rho^j=(1-\varepsilon)^j$, at $a_n=1/n$ the variance is $\frac1{n^2}\big[n\frac{1+\rho}{1-\rho}-\frac{2\rho(1-\rho^n)}{(1-\rho)^2}\big]$: near $1$ for $n\ll1/\varepsilon$, near $\frac2{\varepsilon n}$ for $n\gg1/\varepsilon$.",
        Average,
        measure.mean("ratio", by=["n"], decides=farthest_from(1)),
        "square over the formula, the farthest of seven $n$",
        within(1, 0.15),
        unit="ratio",
        control=measure.mean("n * x**2", by=["n"], decides=farthest_from(1)),
        horizon="$n=4{,}096$",
    ),
    computed(
        "SA-11.e",
        r"Where observations have noise $\sigma$, the step of least error is near $\sqrt{2\varepsilon}/\sigma-\varepsilon$ for small $\varepsilon$.",
        BestStep,
        measure.farthest("ratio", 1.0),
        r"best step of the exact error over that, the farthest of twelve $(\varepsilon,\sigma)$, $\varepsilon\le10^{-3}$",
        within(1, 0.05),
        unit="ratio",
        control=measure.farthest("searched / (closed + epsilon)", 1.0),  # without the second term
        horizon=r"$\epsilon$ from $10^{-5}$ to $10^{-3}$",
    ),
)

PROGRAMME = unseen(
    "SA-13",
    r"Stochastic approximation in non-Markovian environments is an analytic frame for attention in transformers and for continual learning.",
    "A programme, not a statement that could be checked; its testable parts are SA-8 to SA-11, which are ours.",
    source="paper",
    where="abstract",
    plain="The theory frames what attention and continual learning do.",
)


# Figures: Learners in a world that changes: rows in, a figure with its alt text as label out.
#
# mark              meaning
# line in INK       theory: 1 / (1 + epsilon/a), the variance of a mean


def trade_off(tracking: pd.DataFrame, average: pd.DataFrame) -> Figure:
    """Variance at constant step and at 1/n; rows of ``Tracking`` and ``Average``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.3), sharey=True)
    grid = np.geomspace(0.005, 20, 200)
    left.plot(grid, 1 / (1 + grid), **THEORY)
    means = largest(tracking).groupby(["a", "epsilon"])["square"].mean()
    for (a, part), color in zip(means.groupby("a"), (BLUE, RED), strict=True):
        epsilon = part.index.get_level_values("epsilon")
        left.plot(epsilon / a, part, "o", color=color, markerfacecolor="none", label=f"$a={a:g}$")
    left.set(xscale="log", xlabel=r"$\epsilon/a$", ylabel="variance of $x$", ylim=(0, 1.08))
    left.legend(fontsize=9)
    panel_label(left, "large step: follows the world,\nsmall step: averages")
    best = largest(average)
    points = best.assign(square=best["x"] ** 2).groupby("n").agg(square=("square", "mean"), exact=("exact", "first"))
    right.plot(points.index, points["square"], "o", color=GREEN, markerfacecolor="none")
    right.plot(points.index, points["exact"], **THEORY)
    epsilon = best["epsilon"].iloc[0]
    right.axvline(1 / epsilon, color=INK, linewidth=0.8, linestyle=":")
    beside(right, 1 / epsilon, 1.0, rf"$1/\epsilon={1 / epsilon:g}$", INK, (4, 0))
    right.set(xscale="log", xlabel="$n$")
    plain_log(right.xaxis, (1, 10, 100, 1000))
    panel_label(right, "step $1/n$: two worlds up to $1/\\epsilon$,\nthen one")
    words = [f"epsilon over a {e / a:.2g}: {value:.3f}" for (a, e), value in means.items()]
    figure.set_label(
        f"Left: variance of the iterate at constant step, on the curve 1/(1 + epsilon/a); {'; '.join(words)}. Right: "
        f"variance at step 1/n, from {points['square'].iloc[0]:.2f} at n = 1 to {points['square'].iloc[-1]:.3f} at "
        f"n = {points.index[-1]}; it falls once n passes 1/epsilon = {1 / epsilon:.0f}."
    )
    return figure
