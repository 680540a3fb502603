"""What each normaliser can express, how stable it is, and what no coupling can do.

symbol   name     meaning                                                              axes
TV       tv       1/2 sum |P - P'|                                                     (instances,)
dS       change   largest change of a score                                            (instances,)
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
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.points import random_weights
from ..model.attention import attention_weights
from ..model.couplings import coupling_w1, distance_to_couplings, largest_mass, total_variation
from ..model.plan import entropic_plan, half_steps, iterates, sinkhorn
from ..model.theory import double_centre, oscillation

EPS = float(np.finfo(float).eps)


def _normalised(normaliser: str, scores: Tensor, a: Tensor, b: Tensor) -> Tensor:
    if normaliser == "softmax":
        return half_steps(scores, 1, a, b).exp()
    return sinkhorn(scores, a, b, tol=1e-13, max_iterations=20_000).plan


@dataclass(frozen=True, kw_only=True)
class Stability(Experiment):
    """SK-6: how far a plan moves when its scores do.

    random: Gaussian changes; signs: +-1/2 changes in blocks, which are the worst that ascent finds; sharp: the two by
    two table +-J y/2, J = [[1, -1], [-1, 1]]. Rows: instance, kind, tv, change (max |dS|), ratio = tv / (change / 2);
    oscillation (max dS - min dS), tight = tv / tanh(oscillation / 4).
    """

    instances: int = 200
    n: int = 6
    sharp: tuple[float, ...] = (1e-3, 1e-2, 0.1, 1.0)

    tiers: ClassVar = {"ci": {"instances": 30}, "cpu": {}}
    tiny: ClassVar = {"instances": 8}

    def conditions(self) -> list[dict]:
        return [{"normaliser": normaliser} for normaliser in ("softmax", "sinkhorn")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        normaliser, generator, num = condition["normaliser"], stream(seed, "stability"), self.instances
        size = (num, self.n, self.n)
        scores = 2 * torch.randn(size, generator=generator, dtype=torch.float64)
        a, b = (random_weights((num, self.n), generator) for _ in range(2))
        signs = torch.randint(2, (2, num, self.n), generator=generator) - 0.5
        changes = {"random": torch.randn(size, generator=generator, dtype=torch.float64)}
        changes["signs"] = 2.0 * signs[0].unsqueeze(-1) * signs[1].unsqueeze(-2)
        cases = [(kind, scores, scores + change, a, b) for kind, change in changes.items()]
        J = torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64)
        steps = torch.tensor(self.sharp, dtype=torch.float64).view(-1, 1, 1) / 2
        half = torch.full((len(self.sharp), 2), 0.5, dtype=torch.float64)
        cases.append(("sharp", -steps * J, steps * J, half, half))
        tables = []
        for kind, before, after, a, b in cases:
            tv = total_variation(*(_normalised(normaliser, each, a, b) for each in (before, after)))
            change, span = (after - before).abs().amax(dim=(-2, -1)), oscillation((after - before).flatten(-2))
            columns = {"tv": tv, "change": change, "ratio": tv / (change / 2)}
            columns |= {"oscillation": span, "tight": tv / torch.tanh(span / 4)}
            tables.append(rows({"instance": range(len(tv))}, columns).assign(kind=kind))
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class Sinks(Experiment):
    """SK-10.a to c: marginals of both normalisers on the same scores, and the sink, where all tokens look at the first.

    Rows: n, beta; row_gap (rows of both normalisers from a), column_gap (columns of Sinkhorn from b), softmax_columns
    (columns of softmax from b, no bound); distance (of the sink from all couplings, linear program), predicted 1 - 1/n,
    gap; softmax_tv (of softmax with score beta on token 1 from the sink), softmax_predicted, softmax_gap; bound.
    """

    sizes: tuple[int, ...] = (2, 3, 5, 8, 12)
    betas: tuple[float, ...] = (0.0, 2.0, 5.0, 10.0, 20.0)

    tiny: ClassVar = {"sizes": (2, 4)}
    deterministic: ClassVar = {"predicted": 1e-12, "softmax_tv": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"n": n} for n in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, generator = condition["n"], stream(seed, "sinks", condition["n"])
        scores = 2 * torch.randn(n, n, generator=generator, dtype=torch.float64)
        a, b = random_weights((2, n), generator)
        both = {name: _normalised(name, scores, a, b) for name in ("softmax", "sinkhorn")}
        row_gap = max(float((each.sum(dim=-1) - a).abs().sum()) for each in both.values())
        columns = [float((both[name].sum(dim=-2) - b).abs().sum()) for name in ("sinkhorn", "softmax")]
        uniform, sink = torch.full((n,), 1 / n, dtype=torch.float64), torch.zeros(n, n, dtype=torch.float64)
        sink[:, 0] = 1 / n
        distance = distance_to_couplings(sink, uniform, uniform)
        betas = torch.tensor(self.betas, dtype=torch.float64)
        looking = torch.zeros(len(betas), n, n, dtype=torch.float64)
        looking[..., 0] = betas.unsqueeze(-1)
        found = total_variation(attention_weights(looking, 1) / n, sink)
        predicted = (n - 1) / (n - 1 + betas.exp())
        facts = {"row_gap": row_gap, "column_gap": columns[0], "softmax_columns": columns[1], "distance": distance}
        facts |= {"predicted": 1 - 1 / n, "gap": abs(distance - (1 - 1 / n)), "bound": 1e-9}
        facts |= {"softmax_tv": found, "softmax_predicted": predicted, "softmax_gap": (found - predicted).abs()}
        return rows({"beta": self.betas}, facts)


@dataclass(frozen=True, kw_only=True)
class Ranks(Experiment):
    """SK-10.d: ln P less its row and column means has the rank of the head; a permutation is reached by scale alone.

    10 points on a circle; the queries are the keys in another order. Rows: d_k, scale, rank (singular values above
    1e-8 of the largest), diagonal (mass on the permutation).
    """

    n: int = 10
    scales: tuple[float, ...] = (1.0, 10.0, 100.0)

    tiny: ClassVar = {"n": 6, "scales": (1.0, 10.0)}

    def conditions(self) -> list[dict]:
        return [{"d_k": d_k} for d_k in (1, 2, 3, 5)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d_k, generator = condition["d_k"], stream(seed, "ranks", condition["d_k"])
        keys = torch.randn(self.n, d_k, generator=generator, dtype=torch.float64)
        if d_k == 2:
            angle = 2 * math.pi * torch.arange(self.n, dtype=torch.float64) / self.n
            keys = torch.stack([angle.cos(), angle.sin()], dim=-1)
        keys = keys / keys.norm(dim=-1, keepdim=True)
        order = torch.randperm(self.n, generator=generator)
        found = []
        for scale in self.scales:
            result = sinkhorn(scale * keys[order] @ keys.mT, tol=1e-9, max_iterations=5000)
            values = torch.linalg.svdvals(double_centre(result.log_plan))
            mass = float(result.plan[torch.arange(self.n), order].sum())
            found.append((int((values > 1e-8 * values[0]).sum()), mass))
        rank, mass = zip(*found, strict=True)
        return rows({"scale": self.scales}, {"rank": rank, "diagonal": mass})


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
    """SK-12: two tokens at (-1, 0), (1, 0) and two at -+(cos theta, sin theta): at 90 degrees the best plan jumps.

    Rows: epsilon (0: without temperature), shift (degrees on either side of 90), jump (TV between the plans of both
    sides), moved (W_1 between the second texts of both sides), bound (1/2 max |dS|, for epsilon > 0); error (TV of the
    plan from the best one, on the worse of both sides), half (half the jump of the best one); at 90 degrees, W_1 of the
    plan from the limits of the best ones on either side: distance_left, distance_right.
    """

    epsilons: tuple[float, ...] = (0.0, 0.05, 0.2, 1.0)
    shifts: tuple[float, ...] = (10.0, 1.0, 0.1, 0.01)

    def conditions(self) -> list[dict]:
        return [{"epsilon": epsilon} for epsilon in self.epsilons]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        epsilon = condition["epsilon"]
        x = torch.tensor([[-1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
        same, swapped = torch.eye(2, dtype=torch.float64) / 2, torch.eye(2, dtype=torch.float64).flip(0) / 2
        jump, moved, bound, error = [], [], [], []
        for shift in self.shifts:
            sides = [_second_text(90 + sign * shift) for sign in (-1, 1)]
            costs = [torch.cdist(x, y).square() for y in sides]
            plans = [_plan(cost, epsilon, same, swapped) for cost in costs]
            jump.append(float(total_variation(*plans)))
            best = [_plan(cost, 0.0, same, swapped) for cost in costs]
            error.append(max(float(total_variation(*pair)) for pair in zip(plans, best, strict=True)))
            moved.append(float((sides[0] - sides[1]).norm(dim=-1).mean()))
            bound.append(float((costs[0] - costs[1]).abs().max()) / (2 * epsilon) if epsilon else math.nan)
        y = _second_text(90.0)
        at = entropic_plan(torch.cdist(x, y).square(), epsilon or 1.0).plan
        left, right = (coupling_w1(at, limit, x, y) for limit in (same, swapped))
        half = float(total_variation(same, swapped)) / 2
        columns = {"jump": jump, "moved": moved, "bound": bound, "error": error, "half": half}
        return rows({"shift": self.shifts}, columns | {"distance_left": left, "distance_right": right})


def _second_text(degrees: float) -> Tensor:
    angle = math.radians(degrees)
    point = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
    return torch.stack([-point, point])


def _plan(cost: Tensor, epsilon: float, same: Tensor, swapped: Tensor) -> Tensor:
    """The plan of two tokens against two: with epsilon = 0 one of the two assignments."""
    if epsilon:
        return entropic_plan(cost, epsilon, tol=1e-12).plan
    return same if (same * cost).sum() < (swapped * cost).sum() else swapped
