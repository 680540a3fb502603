"""The third count of the cost: seconds of one layer, its implementations run in turns on equal inputs.

symbol    name        meaning                                                     axes
T         T           length
q, k, v   inputs      standard normal features of each level, one head            (batch, heads, T_l, d_k)
"""

import time
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..model.attention import IMPLEMENTATIONS, attend_reference
from ..model.pyramid import num_rows


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
