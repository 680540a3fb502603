"""Attention as a flow of particles: which energy falls, and the limit of narrow kernels.

symbol    name      meaning                                                              axes
x         x         particles, each of weight 1/n                                        (n, d)
E         energy    OT_1(mu, mu), cost |x - y|^2 / 2                                     scalar
rho       -         a density on the circle; score is (ln rho)'                          (points,)
"""

from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab import measure
from derived.lab.claims import computed, on_page, within
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, GREEN, INK, MUTED, THEORY, beside, largest, panel_label, plain_log
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .model.flows import NORMALISERS, limit_drift, self_transport, sinkhorn_drift, softmax_drift

DRIFTS = {"softmax": softmax_drift, "sinkhorn": sinkhorn_drift}


@dataclass(frozen=True, kw_only=True)
class Particles(Experiment):
    """SK-15.c: particles that move up both drifts from the same start, x' = A x - x, by Heun's rule.

    Rows: normaliser, instance, step, time, particle, x, y; energy of the whole cloud, the same for its particles, and
    rise: what the energy gained since the step before (NaN at the start).
    """

    instances: int = 4
    n: int = 24
    steps: int = 60
    length: float = 0.1
    spread: float = 1.5

    tiers: ClassVar = {
        "ci": {"instances": 1, "n": 16, "steps": 30},
        "cpu": {},
    }
    tiny: ClassVar = {"n": 5, "steps": 8}

    def conditions(self) -> list[dict]:
        return [{"normaliser": name} for name in NORMALISERS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        drift, tables = DRIFTS[condition["normaliser"]], []
        for instance in range(self.instances):
            generator = stream(seed, "particles", instance)
            x = self.spread * torch.randn(self.n, 2, generator=generator, dtype=torch.float64)
            before = torch.nan
            for step in range(self.steps + 1):
                energy = float(self_transport(x))
                columns = {"x": x[:, 0], "y": x[:, 1], "energy": energy, "rise": energy - before}
                table = rows({"particle": range(self.n)}, columns)
                tables.append(table.assign(instance=instance, step=step, time=step * self.length))
                first = drift(x)
                x, before = x + self.length / 2 * (first + drift(x + self.length * first)), energy
        return pd.concat(tables, ignore_index=True)


@dataclass(frozen=True, kw_only=True)
class HeatLimit(Experiment):
    """SK-16: the drift over the squared bandwidth against the score, on the circle, by quadrature.

    Rows: normaliser, width, x, drift (over width^2), score; slope: least squares of the first on the second.
    """

    widths: tuple[float, ...] = (0.4, 0.2, 0.1, 0.05)
    num: int = 512

    tiny: ClassVar = {"widths": (0.2, 0.05)}
    deterministic: ClassVar = {"slope": 1e-6}

    def conditions(self) -> list[dict]:
        return [{"normaliser": name, "width": width} for name in NORMALISERS for width in self.widths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        width = condition["width"]
        found = limit_drift(width, condition["normaliser"], self.num)
        drift = found.drift / width**2
        slope = float((drift @ found.score) / (found.score @ found.score))
        every = slice(None, None, 8)  # enough for a curve
        return rows({"x": found.x[every]}, {"drift": drift[every], "score": found.score[every], "slope": slope})


# Claims: SK-15 and SK-16: attention as a flow of particles. Criteria and expected verdicts were written before the
# run, unless a claim says otherwise.

NARROW = "width < 0.06"


def descent(normaliser: str) -> measure.Measure:
    """What the energy falls by in a step over what it must along its own gradient, 2/n sum |dx_i|^2 / dt for particles
    that move by dx in the time dt; of all steps the farthest from one."""

    def ratio(rows: pd.DataFrame) -> Estimate:
        some = measure.chosen(rows, f"normaliser == '{normaliser}'").sort_values("step")
        moved = some.groupby(["instance", "particle"])[["x", "y", "time"]].diff()
        speed = (moved["x"] ** 2 + moved["y"] ** 2) / moved["time"]
        later = some["step"] > 0
        rise, mean = (measure.by_draw(each[later], some[later], ["instance", "step"]) for each in (some["rise"], speed))
        return measure.farthest("ratio", 1.0)(pd.DataFrame({"ratio": -rise.first() / (2 * mean.mean())}))

    return ratio


GRADIENT = (
    on_page("SK-15.a", source="prior", where="Sander et al. 2022"),
    on_page("SK-15.b", where="the control of SK-15.a"),
    computed(
        "SK-15.c",
        r"Particles that move with the Sinkhorn drift, $\dot x=AX-X$, lower the energy ${\rm OT}_1(\mu,\mu)$ at the rate of its gradient, $\frac2n\sum_i\lvert\dot x_i\rvert^2$.",
        Particles,
        descent("sinkhorn"),
        r"fall of the energy in a step of time $0.1$ over $\frac2n\sum_i\lvert\Delta x_i\rvert^2/0.1$, the step farthest from $1$",
        within(1, 0.01),  # the square of the step
        unit="ratio",
        control=descent("softmax"),
    ),
)

HEAT = (
    computed(
        "SK-16.a",
        r"With the scores $-\lVert x-y\rVert^2/2\varepsilon$ and $\varepsilon\to0$, the softmax drift is $\varepsilon\nabla\ln\rho$.",
        HeatLimit,
        measure.farthest("slope", 1.0, f"normaliser == 'softmax' and {NARROW}"),
        r"drift$/\varepsilon$ on $\nabla\ln\rho$, slope at $\sqrt\varepsilon=0.05$",
        within(1, 0.02),
        unit="slope",
        control=measure.farthest("slope", 1.0, f"normaliser == 'sinkhorn' and {NARROW}"),
        source="prior",
        where="Sander et al. 2022; exact form ours",
    ),
    computed(
        "SK-16.b",
        r"With the same scores, if the potential converges with its gradient, the Sinkhorn drift is half of that, $\frac\varepsilon2\nabla\ln\rho$, so that its flow with the sign reversed is the heat equation.",
        HeatLimit,
        measure.farthest("slope", 0.5, f"normaliser == 'sinkhorn' and {NARROW}"),
        r"drift$/\varepsilon$ on $\nabla\ln\rho$, slope at $\sqrt\varepsilon=0.05$",
        within(0.5, 0.01),
        unit="slope",
        control=measure.farthest("slope", 0.5, f"normaliser == 'softmax' and {NARROW}"),
        source="prior",
        where="Sander et al. 2022; exact form ours",
    ),
)


# Figures: Tokens as particles, and their limit: rows in, a figure with its alt text as label out.
#
# mark                  meaning
# blue, green           softmax, Sinkhorn
# line in INK           theory
# sequential colours    time

NAMES = {"softmax": ("softmax", BLUE, "o"), "sinkhorn": ("Sinkhorn", GREEN, "s")}
LIMITS = {"softmax": 1.0, "sinkhorn": 0.5}


def particles(rows: pd.DataFrame) -> Figure:
    """Paths under both drifts; rows of ``Particles``."""
    rows = largest(rows)
    rows = rows[rows["instance"] == 0]
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.9), sharex=True, sharey=True)
    words = []
    for ax, (key, (name, color, _)) in zip(axes, NAMES.items(), strict=False):
        part = rows[rows["normaliser"] == key]
        for _, path in part.groupby("particle"):
            ax.plot(path["x"], path["y"], color=MUTED, linewidth=0.7, alpha=0.7)
        for step, fill in ((part["step"].min(), "none"), (part["step"].max(), color)):
            cloud = part[part["step"] == step]
            ax.plot(cloud["x"], cloud["y"], "o", color=color, markerfacecolor=fill, markersize=4)
        ax.set(xlabel="$x_1$", aspect="equal")
        ax.margins(0.08)
        panel_label(ax, name)
        energy = part.groupby("time")["energy"].first()
        words.append(f"{name} from {energy.iloc[0]:.2f} to {energy.iloc[-1]:.2f}, largest {energy.max():.2f}")
    axes[0].set(ylabel="$x_2$")
    figure.set_label(
        "Paths of particles under the drift of softmax and of Sinkhorn, open at the start and filled at the end. "
        f"Energy along them: {'; '.join(words)}."
    )
    return figure


