"""The universal approximator at work: relations whose answer is known, rebuilt from blocks.

symbol   name    meaning                                                              axes
m        m       blocks per side; m + 1 hats                                          scalar
tau      tau     what keeps the kernel continuous where a block is empty              scalar
t        floor   share of the product coupling                                        scalar
W_1      w1      between the target and the plan of the block kernel                  (instances,)
"""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.points import Problem, coupling_problems
from ..model.blocks import block_bound, block_kernel, block_plan
from ..model.couplings import comonotone, coupling_w1, crossed, total_variation
from ..model.plan import sinkhorn

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

    Rows: target, m, instance, tau; w1 (of the smallest tau only, else NaN), bound; alone: the same where the blocks are
    those of the product coupling (of the first instance only); tv (from the block plan with its floor), tv_bound;
    floor, residual.
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
            columns = {"w1": torch.nan, "alone": torch.nan, "residual": found.residual}
            columns["bound"] = block_bound(m, tau, self.floor)
            if tau == min(self.taus):
                columns["w1"] = [coupling_w1(*each) for each in zip(found.plan, target, x, y, strict=True)]
                columns["alone"] = [
                    self._alone(x[0], y[0], a[0], b[0], target[0], m),
                    *(self.instances - 1) * [torch.nan],
                ]
            columns |= {"tv": total_variation(found.plan, blocks), "tv_bound": ((m + 1) * tau) ** 0.5}
            index = {"instance": range(self.instances)}
            tables.append(rows(index, columns).assign(tau=tau, floor=self.floor))
        return pd.concat(tables, ignore_index=True)

    def _alone(self, x: Tensor, y: Tensor, a: Tensor, b: Tensor, target: Tensor, m: int) -> float:
        scores = block_kernel(x, y, a, b, a.unsqueeze(-1) * b, m, min(self.taus), self.floor)
        return coupling_w1(sinkhorn(scores, a, b, tol=1e-8, max_iterations=self.iterations).plan, target, x, y)


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
