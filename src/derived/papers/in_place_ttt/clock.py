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

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy import stats
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from derived.lab.claims import RECORDED, reported
from derived.lab.experiment import Experiment
from derived.lab.measure import Measure, chosen
from derived.lab.plot import BLUE, GREEN, INK, MUTED, RED, THEORY, beside, largest, panel_label
from derived.lab.rng import stream
from derived.lab.stats import LEVEL, Estimate

from .model.forms import depthwise_target, gated_mlp_keys, in_place_ttt
from .model.theory import extra_flops

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


# Claims: IPT-14: the clock of one layer, at the recorded tiers; criteria and expected verdicts were written before the
# run, unless a claim says otherwise.


def over(form: str, other: str, by_flops: bool = False, single: bool = True) -> Measure:
    """Time of a form over another's at the longest text that both have: median over rounds in which they took turns,
    with an interval between two order statistics; over the ratio of their flops as well, if so asked. One text at a
    time (``single``), or the largest batch."""

    def measure(rows: pd.DataFrame) -> Estimate:
        batch = 1 if single else int(rows["batch"].max())
        some = chosen(rows, f"form in ['{form}', '{other}'] and batch == {batch}")
        both = some.groupby("n")["form"].nunique()
        some = some[some["n"] == both[both == 2].index.max()]
        times, flops = (some.pivot(index="repeat", columns="form", values=name) for name in ("seconds", "flops"))
        ratios = np.sort(times[form] / times[other])
        ratios = ratios / (flops[form] / flops[other]).iloc[0] if by_flops else ratios
        n = len(ratios)
        rank = int(stats.binom.ppf((1 - LEVEL) / 2, n, 0.5))  # fewer than this many lie below the median: rarely
        low, high = (ratios[rank - 1], ratios[n - rank]) if rank else (0.0, np.inf)
        return Estimate(float(np.median(ratios)), n, float(low), float(high))

    return measure


CLAIMS = (
    reported(
        "IPT-14.a",
        "Forward, a gated MLP with the memory takes this many times as long as without, at the longest text.",
        LayerTime,
        over("lean", "static"),
        "times as long",
        judged_at=RECORDED,
        source="paper",
        where="Figure 4: the overhead of whole models is called negligible; one layer is timed here, and no model of several, whose attention and other MLPs take what they took",
        paper_value="negligible, for one layer in six",
    ),
)


# Figures: Time and memory of one layer: rows in, a figure with its alt text as label out.
#
# mark                  meaning
# bars, thin lines      medians, and from quartile to quartile
# line in INK           the roofline: operations at the pace of a large product, or bytes at the pace of a long copy

FORM_NAMES = {
    "static": ("no memory", MUTED),
    "lean": ("memory, lean", BLUE),
    "scan": ("memory,\nprefix sum", RED),
    "attention": ("attention", GREEN),
}


def layer_time(rows: pd.DataFrame) -> Figure:
    """Time per token beside its roofline, and memory, of each form on its longest text, one text at a time; rows of
    ``LayerTime``."""
    rows = largest(rows)
    rows = rows[rows["batch"] == 1]
    figure, axes = plt.subplots(1, 2, figsize=(5.5, 3.3), sharey=True)
    pace, flow, longest = rows["pace"].max(), rows["flow"].max(), rows["n"].max()
    names, words, times, room = [], [], {}, {}
    for place, form in enumerate(form for form in FORM_NAMES if form in set(rows["form"])):
        name, color = FORM_NAMES[form]
        at = rows.loc[rows["form"] == form, "n"].max()
        part = rows[(rows["form"] == form) & (rows["n"] == at)]
        low, middle, high = 1e6 * part["seconds"].quantile([0.25, 0.5, 0.75]).to_numpy() / at
        roof = 1e6 * max(part["flops"].iloc[0] / pace, part["bytes"].iloc[0] / flow) / at
        times[form], room[form] = middle, part["peak"].iloc[0] / 1e6
        axes[0].barh(place, middle, 0.55, color=color, edgecolor=color, alpha=0.8)
        axes[0].plot([low, high], [place, place], color=INK, linewidth=1)
        axes[0].plot([roof, roof], [place - 0.36, place + 0.36], **THEORY | {"linewidth": 1.8})
        axes[1].barh(place, room[form], 0.55, color=color, edgecolor=color, alpha=0.8)
        for ax, end, said in ((axes[0], max(high, roof), f"{middle:.3g}"), (axes[1], room[form], f"{room[form]:.0f}")):
            beside(ax, end, place, said, shift=(5, 0))
        names.append(name if at == longest else f"{name}\n({at:,} tokens)")
        words.append(
            f"{' '.join(name.split())} {middle:.3g} microseconds per token, {middle / roof:.2g} times its roofline, "
            f"and {room[form]:.3g} MB at {at}"
        )
        if place == 0:
            beside(axes[0], roof, -0.36, "| what its operations need", shift=(-2, 5), va="bottom")
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set(ylim=(len(names) - 0.4, -1.0), xlabel="µs per token", xlim=(0, 1.45 * max(times.values())))
    axes[1].set(xlabel="alive at once (MB)", xlim=(0, 1.35 * max(room.values())))
    axes[0].tick_params(axis="y", length=0)
    more = room["lean"] / room["static"]
    panel_label(axes[0], f"The memory: {times['lean'] / times['static']:.2g} times the time …")
    panel_label(axes[1], "… and as much room" if abs(more - 1) < 0.05 else f"… and {more:.2g} times the room")
    figure.set_label(f"Time and memory of one layer on its longest text: {'; '.join(words)}.")
    return figure
