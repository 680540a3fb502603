"""The derivative of a plan: implicit against unrolled and differences, its cost in memory, and what a detach does.

symbol   name           meaning                                                              axes
S bar    -              derivative in the scores of <W, P>, W i.i.d. N(0, 1)                 (instances, n, m)
J        -              dP / dS, one row and one column for each pair of tokens              (n m, n m)
K        num_half_steps half-steps of the forward pass, rows first                           int
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.points import random_weights
from ..model.backward import implicit_vjp, sinkhorn_plan
from ..model.plan import half_steps, sinkhorn

EXACT = {"tol": 1e-14, "max_iterations": 4000}


def gradient(plan_of: Callable[[Tensor], Tensor], scores: Tensor, W: Tensor) -> Tensor:
    """d <W, P(S)> / dS."""
    leaf = scores.detach().clone().requires_grad_()
    return torch.autograd.grad((W * plan_of(leaf)).sum(), leaf)[0]


def _relative(found: Tensor, truth: Tensor) -> Tensor:
    return ((found - truth).norm(dim=(-2, -1))) / truth.norm(dim=(-2, -1))


@dataclass(frozen=True, kw_only=True)
class Backward(Experiment):
    """SK-13: the implicit derivative against two others, its shape, and what it keeps.

    Rows: instance; unrolled_gap (relative, from autograd through ``unrolled`` half-steps), difference_gap (largest, in
    S, a and b, from central differences along a random direction); asymmetry of J, smallest eigenvalue, rank and
    predicted_rank (n - 1)(m - 1); implicit_10, implicit_100, unrolled_10, unrolled_100: bytes kept for the backward
    pass at 10 and at 100 iterations; bounds.
    """

    instances: int = 20
    sizes: tuple[tuple[int, int], ...] = ((2, 2), (4, 3), (6, 6))
    spread: float = 1.5
    unrolled: int = 801

    tiers: ClassVar = {"ci": {"instances": 5}, "cpu": {}}
    tiny: ClassVar = {"instances": 2, "sizes": ((3, 2),), "unrolled": 301}

    def conditions(self) -> list[dict]:
        return [{"n": n, "m": m, "weights": kind} for n, m in self.sizes for kind in ("uniform", "random")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, m, num = condition["n"], condition["m"], self.instances
        generator = stream(seed, "backward", n, m)
        scores, W, E = torch.randn(3, num, n, m, generator=generator, dtype=torch.float64)
        scores = self.spread * scores
        a, b = (random_weights((num, size), generator, least=0.3) for size in (n, m))
        if condition["weights"] == "uniform":
            a, b = torch.full_like(a, 1 / n), torch.full_like(b, 1 / m)
        implicit = gradient(lambda S: sinkhorn_plan(S, a, b, **EXACT), scores, W)
        unrolled = gradient(lambda S: half_steps(S, self.unrolled, a, b).exp(), scores, W)
        columns = {"unrolled_gap": _relative(implicit, unrolled), "unrolled_bound": 1e-8}
        columns |= {"difference_gap": self._differences(scores, a, b, W, E, generator), "difference_bound": 1e-7}
        plan = sinkhorn(scores, a, b, **EXACT).plan
        J = self._jacobian(plan)
        values = torch.linalg.eigvalsh((J + J.mT) / 2)
        columns |= {"asymmetry": (J - J.mT).abs().amax(dim=(-2, -1)), "smallest": values[..., 0], "bound": 1e-12}
        columns |= {"rank": (values > 1e-10 * values[..., -1:]).sum(dim=-1), "predicted_rank": (n - 1) * (m - 1)}
        for iterations in (10, 100):
            options = {"tol": 1e-300, "max_iterations": iterations}
            columns[f"implicit_{iterations}"] = kept_bytes(lambda S, o=options: sinkhorn_plan(S, a, b, **o), scores)
            columns[f"unrolled_{iterations}"] = kept_bytes(
                lambda S, k=2 * iterations + 1: half_steps(S, k, a, b).exp(), scores
            )
        return rows({"instance": range(num)}, columns)

    def _differences(self, scores, a, b, W, E, generator) -> Tensor:
        """Gap of the implicit derivative from central differences: along E in S, and along random zero-sum moves."""
        step, plan = 1e-5, sinkhorn(scores, a, b, **EXACT).plan
        bars = implicit_vjp(plan, W)
        moves = [E, *(torch.randn(each.shape, generator=generator, dtype=torch.float64) for each in (a, b))]
        moves[1:] = [
            each * (move - (each * move).sum(-1, keepdim=True)) for each, move in zip((a, b), moves[1:], strict=True)
        ]
        gaps = []
        for place, (bar, move) in enumerate(zip(bars, moves, strict=True)):
            ends = []
            for sign in (1, -1):
                at = [scores, a, b]
                at[place] = at[place] + sign * step * move
                ends.append((W * sinkhorn(*at, **EXACT).plan).sum(dim=(-2, -1)))
            slope = (ends[0] - ends[1]) / (2 * step)
            gaps.append((slope - (bar * move).flatten(1).sum(dim=-1)).abs())
        return torch.stack(gaps).amax(dim=0)

    @staticmethod
    def _jacobian(plan: Tensor) -> Tensor:
        """(instances, n m, n m), one derivative of P_ij after the other, all in one batch."""
        n, m = plan.shape[-2:]
        basis = torch.eye(n * m, dtype=plan.dtype).view(n * m, 1, n, m)
        bars, _, _ = implicit_vjp(plan.expand(n * m, -1, -1, -1), basis.expand(-1, len(plan), -1, -1))
        return bars.flatten(2).transpose(0, 1)


def kept_bytes(plan_of: Callable[[Tensor], Tensor], scores: Tensor) -> int:
    """What autograd keeps for the backward pass of a plan, each tensor's storage once.

    >>> kept_bytes(torch.exp, torch.zeros(2, 2))
    16
    """
    kept = {}

    def note(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        plan_of(scores.detach().clone().requires_grad_())
    return sum(storage.nbytes() for storage in kept.values())


@dataclass(frozen=True, kw_only=True)
class Truncated(Experiment):
    """SK-14: gradients of a forward pass of K half-steps, as autograd has it and with the column potential detached.

    ``own``: against the gradient of the same forward pass; ``limit``: against that of the converged plan. Uniform
    weights, n = m. Rows: method (unrolled, detached, implicit), instance, num_half_steps (0 for implicit), spread,
    own_error, own_cosine, limit_error, limit_cosine.
    """

    instances: int = 100
    n: int = 8
    halves: tuple[int, ...] = (1, 3, 5, 7, 11, 21, 41, 81)
    spreads: tuple[float, ...] = (1.0, 2.0)

    tiers: ClassVar = {"ci": {"instances": 12}, "cpu": {}}
    tiny: ClassVar = {"instances": 4, "halves": (1, 3, 5, 81)}

    def conditions(self) -> list[dict]:
        return [{"spread": spread} for spread in self.spreads]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator, num = stream(seed, "truncated"), self.instances
        noise, W = torch.randn(2, num, self.n, self.n, generator=generator, dtype=torch.float64)
        scores, tables = condition["spread"] * noise, []
        limit = gradient(lambda S: sinkhorn_plan(S, **EXACT), scores, W)
        for half in self.halves:
            own = gradient(lambda S, K=half: half_steps(S, K).exp(), scores, W)
            cut = gradient(lambda S, K=half: half_steps(S, K, detach_columns=True).exp(), scores, W)
            for method, found in (("unrolled", own), ("detached", cut)):
                tables.append(self._rows(found, own, limit).assign(method=method, num_half_steps=half))
        tables.append(self._rows(limit, limit, limit).assign(method="implicit", num_half_steps=0))
        return pd.concat(tables, ignore_index=True)

    def _rows(self, found: Tensor, own: Tensor, limit: Tensor) -> pd.DataFrame:
        columns = {}
        for name, truth in (("own", own), ("limit", limit)):
            columns[f"{name}_error"] = _relative(found, truth)
            columns[f"{name}_cosine"] = torch.cosine_similarity(found.flatten(1), truth.flatten(1), dim=-1)
        return rows({"instance": range(self.instances)}, columns)
