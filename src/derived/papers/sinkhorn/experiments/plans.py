"""What softmax and Sinkhorn solve, what every half-step gains, and what the temperature does.

symbol     name       meaning                                                        axes
S          -          scores, i.i.d. N(0, 1.5^2) unless said                         (instances, n, m)
D(f, g)    dual       <f, a> + <g, b> - sum e^(S + f + g)                            scalar
epsilon    epsilon    temperature of the entropic plan                               scalar

Each experiment is a frozen table of sizes, and one batched function per condition.
"""

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import optimize
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.points import random_weights
from ..model.plan import entropic_plan, half_steps, iterates, problem, sinkhorn
from ..model.theory import dual_value, kl

EPS = float(np.finfo(float).eps)
KINDS = ("uniform", "random")


def weights_of(kind: str, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    """Uniform or Dirichlet weights, float64."""
    drawn = random_weights(shape, generator)
    return torch.full_like(drawn, 1 / shape[-1]) if kind == "uniform" else drawn


def newton_plan(scores: Tensor, a: Tensor, b: Tensor, steps: int = 60) -> Tensor:
    """Sinkhorn's plan of one table by a damped Newton ascent of the dual: nothing in it alternates.

    The gauge is fixed by f_1 = 0. Each step solves with the Hessian [D_r P; P^T D_c] and is halved until D rises.
    """
    S, a, b = (each.numpy() for each in (scores, a, b))
    n, both = len(a), np.r_[a, b]

    def dual(z: np.ndarray) -> tuple[float, np.ndarray]:
        P = np.exp(np.minimum(S + z[:n, None] + z[n:], 50.0))
        return z @ both - P.sum(), P

    z = np.r_[np.log(a), np.log(b) - np.log((np.exp(S) * a[:, None]).sum(axis=0))]
    value, P = dual(z)
    for _ in range(steps):
        gradient = both - np.r_[P.sum(axis=1), P.sum(axis=0)]
        hessian = np.block([[np.diag(P.sum(axis=1)), P], [P.T, np.diag(P.sum(axis=0))]])
        move = np.r_[0.0, np.linalg.solve(hessian[1:, 1:], gradient[1:])]
        size = 1.0
        while (found := dual(z + size * move))[0] < value - 1e-15 and size > 1e-12:
            size /= 2
        z, (value, P) = z + size * move, found
        if np.abs(gradient).sum() < 2e-15 * len(z):
            break
    return torch.from_numpy(P)


@dataclass(frozen=True, kw_only=True)
class Plans(Experiment):
    """SK-1, SK-2.b: Sinkhorn's limit against Newton on the dual, and under offsets of rows and columns.

    Rows: instance; gap (largest |P - P_Newton|), bound (the residual reached plus 64 roundings per score);
    offset_gap (largest |P - P'| after random offsets, and after -|q - k|^2 / 2 in place of <q, k>), offset_bound.
    """

    instances: int = 200
    sizes: tuple[tuple[int, int], ...] = ((1, 1), (2, 5), (8, 8), (20, 13), (64, 64))

    tiers: ClassVar = {
        "ci": {"instances": 10, "sizes": ((1, 1), (2, 5), (8, 8), (20, 13))},
        "cpu": {"instances": 50},
        "gpu": {},
    }
    tiny: ClassVar = {"instances": 3, "sizes": ((1, 1), (3, 5))}

    def conditions(self) -> list[dict]:
        return [{"n": n, "m": m, "weights": kind} for n, m in self.sizes for kind in KINDS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, m, kind = condition["n"], condition["m"], condition["weights"]
        generator, num = stream(seed, "plans", n, m), self.instances
        q, k = (torch.randn(num, size, 3, generator=generator, dtype=torch.float64) for size in (n, m))
        a, b = (weights_of(kind, (num, size), generator) for size in (n, m))
        scores = q @ k.mT
        offsets = [3 * torch.randn(num, size, generator=generator, dtype=torch.float64) for size in (n, m)]
        distance = -(q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(dim=-1) / 2
        shifted = scores + offsets[0].unsqueeze(-1) + offsets[1].unsqueeze(-2)
        options = {"tol": 1e-13, "max_iterations": 5000}
        found, *others = (sinkhorn(each, a, b, **options) for each in (scores, distance, shifted))
        newton = torch.stack([newton_plan(scores[i], a[i], b[i]) for i in range(num)])
        gap = (found.plan - newton).abs().amax(dim=(-2, -1))
        offset = torch.stack([(found.plan - each.plan).abs().amax(dim=(-2, -1)) for each in others]).amax(dim=0)
        columns = {"gap": gap, "bound": 1e-12, "offset_gap": offset, "offset_bound": 1e-12}
        return rows({"instance": range(num)}, {**columns, "residual": found.residual})


@dataclass(frozen=True, kw_only=True)
class RowPrograms(Experiment):
    """SK-2.a, SK-2.c: what one half-step solves, and what three and five leave undone.

    Rows: instance; gap: largest distance of a row of softmax from what SLSQP finds for max <p, S> - sum p ln p
    under the row's sum alone; half_gap of half-step 1 from torch's softmax; error_1, error_3, error_5: column errors.
    """

    instances: int = 30
    sizes: tuple[int, ...] = (2, 5, 9)

    tiers: ClassVar = {"ci": {"instances": 5}, "cpu": {}}
    tiny: ClassVar = {"instances": 2, "sizes": (4,)}
    deterministic: ClassVar = {"error_1": 1e-9, "error_3": 1e-9, "error_5": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"m": m} for m in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        m, num = condition["m"], self.instances
        scores = 1.5 * torch.randn(num, 4, m, generator=stream(seed, "rows", m), dtype=torch.float64)
        softmax = scores.softmax(dim=-1)
        columns = {"half_gap": (4 * half_steps(scores, 1).exp() - softmax).abs().amax(dim=(-2, -1))}
        columns |= {f"error_{num}": _column_error(half_steps(scores, num).exp()) for num in (1, 3, 5)}
        searched = np.stack([_row_program(each[0].numpy()) for each in scores])
        columns["gap"] = np.abs(searched - softmax[:, 0].numpy()).max(axis=-1)
        return rows({"instance": range(num)}, columns | {"bound": 1e-5, "half_bound": 16 * EPS})


def _column_error(plan: Tensor) -> Tensor:
    return (plan.sum(dim=-2) - 1 / plan.shape[-1]).abs().sum(dim=-1)


def _row_program(scores: np.ndarray) -> np.ndarray:
    """argmax <p, s> - sum p ln p with sum p = 1, by SLSQP from the uniform law."""

    def value(p: np.ndarray) -> float:
        return p @ np.log(np.maximum(p, 1e-300)) - p @ scores

    def slope(p: np.ndarray) -> np.ndarray:
        return np.log(np.maximum(p, 1e-300)) + 1 - scores

    start = np.full(len(scores), 1 / len(scores))
    whole = {"type": "eq", "fun": lambda p: p.sum() - 1, "jac": np.ones_like}
    options = {"jac": slope, "constraints": [whole], "bounds": [(1e-12, 1)] * len(scores)}
    return optimize.minimize(value, start, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500}, **options).x


@dataclass(frozen=True, kw_only=True)
class Increments(Experiment):
    """SK-4: what every half-step adds to the dual, against the KL of the marginal that it mends.

    Starts after one column step, whose plan has mass 1. Rows: instance, iteration, half (rows or columns); dual before;
    increment, kl, gap, bound; error (L1 error of the marginal before the half-step), least (the smallest so far),
    error_bound = sqrt(2 KL(P* | P0) / T); total = KL(P* | P0), sum_gap (of all increments from it) and sum_bound.
    """

    instances: int = 20
    n: int = 12
    m: int = 9
    iterations: int = 40
    spread: float = 2.0

    tiers: ClassVar = {"ci": {"instances": 5}, "cpu": {}}
    tiny: ClassVar = {"instances": 2, "iterations": 10}

    def conditions(self) -> list[dict]:
        return [{"weights": kind} for kind in KINDS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator, num = stream(seed, "increments"), self.instances
        scores = self.spread * torch.randn(num, self.n, self.m, generator=generator, dtype=torch.float64)
        a, b = (weights_of(condition["weights"], (num, size), generator) for size in (self.n, self.m))
        limit = sinkhorn(scores, a, b, tol=1e-14, max_iterations=5000)
        f, g = a.log(), b.log() - (scores + a.log().unsqueeze(-1)).logsumexp(dim=-2)
        start = (scores + f.unsqueeze(-1) + g.unsqueeze(-2)).exp()
        total, tables = kl(limit.plan.flatten(1), start.flatten(1)), []
        gained, least = torch.zeros_like(total), torch.full_like(total, 2.0)
        for step in range(2 * self.iterations):
            rowwise, plan = step % 2 == 0, (scores + f.unsqueeze(-1) + g.unsqueeze(-2)).exp()
            before = dual_value(scores, f, g, a, b)
            sums, wanted = (plan.sum(dim=-1), a) if rowwise else (plan.sum(dim=-2), b)
            missed, error = kl(wanted, sums), (sums - wanted).abs().sum(dim=-1)
            move = (wanted / sums).log()
            f, g = (f + move, g) if rowwise else (f, g + move)
            increment = dual_value(scores, f, g, a, b) - before
            gained, least = gained + increment, torch.minimum(least, error)
            columns = {"dual": before, "increment": increment, "kl": missed, "gap": (increment - missed).abs()}
            columns |= {"error": error, "least": least, "error_bound": (2 * total / (step + 1)).sqrt(), "total": total}
            half = "rows" if rowwise else "columns"
            tables.append(rows({"instance": range(num)}, columns).assign(half=half, step=step, iteration=step // 2))
        table = pd.concat(tables, ignore_index=True)
        rest = dual_value(scores, limit.f, limit.g, a, b) - dual_value(scores, f, g, a, b)
        gap = dict(enumerate((gained + rest - total).abs().tolist()))
        return table.assign(sum_gap=table["instance"].map(gap), bound=1e-12, sum_bound=1e-9)


@dataclass(frozen=True, kw_only=True)
class Temperature(Experiment):
    """SK-19: cost of the entropic plan against the best assignment, and costs all raised by 1 at small temperatures.

    Costs are squared distances of points in the unit square. Rows: instance, epsilon, cost, assignment, gap, bound
    (epsilon ln n), entropy, iterations, residual; offset_gap (largest |P - P'| when 1 is added to every cost and as
    many iterations are run), offset_bound; underflow: share of the entries of e^(-(C + 1) / epsilon) that are 0.
    """

    instances: int = 10
    sizes: tuple[int, ...] = (4, 16, 64)
    epsilons: tuple[float, ...] = (1.0, 0.1, 0.01, 0.001)
    iterations: int = 20_000

    tiers: ClassVar = {
        "ci": {"instances": 4, "sizes": (4, 16), "iterations": 3000},
        "cpu": {"instances": 5},
        "gpu": {},
    }
    tiny: ClassVar = {"instances": 2, "sizes": (4,), "iterations": 300}

    def conditions(self) -> list[dict]:
        return [{"n": n} for n in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, num = condition["n"], self.instances
        x, y = torch.rand(2, num, n, 2, generator=stream(seed, "temperature", n), dtype=torch.float64)
        cost = torch.cdist(x, y).square()
        best = [each[optimize.linear_sum_assignment(each)].mean() for each in cost.numpy()]
        tables = []
        for epsilon in self.epsilons:
            found = entropic_plan(cost, epsilon, tol=1e-6, max_iterations=self.iterations)
            options = {"tol": 1e-300, "max_iterations": found.iterations}
            raised = entropic_plan(cost + 1, epsilon, **options)
            paid = (cost * found.plan).sum(dim=(-2, -1))
            columns = {"cost": paid, "assignment": best, "gap": paid - torch.tensor(best), "bound": epsilon * np.log(n)}
            columns |= {"entropy": torch.special.entr(found.plan).sum(dim=(-2, -1)), "residual": found.residual}
            # a coupling lies within 2 residual of P in L1 (Altschuler, Weed and Rigollet 2017)
            columns |= {"iterations": found.iterations, "slack": 1e-12 + 2 * cost.max() * found.residual}
            columns["offset_gap"] = (raised.plan - found.plan).abs().amax(dim=(-2, -1))
            # each score is rounded by EPS 3 / epsilon, and every iteration adds as much to a potential
            columns["offset_bound"] = 8 * EPS * 3 / epsilon * (found.iterations + 2)
            columns["underflow"] = ((-(cost + 1) / epsilon).exp() == 0).double().mean(dim=(-2, -1))
            tables.append(rows({"instance": range(num)}, columns).assign(epsilon=epsilon))
        return pd.concat(tables, ignore_index=True)


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
