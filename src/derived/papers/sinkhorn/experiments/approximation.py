"""The universal approximator at work: relations whose answer is known, rebuilt from blocks.

symbol   name    meaning                                                              axes
m        m       blocks per side; m + 1 hats                                          scalar
tau      tau     what keeps the kernel continuous where a block is empty              scalar
t        floor   share of the product coupling                                        scalar
W_1      w1      between the target and the plan of the block kernel                  (instances,)
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

from ..data.points import Problem, coupling_problems, random_weights
from ..model.blocks import block_bound, block_kernel, block_plan, conditional_bound, conditional_kernel
from ..model.couplings import comonotone, coupling_w1, crossed, rows_w1, total_variation
from ..model.plan import half_steps, sinkhorn

RELATIONS = ("comonotone", "crossed", "hidden")


def problems(relation: str, num: int, n: int, seed: int) -> Problem:
    """Random texts on the line; in the first of them, one token of each text has weight 1e-8."""
    drawn = coupling_problems(relation, num, n, stream(seed, "blocks", relation))
    if relation == "hidden":
        return drawn
    weights = [drawn.a.clone(), drawn.b.clone()]
    for each in weights:
        each[0, 0] = 1e-8
        each[0] /= each[0].sum()
    rule = {"comonotone": comonotone, "crossed": crossed}[relation]
    return Problem(drawn.x, drawn.y, *weights, rule(drawn.x, drawn.y, *weights))


@dataclass(frozen=True, kw_only=True)
class Blocks(Experiment):
    """SK-7: W_1 of the block kernel's Sinkhorn plan from its target, by linear programs, against the bound.

    Rows: target, m, instance, tau; w1 (of the smallest tau only, else NaN), bound; tv (from the block plan with its
    floor), tv_bound; floor, residual.
    """

    instances: int = 10
    n: int = 16
    m: tuple[int, ...] = (2, 4, 8, 16)
    taus: tuple[float, ...] = (1e-6, 1e-3, 1e-1)
    floor: float = 1e-3
    iterations: int = 3000

    tiers: ClassVar = {"ci": {"instances": 2, "n": 10}, "cpu": {"instances": 6}}
    tiny: ClassVar = {"instances": 2, "n": 7, "iterations": 1500}

    def conditions(self) -> list[dict]:
        return [{"target": target, "m": m} for target in RELATIONS for m in self.m]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        m, tables = condition["m"], []
        x, y, a, b, target = problems(condition["target"], self.instances, self.n, seed)
        blocks = block_plan(x, y, a, b, target, m, self.floor)
        for tau in self.taus:
            scores = block_kernel(x, y, a, b, target, m, tau, self.floor)
            found = sinkhorn(scores, a, b, tol=1e-8, max_iterations=self.iterations)
            each = zip(found.plan, target, x, y, strict=True)
            w1 = [coupling_w1(*one) for one in each] if tau == min(self.taus) else torch.nan
            columns = {"w1": w1, "bound": block_bound(m, tau, self.floor), "residual": found.residual}
            columns |= {"tv": total_variation(found.plan, blocks), "tv_bound": ((m + 1) * tau) ** 0.5}
            index = {"instance": range(self.instances)}
            tables.append(rows(index, columns).assign(tau=tau, floor=self.floor))
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class BlockPlans(Experiment):
    """Heat maps: the crossed relation of two texts of evenly spaced tokens, and what its blocks make of it.

    Rows: m (0: the relation itself), i, j, x, y, P, w1.
    """

    n: int = 20
    m: tuple[int, ...] = (0, 2, 4, 8, 16)

    tiny: ClassVar = {"n": 6, "m": (0, 2, 4)}

    def conditions(self) -> list[dict]:
        return [{"m": m} for m in self.m]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        m, n = condition["m"], self.n
        x = (torch.arange(n, dtype=torch.float64) + 0.5) / n
        a = torch.full_like(x, 1 / n)
        target = crossed(x, x, a, a)
        plan = sinkhorn(block_kernel(x, x, a, a, target, m), tol=1e-8, max_iterations=3000).plan if m else target
        w1 = coupling_w1(plan, target, x, x) if m else 0.0
        return rows({("i", "x"): (range(n), x), ("j", "y"): (range(n), x)}, {"P": plan}).assign(w1=w1)


@dataclass(frozen=True, kw_only=True)
class ConditionalBlocks(Experiment):
    """SK-9: the conditional version, by softmax over the tokens of the second text, row by row.

    The target is the crossed relation given x. Rows: m, instance, row; w1, bound, lost (ell). Then a law on ``atoms``
    points of (0.3, 0.7), where the text has no token: outside: W_1 from it of softmax attention whose scores fall with
    the distance from the middle; least: the least W_1 of all laws on the tokens, by a linear program, and
    predicted: the mean distance of the atoms from the text; outside_bound for the gap of the last two.
    """

    instances: int = 20
    n: int = 16
    m: tuple[int, ...] = (2, 4, 8, 16)
    tau: float = 1e-6
    floor: float = 1e-3
    atoms: int = 3

    tiers: ClassVar = {"ci": {"instances": 3}, "cpu": {}}
    tiny: ClassVar = {"instances": 2, "n": 7}

    def conditions(self) -> list[dict]:
        return [{"m": m} for m in self.m]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        m, num, generator = condition["m"], self.instances, stream(seed, "conditional")
        _, y, _, b, target = coupling_problems("crossed", num, self.n, generator)
        laws = target / target.sum(dim=-1, keepdim=True)
        scores, lost = conditional_kernel(y, b, laws, m, self.tau, self.floor)
        found = self._attention(scores, b)
        apart = (0.3 * torch.rand(num, self.n, generator=generator, dtype=torch.float64)) + 0.7 * (y > 0.5)
        weights = random_weights((num, self.n), generator)
        drawn = torch.randn(num, self.n, self.n, generator=generator, dtype=torch.float64)
        outside = drawn - 20 * m * (apart - 0.5).abs().unsqueeze(-2)  # ever sharper towards the nearest token
        places = 0.3 + 0.4 * torch.rand(num, self.atoms, generator=generator, dtype=torch.float64)
        law = random_weights((num, self.atoms), generator)
        distance = (places.unsqueeze(-1) - apart.unsqueeze(-2)).abs()
        least = [_least_w1(*each) for each in zip(law, distance, strict=True)]
        columns = {"w1": _each_row(found, laws, y), "bound": conditional_bound(m, self.floor, lost), "lost": lost}
        columns |= {"outside": self._from_law(self._attention(outside, weights), apart, law, places)}
        columns |= {
            "least": torch.tensor(least).unsqueeze(-1),
            "outside_bound": 1e-7,
        }  # what HiGHS lets a constraint miss
        columns["predicted"] = (law * distance.amin(dim=-1)).sum(dim=-1, keepdim=True)
        return rows({"instance": range(num), "row": range(self.n)}, columns)

    def _attention(self, scores: Tensor, b: Tensor) -> Tensor:
        """Softmax attention over tokens of weight b: rows of sum 1."""
        return half_steps(scores, 1, None, b).exp() * scores.shape[-2]

    @staticmethod
    def _from_law(found: Tensor, y: Tensor, law: Tensor, places: Tensor) -> Tensor:
        """W_1 of each row of laws on the tokens y from one law on other places, (num, n)."""
        both = torch.cat([y, places], dim=-1)
        there = torch.cat([found, torch.zeros(*found.shape[:2], law.shape[-1]).to(found)], dim=-1)
        target = torch.cat([torch.zeros_like(y), law], dim=-1).unsqueeze(-2).expand_as(there)
        return _each_row(there, target, both)


def _least_w1(law: Tensor, distance: Tensor) -> float:
    """min <T, distance> over T >= 0 with the row sums ``law`` and free columns, by a linear program."""
    atoms, n = distance.shape
    sums = np.kron(np.eye(atoms), np.ones((1, n)))
    return float(optimize.linprog(distance.numpy().ravel(), A_eq=sums, b_eq=law.numpy(), bounds=(0, None)).fun)


def _each_row(P: Tensor, Q: Tensor, y: Tensor) -> Tensor:
    """W_1 of each row of two tables of laws on the line, (num, n)."""
    places = y.unsqueeze(-2).expand(P.shape).flatten(0, 1)
    return rows_w1(P.flatten(0, 1).unsqueeze(-2), Q.flatten(0, 1).unsqueeze(-2), places).view(P.shape[:2])
