"""How fast an iterate finds its limit: exponents, the central limit theorem given the component (SA-4, SA-5).

symbol      name      meaning                                                                  axes
lambda      lam       pull of the component's mean field, h = noise - lambda x                 (K,)
V_n         exact     E x_n^2, by its recurrence (of the average: with that of the sum)        (times, K)
z           z         sqrt(n) (x_n - x*) / sqrt(Sigma_k), standard normal in the limit         (K, R)
Gamma       long_run  sum of the autocovariances over all lags                                 number
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import stats

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.environments import InfiniteOrderLinear
from ..model.core import StepSize, polyak_ruppert, record_times, robbins_monro
from ..model.theory import linear_chain_moments, lyapunov_covariance, rate_exponent

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
