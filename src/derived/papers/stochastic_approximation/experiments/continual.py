"""Continual learning as tracking: what a constant step keeps and forgets, what 1/n cannot forget (SA-11).

symbol    name      meaning                                                                     axes
k_n       -         the state of the world, +1 or -1, of correlation (1 - epsilon)^j            (N, R)
epsilon   epsilon   how fast it changes                                                         scalar
a         a         constant step                                                               scalar
x_n       x         what the learner holds; its mean is 0, so E x^2 is its variance             (R,)
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import optimize
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.environments import Telegraph
from ..model.core import StepSize, record_times, robbins_monro
from ..model.theory import best_step, telegraph_mean_variance, telegraph_variance, tracking_error_exact


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
