"""The third count of the cost: seconds of one layer, its implementations run in turns on equal inputs.

symbol    name        meaning                                                     axes
T         T           length
q, k, v   inputs      standard normal features of each level, one head            (batch, heads, T_l, d_k)
"""

import time
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from derived.lab.claims import RECORDED, reported
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import Measure
from derived.lab.plot import BLUE, DASHED, GREEN, INK, MUTED, ORANGE, beside, largest, mean_and_reach, panel_label
from derived.lab.rng import stream
from derived.lab.stats import Estimate, mean

from .model.attention import IMPLEMENTATIONS, attend_reference
from .model.pyramid import num_rows


class AttentionInputs:
    """Random features of every level: ``q``, ``k`` (lists), ``v`` and uniform ``alpha``."""

    def __init__(
        self,
        T: int,
        *,
        d_k: int = 64,
        levels: int = 3,
        heads: int = 1,
        seed: int = 0,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        draw = stream(seed, "attention inputs", T)

        def normal(rows: int) -> Tensor:
            return torch.randn(1, heads, rows, d_k, generator=draw, dtype=torch.float32).to(device, dtype)

        self.q, self.k = ([normal(num_rows(T, l)) for l in range(levels)] for _ in range(2))
        self.v, self.alpha = normal(T), torch.full((levels,), 1 / levels, dtype=dtype, device=device)

    def attend(self, impl: str) -> Tensor:
        """One causal pass: an implementation of the layer, "plain" (the reference with one level) or "sdpa"."""
        if impl == "sdpa":
            return scaled_dot_product_attention(self.q[0], self.k[0], self.v, is_causal=True)
        if impl == "plain":
            return attend_reference(self.q[:1], self.k[:1], self.v, torch.ones_like(self.alpha[:1]))
        return IMPLEMENTATIONS[impl](self.q, self.k, self.v, self.alpha)


@torch.no_grad()
def attention_seconds(inputs: AttentionInputs, impls: tuple[str, ...], rounds: int = 5) -> dict[str, list[float]]:
    """Seconds of each implementation in each round, after one pass to warm up; a round runs all of them in turn."""
    for impl in impls:
        inputs.attend(impl)
    seconds: dict[str, list[float]] = {impl: [] for impl in impls}
    for _ in range(rounds):
        for impl in impls:
            _wait(inputs.v)
            start = time.perf_counter()
            inputs.attend(impl)
            _wait(inputs.v)
            seconds[impl].append(time.perf_counter() - start)
    return seconds


def _wait(tensor: Tensor) -> None:
    if tensor.is_cuda:
        torch.cuda.synchronize(tensor.device)


@dataclass(frozen=True, kw_only=True)
class Overhead(Experiment):
    """HKT-E4: seconds of one causal forward pass, three levels against one. Rows: T, impl, round, seconds.

    "sdpa" is torch's attention at the width of one level, "plain" the materialised layer with one level. All get the
    same queries, keys and values; projections and downsampling are left out. A round runs every contender once.
    """

    lengths: tuple[int, ...] = (512, 1024, 2048, 4096, 8192)
    heads: int = 16
    d_k: int = 64
    levels: int = 3
    rounds: int = 20
    half: bool = True  # bfloat16, as one would train

    tiers: ClassVar = {
        "ci": {"lengths": (128,), "heads": 2, "d_k": 16, "rounds": 3, "half": False},
        "cpu": {"lengths": (512, 1024, 2048), "heads": 4, "rounds": 7, "half": False},
        "gpu": {},
    }
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"T": T} for T in self.lengths]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sizes = {"d_k": self.d_k, "levels": self.levels, "heads": self.heads}
        dtype = torch.bfloat16 if self.half else dtype
        inputs = AttentionInputs(condition["T"], **sizes, seed=seed, dtype=dtype, device=device)
        seconds = attention_seconds(inputs, ("sdpa", "plain", *IMPLEMENTATIONS), self.rounds)
        index = {"impl": list(seconds), "round": range(self.rounds)}
        return rows(index, {"seconds": list(seconds.values())})


# Claims: The ledger of seconds: what a layer with three levels costs on a clock.


