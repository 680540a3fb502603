"""What the layer costs: score entries and multiply-adds, counted, and seconds of its attention on a clock.

symbol    name        meaning                                                     axes
T         T           length
q, k, v   inputs      standard normal features of each level, one head            (batch, heads, T_l, d_k)
"""

import time
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from derived.lab.claims import RECORDED, reported
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, DASHED, GREEN, INK, ORANGE, beside, panel_label
from derived.lab.rng import stream
from derived.lab.stats import Estimate, mean

from .model.attention import IMPLEMENTATIONS, attend_reference
from .model.pyramid import num_rows
from .model.theory import attention_flops, entry_ratio


class AttentionInputs:
    """Random features of every level: ``q``, ``k`` (lists), ``v`` and uniform ``alpha``; ``where`` is dtype and device."""

    def __init__(self, T: int, *, d_k: int, levels: int, heads: int = 1, seed: int = 0, **where) -> None:
        draw = stream(seed, "attention inputs", T)

        def normal(rows: int) -> Tensor:
            return torch.randn(1, heads, rows, d_k, generator=draw, dtype=torch.float32).to(**where)

        self.q, self.k = ([normal(num_rows(T, l)) for l in range(levels)] for _ in range(2))
        self.v, self.alpha = normal(T), torch.full((levels,), 1 / levels, **where)

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
    """Seconds of one causal forward pass, three levels against one. Rows: T, impl, round, seconds.

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


# Claims: seconds of three levels over those of one.


def overhead(rows: pd.DataFrame) -> Estimate:
    """Seconds of the fused layer over torch's attention in the same round, mean over rounds, at the longest sequence."""
    wide = rows[rows["T"] == rows["T"].max()].pivot(index="round", columns="impl", values="seconds")
    return mean(wide["fused"] / wide["sdpa"])


CLAIMS = (
    reported(
        "HKT-E4.c",
        "Three levels, run as one fused attention on wide features, take this many times the seconds of one level in torch's"
        " fused attention, at the longest sequence.",
        Overhead,
        overhead,
        "ratio",
        where="the attention alone: queries, keys and values are given, projections and downsampling left out",
        judged_at=RECORDED,
        scale={"gpu": "ours"},
    ),
)


# Figure: what is counted, and what a clock says.


def layer_ratio(T: int, d: int, levels: int = 3) -> float:
    """Multiply-adds of a whole layer with one head of width d over those of standard attention."""
    return attention_flops(T, d, d, levels).total / attention_flops(T, d, d, 1).total


def cost_bars(seconds: dict[str, pd.DataFrame]) -> Figure:
    """Three levels over one, a bar for each way to count; rows of Overhead by device."""
    bars = [("score entries", float(entry_ratio(1024, 3)), 0.0, BLUE)]
    for T, d, words in ((8192, 64, "long text"), (512, 4096, "wide layer")):
        bars.append((f"multiply-adds, {words}\n(T = {T}, d = {d})", layer_ratio(T, d), 0.0, GREEN))
    for device, table in seconds.items():
        found = overhead(table)
        bars.append((f"seconds, {device}\n(T = {table['T'].max()})", found.value, found.high - found.value, ORANGE))
    figure, ax = plt.subplots(figsize=(6.4, 3.2))
    for place, (_, value, reach, color) in enumerate(bars):
        ax.barh(place, value, xerr=reach or None, color=color, height=0.62, error_kw={"ecolor": INK, "elinewidth": 1})
        beside(ax, value + reach, place, f"{value:.2f}", INK, (5, 0))
    ax.axvline(1, **DASHED)
    panel_label(ax, "Entries grow by 1.31, seconds by three")
    ax.set(yticks=range(len(bars)), yticklabels=[label for label, *_ in bars], ylim=(len(bars) - 0.5, -0.6))
    ax.set(xlabel="three levels over one", xlim=(0, 5))
    words = "; ".join(f"{label.splitlines()[0]} {value:.2f}" for label, value, _, _ in bars)
    figure.set_label(f"Bars, three levels over one level: {words}.")
    return figure
