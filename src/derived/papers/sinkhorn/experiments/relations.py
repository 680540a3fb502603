"""What no coupling can do, a sink, a causal mask, a jump; and what scores do that read no context.

symbol   name     meaning                                                              axes
TV       tv       1/2 sum |P - P'|                                                     (instances,)
beta     beta     score of token 1, all others 0                                       scalar
theta    angle    the second text stands at +-(cos theta, sin theta)                   scalar
"""

import math
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.points import coupling_problems
from ..model.attention import attention_weights
from ..model.couplings import distance_to_couplings, largest_mass, rows_w1, total_variation
from ..model.plan import entropic_plan, half_steps, iterates, sinkhorn


@dataclass(frozen=True, kw_only=True)
class Sinks(Experiment):
    """Figure: the sink, where all tokens look at the first.

    Rows: n, beta; distance (from the sink to all couplings, by a linear program); softmax_tv (from the sink to softmax
    with score beta on token 1).
    """

    sizes: tuple[int, ...] = (8,)
    betas: tuple[float, ...] = (0.0, 2.0, 5.0, 10.0, 20.0)

    tiny: ClassVar = {"sizes": (2, 4)}
    deterministic: ClassVar = {"softmax_tv": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"n": n} for n in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n = condition["n"]
        uniform, sink = torch.full((n,), 1 / n, dtype=torch.float64), torch.zeros(n, n, dtype=torch.float64)
        sink[:, 0] = 1 / n
        looking = torch.zeros(len(self.betas), n, n, dtype=torch.float64)
        looking[..., 0] = torch.tensor(self.betas, dtype=torch.float64).unsqueeze(-1)
        softmax_tv = total_variation(attention_weights(looking, 1) / n, sink)
        distance = distance_to_couplings(sink, uniform, uniform)
        return rows({"beta": self.betas}, {"distance": distance, "softmax_tv": softmax_tv})


@dataclass(frozen=True, kw_only=True)
class Causal(Experiment):
    """SK-11: Sinkhorn on a causally masked kernel, which ``sinkhorn`` itself refuses.

    Rows: n, instance, iteration; off_diagonal (mass off the diagonal), largest (the most that any lower-triangular
    coupling has there, by a linear program; one number for all instances), bound.
    """

    sizes: tuple[int, ...] = (2, 4, 8)
    instances: int = 20
    iterations: int = 30_000

    tiers: ClassVar = {"ci": {"sizes": (2, 4), "iterations": 6000}, "cpu": {}}
    tiny: ClassVar = {"sizes": (2, 3), "instances": 20, "iterations": 3000}

    def conditions(self) -> list[dict]:
        return [{"n": n} for n in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, num = condition["n"], self.instances
        scores = torch.randn(num, n, n, generator=stream(seed, "causal", n), dtype=torch.float64)
        causal = torch.ones(n, n).tril()
        masked, uniform = scores.masked_fill(causal == 0, -torch.inf), scores.new_full((num, n), 1 / n)
        kept = sorted({round(each) for each in np.geomspace(1, self.iterations, 25)})
        found = []
        for step, (f, g, _) in enumerate(islice(iterates(masked, uniform, uniform), self.iterations + 1)):
            if step in kept:
                plan = (masked + f.unsqueeze(-1) + g.unsqueeze(-2)).exp()
                found.append(plan.sum(dim=(-2, -1)) - plan.diagonal(dim1=-2, dim2=-1).sum(dim=-1))
        largest = largest_mass(causal, 1 - torch.eye(n), uniform[0], uniform[0])
        columns = {"off_diagonal": torch.stack(found, dim=-1), "largest": largest, "bound": 1e-9}
        return rows({"instance": range(num), "iteration": kept}, columns)


@dataclass(frozen=True, kw_only=True)
class Jumps(Experiment):
    """Figure: two tokens at -+(1, 0) and two at -+(cos theta, sin theta): at 90 degrees the best plan jumps.

    Rows: epsilon (0: without temperature), shift (degrees on either side of 90), jump (TV between the plans of both
    sides).
    """

    epsilons: tuple[float, ...] = (0.0, 0.05, 0.2, 1.0)
    shifts: tuple[float, ...] = (10.0, 1.0, 0.1, 0.01)

    def conditions(self) -> list[dict]:
        return [{"epsilon": epsilon} for epsilon in self.epsilons]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        jump = []
        for shift in self.shifts:
            costs = [torch.cdist(second_text(0.0), second_text(90 + turn)).square() for turn in (-shift, shift)]
            jump.append(total_variation(*(transport(cost, condition["epsilon"]) for cost in costs)))
        return rows({"shift": self.shifts}, {"jump": torch.stack(jump)})


def second_text(degrees: float) -> Tensor:
    """The tokens -+(cos theta, sin theta), (2, 2)."""
    angle = math.radians(degrees)
    point = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
    return torch.stack([-point, point])


def transport(cost: Tensor, epsilon: float) -> Tensor:
    """The plan between uniform texts of equal length at temperature epsilon; at zero the best assignment."""
    if epsilon:
        return entropic_plan(cost, epsilon, tol=1e-12).plan
    best, plan = linear_sum_assignment(cost), torch.zeros_like(cost)
    plan[best] = 1 / len(cost)
    return plan


@dataclass(frozen=True, kw_only=True)
class FixedScores(Experiment):
    """SK-8: scores of a pair of tokens that read no other token, on texts as those that test learned relations.

    -beta |x - y|^2 where the order is kept; for the crossed relation the logarithm of the sum of e to that and the same
    with y reversed. Rows: target, normaliser, beta, draw; ratio: mean over texts of the distance by rows from the
    target, over that of the product coupling.
    """

    targets: tuple[str, ...] = ("comonotone", "crossed")
    betas: tuple[float, ...] = (20.0, 40.0, 80.0, 160.0, 320.0)
    draws: int = 16
    texts: int = 16
    n: int = 64

    tiers: ClassVar = {"ci": {"betas": (40.0, 160.0), "draws": 2, "texts": 4, "n": 16}, "cpu": {}}

    def conditions(self) -> list[dict]:
        return [{"target": target} for target in self.targets]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        target = condition["target"]
        drawn = coupling_problems(target, self.draws * self.texts, self.n, stream(seed, "fixed scores", target))
        x, y, a, b, plan = drawn
        alone = rows_w1(a.unsqueeze(-1) * b.unsqueeze(-2), plan, y)
        tables = []
        for beta in self.betas:
            kept, reversed = (-beta * (x.unsqueeze(-1) - place.unsqueeze(-2)).square() for place in (y, 1 - y))
            scores = kept if target == "comonotone" else torch.logaddexp(kept, reversed)
            coupling = sinkhorn(scores, a, b, tol=1e-5, max_iterations=2000).plan
            for name, found in (("softmax", half_steps(scores, 1, a, b).exp()), ("sinkhorn", coupling)):
                near, far = (each.view(self.draws, -1).mean(dim=-1) for each in (rows_w1(found, plan, y), alone))
                tables.append(
                    rows({"draw": range(self.draws)}, {"ratio": near / far}).assign(normaliser=name, beta=beta)
                )
        return pd.concat(tables, ignore_index=True)
