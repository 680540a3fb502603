"""Deterministic flows, mean values that do not vanish, two prompts under the same weights, and a torch stack."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from scipy import integrate

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from .chain import simulate_chain
from .depth import layer_counts, long, off_diagonal, start
from .flows import modified_drift, sa_rate, self_attention, sphere_euler, sphere_flow
from .gram import simulate_gram
from .heads import HeadLaw, equiangular_tokens, matched_law, normalise, uniform_tokens
from .overlaps import simplex_flow


@dataclass(frozen=True, kw_only=True)
class Flows(Experiment):
    """HT-14, HT-15: deterministic layers against flows, with and without correctors, on and between grid points.

    Rows: update (ambient or projected velocity), corrector, replicate (a random start), eta, grid (error at a grid
    time), between (error half a step later, where the interpolation stands still).
    """

    n: int = 4
    d: int = 3
    beta: float = 1.0
    time: float = 1.0
    steps: tuple[int, ...] = (8, 16, 32, 64)
    fine: int = 64
    replicates: int = 48

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}
    deterministic: ClassVar[Mapping[str, float]] = {"grid": 1e-6, "between": 1e-8}

    def conditions(self) -> list[dict[str, Any]]:
        cases = (("ambient", "none"), ("ambient", "retold"), ("ambient", "full"), ("projected", "retold"))
        return [{"update": update, "corrector": corrector} for update, corrector in cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        update, corrector = condition["update"], condition["corrector"]
        X0 = uniform_tokens(self.n, self.d, replicas=self.replicates, generator=stream(seed, "start"), dtype=dtype)
        X0, found = X0.to(device), []

        def field(X):
            return self_attention(X, self.beta)

        for steps in self.steps:
            eta = self.time / steps
            drift = modified_drift(field, eta, corrector)
            layered = sphere_euler(field, X0, self.time, steps=steps, projected=update == "projected")
            grid = sphere_flow(drift, X0, self.time, steps=self.fine)
            later = sphere_flow(drift, grid, eta / 2, steps=4)
            errors = [(layered - exact).square().sum(dim=(-2, -1)).sqrt().cpu() for exact in (grid, later)]
            columns = {"grid": errors[0], "between": errors[1]}
            found.append(pd.DataFrame({"replicate": range(self.replicates), "eta": eta, **columns}))
        return pd.concat(found, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class SelfAttention(Experiment):
    """HT-14: the flow of V = A = I from equiangular tokens against the scalar equation of earlier work.

    Rows: n, beta, gap (of the overlap at ``time``), bound (two fourth-order methods at their tolerances).
    """

    cases: tuple[tuple[int, float], ...] = ((2, 0.5), (2, 3.0), (5, 1.0), (8, 4.0))
    d: int = 9
    gamma0: float = 0.1
    time: float = 1.0
    tolerance: float = 1e-8

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"n": n, "beta": beta} for n, beta in self.cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, beta = condition["n"], condition["beta"]
        X = equiangular_tokens(n, self.d, self.gamma0, dtype=dtype).to(device)
        drift = modified_drift(lambda Y: self_attention(Y, beta), 0.0, "none")
        end = sphere_flow(drift, X, self.time, steps=200)
        overlap = off_diagonal(end @ end.mT)[0].cpu().numpy()
        facts = {"rtol": 1e-11, "atol": 1e-12}
        scalar = integrate.solve_ivp(lambda _, y: sa_rate(y, beta, n), (0, self.time), [self.gamma0], **facts)
        gap = np.abs(overlap - scalar.y[0, -1]).max()
        return pd.DataFrame([{"overlap": overlap[0], "gap": gap, "bound": self.tolerance}])


@dataclass(frozen=True, kw_only=True)
class Interpolation(Experiment):
    """HT-16: heads with V = I + noise and A = I, from the ODE to the SDE: (eta, L, H) over the phase diagram.

    Rows: eta, L, H, replicate, m, m_ode (the flow of self-attention at time eta L).
    """

    n: int = 4
    d: int = 32
    beta: float = 1.0
    gamma0: float = 0.1
    time: float = 1.0
    eta: float = 0.05
    heads: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
    etas: tuple[float, ...] = (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4)
    depths: tuple[int, ...] = (4, 8, 16, 32, 64, 128)
    phase_heads: int = 4
    replicates: int = 960

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"heads": (1, 16, 256), "etas": (0.025, 0.1, 0.4), "depths": (4, 16, 64), "replicates": 192},
        "cpu": {},
    }
    deterministic: ClassVar[Mapping[str, float]] = {"m_ode": 1e-7}

    def conditions(self) -> list[dict[str, Any]]:
        sweep = [{"kind": "heads", "eta": self.eta, "L": round(self.time / self.eta), "H": H} for H in self.heads]
        grid = [(eta, L) for eta in self.etas for L in self.depths]
        return sweep + [{"kind": "phase", "eta": eta, "L": L, "H": self.phase_heads} for eta, L in grid]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        kind, eta, L, H = (condition[name] for name in ("kind", "eta", "L", "H"))
        replicas = self.replicates if kind == "heads" else self.replicates // 6
        law = HeadLaw(d=self.d, sigma_a=0.0, V_bar=1.0, A_bar=1.0)
        g = stream(seed, "interpolation", str(eta), L, H, device=device)
        G = start(self.n, self.gamma0, replicas, device, dtype)
        chain = simulate_gram(G, L, eta, H, law, self.beta, generator=g, record=[L])
        facts = {"rtol": 1e-10, "atol": 1e-12}
        path = integrate.solve_ivp(lambda _, y: sa_rate(y, self.beta, self.n), (0, eta * L), [self.gamma0], **facts)
        m_ode = (1 + (self.n - 1) * path.y[0, -1]) / self.n
        m = chain.mean_overlap[-1].cpu().numpy()
        return pd.DataFrame({"replicate": range(replicas), "m": m, "m_ode": m_ode})


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"tokens": (32, 128, 512), "replicates": 20, "h": 0.1},
        "cpu": {"tokens": (32, 64, 128, 256, 512, 1024), "replicates": 10},
        "gpu": {},
    }

    def conditions(self) -> list[dict[str, Any]]:
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
            facts = {"generator": g, "method": "literal", "record": [L], "keep_tokens": True}
            means.append(simulate_chain(X, L, self.h**0.5, 1, law, 1.0, **facts).tokens[-1].mean(dim=-2).cpu())
        columns = {f"mean_{k}": means[0][:, k].numpy() for k in range(self.d)}
        distance = (means[0] - means[1]).square().sum(dim=-1).numpy()
        return pd.DataFrame({"replicate": range(self.replicates), "distance": distance, **columns})


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {"ci": {"replicates": 100, "points": 5}, "cpu": {}}

    def conditions(self) -> list[dict[str, Any]]:
        return [{"noise": noise, "gamma0": gamma} for noise in ("common", "private") for gamma in self.gammas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        noise, gamma0 = condition["noise"], condition["gamma0"]
        eta = math.sqrt(self.h)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, 1)
        g = stream(seed, "private", noise, str(gamma0), device=device)
        G, law = start(self.n, gamma0, self.replicates, device, dtype), matched_law(self.d, self.logit_std)
        facts = {"generator": g, "record": layers, "common": noise == "common"}
        chain = simulate_gram(G, layers[-1], eta, 1, law, 1.0, **facts)
        return long({"gamma": off_diagonal(chain.gram).mean(dim=-1)}, layers, chain.tau, self.replicates)


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

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"d": 64, "scales": (0.25,), "heads": (4,), "points": 5, "replicates": 32},
        "cpu": {"scales": (0.2, 1.0), "replicates": 192},
        "gpu": {"d": 512, "n": 64},
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
        return [{"scale": scale, "H": H} for scale in self.scales for H in self.heads]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        scale, H = condition["scale"], condition["H"]
        layers = sorted(set(layer_counts(np.linspace(0, self.tau, self.points), scale, 1)))
        draw = stream(seed, "stack tokens")
        x = torch.randn(self.replicates, self.n, self.d, generator=draw, dtype=dtype).to(device)
        x = torch.nn.functional.layer_norm(x, (self.d,))
        g, kept = stream(seed, "stack", str(scale), H, device=device), []
        for layer in range(layers[-1] + 1):
            if layer:
                x = torch.nn.functional.layer_norm(x + scale * multi_head(x, H, generator=g), (self.d,))
            if layer in layers:
                unit = normalise(x)
                kept.append((unit @ unit.mT).mean(dim=(-2, -1)))
        tau = [scale**2 * layer for layer in layers]
        rows = long({"m": torch.stack(kept)}, layers, tau, self.replicates)
        gamma = simplex_flow(0.0, np.array(tau), self.n, 1.0, self.d)
        return rows.assign(m_theory=np.repeat((1 + (self.n - 1) * gamma) / self.n, self.replicates))


def multi_head(x: torch.Tensor, H: int, *, generator: torch.Generator) -> torch.Tensor:
    """Multi-head attention (R, n, d) with fresh weights of variance 1/d in every replica, as at initialisation."""
    R, n, d = x.shape
    facts = {"generator": generator, "device": x.device, "dtype": x.dtype}
    queries, keys, values = (x @ (torch.randn(R, d, d, **facts) / d**0.5) for _ in range(3))
    split = [part.reshape(R, n, H, d // H).transpose(1, 2) for part in (queries, keys, values)]
    mixed = torch.nn.functional.scaled_dot_product_attention(*split)
    return mixed.transpose(1, 2).reshape(R, n, d) @ (torch.randn(R, d, d, **facts) / d**0.5)
