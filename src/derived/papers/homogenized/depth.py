"""Chains over depth with Gaussian heads, on the clock tau = eta^2 layer / H.

A *replicate* is independent of the others: one path, or where paths are cheap the mean over a batch of ``batch`` paths.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from .cloud import cloud_layer
from .gram import simulate_gram
from .heads import matched_law, simplex_gram
from .overlaps import logistic_overlap, simplex_flow, time_to_overlap
from .slow import return_probability
from .two_token import two_token_pde


def start(n: int, gamma: float, replicas: int, device, dtype) -> torch.Tensor:
    """Gram matrices (replicas, n, n) of equiangular tokens."""
    return simplex_gram(n, gamma, device=device, dtype=dtype).expand(replicas, n, n)


def layer_counts(taus, eta: float, H: int) -> list[int]:
    """The layers at which the clock shows ``taus``, to the nearest whole layer."""
    return [round(tau * H / eta**2) for tau in taus]


def long(gram_function, layers, tau, replicas: int) -> pd.DataFrame:
    """Rows (layer, replicate) of (T, R) tensors."""
    index = {"layer": np.repeat(layers, replicas), "tau": np.repeat(tau, replicas)}
    index["replicate"] = np.tile(np.arange(replicas), len(layers))
    return pd.DataFrame({**index, **{name: value.cpu().numpy().ravel() for name, value in gram_function.items()}})


def off_diagonal(gram: torch.Tensor) -> torch.Tensor:
    """The pairs i < j of (..., n, n), as (..., pairs)."""
    n = gram.shape[-1]
    first, second = torch.triu_indices(n, n, 1, device=gram.device).unbind(dim=0)
    return gram[..., first, second]


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"heads": (1, 2, 6), "taus": (0.6, 1.8, 3.0), "replicates": 24, "batch": 300},
        "cpu": {"heads": (1, 2, 6, 16), "batch": 200},
    }
    deterministic: ClassVar[Mapping[str, float]] = {"first_theory": 1e-7, "second_theory": 1e-7}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"logit_std": s, "H": H} for s in self.logit_stds for H in self.heads]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        s, H = condition["logit_std"], condition["H"]
        eta, law = math.sqrt(self.h * H), matched_law(self.d, s)
        layers = layer_counts(self.taus, eta, H)
        G = start(2, self.r0, self.replicates * self.batch, device, dtype)
        g = stream(seed, "two tokens", str(s), H, device=device)
        chain = simulate_gram(G, layers[-1], eta, H, law, 1.0, generator=g, record=layers)
        R = chain.gram[..., 0, 1].reshape(len(layers), self.replicates, self.batch)
        rows = long({"first": R.mean(dim=-1), "second": R.square().mean(dim=-1)}, layers, chain.tau, self.replicates)
        exact = two_token_pde(self.d, 1.0, (s / self.d**0.5) ** 0.5, self.r0, np.array(chain.tau))
        theory = {"first_theory": exact.first, "second_theory": exact.second}
        return rows.assign(**{name: np.repeat(value, self.replicates) for name, value in theory.items()})


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"cases": ((0.8, 1), (0.4, 1), (0.8, 4)), "replicates": 24, "batch": 4000},
        "cpu": {"batch": 8000},
    }

    def conditions(self) -> list[dict[str, Any]]:
        return [{"eta": eta, "H": H} for eta, H in self.cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        eta, H = condition["eta"], condition["H"]
        (layer,) = layer_counts([self.tau], eta, H)
        law = matched_law(self.d, self.logit_std)
        exact = two_token_pde(self.d, 1.0, (self.logit_std / self.d**0.5) ** 0.5, 0.0, np.array([self.tau])).first[0]
        g, errors = stream(seed, "weak error", str(eta), H, device=device), []
        for _ in range(self.replicates):  # one replicate at a time: they need not fit into memory together
            chain = simulate_gram(start(2, 0.0, self.batch, device, dtype), layer, eta, H, law, 1.0, generator=g)
            errors.append(chain.gram[-1, :, 0, 1].mean().item() - exact)
        return pd.DataFrame({"replicate": range(self.replicates), "h": eta**2 / H, "error": errors})


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"widths": (256,), "points": 7, "replicates": 400},
        "cpu": {"replicates": 600},
    }

    def conditions(self) -> list[dict[str, Any]]:
        return [{"d": d} for d in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, eta = condition["d"], math.sqrt(self.h * self.H)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, self.H)
        G, g = start(self.n, self.gamma0, self.replicates, device, dtype), stream(seed, "hot", d, device=device)
        law = matched_law(d, self.logit_std)
        chain = simulate_gram(G, layers[-1], eta, self.H, law, 1.0, generator=g, record=layers)
        rows = long({"m": chain.mean_overlap}, layers, chain.tau, self.replicates)
        m0 = (1 + (self.n - 1) * self.gamma0) / self.n
        return rows.assign(u=logistic_overlap(rows["tau"].to_numpy(), m0))


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"widths": (64, 256), "h": 0.04, "H": 4, "tau": 4.0, "points": 5, "replicates": 160},
        "cpu": {"widths": (64, 256, 4096), "replicates": 80},
        "gpu": {"n": 256, "widths": (1024, 4096), "replicates": 64, "tau": 16.0, "points": 17},
    }
    deterministic: ClassVar[Mapping[str, float]] = {"gamma_theory": 1e-6}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"d": d} for d in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, eta = condition["d"], math.sqrt(self.h * self.H)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, self.H)
        G, g = start(self.n, 0.0, self.replicates, device, dtype), stream(seed, "cold", d, device=device)
        law = matched_law(d, self.logit_std)
        chain = simulate_gram(G, layers[-1], eta, self.H, law, 1.0, generator=g, record=layers)
        R = off_diagonal(chain.gram)
        exact = simplex_flow(0.0, np.array(chain.tau), self.n, self.logit_std, d)
        curve = torch.as_tensor(exact, device=device, dtype=dtype)
        columns = {"gamma": R.mean(dim=-1), "spread": (R - curve[:, None, None]).square().mean(dim=-1).sqrt()}
        rows = long(columns, layers, chain.tau, self.replicates)
        return rows.assign(gamma_theory=np.repeat(exact, self.replicates))


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"tokens": (8, 32), "logit_stds": (0.0, 1.0, 8.0), "cells": ((8, 8.0),)},
        "cpu": {},
        "gpu": {"tokens": (8, 32, 128, 512, 2048), "cells": ((32, 8.0), (128, 8.0), (512, 8.0))},
    }
    deterministic: ClassVar[Mapping[str, float]] = {"ode": 1e-5, "hot": 1e-12}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"n": n, "logit_std": s} for n in self.tokens for s in self.logit_stds]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, s = condition["n"], condition["logit_std"]
        row = {"ode": time_to_overlap(n, s), "hot": math.log(n + 1), "ode_d": time_to_overlap(n, s, self.d)}
        if (n, s) not in {tuple(cell) for cell in self.cells}:
            return pd.DataFrame([row | {"replicate": 0, "chain": np.nan}])
        layers = list(range(round(1.4 * row["ode"] / self.h) + 1))
        g = stream(seed, "freezing", n, str(s), device=device)
        G = start(n, 0.0, self.replicates, device, dtype)
        facts = {"generator": g, "record": layers}
        chain = simulate_gram(G, layers[-1], self.h**0.5, 1, matched_law(self.d, s), 1.0, **facts)
        gamma = off_diagonal(chain.gram).mean(dim=-1).T.cpu().numpy()
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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"cases": ((16, 2, 0.0), (16, 8, 4.0)), "points": 3, "replicates": 1000},
        "cpu": {"replicates": 4000, "points": 3},
    }

    def conditions(self) -> list[dict[str, Any]]:
        return [{"d": d, "n": n, "logit_std": s} for d, n, s in self.cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, n, s = (condition[name] for name in ("d", "n", "logit_std"))
        eta = math.sqrt(self.h)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, 1)
        g = stream(seed, "final", d, n, str(s), device=device)
        G = start(n, self.start, self.replicates, device, dtype)
        chain = simulate_gram(G, layers[-1], eta, 1, matched_law(d, s), 1.0, generator=g, record=layers)
        missing = (1 - off_diagonal(chain.gram)).mean(dim=-1) * (n - 1) / n
        return long({"log_missing": missing.log()}, layers, chain.tau, self.replicates)


@dataclass(frozen=True, kw_only=True)
class SlowPaths(Experiment):
    """HT-13: pairs in a uniform cloud at beta = infinity, over the slow time t = tau/d: who returns to overlap 0?

    Rows: factors, replicate, returned, y (artanh R at the end), recurrent and transient: the probabilities of a return
    by then for kappa = 1 and at all times for kappa = 0.
    """

    d: int = 256
    y0: float = 1.1
    time: float = 10.0
    h: float = 0.02
    factors: tuple[int, ...] = (2, 0)
    replicates: int = 800

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"d": 64, "h": 0.1, "replicates": 500},
        "cpu": {"h": 0.05, "replicates": 1600},
    }

    def conditions(self) -> list[dict[str, Any]]:
        return [{"factors": k} for k in self.factors]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        k = condition["factors"]
        R = torch.full((self.replicates,), math.tanh(self.y0), device=device, dtype=dtype)
        g, returned = stream(seed, "slow paths", k, device=device), torch.zeros_like(R, dtype=torch.bool)
        for _ in range(round(self.time * self.d / self.h)):
            R = cloud_layer(R, self.h, self.d, k, generator=g)[0]
            returned |= R <= 0
        chances = {
            "recurrent": return_probability(self.y0, 1.0, self.time),
            "transient": return_probability(self.y0, 0.0),
        }
        y = torch.atanh(R.clamp(-1 + 1e-15, 1 - 1e-15)).cpu().numpy()
        return pd.DataFrame(
            {"replicate": range(self.replicates), "returned": returned.cpu().numpy(), "y": y, **chances}
        )


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"cases": ((1, 192), (1, 384), (10, 192), (100, 192)), "parts": 1, "points": 5, "replicates": 80},
        "cpu": {"parts": 1, "replicates": 60},
        "gpu": {"cases": ((1, 192), (1, 3072), (10, 768), (100, 192), (100, 3072), (1000, 384)), "parts": 8},
    }
    deterministic: ClassVar[Mapping[str, float]] = {"m_theory": 1e-6}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"H": H, "L": L, "part": part} for H, L in self.cases for part in range(self.parts)]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        H, L, part = (condition[name] for name in ("H", "L", "part"))
        eta = math.sqrt(self.tau * H / L)
        layers = [round(L * k / (self.points - 1)) for k in range(self.points)]
        g = stream(seed, "clock", H, L, part, device=device)
        G = start(self.n, 0.0, self.replicates, device, dtype)
        law = matched_law(self.d, self.logit_std)
        chain = simulate_gram(G, L, eta, H, law, 1.0, generator=g, record=layers)
        rows = long({"m": chain.mean_overlap}, layers, chain.tau, self.replicates)
        gamma = simplex_flow(0.0, np.array(chain.tau), self.n, self.logit_std, self.d)
        theory = (1 + (self.n - 1) * gamma) / self.n
        return rows.assign(eta=eta, m_theory=np.repeat(theory, self.replicates))
