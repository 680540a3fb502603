"""Retrieval from associative memories: flipped bits, and the noise of one read-out (OLS-15 and 17).

K, d   number and dimension of the patterns
beta   inverse temperature of softmax
noise  energy of what a read-out adds to the pattern, over that of the pattern
"""

import math
from dataclasses import dataclass

import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model import capacity as closed
from ..model import hopfield


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
