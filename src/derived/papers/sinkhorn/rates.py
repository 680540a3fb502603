"""How fast Sinkhorn converges: two rates, and over-relaxation.

symbol     name         meaning                                                         axes
d_H        distance     Hilbert's metric between e^f and its limit                      (instances,)
kappa^2    kappa2       Birkhoff's factor per iteration, tanh(Delta / 4)^2              (instances,)
sigma_2^2  sigma2       the local rate: second singular value of D_a^-1/2 P D_b^-1/2    (instances,)
omega*     omega_star   2 / (1 + sqrt(1 - sigma_2^2)), of rate omega* - 1               (instances,)
"""

from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab.claims import on_page
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, DASHED, GREEN, MUTED, THEORY, largest, panel_label
from derived.lab.rng import stream

from .data.points import random_weights
from .model.plan import iterates, sinkhorn
from .model.theory import birkhoff_coefficient, hilbert_distance, local_rate, optimal_relaxation

FLOOR = 1e-9  # below this a distance is made of roundings of potentials, some 1e-14 each, to within 1e-5


@dataclass(frozen=True, kw_only=True)
class Contraction(Experiment):
    """SK-3: the way to the limit, plain and over-relaxed, and what one iteration does to a small push.

    The push of size 1e-4 is along the second singular vector, the slowest direction. Rows: instance, omega ("plain" or
    "best"), iteration, distance, column_error, ratio (to the distance one iteration earlier; NaN at the start and
    below 1e-9), kappa2, sigma2, omega_star, predicted (the local rate), rate (of a pushed limit: one iteration where
    plain; where best, the geometric mean over iterations from the second on, as long as the push is above 1e-11).
    """

    instances: int = 20
    n: int = 12
    m: int = 10
    iterations: int = 60
    spreads: tuple[float, ...] = (0.3, 1.0, 2.0, 3.0)

    tiers: ClassVar = {"ci": {"instances": 4}, "cpu": {}}
    tiny: ClassVar = {"instances": 2, "spreads": (0.3, 2.0), "iterations": 30}

    def conditions(self) -> list[dict]:
        return [{"spread": spread} for spread in self.spreads]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        spread, num = condition["spread"], self.instances
        generator = stream(seed, "contraction")
        scores = spread * torch.randn(num, self.n, self.m, generator=generator, dtype=torch.float64)
        a, b = (random_weights((num, size), generator, least=0.5) for size in (self.n, self.m))
        limit = sinkhorn(scores, a, b, tol=1e-15, max_iterations=4000)
        sigma2 = local_rate(limit.plan)
        best = optimal_relaxation(sigma2)
        facts = {"kappa2": birkhoff_coefficient(scores) ** 2, "sigma2": sigma2, "omega_star": best}
        facts = {name: each.unsqueeze(-1) for name, each in facts.items()}
        tables = []
        for name in ("plain", "best"):
            omega = best if name == "best" else torch.ones_like(best)
            distance, error = self._way(scores, a, b, omega, limit.f)
            rate = _pushed(scores, a, b, omega, limit)
            ratio = torch.full_like(distance, torch.nan)
            there = (distance[:, 1:] > FLOOR) & (distance[:, :-1] > FLOOR)
            ratio[:, 1:] = torch.where(there, distance[:, 1:] / distance[:, :-1], torch.nan)
            columns = {**facts, "distance": distance, "column_error": error, "ratio": ratio}
            columns |= {"predicted": (best - 1 if name == "best" else sigma2).unsqueeze(-1), "rate": rate.unsqueeze(-1)}
            index = {"instance": range(num), "iteration": range(self.iterations)}
            tables.append(rows(index, columns).assign(omega=name))
        return pd.concat(tables, ignore_index=True)

    def _way(self, scores, a, b, omega: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Distances of f from its limit, and column errors, (instances, iterations); one problem has one omega."""
        distance, error = [], []
        for i in range(len(scores)):
            way = islice(iterates(scores[i], a[i], b[i], float(omega[i])), self.iterations)
            steps = [(hilbert_distance(each.f, target[i]), each.residual) for each in way]
            distance.append(torch.stack([each for each, _ in steps]))
            error.append(torch.stack([each for _, each in steps]))
        return torch.stack(distance), torch.stack(error)


def _pushed(scores: Tensor, a: Tensor, b: Tensor, omega: Tensor, limit) -> Tensor:
    """The rate at which a push of 1e-4 along the slowest direction dies, in the norm weighted by a, (instances,)."""
    M = limit.plan / (a.sqrt().unsqueeze(-1) * b.sqrt().unsqueeze(-2))
    left, _, _ = torch.linalg.svd(M)
    f, g = limit.f + 1e-4 * left[..., 1] / a.sqrt(), limit.g
    omega, sizes = omega.unsqueeze(-1), []
    for _ in range(26):
        push = f - limit.f
        push = push - (a * push).sum(dim=-1, keepdim=True)  # the gauge
        sizes.append((a * push.square()).sum(dim=-1).sqrt())
        g = (1 - omega) * g + omega * (b.log() - (scores + f.unsqueeze(-1)).logsumexp(dim=-2))
        f = (1 - omega) * f + omega * (a.log() - (scores + g.unsqueeze(-2)).logsumexp(dim=-1))
    if bool((omega == 1).all()):
        return sizes[1] / sizes[0]
    sizes = torch.stack(sizes)
    last = (sizes > 1e-11).cumprod(dim=0).sum(dim=0) - 1  # the last iteration above rounding
    first = torch.minimum(last - 1, torch.full_like(last, 2))
    ratio = sizes.gather(0, last.unsqueeze(0)) / sizes.gather(0, first.unsqueeze(0))
    return ratio.squeeze(0) ** (1 / (last - first))


CLAIMS = (on_page("SK-3.b", source="prior", where="Franklin and Lorenz 1989; Knight 2008"),)


# Figures: How fast the iteration is: rows in, a figure with its alt text as label out.
#
# mark                    meaning
# blue, green             Sinkhorn's iteration, over-relaxed
# line in INK, dashed     predicted rate, global bound
# sequential colours      standard deviation of the scores
# filled, open marker     recorded, live

SHOWN = (1.0, 3.0)  # spreads of the two panels


def contraction(rows: pd.DataFrame) -> Figure:
    """Distance of the potential from its limit against the iteration; rows of ``Contraction``."""
    rows = largest(rows)
    rows = rows[rows["instance"] == 0]
    figure, axes = plt.subplots(1, len(SHOWN), figsize=(6.4, 3.4), sharey=True)
    words = []
    for ax, spread in zip(axes, SHOWN, strict=True):
        part = rows[rows["spread"] == spread]
        facts, start = part.iloc[0], float(part.query("iteration == 0 and omega == 'plain'")["distance"].iloc[0])
        for omega, color in (("plain", BLUE), ("best", GREEN)):
            way = part[(part["omega"] == omega) & (part["distance"] > 1e-12)]
            ax.plot(way["iteration"], way["distance"], "o", color=color, markersize=3)
            rate, last = way["predicted"].iloc[0], way.iloc[-1]
            steps = np.arange(last["iteration"] + 1)
            ax.plot(steps, last["distance"] * rate ** (steps - last["iteration"]), **THEORY)
        steps = np.arange(part["iteration"].max() + 1)
        ax.plot(steps, start * facts["kappa2"] ** steps, **DASHED)
        ax.set(yscale="log", ylim=(1e-12, 1e3), xlabel="iteration $T$")
        panel_label(ax, f"scores of deviation {spread:g}")
        words.append(
            f"at {spread:g} the factors are {facts['kappa2']:.4f} (bound), {facts['sigma2']:.3f} (local rate), "
            f"{facts['omega_star'] - 1:.3f} (over-relaxed)"
        )
    axes[0].set(ylabel=r"$\mathrm{osc}(f^T-f)$")
    at = {"xycoords": "axes fraction"}
    axes[1].annotate(r"bound, $\kappa^{2T}$", (0.55, 0.9), color=MUTED, **at)
    axes[1].annotate(r"Sinkhorn, $\sigma_2^{2T}$", (0.55, 0.55), color=BLUE, **at)
    axes[1].annotate("over-\nrelaxed", (0.03, 0.2), color=GREEN, **at)
    figure.suptitle("The bound promises little; points follow the rate near the limit", x=0.02, ha="left", size=10)
    figure.set_label(
        "Distance from the limit against the iteration, logarithmic, for two spreads of the scores. Measured points "
        f"run along straight lines of the predicted slopes: {'; '.join(words)}."
    )
    return figure


EXPERIMENTS = (Contraction,)
