"""How fast an iterate finds its limit: exponents, the central limit theorem given the component (SA-4, SA-5).

symbol      name      meaning                                                                  axes
lambda      lam       pull of the component's mean field, h = noise - lambda x                 (K,)
V_n         exact     E x_n^2, by its recurrence (of the average: with that of the sum)        (times, K)
z           z         sqrt(n) (x_n - x*) / sqrt(Sigma_k), standard normal in the limit         (K, R)
Gamma       long_run  sum of the autocovariances over all lags                                 number
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import stats
from scipy.stats import norm

from derived.lab import measure
from derived.lab.claims import at_most, computed, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import farthest_from
from derived.lab.plot import BLUE, COLOURS, RED, THEORY, beside, largest, panel_label, plain_log, points
from derived.lab.rng import stream

from .data.environments import InfiniteOrderLinear
from .measures import law_distance
from .model.core import StepSize, polyak_ruppert, record_times, robbins_monro
from .model.theory import linear_chain_moments, lyapunov_covariance, rate_exponent

C = 0.1


def slow_weights(lags: int) -> tuple[float, ...]:
    """theta_j ~ (j + 1)^-2.5 with sum 0.6: memory that fades as a power."""
    raw = np.arange(1, lags + 1) ** -2.5
    return tuple((0.6 * raw / raw.sum()).tolist())


def second_moments(lam: float, step: StepSize, steps: int, start: float) -> tuple[np.ndarray, np.ndarray]:
    """E x_n^2 and E (mean of x_1..x_n)^2, n = 1..N, for x_n = (1 - a_n lambda) x_{n-1} + a_n xi_n, Var xi = 1."""
    V, cross, total = start**2, 0.0, 0.0  # E x^2, E x S and E S^2 of the sum S
    last, average = np.empty(steps), np.empty(steps)
    for n, a in enumerate(step.values(steps).tolist()):
        keep = 1 - a * lam
        V = keep**2 * V + a**2
        total += 2 * keep * cross + V
        cross = keep * cross + V
        last[n], average[n] = V, total / (n + 1) ** 2
    return last, average


@dataclass(frozen=True, kw_only=True)
class Exponents(Experiment):
    """SA-4: root mean square errors of groups of replicas. Learners: "last" at 1 / (n + 4), "average" of the iterates
    at n^-0.7. Rows: learner, component, lam, group, n, rmse, exact, target (minus the exponent), scaled (rmse times
    n^-target).
    """

    lam: tuple[float, ...] = (2.0, 1.0, 0.3)
    groups: int = 20
    size: int = 150
    steps: int = 10_000
    first: int = 500
    points: int = 6

    tiny: ClassVar = {"groups": 3, "size": 20, "steps": 600, "first": 100}
    deterministic: ClassVar = {"exact": 1e-9, "target": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"learner": learner} for learner in ("last", "average")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        average = condition["learner"] == "average"
        step = StepSize.power(1.0, 0.7) if average else StepSize.power(n0=4.0)
        times = record_times(self.steps, self.points, self.first)
        lam = torch.tensor(self.lam, dtype=dtype, device=device).unsqueeze(-1)
        y = torch.randn(self.steps, self.groups * self.size, generator=stream(seed, "noise"), dtype=dtype).to(device)
        start = torch.ones(len(lam), y.shape[1], dtype=dtype, device=device)
        learn = polyak_ruppert if average else robbins_monro
        x = learn(lambda x, y: y - lam * x, y, step, start, record=times).x  # (times, K, R)
        rmse = x.unflatten(-1, (self.groups, self.size)).square().mean(dim=-1).sqrt()
        moments = [second_moments(one, step, self.steps, 1.0)[average] for one in self.lam]
        exact = np.stack(moments, axis=-1)[np.asarray(times) - 1] ** 0.5
        target = np.full(len(lam), -0.5) if average else -rate_exponent(1.0, self.lam)
        index = {"n": times, ("component", "lam"): (range(len(lam)), self.lam), "group": range(self.groups)}
        columns = {"rmse": rmse, "exact": exact[..., None], "target": target[:, None]}
        table = rows(index, columns)
        return table.assign(scaled=table["rmse"] * table["n"] ** -table["target"])


@dataclass(frozen=True, kw_only=True)
class Averaged(Experiment):
    """SA-4: the mean of the iterates at n^-0.7 by its recurrence, far out. Rows: lam, n, efficiency (n lambda^2 times
    the mean square error: 1 is the least that any gain matrix reaches)."""

    lam: tuple[float, ...] = (2.0, 1.0, 0.3)
    steps: int = 400_000

    tiny: ClassVar = {"steps": 2000}
    deterministic: ClassVar = {"efficiency": 1e-8}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n = np.asarray(record_times(self.steps, 5, 1000))
        square = [second_moments(one, StepSize.power(1.0, 0.7), self.steps, 1.0)[1][n - 1] for one in self.lam]
        efficiency = n * np.square(self.lam)[:, None] * np.stack(square)
        return rows({"lam": self.lam, "n": n}, {"efficiency": efficiency})


@dataclass(frozen=True, kw_only=True)
class Central(Experiment):
    """SA-4: h = s_k (Y - m) - lambda_k x on 0-1 data of infinite order, at 1/n. Rows: component, replicate, x (times
    sqrt(n)), z, level (the standard normal distribution function at z), predicted (Sigma_k), naive (the same for
    independent data)."""

    lam: tuple[float, float] = (2.0, 0.8)
    scale: tuple[float, float] = (2.0, 1.0)
    lags: int = 64
    replicas: int = 6000
    steps: int = 1000

    tiny: ClassVar = {"replicas": 300, "steps": 100}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        theta = slow_weights(self.lags)
        chain = linear_chain_moments(C, np.asarray(theta))
        y = InfiniteOrderLinear(C, theta, burn_in=500).draw(self.steps, self.replicas, stream(seed, "central")).y
        lam, scale = (torch.tensor(each, dtype=dtype, device=device)[:, None] for each in (self.lam, self.scale))
        start = torch.zeros(2, self.replicas, dtype=dtype, device=device)
        x = robbins_monro(lambda x, y: scale * y - lam * x, (y - chain.mean).to(device), StepSize.power(), start).x[-1]
        spread = [*zip(self.lam, self.scale, strict=True)]
        predicted, naive = (
            np.stack([lyapunov_covariance(one, s**2 * variance) for one, s in spread])[:, None]
            for variance in (chain.long_run, chain.gamma[0])
        )
        scaled = self.steps**0.5 * x.cpu().numpy()
        columns = {"x": scaled, "z": scaled / predicted**0.5, "predicted": predicted, "naive": naive}
        columns["level"] = stats.norm.cdf(columns["z"])
        return rows({"component": range(2), "replicate": range(self.replicas)}, columns)


@dataclass(frozen=True, kw_only=True)
class Covariance(Experiment):
    """SA-4: n Cov(x_n) by its recurrence, for random A (d, d) with symmetric part between 1.5 and 3, against the
    Lyapunov equation. Rows: instance, n, gap (relative, in the spectral norm)."""

    instances: int = 8
    dimension: int = 4
    steps: int = 4000

    tiny: ClassVar = {"instances": 2, "steps": 400}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, g = self.dimension, stream(seed, "covariance")
        basis, _ = torch.linalg.qr(torch.randn(self.instances, d, d, generator=g, dtype=dtype))
        real = 1.5 + 1.5 * torch.rand(self.instances, d, generator=g, dtype=dtype)
        spin, root = torch.randn(2, self.instances, d, d, generator=g, dtype=dtype)
        A = basis @ (torch.diag_embed(real) + (spin - spin.mT) / 2) @ basis.mT
        Gamma = root @ root.mT / d
        predicted = torch.as_tensor(np.stack([lyapunov_covariance(*pair) for pair in zip(A, Gamma, strict=True)]))
        A, Gamma, predicted = (each.to(device) for each in (A, Gamma, predicted))
        V, eye = torch.zeros_like(A), torch.eye(d, dtype=dtype, device=device)
        times, gaps = record_times(self.steps, 5, 100), []
        for n in range(1, self.steps + 1):
            keep = eye - A / (n + 4)
            V = keep @ V @ keep.mT + Gamma / (n + 4) ** 2
            if n in times:
                gap = torch.linalg.matrix_norm(n * V - predicted, 2) / torch.linalg.matrix_norm(predicted, 2)
                gaps.append(gap)
        return rows({"n": times, "instance": range(self.instances)}, {"gap": torch.stack(gaps)})


@dataclass(frozen=True, kw_only=True)
class InfiniteOrder(Experiment):
    """SA-5: running means of 0-1 data whose next value needs the whole past. Rows: replicate, mean, off (mean - m),
    scaled (n (mean - m)^2), ratio (scaled / Gamma), long_run (Gamma), naive (m (1 - m)), inflation (Gamma / naive)."""

    lags: int = 64
    replicas: int = 4000
    steps: int = 2000

    tiny: ClassVar = {"replicas": 300, "steps": 200}
    deterministic: ClassVar = {"long_run": 1e-9, "naive": 1e-12, "inflation": 1e-9}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        theta = slow_weights(self.lags)
        chain = linear_chain_moments(C, np.asarray(theta))
        drawn = InfiniteOrderLinear(C, theta, burn_in=500).draw(self.steps, self.replicas, stream(seed, "order"))
        y = drawn.y.to(device)
        mean = robbins_monro(lambda x, y: y - x, y, StepSize.power(), torch.zeros_like(y[0])).x[-1].cpu().numpy()
        scaled = self.steps * (mean - chain.mean) ** 2
        naive = chain.mean * (1 - chain.mean)
        columns = {"mean": mean, "off": mean - chain.mean, "scaled": scaled, "ratio": scaled / chain.long_run}
        columns |= {"long_run": chain.long_run, "naive": naive, "inflation": chain.long_run / naive}
        return rows({"replicate": range(self.replicas)}, columns)


# Claims: SA-4 and SA-5: rates and covariances. Criteria and expected verdicts were written before the run, unless a
# claim says otherwise.

SQUARE = measure.mean("z**2", by=["component"], decides=farthest_from(1))
LAW = law_distance("level", by=["component"])


def exchanged(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Central`` in which each component is given the variance of the other."""
    own = rows.groupby("component")["predicted"].first()
    z = rows["x"] / rows["component"].map(lambda one: own.drop(one).iloc[0]) ** 0.5
    return rows.assign(z=z, level=norm.cdf(z))


