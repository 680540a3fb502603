"""Common noise: two prompts under the same weights, and the control with a value matrix for each token.

Evidence, criterion and expected verdicts were written before the run.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from derived.lab import stats
from derived.lab.claims import at_least, at_most, on_page, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import jointly, lowest, mean
from derived.lab.plot import BLUE, RED, beside, largest, panel_label, points
from derived.lab.rng import stream
from derived.lab.stats import Estimate

from .chains import layer_counts, off_diagonal, start
from .model.chain import simulate_chain
from .model.gram import simulate_gram
from .model.heads import matched_law, normalise


@dataclass(frozen=True, kw_only=True)
class Prompts(Experiment):
    """HT-17: two prompts of the same distribution under the same weights, for growing numbers of tokens.

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

    tiers: ClassVar = {
        "ci": {"tokens": (32, 128), "replicates": 20, "h": 0.1},
        "cpu": {"tokens": (32, 64, 128, 256, 512, 1024), "replicates": 10},
        "gpu": {"parts": 64, "replicates": 2},  # of 8,192 tokens, whose overlaps alone are half a gigabyte
    }
    tiny: ClassVar = {"tokens": (8, 16), "parts": 2, "replicates": 4, "d": 4}

    def conditions(self) -> list[dict]:
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
            chain = simulate_chain(
                X, L, self.h**0.5, 1, law, 1.0, generator=g, method="literal", record=[L], keep_tokens=True
            )
            means.append(chain.tokens[-1].mean(dim=-2).cpu())
        columns = {f"mean_{k}": means[0][:, k] for k in range(self.d)}
        distance = (means[0] - means[1]).square().sum(dim=-1)
        return rows({"replicate": range(self.replicates)}, {"distance": distance, **columns})


@dataclass(frozen=True, kw_only=True)
class PrivateNoise(Experiment):
    """The negative control: a separate value matrix for every token. Rows: noise, replicate, layer, tau, gamma."""

    d: int = 64
    n: int = 8
    logit_std: float = 1.0
    gammas: tuple[float, ...] = (0.0, 0.5)
    h: float = 0.04
    tau: float = 6.0
    points: int = 7
    replicates: int = 400

    tiers: ClassVar = {"ci": {"replicates": 100, "points": 5}, "cpu": {}}
    tiny: ClassVar = {"replicates": 4, "points": 3, "tau": 1.0}

    def conditions(self) -> list[dict]:
        return [{"noise": noise, "gamma0": gamma} for noise in ("common", "private") for gamma in self.gammas]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        noise, gamma0 = condition["noise"], condition["gamma0"]
        eta = math.sqrt(self.h)
        layers = layer_counts(np.linspace(0, self.tau, self.points), eta, 1)
        g = stream(seed, "private", noise, str(gamma0), device=device)
        G, law = start(self.n, gamma0, self.replicates, device, dtype), matched_law(self.d, self.logit_std)
        common = noise == "common"
        chain = simulate_gram(G, layers[-1], eta, 1, law, 1.0, generator=g, record=layers, common=common)
        return rows(
            {("layer", "tau"): (layers, chain.tau), "replicate": range(self.replicates)},
            {"gamma": off_diagonal(chain.gram).mean(dim=-1)},
        )


def variance_over_weights(rows: pd.DataFrame, level: float) -> Estimate:
    """The variance of the mean token over the weights, from disjoint pairs of draws."""
    columns = [name for name in rows.columns if name.startswith("mean_")]
    values = rows.sort_values(["part", "replicate"])[columns].to_numpy()
    half = len(values) // 2
    return stats.mean(((values[:half] - values[half : 2 * half]) ** 2).sum(axis=1) / 2, level)


common_noise = jointly(variance_over_weights, ["n"], lowest)
kept_overlap = mean("gamma / gamma0", "noise == 'private' and gamma0 > 0 and layer == layer.max()")

CLAIMS = (
    statistic(
        "HT-17.b",
        r"The noise of the weights does not average out as $n$ grows.",
        Prompts,
        common_noise,
        r"variance of the mean token over the weights, at the $n$ where it is smallest",
        at_least(0.05),
        plain="The noise of the weights does not average out, up to the largest number of tokens tried.",
        unit="squared length",
        source="digest",
        where="version 1, `eq: the.spde`",
        control=mean("distance / 2", by=["n"], decides=lowest),  # over prompts, which does average out
        horizon="8,192 tokens",
        scale={"gpu": "ours"},
    ),
    statistic(
        "HT-17.d",
        r"Negative control: with private noise an overlap of $\frac12$ is forgotten.",
        PrivateNoise,
        kept_overlap,
        "final over initial overlap",
        at_most(0.3),
        unit="share of the overlap",
        control=mean("gamma / gamma0", "noise == 'common' and gamma0 > 0 and layer == layer.max()"),
    ),
    on_page("HT-23"),
)


def control(private: pd.DataFrame, prompts: pd.DataFrame) -> Figure:
    """An overlap of 1/2 under shared and private noise; what prompts and what weights decide. Rows of ``PrivateNoise``
    and of ``Prompts``."""
    private, prompts = largest(private), largest(prompts)
    figure, axes = plt.subplots(1, 2, figsize=(6.4, 3.4))
    said = []
    for noise, colour, words in (("common", BLUE, "one push for all"), ("private", RED, "a push for each token")):
        part = private[(private["noise"] == noise) & (private["gamma0"] > 0)]
        means = points(axes[0], part, "tau", "gamma", colour)
        axes[0].plot(means["tau"], means["value"], color=colour, linewidth=0.8)
        end = means.iloc[-1]
        beside(axes[0], end["tau"], end["value"], words, colour, (0, -16 if noise == "common" else 38), ha="right")
        said.append(f"{words}: from {means['value'].iloc[0]:.2f} to {end['value']:.2f}")
    axes[0].set(xlabel=r"clock $\tau$", ylabel="mean overlap of pairs", ylim=(-0.05, 1.05))
    panel_label(axes[0], "Only a shared push gathers")
    means = points(axes[1], prompts, "n", "distance", BLUE)
    columns = [name for name in prompts.columns if name.startswith("mean_")]
    spread = prompts.groupby("n")[columns].var().sum(axis=1)
    axes[1].plot(spread.index, spread, "s", color=RED, markersize=4)
    beside(axes[1], spread.index[-1], spread.iloc[-1], "other weights", RED, (0, -14), ha="right")
    beside(axes[1], means["n"].iloc[-1], means["value"].iloc[-1], "another prompt", BLUE, (-10, -4), ha="right")
    axes[1].set(xscale="log", yscale="log", xlabel="tokens $n$", ylabel="squared change of the mean token")
    panel_label(axes[1], "Long prompts agree, weights do not")
    figure.set_label(
        f"Left: overlap against the clock, {'; '.join(said)}. Right: over draws of the weights the mean token varies by "
        f"{spread.iloc[0]:.2f} at {spread.index[0]} tokens and {spread.iloc[-1]:.2f} at {spread.index[-1]}; two prompts "
        f"under the same weights are {means['value'].iloc[0]:.2g} and {means['value'].iloc[-1]:.2g} apart."
    )
    return figure
