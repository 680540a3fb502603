"""Common noise: two prompts under the same weights, and the control with a value matrix for each token."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.chain import simulate_chain
from ..model.gram import simulate_gram
from ..model.heads import matched_law, normalise
from .chains import layer_counts, off_diagonal, start


@dataclass(frozen=True, kw_only=True)
class Prompts(Experiment):
    """HT-17: two prompts from the same law under the same weights, for growing numbers of tokens.

    Rows: n, part, replicate (a draw of the weights and of both prompts; the weights are the same for every n),
    distance (squared, of the two mean tokens), and the first coordinates of a mean token, mean_0, mean_1, ...
    """

    d: int = 32
    logit_std: float = 1.0
    bias: float = 0.7
    h: float = 0.05
    tau: float = 1.0
    tokens: tuple[int, ...] = (32, 128, 512, 2048, 8192)
    parts: int = 8
    replicates: int = 8

    tiers: ClassVar = {
        "ci": {"tokens": (32, 128, 512), "replicates": 20, "h": 0.1},
        "cpu": {"tokens": (32, 64, 128, 256, 512, 1024), "replicates": 10},
        "gpu": {"parts": 64, "replicates": 2},  # of 8,192 tokens, whose overlaps alone are half a gigabyte
    }
    tiny: ClassVar = {"tokens": (8, 16), "parts": 2, "replicates": 4, "d": 4}

    def conditions(self) -> list[dict]:
        return [{"n": n, "part": part} for n in self.tokens for part in range(self.parts)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, part = condition["n"], condition["part"]
        centre = torch.zeros(self.d, dtype=dtype)
        centre[0] = self.bias
        (L,) = layer_counts([self.tau], self.h**0.5, 1)
        law, means = matched_law(self.d, self.logit_std), []
        for prompt in range(2):
            noise = torch.randn(
                self.replicates, n, self.d, generator=stream(seed, "prompt", n, part, prompt), dtype=dtype
            )
            X = normalise(centre + noise / self.d**0.5).to(device)
            g = stream(seed, "weights", part, device=device)  # the same weights for both prompts and for every n
            chain = simulate_chain(
                X, L, self.h**0.5, 1, law, 1.0, generator=g, method="literal", record=[L], keep_tokens=True
            )
            means.append(chain.tokens[-1].mean(dim=-2).cpu())
        columns = {f"mean_{k}": means[0][:, k] for k in range(self.d)}
        distance = (means[0] - means[1]).square().sum(dim=-1)
        return rows({"replicate": range(self.replicates)}, {"distance": distance, **columns})


@dataclass(frozen=True, kw_only=True)
class PrivateNoise(Experiment):
    """The negative control: a value matrix of its own for every token. Rows: noise, replicate, layer, tau, gamma."""

    d: int = 64
    n: int = 8
    logit_std: float = 1.0
    gammas: tuple[float, ...] = (0.0, 0.5)
    h: float = 0.04
    tau: float = 6.0
    points: int = 7
    replicates: int = 400

    tiers: ClassVar = {"ci": {"replicates": 100, "points": 5}, "cpu": {}}
    tiny: ClassVar = {"replicates": 4, "points": 3, "tau": 1.0}

    def conditions(self) -> list[dict]:
        return [{"noise": noise, "gamma0": gamma} for noise in ("common", "private") for gamma in self.gammas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        noise, gamma0 = condition["noise"], condition["gamma0"]
        eta = math.sqrt(self.h)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, 1)
        g = stream(seed, "private", noise, str(gamma0), device=device)
        G, law = start(self.n, gamma0, self.replicates, device, dtype), matched_law(self.d, self.logit_std)
        common = noise == "common"
        chain = simulate_gram(G, layers[-1], eta, 1, law, 1.0, generator=g, record=layers, common=common)
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"gamma": off_diagonal(chain.gram).mean(dim=-1)},
        )
