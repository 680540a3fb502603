"""Retrieval from associative memories: flipped bits, and the noise of one read-out (OLS-15 and 17).

K, d   number and dimension of the patterns
beta   inverse temperature of softmax
noise  energy of what a read-out adds to the pattern, over that of the pattern
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model import capacity as closed
from ..model import hopfield


@dataclass(frozen=True, kw_only=True)
class OneStepRetrieval(Experiment):
    """OLS-17: wrong bits after one step from 10 % flipped bits at K = e^{0.9 alpha N} and e^{0.5 alpha N}, F = e^u.

    All K patterns of a memory are tried; ``all_repaired`` says whether no bit of any of them is wrong. ``before``:
    wrong bits of a step that does nothing.
    """

    sizes: tuple[tuple[int, float], ...] = ((30, 0.9), (30, 0.5), (50, 0.5), (70, 0.5))
    rho: float = 0.1
    replicates: int = 64

    tiny: ClassVar = {"sizes": ((30, 0.9), (30, 0.5))}

    def conditions(self) -> list[dict]:
        return [{"N": N, "fraction": fraction} for N, fraction in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, fraction = condition["N"], condition["fraction"]
        K = round(math.exp(fraction * float(closed.demircigil_exponent(self.rho)) * N))
        generator = stream(seed, "one-step retrieval", N, fraction, device=device)
        errors = hopfield.bit_error_rate(
            N, K, "exp", rho=self.rho, num_tests=K, trials=self.replicates, generator=generator, dtype=dtype
        )
        columns = {"K": K, "bit_error": errors, "all_repaired": errors == 0, "before": round(self.rho * N) / N}
        return rows({"replicate": range(self.replicates)}, columns)


@dataclass(frozen=True, kw_only=True)
class Steps(Experiment):
    """OLS-15: one step from stored patterns and from patterns with one wrong bit, by three rules.

    ``flip``: the rule of F = e^u; ``softmax``: the sign of softmax attention over the patterns, beta = 1; ``nothing``.
    ``load``: "typical" is K = 0.02 * 2^N, the typical capacity; "many" is K = 2^(3N/4), beyond 2^(N/2).
    ``wrong``: wrong bits per pattern after the step; ``kept``: whether all patterns that are tried are right.
    """

    sizes: tuple[int, ...] = (10, 12, 14, 16)
    replicates: int = 24
    num_tests: int = 96

    tiny: ClassVar = {"sizes": (8, 10), "replicates": 4}

    def conditions(self) -> list[dict]:
        loads = [{"load": load, "N": N} for load in ("typical", "many") for N in self.sizes]
        return [condition | {"flips": flips} for condition in loads for flips in (0, 1)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        N, load, flips = condition["N"], condition["load"], condition["flips"]
        K = round(0.02 * 2**N if load == "typical" else 2 ** (0.75 * N))
        generator = stream(seed, "steps", load, N, flips, device=device)
        patterns = hopfield.random_signs(self.replicates, K, N, generator=generator, dtype=dtype)
        stored = patterns[:, : self.num_tests]
        probes = hopfield.corrupt(stored, flips / N, generator=generator) if flips else stored
        read = hopfield.retrieve(probes, patterns, "lse").state
        moved = {"flip": hopfield.kh_step(probes, patterns, "exp"), "softmax": read.sign(), "nothing": probes}
        wrong = torch.stack([(state != stored).to(dtype).sum(dim=-1) for state in moved.values()])
        columns = {"K": K, "wrong": wrong.mean(dim=-1), "kept": (wrong == 0).all(dim=-1)}
        return rows({"rule": [*moved], "replicate": range(self.replicates)}, columns)


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
