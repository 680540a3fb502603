"""The clock of one layer against the length of the text, its roofline, and the memory that each form takes.

symbol     name     meaning                                                                axes
n, C       n, C     tokens, tokens per chunk                                               scalar
d, h       d, h     width, inner width                                                     scalar
-          pace     flops a second of a large product of matrices, on the same machine     scalar
-          flow     bytes a second of a long copy, read and written                        scalar

Roofline: no call can take less time than flops / pace, nor less than bytes / flow.
"""

import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from derived.lab.experiment import Experiment
from derived.lab.rng import stream

from ..model.forms import depthwise_target, gated_mlp_keys, in_place_ttt
from ..model.theory import extra_flops

FORMS = ("static", "lean", "scan", "attention")


def held(form: str, n: int, chunk: int, d: int, h: int) -> int:
    """Numbers of fast states or scores that a form holds at once, beside tokens, keys and values."""
    return {"static": 0, "lean": d * h, "scan": -(-n // chunk) * d * h, "attention": n * n}[form]


def moved(form: str, n: int, chunk: int, d: int, h: int) -> int:
    """Numbers that a form must read and write at least: tokens, keys, the three matrices, and what the memory adds."""
    T = -(-n // chunk)
    static = 2 * n * d + 2 * n * h + 3 * d * h  # input and output, keys written and read, weights
    written = 3 * n * d + n * h  # the source, values written and read, keys once more
    states = {"lean": 3 * T * d * h, "scan": 4 * T * d * h, "attention": 2 * n * n}
    return static if form == "static" else static + written + states[form]


class Alive(TorchDispatchMode):
    """Counts the bytes of the tensors that a call makes and that live at once; their ``peak`` is the same everywhere.

    >>> with Alive() as alive:
    ...     kept = (torch.zeros(100) + 1) * 2  # of three, two live at once
    >>> alive.peak, alive.now
    (800, 400)
    """

    def __init__(self) -> None:
        super().__init__()
        self.now, self.peak, self.known = 0, 0, set()

    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        found = function(*arguments, **(named or {}))
        old = {each.untyped_storage()._cdata for each in tree_leaves((arguments, named)) if isinstance(each, Tensor)}
        for storage in (each.untyped_storage() for each in tree_leaves(found) if isinstance(each, Tensor)):
            if storage._cdata not in old | self.known:
                self.known.add(storage._cdata)
                self.now += storage.nbytes()
                weakref.finalize(storage, self._gone, storage._cdata, storage.nbytes())
        self.peak = max(self.peak, self.now)
        return found

    def _gone(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.now -= size


def now(device: torch.device) -> float:
    """Seconds on a steady clock, read once the device's queue is empty."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


@dataclass(frozen=True, kw_only=True)
class LayerTime(Experiment):
    """IPT-14, after Figure 4: seconds of a gated MLP, forward, as it is ("static") and with a memory in three forms,
    which take turns. A form that would hold more than ``most`` numbers is left out, and so are more than ``tokens``.

    Rows: n, batch, form, repeat, seconds, flops (of the whole layer, by the model), numbers (fast states or scores
    held), peak (bytes of the tensors alive at once, beside input and weights), bytes (moved at least), pace, flow.
    """

    lengths: tuple[int, ...] = (1024, 4096, 16_384, 65_536, 131_072)
    batches: tuple[int, ...] = (1, 16)
    tokens: int = 2**18
    d: int = 2560
    h: int = 9728
    chunk: int = 1024
    repeats: int = 12
    most: int = 2**31

    tiers: ClassVar = {
        "ci": {"lengths": (32, 64), "batches": (1, 2), "d": 8, "h": 16, "chunk": 16, "repeats": 3},
        "cpu": {
            **{"lengths": (512, 2048, 8192), "batches": (1, 4), "tokens": 2**15, "d": 256, "h": 768, "chunk": 512},
            "most": 2**25,
        },
        "gpu": {},
    }
    tiny: ClassVar = {"lengths": (16, 32), "most": 600, "tokens": 32}
    dtype: ClassVar = torch.float32
    deterministic: ClassVar = {"flops": 1e-12}

    def conditions(self) -> list[dict]:
        return [{"n": n, "batch": B} for n in self.lengths for B in self.batches if n * B <= self.tokens]

    @torch.no_grad()
    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        n, batch, at = condition["n"], condition["batch"], {"dtype": dtype, "device": device}
        draw = stream(seed, "clock", device=device)
        normal = lambda *shape: torch.randn(*shape, generator=draw, **at) / shape[-1] ** 0.5  # noqa: E731
        gate, up, down = normal(self.h, self.d), normal(self.h, self.d), normal(self.d, self.h)
        x, kernel, projection = normal(batch, n, self.d), normal(self.d, 5), normal(self.d, self.d)

        def layer(form: str) -> Tensor:
            keys = gated_mlp_keys(x, gate, up)
            if form == "static":
                return keys @ down.mT
            values = depthwise_target(x, kernel, projection, chunk=self.chunk)
            return in_place_ttt(keys, values, down, 0.01, self.chunk, impl=form)

        numbers = {form: batch * held(form, n, self.chunk, self.d, self.h) for form in FORMS}
        forms = [form for form in FORMS if numbers[form] <= self.most]
        found = [
            {"form": form, "repeat": turn, "seconds": _timed(lambda form=form: layer(form), device)}
            for turn in range(-1, self.repeats)  # the first round warms up
            for form in forms[turn % len(forms) :] + forms[: turn % len(forms)]
        ]
        table = pd.DataFrame([row for row in found if row["repeat"] >= 0])
        facts = {
            "flops": {form: batch * self.flops(form, n) for form in forms},
            "numbers": numbers,
            "peak": {form: _peak(lambda form=form: layer(form)) for form in forms},
            "bytes": {form: x.element_size() * self.moved(form, n, batch) for form in forms},
        }
        pace, flow = speeds(min(self.most, max(2**22, self.d * self.h)), device, dtype)
        return table.assign(**{name: table["form"].map(each) for name, each in facts.items()}, pace=pace, flow=flow)

    def moved(self, form: str, n: int, batch: int) -> int:
        """Numbers moved for a batch, whose texts share the three matrices."""
        shared = 3 * self.d * self.h
        return batch * (moved(form, n, self.chunk, self.d, self.h) - shared) + shared

    def flops(self, form: str, n: int) -> float:
        """Flops of the layer: 6ndh, and what ``extra_flops`` adds; the attention form takes n^2 (h + d) to write."""
        extra = 0.0 if form == "static" else extra_flops(self.d, self.h)
        if form == "attention":
            extra += (n * (self.h + self.d) - 2 * self.d * self.h) / (6 * self.d * self.h)
        return 6.0 * n * self.d * self.h * (1 + extra)


def speeds(size: int, device: torch.device, dtype: torch.dtype) -> tuple[float, float]:
    """Flops a second of the product of two square matrices of ``size`` numbers each, and bytes a second of a copy of
    four times as many; the best of five."""
    side = int(size**0.5)
    square, long = (torch.ones(shape, device=device, dtype=dtype) for shape in ((side, side), (4 * size,)))
    copy = torch.empty_like(long)
    product = min(_timed(lambda: square @ square, device) for _ in range(5))
    copied = min(_timed(lambda: copy.copy_(long), device) for _ in range(5))
    return 2 * side**3 / product, 2 * long.nbytes / copied


def _peak(call: Callable[[], Any]) -> int:
    with Alive() as alive:
        call()
    return alive.peak


def _timed(call: Callable[[], Any], device: torch.device) -> float:
    begun = now(device)
    call()
    return now(device) - begun
