"""Limits with a drift: deterministic layers against flows, and heads with a mean from the ODE to the SDE."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.flows import modified_drift, sa_flow, self_attention, sphere_euler, sphere_flow
from ..model.gram import simulate_gram
from ..model.heads import HeadLaw, equiangular_tokens, uniform_tokens
from .chains import off_diagonal, start


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

    tiny: ClassVar = {"steps": (4, 8), "fine": 8, "replicates": 4}
    deterministic: ClassVar = {"grid": 1e-6, "between": 1e-8}

    def conditions(self) -> list[dict]:
        cases = (("ambient", "none"), ("ambient", "retold"), ("ambient", "full"), ("projected", "retold"))
        return [{"update": update, "corrector": corrector} for update, corrector in cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        update, corrector = condition["update"], condition["corrector"]
        X0 = uniform_tokens(self.n, self.d, replicas=self.replicates, generator=stream(seed, "start"), dtype=dtype)
        X0, tables = X0.to(device), []

        def field(X):
            return self_attention(X, self.beta)

        for steps in self.steps:
            eta = self.time / steps
            drift = modified_drift(field, eta, corrector)
            layered = sphere_euler(field, X0, self.time, steps=steps, projected=update == "projected")
            grid = sphere_flow(drift, X0, self.time, steps=self.fine)
            later = sphere_flow(drift, grid, eta / 2, steps=4)
            at_grid, between = ((layered - exact).square().sum(dim=(-2, -1)).sqrt() for exact in (grid, later))
            index = {"replicate": range(self.replicates), "eta": eta}
            tables.append(rows(index, {"grid": at_grid, "between": between}))
        return pd.concat(tables, ignore_index=True)


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

    tiny: ClassVar = {"cases": ((2, 0.5),)}

    def conditions(self) -> list[dict]:
        return [{"n": n, "beta": beta} for n, beta in self.cases]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, beta = condition["n"], condition["beta"]
        X = equiangular_tokens(n, self.d, self.gamma0, dtype=dtype).to(device)
        drift = modified_drift(lambda Y: self_attention(Y, beta), 0.0, "none")
        end = sphere_flow(drift, X, self.time, steps=200)
        overlap = off_diagonal(end @ end.mT)[0].cpu().numpy()
        gap = np.abs(overlap - sa_flow(self.gamma0, self.time, beta, n, rtol=1e-11)).max()
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

    tiers: ClassVar = {
        "ci": {"heads": (1, 16, 256), "etas": (0.025, 0.1, 0.4), "depths": (4, 16, 64), "replicates": 192},
        "cpu": {},
    }
    tiny: ClassVar = {"heads": (1, 4), "etas": (0.1,), "depths": (4, 8), "replicates": 48}
    deterministic: ClassVar = {"m_ode": 1e-7}

    def conditions(self) -> list[dict]:
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
        m_ode = (1 + (self.n - 1) * sa_flow(self.gamma0, eta * L, self.beta, self.n, rtol=1e-10)) / self.n
        return rows({"replicate": range(replicas)}, {"m": chain.mean_overlap[-1], "m_ode": m_ode})
