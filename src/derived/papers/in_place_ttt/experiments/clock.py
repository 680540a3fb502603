"""The clock of one layer against the length of the text, and the numbers that each form holds.

symbol     name     meaning                                    axes
n, C       n, C     tokens, tokens per chunk                   scalar
d, h       d, h     width, inner width                         scalar
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..model.forms import depthwise_target, gated_mlp_keys, in_place_ttt
from ..model.theory import extra_flops

FORMS = ("static", "lean", "scan", "attention")


def held(form: str, n: int, chunk: int, d: int, h: int) -> int:
    """Numbers of fast states or scores that a form holds at once, beside tokens, keys and values."""
    return {"static": 0, "lean": d * h, "scan": -(-n // chunk) * d * h, "attention": n * n}[form]


def now(device: torch.device) -> float:
    """Seconds on a steady clock, read once the device's queue is empty."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


@dataclass(frozen=True, kw_only=True)
class LayerTime(Experiment):
    """IPT-14, after Figure 4: seconds of a gated MLP, forward, as it is ("static") and with a memory in three forms,
    which take turns. A form that would hold more than ``most`` numbers is left out.

    Rows: n, form, repeat, seconds, flops (of the whole layer, by the model), numbers (fast states or scores held).
    """

    lengths: tuple[int, ...] = (1024, 4096, 16_384, 65_536, 131_072)
    d: int = 2560
    h: int = 9728
    chunk: int = 1024
    repeats: int = 30
    most: int = 2**32

    tiers: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ci": {"lengths": (32, 64), "d": 8, "h": 16, "chunk": 16, "repeats": 3},
        "cpu": {"lengths": (512, 2048, 8192), "d": 256, "h": 768, "chunk": 512, "repeats": 12, "most": 2**25},
        "gpu": {},
    }
    dtype: ClassVar[torch.dtype] = torch.float32

    def conditions(self) -> list[dict[str, Any]]:
        return [{"n": n} for n in self.lengths]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, draw = condition["n"], stream(seed, "clock")
        normal = lambda *shape: (torch.randn(*shape, generator=draw, dtype=dtype) / shape[-1] ** 0.5).to(device)  # noqa: E731
        x, gate, up, down = normal(1, n, self.d), normal(self.h, self.d), normal(self.h, self.d), normal(self.d, self.h)
        kernel, projection = normal(self.d, 5), normal(self.d, self.d)

        def layer(form: str) -> Tensor:
            keys = gated_mlp_keys(x, gate, up)
            if form == "static":
                return keys @ down.mT
            values = depthwise_target(x, kernel, projection, chunk=self.chunk)
            return in_place_ttt(keys, values, down, 0.01, self.chunk, impl=form)

        forms = [form for form in FORMS if held(form, n, self.chunk, self.d, self.h) <= self.most]
        found = [
            {"form": form, "repeat": turn, "seconds": _timed(lambda form=form: layer(form), device)}
            for turn in range(-1, self.repeats)  # the first round warms up
            for form in forms[turn % len(forms) :] + forms[: turn % len(forms)]
        ]
        table = pd.DataFrame([row for row in found if row["repeat"] >= 0])
        numbers = {form: held(form, n, self.chunk, self.d, self.h) for form in forms}
        flops = {form: self.flops(form, n) for form in forms}
        return table.assign(flops=table["form"].map(flops), numbers=table["form"].map(numbers))

    def flops(self, form: str, n: int) -> float:
        """Flops of the layer: 6ndh, and what ``extra_flops`` adds; the attention form takes n^2 (h + d) to write."""
        extra = 0.0 if form == "static" else extra_flops(self.d, self.h)
        if form == "attention":
            extra += (n * (self.h + self.d) - 2 * self.d * self.h) / (6 * self.d * self.h)
        return 6.0 * n * self.d * self.h * (1 + extra)


def _timed(call: Callable[[], Any], device: torch.device) -> float:
    begun = now(device)
    call()
    return now(device) - begun
