"""The explorer's plans: the same points at every temperature."""

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import pandas as pd
import torch
from scipy import optimize

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.plan import iterates, problem


@dataclass(frozen=True, kw_only=True)
class PlanGrid(Experiment):
    """The explorer: n points against n on half the line, each in a cell of its own, over a sweep of temperatures.

    The two texts do not lie on top of each other, so that softmax alone is no assignment however cold it is.

    Rows: epsilon, i, j, x, y, P; of the plan, the same in all its rows: cost, assignment, entropy, residual and
    iterations (the first with a column error of at most ``tol``, or all that were run).
    """

    n: int = 12
    points: int = 29
    tol: float = 1e-3
    iterations: int = 4000

    tiny: ClassVar = {"n": 5, "points": 4, "iterations": 200}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        noise = torch.rand(2, self.n, generator=stream(seed, "grid"), dtype=torch.float64)
        x, y = (torch.arange(self.n) + 0.5 + 0.25 * noise) / self.n
        y = y / 2
        cost, epsilon = (x.unsqueeze(-1) - y).square(), torch.logspace(-3.5, 0, self.points, dtype=torch.float64)
        best = cost.numpy()[optimize.linear_sum_assignment(cost.numpy())].mean()
        scores, iterations = -cost / epsilon.view(-1, 1, 1), torch.full((self.points,), self.iterations)
        for step, found in enumerate(islice(iterates(*problem(scores, None, None)), self.iterations + 1)):
            iterations = torch.where(found.residual <= self.tol, iterations.clamp(max=step), iterations)
        plan = (scores + found.f.unsqueeze(-1) + found.g.unsqueeze(-2)).exp()
        columns = {"cost": (cost * plan).sum(dim=(-2, -1)), "entropy": torch.special.entr(plan).sum(dim=(-2, -1))}
        columns |= {"iterations": iterations, "residual": found.residual}
        columns = {name: each.view(-1, 1, 1) for name, each in columns.items()} | {"P": plan, "assignment": best}
        return rows({"epsilon": epsilon, ("i", "x"): (range(self.n), x), ("j", "y"): (range(self.n), y)}, columns)
