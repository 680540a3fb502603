"""One layer of fresh heads: the rates of one token, the moments of a head, drift and bracket of overlaps.

Throughout sigma_V^2 = 1/d, h = eta^2/H, tau = h * layer; a *replicate* is a batch of independent heads and is itself
independent of the others.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.flows import one_token_rates
from ..model.heads import Heads, barycentre, equiangular_tokens, layer_step, matched_law, tangent, uniform_tokens
from ..model.overlaps import overlap_bracket, overlap_drift


@dataclass(frozen=True, kw_only=True)
class OneToken(Experiment):
    """HT-1: the factors of degree one and two of a single layer, by quadrature, against the diffusion's.

    Rows: d, h, degree, rate (-ln of the factor over h), exact, chain and limit (the moments at tau), error.
    """

    widths: tuple[int, ...] = (2, 3, 8, 64)
    steps: tuple[float, ...] = (0.02, 0.01, 0.005, 0.0025)
    tau: float = 1.0

    tiny: ClassVar = {"widths": (3,)}
    deterministic: ClassVar = {"rate": 1e-9, "chain": 1e-9}

    def conditions(self) -> list[dict]:
        return [{"d": d} for d in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        d, table = condition["d"], []
        for h in self.steps:
            for degree, rate, exact in zip((1, 2), one_token_rates(h, d), ((d - 1) / (2 * d), 1.0), strict=True):
                share = 1 if degree == 1 else 1 - 1 / d
                moments = {"chain": share * np.exp(-rate * self.tau), "limit": share * np.exp(-exact * self.tau)}
                table.append({"h": h, "degree": degree, "rate": rate, "exact": exact, **moments})
        return pd.DataFrame(table).assign(error=lambda each: each["chain"] - each["limit"])


@dataclass(frozen=True, kw_only=True)
class HeadMoments(Experiment):
    """HT-2: mean, covariance and variance proxy of Gaussian heads, at random tokens and at coinciding ones.

    Rows: tokens, replicate, quantity (mean, diagonal, off-diagonal, proxy), value, target. ``diagonal`` is
    d B_1(x_i) B_1(x_j) - <m_i, m_j> with the same heads, so that its mean must vanish.
    """

    n: int = 4
    d: int = 6
    logit_std: float = 2.0
    replicates: int = 48
    heads: int = 8000

    tiers: ClassVar = {"ci": {"heads": 2500}, "cpu": {}}
    tiny: ClassVar = {"replicates": 4, "heads": 50}

    def conditions(self) -> list[dict]:
        return [{"tokens": name} for name in ("random", "random again", "coinciding")]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        name, d = condition["tokens"], self.d
        X = uniform_tokens(self.n, d, generator=stream(seed, "tokens", name), dtype=dtype)[0]
        X = (X[:1].expand_as(X) if name == "coinciding" else X).to(device)
        g = stream(seed, "heads", name, device=device)
        law = matched_law(d, self.logit_std)
        heads = law.draw(g, (self.replicates, self.heads), beta=1.0, device=device, dtype=dtype)
        m = barycentre(X, heads.A, 1.0)
        B = m @ heads.V.mT
        inner = (m[..., 0, :] * m[..., 1, :]).sum(dim=-1)
        proxy = tangent(X, B)[..., 0, :].square().sum(dim=-1)
        values = {"mean": B[..., 0, 0], "diagonal": d * B[..., 0, 0] * B[..., 1, 0] - inner}
        values |= {"off-diagonal": d * B[..., 0, 0] * B[..., 1, 1], "proxy": proxy}
        means = torch.stack([value.mean(dim=-1) for value in values.values()])
        target = [[(d - 1) / d if quantity == "proxy" else 0.0] for quantity in values]
        table = rows(
            {"quantity": list(values), "replicate": range(self.replicates)}, {"value": means, "target": target}
        )
        return table[["replicate", "quantity", "value", "target"]]


@dataclass(frozen=True, kw_only=True)
class OneLayer(Experiment):
    """HT-3, HT-4: drift and bracket of overlaps over one layer, V and -V in pairs, against the formulas.

    The formulas take s from the same query-key matrices. Rows: tokens, replicate, pair, drift, drift_theory, bracket,
    bracket_theory, retold (the drift at d = infinity).
    """

    n: int = 3
    d: int = 8
    logit_std: float = 2.0
    simplex: tuple[int, int, float] = (4, 4, 0.3)  # n, d, gamma
    eta: float = 0.03
    H: int = 2
    replicates: int = 48
    samples: int = 12_000

    tiers: ClassVar = {"ci": {"samples": 3000}, "cpu": {}}
    tiny: ClassVar = {"replicates": 4, "samples": 50}

    def conditions(self) -> list[dict]:
        return [{"tokens": "random"}, {"tokens": "simplex"}]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        name = condition["tokens"]
        n, d, gamma = self.simplex if name == "simplex" else (self.n, self.d, None)
        if name == "simplex":
            X = equiangular_tokens(n, d, gamma, dtype=dtype)[0].to(device)
        else:
            X = uniform_tokens(n, d, generator=stream(seed, "tokens", name), dtype=dtype)[0].to(device)
        g, h = stream(seed, "layer", name, device=device), self.eta**2 / self.H
        first, second = torch.triu_indices(n, n, 1).unbind(dim=0)
        R, replicates = X @ X.mT, []
        law = matched_law(d, self.logit_std)
        for replicate in range(self.replicates):  # a replicate fills the memory that one batch may take
            heads = law.draw(g, (self.samples, self.H), beta=1.0, device=device, dtype=dtype)
            m = barycentre(X, heads.A, 1.0)
            s = (m @ m.mT).mean(dim=(0, 1))
            each = X.expand(self.samples, n, d)
            up, down = (layer_step(each, self.eta, Heads(sign * heads.V, heads.A, heads.beta)) for sign in (1.0, -1.0))
            up, down = (Y @ Y.mT for Y in (up, down))
            # V and -V as antithetic pair: the half sum of the two changes is the drift, the half difference the noise.
            tables = {
                "drift": ((up + down) / 2 - R).mean(dim=0) / h,
                "drift_theory": overlap_drift(R, s, d),
                "bracket": ((up - down) / 2).square().mean(dim=0) / h,
                "bracket_theory": overlap_bracket(R, s, d),
                "retold": s - R * (s.diagonal()[:, None] + s.diagonal()) / 2,
            }
            pairs = {"replicate": replicate, "pair": [f"{i}-{j}" for i, j in zip(first, second, strict=True)]}
            replicates.append(rows(pairs, {key: value[first, second] for key, value in tables.items()}))
        return pd.concat(replicates, ignore_index=True)
