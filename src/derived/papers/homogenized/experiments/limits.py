"""Limits with a drift: heads with a mean, from the ODE to the SDE."""

from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.flows import sa_flow
from ..model.gram import simulate_gram
from ..model.heads import HeadLaw
from .chains import start


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