def heat_limit(rows: pd.DataFrame) -> Figure:
    """Drift against the score, and their slope against the bandwidth; rows of ``HeatLimit``."""
    rows = largest(rows)
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.1))
    reach = np.array([rows["score"].min(), rows["score"].max()])
    words = []
    for key, (name, color, marker) in NAMES.items():
        part = rows[rows["normaliser"] == key]
        narrow = part[part["width"] == part["width"].min()]
        axes[0].plot(reach, LIMITS[key] * reach, **THEORY)
        axes[0].plot(narrow["score"], narrow["drift"], marker, color=color, markersize=3, label=name)
        slope = part.groupby("width")["slope"].first()
        axes[1].axhline(LIMITS[key], **THEORY)
        axes[1].plot(slope.index, slope, marker, color=color, markerfacecolor="none")
        beside(axes[1], slope.index[1], slope.iloc[1], name, color, (0, 10 if key == "sinkhorn" else -10))
        words.append(f"{name} {slope.iloc[0]:.4f} at bandwidth {slope.index[0]:g}")
    axes[0].legend(fontsize=8)
    axes[0].set(xlabel=r"$\nabla\ln\rho$", ylabel=r"drift $/\,\varepsilon$")
    axes[1].set(xscale="log", xlabel=r"bandwidth $\varepsilon^{1/2}$", ylabel="slope", ylim=(0.4, 1.08))
    plain_log(axes[1].xaxis, sorted(rows["width"].unique()))
    words_above = r"softmax drifts along $\nabla\ln\rho$, Sinkhorn half as fast"
    figure.suptitle(words_above, x=0.02, ha="left", fontsize=10, color=INK)
    figure.set_label(
        f"Left: drift over epsilon against the gradient of the log density, on lines of slope 1 and 1/2. Right: the "
        f"slope against the bandwidth: {', '.join(words)}."
    )
    return figure