def independent(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of ``Central`` judged by the variance that independent data of the same mean would have."""
    z = rows["x"] / rows["naive"] ** 0.5
    return rows.assign(z=z, level=norm.cdf(z))


CLAIMS = (
    statistic(
        "SA-4.a",
        r"At $a_n=1/n$ the root mean square error in a component of pull $\lambda\ne\frac12$ falls as $n^{-\min(1/2,\lambda)}$.",
        Exponents,
        measure.power("scaled", "n", "learner == 'last'", unit=["group"], by=["component"], decides=farthest_from(0)),
        r"slope of the logarithm less $-\min(\frac12,\lambda)$, the farthest of $\lambda=2,1,.3$",
        within(0, 0.05),
        unit="exponent",
        control=measure.power(
            "rmse * n**0.5", "n", "learner == 'last'", unit=["group"], by=["component"], decides=farthest_from(0)
        ),
        horizon="$n=10{,}000$",
    ),
    statistic(
        "SA-4.b",
        r"Given the component, at $a_n=a/n$ with $2a\lambda>1$, $n\,{\rm Var}(x_n)$ tends to $a^2\Gamma/(2a\lambda-1)$, $\Gamma$ summed over all lags.",
        Central,
        SQUARE,
        r"$n(x_n-x^*)^2$ over its limit, the farther of two components",
        within(1, 0.12),
        unit="ratio",
        control=lambda rows: SQUARE(exchanged(rows)),
        horizon="$n=1{,}000$",
    ),
    statistic(
        "SA-4.c",
        r"Given the component, at $a_n=a/n$ with $2a\lambda>1$, $\sqrt n(x_n-x^*)$ is normal in the limit, though the data are 0 and 1 and of infinite order.",
        Central,
        LAW,
        "largest distance to the normal distribution function, the farther of two components (interval: DKW)",
        at_most(0.05),
        unit="probability",
        control=lambda rows: LAW(independent(rows)),
        where="the other component's variance, a quarter off, is 0.03 away and would pass: SA-4.b tells variances apart",
        horizon="$n=1{,}000$",
    ),
    computed(
        "SA-4.d",
        r"In several dimensions, at $a_n=a/n$ with $a\,{\rm Re}\,\lambda>\frac12$ for all eigenvalues of $A$, $n\,{\rm Cov}(x_n)$ tends to the solution of $(aA-\frac12I)\Sigma+\Sigma(aA-\frac12I)^\top=a^2\Gamma$.",
        Covariance,
        measure.largest("gap", "n == n.max()"),
        "largest relative gap in the spectral norm after 4000 steps of the recurrence",
        at_most(0.01),
        unit="relative gap",
        control=measure.largest("gap", "n == n.min()"),
        horizon="$n=4{,}000$",
    ),
    computed(
        "SA-4.e",
        r"Averaged iterates at $a_n=n^{-0.7}$ reach the least variance $\Gamma/(n\lambda^2)$ in every component, without knowing $\lambda$.",
        Averaged,
        measure.farthest("efficiency", 1.0, "n == n.max()"),
        r"mean square error over $1/(n\lambda^2)$ at $n=4\cdot10^5$, the farthest of $\lambda=2,1,.3$",
        within(1, 0.1),
        unit="ratio",
        control=measure.farthest("efficiency", 1.0, "n == n.min()"),
        where="the tenth is chosen and not derived",
        horizon="$n=4\\cdot10^5$",
    ),
    statistic(
        "SA-5.a",
        r"For data whose next value depends on all of the past, the variance of running means is $\Gamma/n$ with $\Gamma=\sigma^2/(1-\sum_j\theta_j)^2$.",
        InfiniteOrder,
        measure.mean("ratio"),
        r"$n(\bar Y_n-m)^2$ over $\Gamma$",
        within(1, 0.15),
        unit="ratio",
        control=measure.mean("scaled / naive"),
        horizon="$n=2{,}000$",
    ),
)


# Figures: How fast a learner finds its limit: rows in, a figure with its alt text as label out.
#
# mark              meaning
# three colours     three components
# line in INK       exact mean square, by its recurrence; the normal law


def rate_curves(errors: pd.DataFrame, scaled: pd.DataFrame) -> Figure:
    """Errors by component, and errors over their predicted deviation; rows of ``Exponents`` and ``Central``."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.4, 3.4))
    last = errors[errors["learner"] == "last"]
    words = []
    for (component, lam), part in last.groupby(["component", "lam"]):
        points(left, part, "n", "rmse", COLOURS[component])
        theory = part.drop_duplicates("n").sort_values("n")
        left.plot(theory["n"], theory["exact"], **THEORY)
        end = theory.iloc[-1]
        beside(left, end["n"], end["exact"], rf"$\lambda={lam:g}$", COLOURS[component], (9, 0))
        slope = np.polyfit(np.log(theory["n"]), np.log(theory["exact"]), 1)[0]
        words.append(f"lambda {lam:g}: slope {slope:.2f}, in the limit {part['target'].iloc[0]:.2f}")
    left.set(xscale="log", yscale="log", xlabel="$n$", ylabel="root mean square error")
    plain_log(left.xaxis, (500, 1000, 2000, 5000, 10000))
    plain_log(left.yaxis, (0.005, 0.01, 0.02, 0.05, 0.1, 0.2))
    left.set_xlim(420, 26000)
    panel_label(left, "one gain, three rates")
    best = largest(scaled)
    grid = np.linspace(-4, 4, 201)
    for component, part in best.groupby("component"):
        label = f"component {component + 1}"
        style = {"bins": np.linspace(-4, 4, 41), "density": True, "histtype": "step", "label": label}
        right.hist(part["z"], color=(BLUE, RED)[component], **style)
    right.plot(grid, np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi), **THEORY)
    right.set(xlabel="standardised error", ylabel="density")
    right.legend(fontsize=8)
    panel_label(right, "chain of infinite order")
    spread = best.groupby("component")["z"].std()
    figure.set_label(
        f"Left: error against time, on the exact curves; {'; '.join(words)}. Right: standardised errors of two "
        f"components against the normal density; their standard deviations are {spread[0]:.2f} and {spread[1]:.2f}."
    )
    return figure