def overhead(impl: str, peer: str) -> Measure:
    """Seconds of an implementation over a peer in the same round, mean over rounds, at the longest sequence."""

    def measure(rows: pd.DataFrame) -> Estimate:
        wide = rows[rows["T"] == rows["T"].max()].pivot(index="round", columns="impl", values="seconds")
        return mean(wide[impl] / wide[peer])

    return measure


CLAIMS = (
    reported(
        "HKT-E4.c",
        "The layer with coarse tables of three levels takes this many times the seconds of torch's fused kernel for standard"
        " attention, at the longest sequence.",
        Overhead,
        overhead("tables", "sdpa"),
        "ratio",
        where="the attention alone: queries, keys and values are given, projections and downsampling left out; how much of it "
        "is the hierarchy, and how much that the kernel is fused, we cannot say",
        judged_at=RECORDED,
        scale={"gpu": "ours"},
    ),
)


# Figures: What a layer costs, counted and timed.

IMPLS = {"plain": "one level", "reference": "materialised", "tables": "coarse tables", "fused": "wide features"}


def cost_bars(counts: pd.DataFrame, seconds: pd.DataFrame) -> Figure:
    """Entries and multiply-adds of a layer by number of levels; seconds of its attention by implementation. Rows of
    MultiplyAdds and Overhead."""
    figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.2), width_ratios=[1.15, 1])
    chosen = counts[(counts["T"] == 1024) & (counts["d"] == 64)].set_index("levels")
    columns = {"entries": "score entries", "layer": "whole layer", "layer_fused": "layer run fused"}
    for shift, (column, name), color in zip((-0.26, 0, 0.26), columns.items(), (BLUE, GREEN, ORANGE), strict=True):
        axes[0].bar(chosen.index + shift, chosen[column], 0.24, color=color, label=name)
    axes[0].axhline(4 / 3, **DASHED)
    beside(axes[0], chosen.index[0], 4 / 3, "4/3", MUTED, (0, 8), ha="center")
    axes[0].set(xlabel="levels $L$", ylabel="ratio to standard attention", xticks=chosen.index)
    axes[0].legend(fontsize=8, loc="upper left")
    panel_label(axes[0], "counted, $T=1024$, $d=64$")
    seconds = largest(seconds)
    T = int(seconds["T"].max())
    wide = seconds[seconds["T"] == T].pivot(index="round", columns="impl", values="seconds")
    words, means = [], []
    for place, (impl, name) in enumerate(IMPLS.items()):
        ratio = wide[impl] / wide["sdpa"]
        axes[1].plot(ratio, np.full(len(ratio), place), "o", color=BLUE, alpha=0.4, markersize=4)
        value, reach = mean_and_reach(ratio)
        axes[1].errorbar(value, place + 0.22, xerr=reach, fmt="|", color=INK, markersize=12)
        words.append(f"{name} {value:.2f} ± {reach:.2f}")
        means.append(value)
    beside(axes[1], value, place + 0.22, "mean, 99.9 %", INK, (12, 4), fontsize=8)
    beside(axes[1], ratio.max(), place, "one round", BLUE, (8, -3), fontsize=8)
    axes[1].axvline(1, **DASHED)
    beside(axes[1], 1, 0.5 * len(IMPLS) - 0.5, "torch", MUTED, (4, 0))
    axes[1].set(yticks=range(len(IMPLS)), yticklabels=IMPLS.values(), xscale="log", ylim=(-0.6, len(IMPLS) - 0.4))
    axes[1].set_xlabel(f"seconds over torch's, $T={T}$")
    slower = sum(mean > 1 for mean in means)
    panel_label(axes[1], f"timed: {'all' if slower == len(means) else slower} slower than torch's")
    three = chosen.loc[3]
    figure.set_label(
        f"Left, bars of cost by number of levels: at three levels {three['entries']:.4f} of the entries, "
        f"{three['layer']:.3f} of a layer's multiply-adds, {three['layer_fused']:.2f} if run fused. Right, seconds of "
        f"the attention alone at length {T} over torch's, means with 99.9 % intervals: {', '.join(words)}."
    )
    return figure
