"""Memories: how many other patterns linear and softmax attention bear, by one criterion on one ensemble (OLS-15).

d     dimension of the patterns, which lie on the sphere of radius sqrt(d)
K     number of other patterns at which the mean damage of one step reaches one half, at least 1
damage   sin^2 of the angle to the stored pattern after one step over that before; or 1 less its share of the weight
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab import measure
from derived.lab.claims import RECORDED, on_page, statistic, within
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure
from derived.lab.plot import BLUE, INK, RED, THEORY, beside, largest, panel_label, points
from derived.lab.rng import stream

from .model import memory

HALF = 0.5
FINE, MOST = 8, 1024  # the load grows by an eighth from one point of the search to the next, and by no more at once


def edge(damage: Callable[[Tensor, int], Tensor], replicates: int, draw: Callable[[int], Tensor]) -> np.ndarray:
    """Per replicate the load K at which the mean damage over its trials first reaches 1/2, interpolated in ln K.

    ``draw(count)`` are ``count`` further patterns, which ``damage(patterns, K)`` adds to the memory; it returns the
    damage of each trial, (replicates, trials), with K other patterns in all. 1 where one pattern is too many.
    """
    found, K, before = np.full(replicates, np.nan), 1, np.zeros(replicates)
    added = 1
    while np.isnan(found).any():
        now = damage(draw(added), K).mean(dim=-1).cpu().numpy()
        over = np.isnan(found) & (now >= HALF)
        share = (HALF - before[over]) / (now[over] - before[over])
        found[over] = 1.0 if added == K else (K - added) * (K / (K - added)) ** share
        before, added = now, min(max(1, K // FINE), MOST)
        K += added
    return found


@dataclass(frozen=True, kw_only=True)
class SoftmaxCapacity(Experiment):
    """OLS-15: the load K of one step of attention, for linear and for softmax attention, on the same kind of draws.

    ``repair``: from a cue at overlap omega, K at which the step no longer halves sin^2 of the angle; patterns on the
    sphere. ``weight``: from the stored pattern itself, K at which it has half of the softmax weight; on the sphere and
    for signs. step "attention", and "nothing": the identity, and uniform weights. Rows: question, attention, ensemble,
    d, step, replicate, K.
    """

    draws: str = "memories, recorded"
    linear_sizes: tuple[int, ...] = (64, 128, 256, 512)
    softmax_sizes: tuple[int, ...] = (8, 12, 16)
    square: float = 0.8  # omega^2
    beta: float = 1.0
    replicates: int = 24
    linear_trials: int = 256
    softmax_trials: int = 64

    tiers: ClassVar = {
        "ci": {"draws": "memories", "linear_sizes": (32, 64, 128), "softmax_sizes": (6, 8, 10), "linear_trials": 64},
        "cpu": {},
    }

    def conditions(self) -> list[dict]:
        kinds = (
            ("repair", "linear", "sphere", self.linear_sizes),
            ("repair", "softmax", "sphere", self.softmax_sizes),
            ("weight", "softmax", "sphere", self.softmax_sizes),
            ("weight", "softmax", "signs", self.softmax_sizes),
        )
        names = ("question", "attention", "ensemble", "d")
        return [dict(zip(names, (*kind, d), strict=True)) for *kind, sizes in kinds for d in sizes]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        question, attention, ensemble, d = (condition[name] for name in ("question", "attention", "ensemble", "d"))
        generator = stream(seed, self.draws, question, attention, ensemble, d, device=device)
        shape = (self.replicates, self.linear_trials if attention == "linear" else self.softmax_trials)

        def draw(count: int) -> Tensor:
            return memory.random_patterns(*shape, count, d, ensemble=ensemble, generator=generator, dtype=dtype)

        stored = draw(1).squeeze(-2)
        cue = stored if question == "weight" else memory.damaged(stored, self.square**0.5, generator)
        answer, weight = torch.zeros_like(stored), torch.zeros(shape, dtype=dtype, device=stored.device)

        def add(patterns: Tensor) -> Tensor:
            """The weights of some patterns, up to a factor that all share."""
            overlap = (patterns @ cue.unsqueeze(-1)).squeeze(-1) / d
            new = overlap if attention == "linear" else torch.exp(self.beta * d * (overlap - 1))
            answer.add_((new.unsqueeze(-2) @ patterns).squeeze(-2))
            weight.add_(new.sum(dim=-1))
            return new

        own = add(stored.unsqueeze(-2)).squeeze(-1)

        def damage(patterns: Tensor, K: int) -> Tensor:
            add(patterns)
            if question == "weight":
                return 1 - own / weight
            return memory.across(answer, stored) / (1 - self.square)

        K = edge(damage, self.replicates, draw)
        nothing = np.ones(self.replicates)  # damage 1, or 1 - 1/(K+1) >= 1/2, from the first other pattern on
        return rows(
            {"step": ["attention", "nothing"], "replicate": range(self.replicates)}, {"K": np.stack([K, nothing])}
        )


EXPERIMENTS = (SoftmaxCapacity,)

# Claims ---------------------------------------------------------------------------------------------------------------

WHERE = "question == '{}' and attention == '{}' and ensemble == '{}' and step == '{}'"
FACTS = {"judged_at": RECORDED, "horizon": "$d=512$ for linear and $16$ for softmax attention"}
OVERLAP = SoftmaxCapacity.square**0.5
LOOKS = 3
LOOKED = (
    "at the level of three looks, since two runs at smaller dimensions came before, of which the first left two of "
    "these four claims undecided"
)


def exponent(step: str) -> Measure:
    """The power of d with which K of linear attention grows."""
    return measure.power("K", "d", WHERE.format("repair", "linear", "sphere", step), looks=LOOKS)


def rate(question: str, ensemble: str, step: str = "attention") -> Measure:
    """The slope of ln K in d."""
    return measure.slope("K", "d", WHERE.format(question, "softmax", ensemble, step), y=np.log, looks=LOOKS)


CLAIMS = (
    statistic(
        "OLS-15.a",
        r"One step of linear attention from a cue at squared overlap $0.8$ halves $\sin^2$ of the angle to its pattern "
        r"up to a number of other patterns that grows linearly with the dimension $d$ (patterns on the sphere).",
        SoftmaxCapacity,
        exponent("attention"),
        rf"slope of $\ln K$ against $\ln d$, {LOOKED}",
        within(1, 0.1),
        control=exponent("nothing"),  # the identity
        source="paper",
        where="abstract: “linear”; criterion and ensemble are ours",
        plain="As a memory, linear attention bears a number of patterns that grows linearly with its dimension.",
        paper_value="linear",
        unit="power of d",
        **FACTS,
    ),
    statistic(
        "OLS-15.d",
        r"One step of softmax attention at $\beta=1$ from a cue at squared overlap $0.8$ halves $\sin^2$ of the angle "
        "to its pattern up to a number of other patterns that grows exponentially, at about "
        rf"${memory.softmax_rate(1.0, OVERLAP):.3f}$ nats a dimension (patterns on the sphere).",
        SoftmaxCapacity,
        rate("repair", "sphere"),
        rf"slope of $\ln K$ against $d$, beside the rate $\beta\omega-c(\beta)$ for large $d$, {LOOKED}",
        within(round(float(memory.softmax_rate(1.0, OVERLAP)), 3), 0.1),
        control=rate("repair", "sphere", "nothing"),  # the identity
        source="paper",
        where="abstract: “exponential”; criterion, ensemble and rate are ours",
        plain="As a memory, softmax attention bears a number of patterns that grows exponentially with its dimension.",
        paper_value="exponential",
        unit="nats a dimension",
        **FACTS,
    ),
    statistic(
        "OLS-15.k",
        r"A stored pattern on the sphere keeps more than half of the softmax weight at $\beta=1$ up to a number of "
        r"other patterns that grows like $e^{0.6226\,d}$.",
        SoftmaxCapacity,
        rate("weight", "sphere"),
        rf"slope of $\ln K$ against $d$, {LOOKED}",
        within(0.6226, 0.03),
        control=rate("weight", "sphere", "nothing"),  # uniform weights
        source="prior",
        where="Lucibello and Mézard 2024",
        paper_value="0.6226",
        unit="nats a dimension",
        **FACTS,
    ),
    statistic(
        "OLS-15.l",
        r"A stored pattern of fair signs keeps more than half of the softmax weight at $\beta=1$ up to a number of "
        r"other patterns that grows like $e^{0.5662\,d}$.",
        SoftmaxCapacity,
        rate("weight", "signs"),
        rf"slope of $\ln K$ against $d$, {LOOKED}",
        within(0.5662, 0.03),
        control=rate("weight", "signs", "nothing"),  # uniform weights
        source="prior",
        where="the same sum for signs, $1-\\ln\\cosh1$",
        paper_value="0.5662",
        unit="nats a dimension",
        **FACTS,
    ),
    on_page("OLS-15.m"),
)

# Figure ---------------------------------------------------------------------------------------------------------------


def loads(rows: pd.DataFrame) -> Figure:
    """Other patterns that one step bears against the dimension, linear and softmax attention; ``SoftmaxCapacity``."""
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.4))
    rows = rows[(rows["question"] == "repair") & (rows["step"] == "attention")]
    overlap, said = SoftmaxCapacity.square**0.5, {}
    for ax, attention, color in zip(axes, ("linear", "softmax"), (BLUE, RED), strict=True):
        part = rows[rows["attention"] == attention]
        points(ax, part, "d", "K", color)
        means = largest(part).groupby("d")["K"].mean()
        d = np.linspace(means.index[0], means.index[-1], 50)
        if attention == "linear":
            ax.plot(d, memory.linear_load(overlap) * d, **THEORY)
        else:
            slope = float(memory.softmax_rate(SoftmaxCapacity.beta, overlap))
            last, top = means.index[-1], means.iloc[-1]
            ax.plot(d, top * np.exp(slope * (d - last)), **THEORY)
            beside(ax, d[25], top * np.exp(slope * (d[25] - last)), f"slope {slope:.3f}", INK, (8, -10))
        ax.set(xlabel="dimension $d$")
        said[attention] = (means.index[-1], means.iloc[-1])
    axes[0].set_ylabel("other patterns $K$ that one step bears")
    axes[1].set_yscale("log")
    panel_label(axes[0], "Linear attention: in proportion to $d$")
    panel_label(axes[1], "Softmax: exponentially in $d$")
    figure.set_label(
        f"Other patterns that one step bears: linear attention {said['linear'][1]:.0f} in {said['linear'][0]} "
        f"dimensions, on a straight line; softmax attention {said['softmax'][1]:.0f} in {said['softmax'][0]}, "
        f"on a line of a logarithmic axis."
    )
    return figure
