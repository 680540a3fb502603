"""The target of one drafted token: closed forms against optimisers, and what the budget of the rule is worth.

Each experiment is a frozen table of sizes whose defaults are the largest run, and one batched function per condition.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import optimize

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.pairs import random_pairs
from ..model.divergences import binary_divergence, gamma_constrained
from ..model.rules import Typical
from ..model.theory import budget_ratio, entropy, gamma_cactus, gamma_cross_entropy, gamma_exact_kl, sharp_budget

#: f and f' of each divergence, in numpy: nothing of the package's own divergences is used by the optimiser.
GENERATORS = {
    "kl": (lambda t: t * np.log(t), lambda t: np.log(t) + 1),
    "chi2": (lambda t: (t - 1) ** 2, lambda t: 2 * (t - 1)),
    "hellinger": (lambda t: (np.sqrt(t) - 1) ** 2 / 2, lambda t: (1 - t**-0.5) / 2),
    "js": (
        lambda t: (t * np.log(2 * t / (1 + t)) + np.log(2 / (1 + t))) / 2,
        lambda t: np.log(2 * t / (1 + t)) / 2,
    ),
}


@dataclass(frozen=True, kw_only=True)
class ClosedForms(Experiment):
    """CAC-3: the closed form against a general optimiser (SLSQP) over the simplex; one random (q, n) per instance.

    Rows: divergence, instance, q_n, gamma, searched (the optimiser's h_n), gap (how much more it found, or less),
    spent_gap (|D_f of the closed form - delta|, 0 where gamma = 1).
    """

    instances: int = 100
    V: int = 6
    tolerance: float = 2e-5

    tiers: ClassVar = {"ci": {"instances": 12}, "cpu": {}}
    tiny: ClassVar = {"instances": 2, "V": 3}
    deterministic: ClassVar = {"q_n": 1e-12, "gamma": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"divergence": name} for name in GENERATORS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        name = condition["divergence"]
        generator = stream(seed, "closed forms")  # the same problems for every divergence
        _, q = random_pairs(self.instances, self.V, "noised", generator)
        q = (q + 0.01) / (1 + 0.01 * self.V)  # away from the boundary, where the optimiser's slopes are infinite
        budget = 0.02 + 0.4 * torch.rand(self.instances, generator=generator, dtype=torch.float64)
        n = torch.randint(self.V, (self.instances,), generator=generator)
        q_n = q.gather(-1, n.unsqueeze(-1)).squeeze(dim=-1)
        gamma = gamma_constrained(q_n, budget, name)
        searched = [
            _searched(q[i].numpy(), int(n[i]), budget[i].item(), name) for i in range(self.instances)
        ]  # SLSQP solves one problem at a time
        spent = binary_divergence(gamma, q_n, name)
        columns = {"q_n": q_n, "budget": budget, "gamma": gamma, "spent_gap": (spent - budget).abs() * (gamma < 1)}
        table = rows({"instance": range(self.instances)}, {**columns, "searched": searched})
        return table.assign(gap=(table["searched"] - table["gamma"]).abs(), bound=self.tolerance)


def _searched(q: np.ndarray, n: int, budget: float, name: str) -> float:
    """max h_n over laws h with D_f(h || q) <= budget by SLSQP, the best of three starts; f and f' written out anew.

    The search runs over h = x^2 / sum x^2, where no slope is infinite at the boundary.
    """
    f, slope = GENERATORS[name]
    point, best = np.eye(len(q))[n], []

    def law(x: np.ndarray) -> np.ndarray:
        return np.maximum(x * x / (x @ x), 1e-300)

    def pulled(x: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        return 2 * x / (x @ x) * (gradient - law(x) @ gradient)

    within = {"type": "ineq", "fun": lambda x: budget - q @ f(law(x) / q)}
    within["jac"] = lambda x: -pulled(x, slope(law(x) / q))
    for step in (0.0, 0.2, 0.5):
        options = {"constraints": [within], "options": {"ftol": 1e-14, "maxiter": 1000}}
        start = np.sqrt((1 - step) * q + step * point)
        x = optimize.minimize(lambda x: -law(x)[n], start, jac=lambda x: -pulled(x, point), method="SLSQP", **options).x
        best.append(law(x))
    kept = [h[n] for h in best if q @ f(h / q) < budget + 1e-7]
    if not kept:
        raise RuntimeError(f"none of {len(best)} searches ended within the budget of {budget:g}")
    return max(kept)


@dataclass(frozen=True, kw_only=True)
class SecondOrder(Experiment):
    """CAC-4: the cost kl(gamma | q_n) of the second-order rule against its budget, and gamma against the exact root.

    Rows: q_n, delta, gamma; cost_gap = cost - delta, predicted_gap; root_gap = gamma - exact root, predicted_root.
    """

    points: int = 13
    q_n: tuple[float, ...] = (0.02, 0.1, 0.25, 0.4, 0.7, 0.9)

    deterministic: ClassVar = {"gamma": 1e-12, "cost_gap": 1e-6}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        delta = torch.logspace(-7, -4, self.points, dtype=torch.float64)
        q_n = torch.tensor(self.q_n, dtype=torch.float64).unsqueeze(-1)
        gamma, lean = gamma_cactus(q_n, delta), 1 - 2 * q_n
        columns = {
            "gamma": gamma,
            "cost_gap": binary_divergence(gamma, q_n) - delta,
            "predicted_gap": -lean * (2 * delta) ** 1.5 / (6 * (q_n * (1 - q_n)).sqrt()),
            "root_gap": gamma - gamma_exact_kl(q_n, delta),
            "predicted_root": -lean * delta / 3,
        }
        return rows({"q_n": self.q_n, "delta": delta}, columns)


@dataclass(frozen=True, kw_only=True)
class Budget(Experiment):
    """CAC-4, CAC-5: KL(h^(n) || q) over its budget delta on a grid, and at the worst q_n; rows: q_n, delta, gamma, kl,
    ratio (kl / delta), over (kl - delta), excess (kl - ln(1 + 2 delta)), bound (16 roundings of numbers near one: a KL
    is a sum of two products of such)."""

    points: int = 400
    budgets: int = 41

    tiny: ClassVar = {"points": 40, "budgets": 5}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        delta = torch.logspace(-3, np.log10(2.0), self.budgets, dtype=torch.float64)
        inner = (torch.arange(self.points, dtype=torch.float64) + 0.5) / self.points
        q_n = torch.cat([inner.expand(self.budgets, -1), 1 / (1 + 2 * delta.unsqueeze(-1))], dim=-1)
        delta = delta.unsqueeze(-1).expand_as(q_n).flatten()
        q_n = q_n.flatten()
        gamma = gamma_cactus(q_n, delta)
        kl = binary_divergence(gamma, q_n)
        columns = {"gamma": gamma, "kl": kl, "ratio": budget_ratio(q_n, delta), "over": kl - delta}
        columns |= {"excess": kl - sharp_budget(delta), "bound": 16 * np.finfo(float).eps}
        return rows({("q_n", "delta"): (q_n, delta)}, columns)


@dataclass(frozen=True, kw_only=True)
class TypicalProgram(Experiment):
    """CAC-10: max h_n with cross-entropy at most delta as a linear program (HiGHS), against its closed form.

    epsilon and alpha are log-uniform in [e^-3, 1], and the budget is max(-ln epsilon, H(q) - ln alpha). Rows: instance,
    q_n, epsilon, alpha, budget, closed, program, gap, kept (whether typical acceptance with these knobs keeps n).
    """

    instances: int = 400
    V: int = 8

    tiers: ClassVar = {"ci": {"instances": 60}, "cpu": {}}
    tiny: ClassVar = {"instances": 12, "V": 4}
    deterministic: ClassVar = {"q_n": 1e-12, "budget": 1e-12, "closed": 1e-10}

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "typical")
        _, q = random_pairs(self.instances, self.V, "noised", generator)
        q = (q + 1e-3) / (1 + 1e-3 * self.V)
        n = torch.randint(self.V, (self.instances,), generator=generator)
        q_n, q_max = q.gather(-1, n.unsqueeze(-1)).squeeze(dim=-1), q.amax(dim=-1)
        knobs = torch.exp(-3 * torch.rand(2, self.instances, generator=generator, dtype=torch.float64))
        budget = torch.maximum(-knobs[0].log(), entropy(q) - knobs[1].log())
        closed = gamma_cross_entropy(q_n, q_max, budget)
        program = [_program(q[i].numpy(), int(n[i]), budget[i].item()) for i in range(self.instances)]
        kept = [_typical_keeps(*case) for case in zip(knobs.T.tolist(), q, q_n, strict=True)]
        columns = {"q_n": q_n, "epsilon": knobs[0], "alpha": knobs[1], "budget": budget, "closed": closed}
        columns = {name: column.numpy() for name, column in columns.items()}
        table = pd.DataFrame(columns).assign(instance=range(self.instances), program=program, kept=kept)
        return table.assign(gap=(table["closed"] - table["program"]).abs())


def _typical_keeps(knobs: list[float], q: torch.Tensor, q_n: torch.Tensor) -> bool:
    """What the rule itself says of one draft; it does not look at the draft's law."""
    rule = Typical(*knobs)
    return bool(rule.gamma(q_n, q_n, *rule.summaries(q, q)))


def _program(q: np.ndarray, n: int, budget: float) -> float:
    solution = optimize.linprog(
        -np.eye(len(q))[n], A_ub=[-np.log(q)], b_ub=[budget], A_eq=[np.ones_like(q)], b_eq=[1.0], bounds=(0, 1)
    )
    if not solution.success:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    return -solution.fun
