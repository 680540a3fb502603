"""The collapse on the clock, hot and cold: the logistic, the equation of the simplex, its times and its end.

A *replicate* is one path, independent of the others.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.gram import gram_step, simulate_gram
from ..model.heads import matched_law
from ..model.overlaps import logistic_overlap, simplex_flow, time_to_overlap
from .chains import layer_counts, off_diagonal, start


@dataclass(frozen=True, kw_only=True)
class Hot(Experiment):
    """HT-7: hot attention, mean overlap against the logistic curve; rows: d, replicate, layer, tau, m, u."""

    widths: tuple[int, ...] = (16, 64, 256)
    n: int = 8
    logit_std: float = 0.3
    gamma0: float = 0.1
    h: float = 0.04
    H: int = 2
    tau: float = 6.0
    points: int = 13
    replicates: int = 1500

    tiers: ClassVar = {
        "ci": {"widths": (256,), "points": 7, "replicates": 400},
        "cpu": {"replicates": 600},
    }
    tiny: ClassVar = {"replicates": 4, "points": 3, "tau": 1.0}

    def conditions(self) -> list[dict]:
        return [{"d": d} for d in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, eta = condition["d"], math.sqrt(self.h * self.H)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, self.H)
        G, g = start(self.n, self.gamma0, self.replicates, device, dtype), stream(seed, "hot", d, device=device)
        law = matched_law(d, self.logit_std)
        chain = simulate_gram(G, layers[-1], eta, self.H, law, 1.0, generator=g, record=layers)
        m0 = (1 + (self.n - 1) * self.gamma0) / self.n
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"m": chain.mean_overlap, "u": logistic_overlap(chain.tau, m0)[:, None]},
        )


@dataclass(frozen=True, kw_only=True)
class Cold(Experiment):
    """HT-8: equiangular tokens at low temperature against the ODE of the simplex.

    Rows: d, replicate, layer, tau, gamma (mean over pairs), spread (root mean square of R_ij - gamma_theory),
    gamma_theory.
    """

    widths: tuple[int, ...] = (64, 128, 256, 1024, 4096)
    n: int = 16
    logit_std: float = 8.0
    h: float = 0.01
    H: int = 2
    tau: float = 8.0
    points: int = 9
    replicates: int = 100

    tiers: ClassVar = {
        "ci": {"widths": (64, 256), "h": 0.04, "H": 4, "tau": 4.0, "points": 5, "replicates": 160},
        "cpu": {"widths": (64, 256, 4096), "replicates": 80},
        # A pilot of another seed at h = 0.01: longer prompts feel the step more, 0.02 at n = 64 for 0.01 at n = 16.
        "gpu": {"n": 64, "widths": (1024, 4096), "h": 0.0025, "replicates": 256, "tau": 12.0, "points": 13},
    }
    tiny: ClassVar = {"widths": (32, 64), "n": 4, "replicates": 4}
    deterministic: ClassVar = {"gamma_theory": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"d": d} for d in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, eta = condition["d"], math.sqrt(self.h * self.H)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, self.H)
        G, g = start(self.n, 0.0, self.replicates, device, dtype), stream(seed, "cold", d, device=device)
        law = matched_law(d, self.logit_std)
        chain = simulate_gram(G, layers[-1], eta, self.H, law, 1.0, generator=g, record=layers)
        R = off_diagonal(chain.gram)
        exact = simplex_flow(0.0, chain.tau, self.n, self.logit_std, d)
        curve = torch.as_tensor(exact, device=device, dtype=dtype)
        spread = (R - curve[:, None, None]).square().mean(dim=-1).sqrt()
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"gamma": R.mean(dim=-1), "spread": spread, "gamma_theory": exact[:, None]},
        )


@dataclass(frozen=True, kw_only=True)
class Freezing(Experiment):
    """HT-9: the tau at which the overlap of orthogonal tokens reaches 1/2, by the ODE and by the chain at large width.

    Rows: n, logit_std, ode (d = infinity), hot (ln(n+1)); where a chain was run also replicate, chain, ode_d.
    """

    tokens: tuple[int, ...] = (8, 32, 128, 512)
    logit_stds: tuple[float, ...] = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0)
    cells: tuple[tuple[int, float], ...] = ((8, 8.0), (32, 4.0), (32, 8.0))
    d: int = 1_000_000
    h: float = 0.01
    replicates: int = 32

    tiers: ClassVar = {
        "ci": {"tokens": (8, 32), "logit_stds": (0.0, 1.0, 8.0), "cells": ((8, 8.0),)},
        "cpu": {},
        "gpu": {"tokens": (8, 32, 128, 512, 2048), "cells": ((32, 8.0), (128, 8.0), (512, 8.0))},
    }
    tiny: ClassVar = {"tokens": (8,), "logit_stds": (0.0, 1.0, 8.0), "replicates": 4, "h": 0.1}
    deterministic: ClassVar = {"ode": 1e-5, "hot": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"n": n, "logit_std": s} for n in self.tokens for s in self.logit_stds]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, s = condition["n"], condition["logit_std"]
        row = {"ode": time_to_overlap(n, s), "hot": math.log(n + 1), "ode_d": time_to_overlap(n, s, self.d)}
        if (n, s) not in {tuple(cell) for cell in self.cells}:
            return pd.DataFrame([row | {"replicate": 0, "chain": np.nan}])
        law, g = matched_law(self.d, s), stream(seed, "freezing", n, str(s), device=device)
        G, means = start(n, 0.0, self.replicates, device, dtype), []
        for layer in range(round(1.4 * row["ode"] / self.h) + 1):  # all Gram matrices at once would be 100 GB
            G = gram_step(G, self.h**0.5, 1, law, 1.0, generator=g) if layer else G
            means.append(off_diagonal(G).mean(dim=-1))
        gamma = torch.stack(means, dim=-1).cpu().numpy()
        # The first crossing of 1/2, between the two layers around it by a straight line.
        after = (gamma >= 0.5).argmax(axis=1)
        low, high = (np.take_along_axis(gamma, (after + k)[:, None], axis=1)[:, 0] for k in (-1, 0))
        times = self.h * (after - 1 + (0.5 - low) / (high - low))
        return pd.DataFrame({**row, "replicate": range(self.replicates), "chain": times})


@dataclass(frozen=True, kw_only=True)
class FinalRate(Experiment):
    """HT-10: ln(1 - m) near collapse, whatever temperature and number of tokens.

    Rows: d, n, logit_std, replicate, tau, log_missing.
    """

    cases: tuple[tuple[int, int, float], ...] = ((4, 2, 0.0), (16, 2, 0.0), (16, 8, 0.0), (16, 8, 4.0), (16, 8, 16.0))
    start: float = 0.999
    h: float = 0.02
    tau: float = 8.0
    points: int = 9
    replicates: int = 4000

    tiers: ClassVar = {
        "ci": {"cases": ((16, 2, 0.0), (16, 8, 4.0)), "points": 3, "replicates": 1000},
        "cpu": {"replicates": 4000, "points": 3},
    }
    tiny: ClassVar = {"replicates": 4, "tau": 1.0, "points": 3}

    def conditions(self) -> list[dict]:
        return [{"d": d, "n": n, "logit_std": s} for d, n, s in self.cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, n, s = (condition[name] for name in ("d", "n", "logit_std"))
        eta = math.sqrt(self.h)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, 1)
        g = stream(seed, "final, drawn again", d, n, str(s), device=device)
        G = start(n, self.start, self.replicates, device, dtype)
        chain = simulate_gram(G, layers[-1], eta, 1, matched_law(d, s), 1.0, generator=g, record=layers)
        missing = (1 - off_diagonal(chain.gram)).mean(dim=-1) * (n - 1) / n
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"log_missing": missing.log()},
        )
