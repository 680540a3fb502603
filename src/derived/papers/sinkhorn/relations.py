"""What no coupling can do, a sink, a causal mask, a jump; and what scores do that read no context.

symbol   name     meaning                                                              axes
TV       tv       1/2 sum |P - P'|                                                     (instances,)
beta     beta     score of token 1, all others 0                                       scalar
theta    angle    the second text stands at +-(cos theta, sin theta)                   scalar
"""

import math
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from derived.lab import measure
from derived.lab.claims import RECORDED, at_least, on_page, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, DASHED, MUTED, RED, apart, beside, largest, panel_label, shades
from derived.lab.rng import stream

from .data.points import coupling_problems
from .model.couplings import largest_mass, rows_w1, total_variation
from .model.plan import entropic_plan, half_steps, iterates, sinkhorn


@dataclass(frozen=True, kw_only=True)
class Causal(Experiment):
    """Figure: Sinkhorn on a causally masked kernel, which ``sinkhorn`` itself refuses.

    Rows: n, instance, iteration; off_diagonal (mass off the diagonal), largest (the most that any lower-triangular
    coupling has there, by a linear program; one number for all instances), bound.
    """

    sizes: tuple[int, ...] = (2, 4, 8)
    instances: int = 20
    iterations: int = 30_000

    tiers: ClassVar = {"ci": {"sizes": (2, 4), "iterations": 6000}, "cpu": {}}
    tiny: ClassVar = {"sizes": (2, 3), "instances": 20, "iterations": 3000}

    def conditions(self) -> list[dict]:
        return [{"n": n} for n in self.sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, num = condition["n"], self.instances
        scores = torch.randn(num, n, n, generator=stream(seed, "causal", n), dtype=torch.float64)
        causal = torch.ones(n, n).tril()
        masked, uniform = scores.masked_fill(causal == 0, -torch.inf), scores.new_full((num, n), 1 / n)
        kept = sorted({round(each) for each in np.geomspace(1, self.iterations, 25)})
        found = []
        for step, (f, g, _) in enumerate(islice(iterates(masked, uniform, uniform), self.iterations + 1)):
            if step in kept:
                plan = (masked + f.unsqueeze(-1) + g.unsqueeze(-2)).exp()
                found.append(plan.sum(dim=(-2, -1)) - plan.diagonal(dim1=-2, dim2=-1).sum(dim=-1))
        largest = largest_mass(causal, 1 - torch.eye(n), uniform[0], uniform[0])
        columns = {"off_diagonal": torch.stack(found, dim=-1), "largest": largest, "bound": 1e-9}
        return rows({"instance": range(num), "iteration": kept}, columns)


def second_text(degrees: float) -> Tensor:
    """The tokens -+(cos theta, sin theta), (2, 2)."""
    angle = math.radians(degrees)
    point = torch.tensor([math.cos(angle), math.sin(angle)], dtype=torch.float64)
    return torch.stack([-point, point])


def transport(cost: Tensor, epsilon: float) -> Tensor:
    """The plan between uniform texts of equal length at temperature epsilon; at zero the best assignment."""
    if epsilon:
        return entropic_plan(cost, epsilon, tol=1e-12).plan
    best, plan = linear_sum_assignment(cost), torch.zeros_like(cost)
    plan[best] = 1 / len(cost)
    return plan


@dataclass(frozen=True, kw_only=True)
class FixedScores(Experiment):
    """SK-8: scores of a pair of tokens that read no other token, on the kind of texts that test learned relations.

    -beta |x - y|^2 where the order is kept; for the crossed relation the logarithm of the sum of e to that and the same
    with y reversed. Rows: target, normaliser, beta, draw; ratio: mean over texts of the distance by rows from the
    target, over that of the product coupling.
    """

    targets: tuple[str, ...] = ("comonotone", "crossed")
    betas: tuple[float, ...] = (20.0, 40.0, 80.0, 160.0, 320.0)
    draws: int = 16
    texts: int = 16
    n: int = 64

    tiers: ClassVar = {"ci": {"betas": (40.0, 160.0), "draws": 2, "texts": 4, "n": 16}, "cpu": {}}

    def conditions(self) -> list[dict]:
        return [{"target": target} for target in self.targets]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        target = condition["target"]
        drawn = coupling_problems(target, self.draws * self.texts, self.n, stream(seed, "fixed scores", target))
        x, y, a, b, plan = drawn
        alone = rows_w1(a.unsqueeze(-1) * b.unsqueeze(-2), plan, y)
        tables = []
        for beta in self.betas:
            kept, reversed = (-beta * (x.unsqueeze(-1) - place.unsqueeze(-2)).square() for place in (y, 1 - y))
            scores = kept if target == "comonotone" else torch.logaddexp(kept, reversed)
            coupling = sinkhorn(scores, a, b, tol=1e-5, max_iterations=2000).plan
            for name, found in (("softmax", half_steps(scores, 1, a, b).exp()), ("sinkhorn", coupling)):
                near, far = (each.view(self.draws, -1).mean(dim=-1) for each in (rows_w1(found, plan, y), alone))
                tables.append(
                    rows({"draw": range(self.draws)}, {"ratio": near / far}).assign(normaliser=name, beta=beta)
                )
        return pd.concat(tables, ignore_index=True)


def nearest(target: str) -> measure.Measure:
    """The distance from a relation at the longest texts that the best temperature and normaliser leave."""
    facts = {"unit": ["draw"], "by": ["normaliser", "beta"], "decides": measure.lowest}
    return measure.mean("ratio", f"target == '{target}'", **facts)


FIXED = statistic(
    "SK-8.h",
    r"Scores that read a pair of tokens and nothing of their texts, the logarithm of two Gaussian kernels, one of each order, stay farther from the even mixture of the orders kept and reversed, by rows, than half of what the product coupling does, by either normaliser and at every temperature that we tried.",
    FixedScores,
    nearest("crossed"),
    "mean over draws of texts of the distance by rows from the target at $n=64$, over that of the product coupling, normaliser and temperature that come nearest, jointly",
    at_least(0.5),
    unit="of the product coupling's distance",
    judged_at=RECORDED,
    control=nearest("comonotone"),
    where="nothing is learned here; a pilot of another seed, its rows thrown away, had shown about two thirds",
)


CLAIMS = (on_page("SK-10.b"), on_page("SK-12.b"), FIXED)
EXPERIMENTS = (Causal, FixedScores)


# Figures: What couplings cannot express: rows in, a figure with its alt text as label out.
#
# mark                  meaning
# blue, green           softmax, Sinkhorn
# dashed                what no coupling can go below, or a predicted slope
# sequential colours    number of tokens, or temperature


def cannot(causal: pd.DataFrame) -> Figure:
    """Three panels: the sink, exactly; the causal mask, rows of ``Causal``; the jump, computed here."""
    figure, axes = plt.subplots(3, 1, figsize=(5.5, 5.0))
    figure.get_layout_engine().set(w_pad=0.06)
    figure.set_label(" ".join([_sink(axes[0]), _causal(axes[1], largest(causal)), _jump(axes[2])]))
    return figure


def _sink(ax: Axes, n: int = 8) -> str:
    """`sk-sink` (a): the distance of softmax with a score on token 1, and that of all couplings."""
    score = np.linspace(0, 20, 81)
    away, lower = (n - 1) / (n - 1 + np.exp(score)), 1 - 1 / n
    ax.plot(score, away, color=BLUE)
    ax.axhline(lower, **DASHED)
    beside(ax, score[-1], lower, "no coupling comes nearer", MUTED, shift=(0, 8), ha="right")
    beside(ax, score[8], away[8], "softmax", BLUE, (8, 2))
    ax.set(xlabel="score of the first token", ylabel="distance (TV)", ylim=(-0.03, 1.15))
    panel_label(ax, "All at one token: softmax can, no coupling can")
    return f"Top: softmax comes within {away[-1]:.1e} of the sink; every coupling is {lower:.3f} away."


def _causal(ax: Axes, rows: pd.DataFrame) -> str:
    sizes, ends, places = sorted(rows["n"].unique()), [], []
    for n, color in zip(sizes, shades(len(sizes)), strict=True):
        mean = rows[rows["n"] == n].groupby("iteration")["off_diagonal"].mean()
        ax.plot(mean.index, mean, color=color)
        places.append(float(mean.iloc[-1]))
        ends.append(f"{mean.iloc[-1]:.1e} for n = {n}")
    for n, place, color in zip(sizes, np.exp(apart(np.log(places), 2.6)), shades(len(sizes)), strict=True):
        beside(ax, mean.index[-1], place, f"{n} tokens", color)
    ax.set_ylim(bottom=min(places) / 9)
    ax.plot(mean.index, 0.2 / mean.index, **DASHED)
    early = mean.index[len(mean) // 3]
    beside(ax, early, 0.2 / early, "like $1/T$", MUTED, shift=(-5, -7), ha="right")
    ax.set(xscale="log", yscale="log", xlabel="iteration $T$", ylabel="mass off\nthe diagonal")
    panel_label(ax, "None looks ahead: only the diagonal is left")
    return f"Middle: mass off the diagonal falls like 1/T, to {', '.join(ends)}."


def _jump(ax: Axes) -> str:
    """`sk-jump`: how far apart the plans on both sides of 90 degrees are, at temperature 0 and above."""
    shifts, epsilons, ends = (0.01, 0.1, 1.0, 10.0), (0.0, 0.05, 0.2, 1.0), []
    for epsilon, color in zip(epsilons, [RED, *shades(len(epsilons) - 1)], strict=True):
        jumps = []
        for shift in shifts:
            costs = [torch.cdist(second_text(0.0), second_text(90 + turn)).square() for turn in (-shift, shift)]
            jumps.append(float(total_variation(*(transport(cost, epsilon) for cost in costs))))
        ax.plot(shifts, jumps, "o-", color=color, markersize=3.5)
        ends.append((rf"$\varepsilon={epsilon:g}$" if epsilon else "no temperature", color, jumps))
    for (name, color, _), place in zip(ends, -apart([-jumps[-1] for *_, jumps in ends], 0.3), strict=True):
        beside(ax, shifts[-1], place, name, color, (8, 0), annotation_clip=False)
    ax.set(xscale="log", xlabel="degrees to either side", ylabel="distance (TV)", ylim=(-0.03, 1.35))
    panel_label(ax, "A tiny turn: without temperature the plan jumps")
    words = ", ".join(f"{jumps[0]:.3f} at {epsilon:g}" for epsilon, (*_, jumps) in zip(epsilons, ends, strict=True))
    return f"Bottom: plans on both sides of the tie, {shifts[-1]:g} degrees away, differ at temperature 0 and above: {words}."
