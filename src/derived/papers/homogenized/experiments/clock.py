"""The clock tau = eta^2 layer / H: two tokens, steps and heads, and a torch stack, all on one curve.

A *replicate* is independent of the others: one path, or where paths are cheap the mean over a batch of ``batch`` paths.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.chain import stack_layer
from ..model.gram import simulate_gram
from ..model.heads import matched_law, normalise
from ..model.overlaps import simplex_flow
from ..model.two_token import two_token_pde
from .chains import layer_counts, start


@dataclass(frozen=True, kw_only=True)
class TwoTokens(Experiment):
    """HT-5: two tokens, moments of the overlap for several numbers of heads, against the Fokker-Planck equation.

    Rows: logit_std, H, replicate (a mean over ``batch`` paths), layer, tau, first, second (E R, E R^2), and the same
    with _theory.
    """

    d: int = 8
    logit_stds: tuple[float, ...] = (0.0, 2.0)
    heads: tuple[int, ...] = (1, 2, 6, 32)
    h: float = 0.03
    taus: tuple[float, ...] = (0.3, 0.6, 1.2, 1.8, 2.4, 3.0)
    r0: float = 0.0
    replicates: int = 48
    batch: int = 300

    tiers: ClassVar = {
        "ci": {"heads": (1, 2, 6), "taus": (0.6, 1.8, 3.0), "replicates": 24, "batch": 300},
        "cpu": {"heads": (1, 2, 6, 16), "batch": 200},
    }
    tiny: ClassVar = {"heads": (1, 2), "taus": (0.6, 1.2), "replicates": 4, "batch": 5}
    deterministic: ClassVar = {"first_theory": 1e-7, "second_theory": 1e-7}

    def conditions(self) -> list[dict]:
        return [{"logit_std": s, "H": H} for s in self.logit_stds for H in self.heads]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        s, H = condition["logit_std"], condition["H"]
        eta, law = math.sqrt(self.h * H), matched_law(self.d, s)
        layers = layer_counts(self.taus, eta, H)
        G = start(2, self.r0, self.replicates * self.batch, device, dtype)
        g = stream(seed, "two tokens", str(s), H, device=device)
        chain = simulate_gram(G, layers[-1], eta, H, law, 1.0, generator=g, record=layers)
        R = chain.gram[..., 0, 1].reshape(len(layers), self.replicates, self.batch)
        exact = two_token_pde(self.d, 1.0, law.sigma_a, self.r0, chain.tau)
        theory = {"first_theory": exact.first[:, None], "second_theory": exact.second[:, None]}
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"first": R.mean(dim=-1), "second": R.square().mean(dim=-1), **theory},
        )


@dataclass(frozen=True, kw_only=True)
class WeakError(Experiment):
    """HT-6: the error of E R of two tokens at one tau, for several steps and numbers of heads.

    The attention is not uniform: at beta = 0 heads enter by h = eta^2/H alone, and step and heads are one measurement.

    Rows: eta, H, replicate (a mean over ``batch`` paths), h, error.
    """

    d: int = 8
    logit_std: float = 2.0
    tau: float = 1.92
    cases: tuple[tuple[float, int], ...] = ((0.8, 1), (0.4, 1), (0.2, 1), (0.8, 4))
    replicates: int = 48
    batch: int = 20_000

    tiers: ClassVar = {
        "ci": {"cases": ((0.8, 1), (0.4, 1), (0.8, 4)), "replicates": 24, "batch": 4000},
        "cpu": {"batch": 8000},
    }
    tiny: ClassVar = {"replicates": 4, "batch": 20}

    def conditions(self) -> list[dict]:
        return [{"eta": eta, "H": H} for eta, H in self.cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        eta, H = condition["eta"], condition["H"]
        (layer,) = layer_counts([self.tau], eta, H)
        law = matched_law(self.d, self.logit_std)
        exact = two_token_pde(self.d, 1.0, law.sigma_a, 0.0, [self.tau]).first[0]
        g, errors = stream(seed, "weak error", str(eta), H, device=device), []
        for _ in range(self.replicates):  # one replicate at a time: they need not fit into memory together
            chain = simulate_gram(start(2, 0.0, self.batch, device, dtype), layer, eta, H, law, 1.0, generator=g)
            errors.append(chain.gram[-1, :, 0, 1].mean().item() - exact)
        return rows({"replicate": range(self.replicates)}, {"h": eta**2 / H, "error": errors})


@dataclass(frozen=True, kw_only=True)
class Clock(Experiment):
    """HT-16: the same clock reached with one head or a thousand, with few layers or many.

    Rows: H, L, eta, part, replicate, layer, tau, m, and m_theory on the ODE of the simplex.
    """

    d: int = 65_536
    n: int = 8
    logit_std: float = 2.0
    tau: float = 4.8
    points: int = 7
    cases: tuple[tuple[int, int], ...] = ((1, 192), (1, 768), (10, 192), (100, 192), (100, 384), (1000, 192))
    parts: int = 2
    replicates: int = 100

    tiers: ClassVar = {
        "ci": {"cases": ((1, 192), (1, 384), (10, 192), (100, 192)), "parts": 1, "points": 5, "replicates": 80},
        "cpu": {"parts": 1, "replicates": 60},
        "gpu": {"cases": ((1, 192), (1, 3072), (10, 768), (100, 192), (100, 3072), (1000, 384)), "replicates": 400},
    }
    tiny: ClassVar = {"cases": ((1, 16), (2, 16)), "tau": 1.6, "replicates": 4, "points": 3}
    deterministic: ClassVar = {"m_theory": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"H": H, "L": L, "part": part} for H, L in self.cases for part in range(self.parts)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        H, L, part = (condition[name] for name in ("H", "L", "part"))
        eta = math.sqrt(self.tau * H / L)
        layers = [round(L * k / (self.points - 1)) for k in range(self.points)]
        g = stream(seed, "clock, drawn again", H, L, part, device=device)
        G = start(self.n, 0.0, self.replicates, device, dtype)
        law = matched_law(self.d, self.logit_std)
        chain = simulate_gram(G, L, eta, H, law, 1.0, generator=g, record=layers)
        gamma = simplex_flow(0.0, chain.tau, self.n, self.logit_std, self.d)
        theory = (1 + (self.n - 1) * gamma) / self.n
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"m": chain.mean_overlap, "eta": eta, "m_theory": theory[:, None]},
        )


@dataclass(frozen=True, kw_only=True)
class Stack(Experiment):
    """HT-19: x <- LayerNorm(x + scale * MultiHead(x)) with standard initialisation, against the simplex ODE.

    W_Q, W_K, W_V, W_O have entries of variance 1/d and are redrawn in every layer; H heads of width d/H each; the sum
    over heads is not averaged, so the clock is tau = scale^2 layer whatever H. Rows: scale, H, replicate, layer, tau,
    m (mean overlap of the normalised tokens), m_theory.
    """

    d: int = 256
    n: int = 16
    scales: tuple[float, ...] = (0.2, 0.5, 1.0)
    heads: tuple[int, ...] = (1, 8)
    tau: float = 6.0
    points: int = 7
    replicates: int = 200

    tiers: ClassVar = {
        "ci": {"d": 64, "scales": (0.25,), "heads": (4,), "points": 5, "replicates": 32},
        "cpu": {"scales": (0.2, 1.0), "replicates": 192},
        "gpu": {"d": 512, "n": 64},
    }
    tiny: ClassVar = {"d": 16, "n": 4, "tau": 1.0, "points": 3, "replicates": 4}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"scale": scale, "H": H} for scale in self.scales for H in self.heads]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        scale, H = condition["scale"], condition["H"]
        layers = sorted(set(layer_counts(np.linspace(0, self.tau, self.points), scale, 1)))
        of_tokens = stream(seed, "stack tokens, drawn again")
        x = torch.randn(self.replicates, self.n, self.d, generator=of_tokens, dtype=dtype)
        x = torch.nn.functional.layer_norm(x.to(device), (self.d,))
        g, kept = stream(seed, "stack, drawn again", str(scale), H, device=device), []
        for layer in range(layers[-1] + 1):
            if layer:
                x = stack_layer(x, scale, H, generator=g)
            if layer in layers:
                unit = normalise(x)
                kept.append((unit @ unit.mT).mean(dim=(-2, -1)))
        tau = [scale**2 * layer for layer in layers]
        gamma = simplex_flow(0.0, tau, self.n, 1.0, self.d)
        return rows(
            {("layer", "tau"): (layers, tau), "replicate": range(self.replicates)},
            {"m": torch.stack(kept), "m_theory": ((1 + (self.n - 1) * gamma) / self.n)[:, None]},
        )
