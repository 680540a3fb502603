"""The experiments on associative memory: energy, retrieval, and capacities from linear to exponential (R12)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from . import capacity as closed
from . import hopfield


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        starts = ("random", "near a fixed point")
        return [{"K": K, "d": d, "beta": b, "start": s} for K, d in self.sizes for b in self.betas for s in starts]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        K, d, beta = (condition[name] for name in ("K", "d", "beta"))
        draw = stream(seed, "softmax step", K, d)
        patterns = torch.randn(self.instances, K, d, generator=draw, dtype=dtype).to(device)
        state = torch.randn(self.instances, 1, d, generator=draw, dtype=dtype).to(device)
        if condition["start"] != "random":
            state = hopfield.retrieve(state, patterns, "lse", beta=beta, steps=30).state
        state.requires_grad_()
        before = hopfield.energy(state, patterns, "lse", beta=beta)
        (gradient,) = torch.autograd.grad(before.sum(), state)
        attention = torch.nn.functional.scaled_dot_product_attention(state, patterns, patterns, scale=beta)
        after = hopfield.energy(attention.detach(), patterns, "lse", beta=beta)
        M = torch.maximum(patterns.norm(dim=-1).amax(dim=-1), state.detach().norm(dim=-1).squeeze(-1))
        eps = torch.finfo(dtype).eps
        return pd.DataFrame(
            {
                "instance": range(self.instances),
                "gap": (attention - (state - gradient)).detach().norm(dim=(-2, -1)).cpu(),
                "bound": (2 * eps * M * (K + 8 + 2 * beta * d * M**2)).cpu(),
                "excess": (after - before + (attention - state).square().sum(dim=-1) / 2).detach().squeeze(-1).cpu(),
                "energy_bound": (2 * eps * (K + d + 8) * (2 * M**2 + (math.log(K) + 1) / beta)).cpu(),
            }
        )


@dataclass(frozen=True, kw_only=True)
class PolynomialCapacity(Experiment):
    """OLS-15: patterns at a one-step bit error of 1 %, F = u^n; the published claim is a power N^{n-1}."""

    sizes_2: tuple[int, ...] = (32, 64, 128, 256)
    sizes_3: tuple[int, ...] = (32, 64, 128, 256)
    sizes_4: tuple[int, ...] = (16, 32, 64)
    error: float = 0.01
    replicates: int = 8
    trials: int = 16

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"sizes_2": (32, 64, 128), "sizes_3": (24, 40, 64), "sizes_4": (20, 32, 48)},
        "cpu": {"sizes_2": (32, 64, 128, 256), "sizes_3": (32, 64, 128), "sizes_4": (16, 32, 64), "trials": 8},
        "gpu": {},
    }

    def conditions(self) -> list[dict[str, Any]]:
        sizes = {2: self.sizes_2, 3: self.sizes_3, 4: self.sizes_4}
        return [{"degree": degree, "N": N} for degree, row in sizes.items() for N in row]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        degree, N = condition["degree"], condition["N"]
        draw = stream(seed, "polynomial capacity", degree, N, device=device)
        sizes = {"replicates": self.replicates, "trials": self.trials}
        found = hopfield.capacity(N, degree, self.error, generator=draw, dtype=dtype, **sizes)
        theory = closed.capacity_theory(N, degree, self.error)
        return pd.DataFrame({"replicate": range(self.replicates), "K": found.K.cpu(), "theory": theory})


@dataclass(frozen=True, kw_only=True)
class ExponentialCapacity(Experiment):
    """OLS-15: F = e^u. ``typical``: K at a bit error of 1 %; ``all``: K at which all patterns stay with chance 1/2."""

    typical_sizes: tuple[int, ...] = (10, 12, 14, 16, 18, 20, 22, 24)
    all_sizes: tuple[int, ...] = (12, 16, 20, 24)
    replicates: int = 8
    trials: int = 256

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"typical_sizes": (10, 12, 14), "all_sizes": (8, 10, 12, 14)},
        "cpu": {"typical_sizes": (10, 12, 14, 16), "all_sizes": (10, 12, 14, 16, 18)},
        "gpu": {},
    }

    def conditions(self) -> list[dict[str, Any]]:
        sizes = {"typical": self.typical_sizes, "all": self.all_sizes}
        return [{"notion": notion, "N": N} for notion, row in sizes.items() for N in row]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, notion = condition["N"], condition["notion"]
        draw = stream(seed, "exponential capacity", notion, N, device=device)
        if notion == "typical":
            trials = max(1, min(64, round(2**18 / 2**N)))  # about as many tests at every N
            sizes = {"replicates": self.replicates, "trials": trials, "num_tests": 512}
            K = hopfield.capacity(N, "exp", 0.01, generator=draw, **sizes).K
            return pd.DataFrame({"replicate": range(self.replicates), "K": K.cpu(), "theory": 0.02 * 2.0**N})
        K = self._half_odds(N, draw)
        return pd.DataFrame({"replicate": range(self.replicates), "K": K, "theory": closed.all_fixed_capacity(N)})

    def _half_odds(self, N: int, draw: torch.Generator) -> np.ndarray:
        """Per replicate the K at which half of its draws keep all patterns, interpolated in ln K on a grid of ratio
        sqrt(2); NaN where the share does not cross 1/2 between K = 2 and 2^N."""
        sizes, shares = [], []
        while not shares or (shares[-1].max() >= 0.5 and sizes[-1] < 2**N):
            sizes.append(round(2 ** (1 + len(sizes) / 2)))
            fixed = hopfield.all_fixed(N, sizes[-1], "exp", trials=self.replicates * self.trials, generator=draw)
            shares.append(fixed.reshape(self.replicates, self.trials).double().mean(dim=-1).cpu().numpy())
        found = np.full(self.replicates, np.nan)
        for replicate, course in enumerate(np.array(shares).T):
            after = int(np.argmax(course < 0.5))  # the first size below even odds; 0: it never crosses
            if after:
                low, high = course[after - 1], course[after]
                step = (low - 0.5) / (low - high)
                found[replicate] = sizes[after - 1] * (sizes[after] / sizes[after - 1]) ** step
        return found


@dataclass(frozen=True, kw_only=True)
class OneStepRetrieval(Experiment):
    """OLS-17: bit error after one step from 10 % flipped bits at K = e^{0.9 alpha N}, exponential and quadratic F."""

    N: int = 30
    rho: float = 0.1
    fraction: float = 0.9
    replicates: int = 64

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"interaction": name} for name in ("exp", "quadratic")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        interaction = 2 if condition["interaction"] == "quadratic" else "exp"
        K = round(math.exp(self.fraction * float(closed.demircigil_exponent(self.rho)) * self.N))
        draw = stream(seed, "one-step retrieval", device=device)  # both interactions see the same patterns
        errors = hopfield.bit_error_rate(
            self.N, K, interaction, rho=self.rho, trials=self.replicates, generator=draw, dtype=dtype
        )
        return pd.DataFrame({"replicate": range(self.replicates), "K": K, "bit_error": errors.cpu()})


@dataclass(frozen=True, kw_only=True)
class RetrievalBound(Experiment):
    """OLS-16: error of one softmax step over the bound of Theorem 5, for random patterns on a sphere."""

    d: int = 32
    num_patterns: int = 64
    betas: tuple[float, ...] = (0.25, 0.5, 1.0, 2.0)
    radius: float = 0.05  # of the probe around its pattern, in units of the pattern's length
    instances: int = 32

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"beta": beta} for beta in self.betas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        draw = stream(seed, "retrieval bound")
        shape = (self.instances, self.num_patterns, self.d)
        direction, step = torch.randn(2, *shape, generator=draw, dtype=dtype).to(device)
        patterns = direction / direction.norm(dim=-1, keepdim=True) * math.sqrt(self.d)
        probes = patterns + self.radius * math.sqrt(self.d) * step / step.norm(dim=-1, keepdim=True)
        moved = hopfield.retrieve(probes, patterns, "lse", beta=condition["beta"]).state
        error = (moved - patterns).norm(dim=-1)
        bound = closed.retrieval_bound(probes, patterns, condition["beta"])
        instance = np.arange(self.instances).repeat(self.num_patterns)
        return pd.DataFrame({"instance": instance, "error": error.cpu().ravel(), "bound": bound.cpu().ravel()})


@dataclass(frozen=True, kw_only=True)
class PublishedConstants(Experiment):
    """OLS-16: the two published values of Ramsauer's constant c, recomputed."""

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"memory": memory, "num_patterns": num} for memory in ("hebb", "projection") for num in self.nums]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        num, kind = condition["num_patterns"], condition["memory"]
        draw = stream(seed, "read-out noise", num)
        patterns = hopfield.random_signs(self.replicates, num, self.d, generator=draw, dtype=dtype) / math.sqrt(self.d)
        if kind == "hebb":
            first = patterns[:, :1]
            noise = hopfield.linear_read_out(first, patterns, kind) - first
            theory = closed.hebb_noise(num, self.d)
            naive = (num - 1) / self.d  # without the coherent part: the negative control
        else:
            white = torch.randn(self.replicates, 1, self.d, generator=draw, dtype=dtype) / math.sqrt(self.d)
            noise = hopfield.linear_read_out(white, patterns, kind)
            theory = naive = closed.projection_noise(num, self.d)
        energy = noise.square().sum(dim=(-2, -1))
        return pd.DataFrame({"replicate": range(self.replicates), "noise": energy, "theory": theory, "naive": naive})


EXPERIMENTS = (
    *(SoftmaxStep, PolynomialCapacity, ExponentialCapacity, OneStepRetrieval),
    *(RetrievalBound, PublishedConstants, ReadOutNoise),
)
