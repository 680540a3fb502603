"""Retrieval from associative memories: the softmax step, flipped bits, published bounds, noise (OLS-14 to 17).

K, d   number and dimension of the patterns
beta   inverse temperature of softmax
noise  energy of what a read-out adds to the pattern, over that of the pattern
"""

import math
from dataclasses import dataclass

import pandas as pd
import torch
from torch.linalg import matrix_norm as norm

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model import capacity as closed
from ..model import hopfield


@dataclass(frozen=True, kw_only=True)
class SoftmaxStep(Experiment):
    """OLS-14: softmax attention against xi - grad E by autodiff, and the excess E(xi+) - E(xi) + |step|^2 / 2.

    ``bound`` on the gap of one evaluation: an error of d eps M^2 in a score moves the weights by 2 beta d eps M^2 in
    total variation, the average of K patterns adds (K + 8) eps, and no pattern is longer than M; two evaluations are
    compared. ``energy_bound``: the energy is a sum of terms of size M^2 and (ln K) / beta, each off by (K + d + 8) eps.
    """

    sizes: tuple[tuple[int, int], ...] = ((1, 1), (2, 3), (16, 8), (64, 32))
    betas: tuple[float, ...] = (0.1, 1.0, 8.0)
    instances: int = 64

    def conditions(self) -> list[dict]:
        starts = ("random", "near a fixed point")
        return [{"K": K, "d": d, "beta": b, "start": s} for K, d in self.sizes for b in self.betas for s in starts]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        K, d, beta = (condition[name] for name in ("K", "d", "beta"))
        generator = stream(seed, "softmax step", K, d)
        patterns = torch.randn(self.instances, K, d, generator=generator, dtype=dtype).to(device)
        state = torch.randn(self.instances, 1, d, generator=generator, dtype=dtype).to(device)
        if condition["start"] != "random":
            state = hopfield.retrieve(state, patterns, "lse", beta=beta, steps=30).state
        state.requires_grad_()
        before = hopfield.energy(state, patterns, "lse", beta=beta)
        (gradient,) = torch.autograd.grad(before.sum(), state)
        attention = torch.nn.functional.scaled_dot_product_attention(state, patterns, patterns, scale=beta)
        after = hopfield.energy(attention.detach(), patterns, "lse", beta=beta)
        M = torch.maximum(patterns.norm(dim=-1).amax(dim=-1), state.detach().norm(dim=-1).squeeze(-1))
        eps = torch.finfo(dtype).eps
        step = attention - state
        columns = {
            "gap": norm(attention - (state - gradient)),
            "bound": 2 * eps * M * (K + 8 + 2 * beta * d * M**2),
            "excess": (after - before + step.square().sum(dim=-1) / 2).squeeze(-1),
            "energy_bound": 2 * eps * (K + d + 8) * (2 * M**2 + (math.log(K) + 1) / beta),
        }
        return rows({"instance": range(self.instances)}, columns)


@dataclass(frozen=True, kw_only=True)
class OneStepRetrieval(Experiment):
    """OLS-17: wrong bits after one step from 10 % flipped bits at K = e^{0.9 alpha N}, exponential and quadratic F.

    All K patterns of a memory are tried; ``all_repaired`` says whether no bit of any of them is wrong.
    """

    N: int = 30
    rho: float = 0.1
    fraction: float = 0.9
    replicates: int = 64

    def conditions(self) -> list[dict]:
        return [{"interaction": name} for name in ("exp", "quadratic")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        interaction = 2 if condition["interaction"] == "quadratic" else "exp"
        K = round(math.exp(self.fraction * float(closed.demircigil_exponent(self.rho)) * self.N))
        generator = stream(seed, "one-step retrieval", device=device)  # both interactions see the same patterns
        errors = hopfield.bit_error_rate(
            self.N, K, interaction, rho=self.rho, num_tests=K, trials=self.replicates, generator=generator, dtype=dtype
        )
        return rows({"replicate": range(self.replicates)}, {"K": K, "bit_error": errors, "all_repaired": errors == 0})


@dataclass(frozen=True, kw_only=True)
class RetrievalBound(Experiment):
    """OLS-16: error of one softmax step over the bound of Theorem 5, for random patterns on a sphere."""

    d: int = 32
    num_patterns: int = 64
    betas: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    radius: float = 0.05  # of the probe around its pattern, in units of the pattern's length
    instances: int = 32

    def conditions(self) -> list[dict]:
        return [{"beta": beta} for beta in self.betas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        generator = stream(seed, "retrieval bound")
        shape = (self.instances, self.num_patterns, self.d)
        direction, step = torch.randn(2, *shape, generator=generator, dtype=dtype).to(device)
        patterns = direction / direction.norm(dim=-1, keepdim=True) * math.sqrt(self.d)
        probes = patterns + self.radius * math.sqrt(self.d) * step / step.norm(dim=-1, keepdim=True)
        moved = hopfield.retrieve(probes, patterns, "lse", beta=condition["beta"]).state
        error = (moved - patterns).norm(dim=-1)
        bound = closed.retrieval_bound(probes, patterns, condition["beta"])
        index = {"instance": range(self.instances), "pattern": range(self.num_patterns)}
        return rows(index, {"error": error, "bound": bound})


@dataclass(frozen=True, kw_only=True)
class PublishedConstants(Experiment):
    """OLS-16: the two published values of Ramsauer's constant c, recomputed."""

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        published = [(1.0, 3.0, 20, 0.001, 3.1546), (1.0, 1.0, 75, 0.001, 1.3718)]
        rows = [
            {"beta": beta, "K": K, "d": d, "p": p, "published": value, "c": closed.ramsauer_capacity(beta, K, d, p).c}
            for beta, K, d, p, value in published
        ]
        return pd.DataFrame(rows)


@dataclass(frozen=True, kw_only=True)
class ReadOutNoise(Experiment):
    """OLS-15, figure of retrieval: noise energy of linear read-outs of one of N unit patterns against theory.

    ``hebb``: the other patterns' part of X^T X x_1. ``projection``: the part of unit noise that P keeps.
    """

    d: int = 128
    nums: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 96)
    replicates: int = 256

    def conditions(self) -> list[dict]:
        return [{"memory": memory, "num_patterns": num} for memory in ("hebb", "projection") for num in self.nums]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        num, kind = condition["num_patterns"], condition["memory"]
        generator = stream(seed, "read-out noise", num)
        signs = hopfield.random_signs(self.replicates, num, self.d, generator=generator, dtype=dtype)
        patterns = signs / math.sqrt(self.d)
        if kind == "hebb":
            first = patterns[:, :1]
            noise = hopfield.linear_read_out(first, patterns, kind) - first
            theory = closed.hebb_noise(num, self.d)
            naive = (num - 1) / self.d  # without the coherent part: the negative control
        else:
            white = torch.randn(self.replicates, 1, self.d, generator=generator, dtype=dtype) / math.sqrt(self.d)
            noise = hopfield.linear_read_out(white, patterns, kind)
            theory = naive = closed.projection_noise(num, self.d)
        energy = noise.square().sum(dim=(-2, -1))
        return rows({"replicate": range(self.replicates)}, {"noise": energy, "theory": theory, "naive": naive})
