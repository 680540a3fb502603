"""Limits with a drift: heads with a mean, from the ODE to the SDE."""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from derived.lab.claims import on_page, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import by_draw, chosen, power
from derived.lab.plot import BLUE, DASHED, INK, SEQUENTIAL, SKY, THEORY, beside, largest, panel_label
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .chains import start
from .model.flows import sa_flow
from .model.gram import simulate_gram
from .model.heads import HeadLaw


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


# Claims: Claims on limits with a drift: flows and their correctors, decided on the page (HT-14, 15), and many heads
# (HT-16.b).
#
# Evidence, criterion and expected verdicts were written before the run, except where a claim says otherwise.

GROUPS = 24  # of draws of the weights: the variance within one is a replicate


def noise_power(rows: pd.DataFrame) -> Estimate:
    """The power of H with which the variance of m over the weights falls."""
    sweep = chosen(rows, "kind == 'heads'")
    size = sweep["replicate"].nunique() // GROUPS
    groups = sweep.assign(group=sweep["replicate"] // size).query(f"group < {GROUPS}")
    spread = by_draw(groups["m"], groups, ["group", "H"]).var().rename("m")
    return power("m", "H", unit=["group"])(spread.reset_index())


CLAIMS = (
    on_page(
        "HT-14.a",
        plain="Without noise, layers follow their differential equation with an error of the order of the step squared.",
        source="digest",
        where="version 1, `cor:ode1`; refuted before us by the formalisation, between grid points",
        paper_value="2",
    ),
    on_page("HT-14.b", amends="HT-14.a"),
    on_page("HT-15.a", source="digest", where="version 1, `cor:ode2`, `eq:SDE_ito_clean`", paper_value="2"),
    on_page("HT-15.b", amends="HT-15.a"),
    on_page(
        "HT-15.d",
        source="digest",
        where="version 1, `cor:ode2`; refuted before us by the formalisation",
        paper_value="2",
    ),
    on_page("HT-15.e", amends="HT-15.d"),
    statistic(
        "HT-16.b",
        r"At fixed $\eta L$, with $V=I+$noise, the variance of the mean overlap over the weights falls like $1/H$.",
        Interpolation,
        noise_power,
        r"slope of ln variance in $\ln H$",
        within(-1, 0.15),
        unit="power of $H$",
        control="if heads did not count the power would be 0 by construction, whatever the draws",
        horizon="1,024 heads",
        where="our wording, after `cor:SDE` of version 1; first tagged as retold",
    ),
)


# Figures: Figures of heads with a mean, from the ODE to the SDE.


def heads_to_ode(rows: pd.DataFrame) -> Figure:
    """Mean overlap over the draws of the weights, for growing numbers of heads; rows of ``Interpolation``."""
    rows = largest(rows)
    rows = rows[rows["kind"] == "heads"]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.0))
    sns.violinplot(rows, x="H", y="m", ax=axes[0], color=SKY, inner=None, linewidth=0.6, cut=0)
    flow = rows["m_ode"].iloc[0]
    axes[0].axhline(flow, **THEORY)
    beside(axes[0], rows["H"].nunique() - 1, flow, "flow of self-attention", INK, (0, 8), ha="right")
    variance = rows.groupby("H")["m"].var()
    axes[1].plot(variance.index, variance, "o", color=BLUE)
    axes[1].plot(variance.index, variance.iloc[-1] * variance.index[-1] / variance.index, **DASHED)
    axes[0].set(xlabel="heads $H$", ylabel="mean overlap $m$")
    axes[1].set(xscale="log", yscale="log", xlabel="heads $H$", ylabel="variance of $m$")
    panel_label(axes[0], "More heads, less scatter")
    panel_label(axes[1], "the variance falls like $1/H$")
    words = ", ".join(f"{v:.2g} at {H}" for H, v in variance.items())
    figure.set_label(f"Left: distribution of the mean overlap by number of heads. Right: its variance: {words}.")
    return figure


def phase_diagram(rows: pd.DataFrame, longest: float = 8.0) -> Figure:
    """Distance to the ODE over step and depth, with the line where the noise counts; rows of ``Interpolation``.

    The distance is that of ln(1 - m), which does not fade when all is collapsed; times eta L beyond ``longest``, where
    nothing is left to measure, are left out.
    """
    rows = largest(rows)
    rows = rows[(rows["kind"] == "phase") & (rows["eta"] * rows["L"] <= longest)]
    distance = (np.log1p(-rows["m"]) - np.log1p(-rows["m_ode"])).abs()
    error = distance.groupby([rows["eta"], rows["L"]]).mean().reset_index(name="distance")
    H = int(rows["H"].iloc[0])
    figure, ax = plt.subplots(figsize=(6.2, 3.9))
    dots = ax.scatter(error["eta"], error["L"], c=error["distance"], cmap=SEQUENTIAL, s=80, zorder=3)
    figure.colorbar(dots, ax=ax, label=r"distance to the ODE, in $\ln(1-m)$")
    low, high = error["L"].min() / 1.6, error["L"].max() * 1.6
    right = error["eta"].max() * 3.5
    eta = np.geomspace(error["eta"].min() / 1.5, right, 200)
    ax.plot(eta, H / eta**2, **DASHED)
    middle = np.sqrt(low * high)
    beside(ax, np.sqrt(H / middle), middle, "noise counts:\n" + r"$\eta^2L/H=1$", INK, (5, 8))
    panel_label(ax, "Yellow: far from the flow, where the noise counts")
    ax.set(
        xscale="log", yscale="log", xlabel=r"step $\eta$", ylabel="layers $L$", ylim=(low, high), xlim=(eta[0], right)
    )
    corner = error.sort_values("distance").iloc[[0, -1]]
    words = "; ".join(
        f"{d:.3f} at step {e:g} and {L:g} layers" for e, L, d in corner[["eta", "L", "distance"]].to_numpy()
    )
    figure.set_label(f"Distance to the ODE over step and number of layers, {H} heads. Least and largest: {words}.")
    return figure
