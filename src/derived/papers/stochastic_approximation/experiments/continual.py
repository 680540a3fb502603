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
from ..model.core import StepSize, polyak_ruppert, record_times, robbins_monro
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


@dataclass(frozen=True, kw_only=True)
class Learners(Experiment):
    """SA-11: a world that changes sign each ``block`` steps, seen with noise. Learners: "constant" (a = 0.05), "1/n",
    "averaged" (running mean of the constant step's iterates), "attention" (softmax over the whole past, values y_i,
    scores 8 q k_i with q the mean of the last eight observations and k_i that of the eight before y_i). Rows: learner,
    time, block, truth, replicate, reading, current and other (square errors on the present state of the world and on
    the one before)."""

    block: int = 150
    blocks: int = 8
    replicas: int = 48
    sigma: float = 0.7
    every: int = 5

    tiny: ClassVar = {"block": 40, "blocks": 4, "replicas": 8}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        steps = self.block * self.blocks
        truth = 1.0 - 2.0 * (torch.arange(steps) // self.block % 2).to(dtype)
        noise = torch.randn(steps, self.replicas, generator=stream(seed, "learners"), dtype=dtype)
        y = (truth[:, None] + self.sigma * noise).to(device)
        times, start = range(self.every, steps + 1, self.every), torch.zeros_like(y[0])
        fast = {"record": times, "step": StepSize.constant(0.05)}
        readings = {
            "constant": robbins_monro(to_data, y, x0=start, **fast).x,
            "1/n": robbins_monro(to_data, y, StepSize.power(), start, record=times).x,
            "averaged": polyak_ruppert(to_data, y, x0=start, **fast).x,
            "attention": torch.stack([self.recalled(y[:n]) for n in times]),
        }
        reading = torch.stack(list(readings.values()))
        at = np.asarray(times) - 1
        now = truth[at][:, None].to(device)
        columns = {"reading": reading, "current": (reading - now).square(), "other": (reading + now).square()}
        index = {"learner": list(readings), ("time", "block", "truth"): (times, at // self.block, truth[at])}
        return rows(index | {"replicate": range(self.replicas)}, columns)

    def recalled(self, past: Tensor) -> Tensor:
        """Attention over everything seen, asked with the latest observations; fewer than nine are averaged.

        The key of a value is what stood before it: a key that held the value's own noise would tilt the reading.
        """
        if len(past) <= 8:
            return past.mean(dim=0)
        recent = past.unfold(0, 8, 1).mean(dim=-1)  # entry i: the mean of y_i, ..., y_{i+7}
        weights = torch.softmax(8 * recent[-1] * recent[:-1], dim=0)
        return (weights * past[8:]).sum(dim=0)
