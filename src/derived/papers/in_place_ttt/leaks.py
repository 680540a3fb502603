"""Which later inputs an output depends on, by derivative: the layer, and what was said or could be tried instead."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from derived.lab.claims import on_page
from derived.lab.experiment import Experiment, rows
from derived.lab.plot import BLUE, INK, MUTED, RED, beside, largest, panel_label
from derived.lab.rng import stream

from .model.forms import chunk_grid, depthwise_target, in_place_ttt

# variant -> (taps ahead, taps cross the edge)
TARGETS = {
    "taps inside": (2, False),
    "one tap across": (1, True),
    "two taps across": (2, True),
    "past taps": (0, False),
}
VARIANTS = (*TARGETS, "update first")


@dataclass(frozen=True, kw_only=True)
class Leaks(Experiment):
    """Derivatives of outputs by later inputs, keys made causally of all earlier inputs; for the figure.

    Rows: variant, instance, chunk, position (n), future (m - n > 0), jacobian (largest |entry| of dO_n / ds_m).
    """

    instances: int = 3
    tokens: int = 12
    d: int = 3
    chunks: tuple[int, ...] = (4, 5)

    tiny: ClassVar = {"instances": 1, "tokens": 8, "d": 2, "chunks": (3,)}

    def conditions(self) -> list[dict]:
        return [{"variant": variant} for variant in VARIANTS]

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        return pd.concat(
            [self.table(condition["variant"], chunk, seed, device, dtype) for chunk in self.chunks], ignore_index=True
        )

    def table(self, variant: str, chunk: int, seed: int, device, dtype) -> pd.DataFrame:
        n, draw = self.tokens, stream(seed, "leaks", variant, chunk)
        normal = lambda *shape: torch.randn(*shape, generator=draw, dtype=dtype).to(device)  # noqa: E731
        source = normal(self.instances, n, self.d).requires_grad_()
        mix, kernel, w_down = normal(n, n).tril(), normal(self.d, 5), normal(self.d, self.d)
        keys = mix @ source  # what attention does: every earlier input
        ahead, cross = TARGETS.get(variant, (2, False))
        taps = torch.arange(-2, 3, device=kernel.device)
        values = depthwise_target(source, kernel * (taps <= ahead), chunk=chunk, cross=cross)
        layer = written_first if variant == "update first" else partial(in_place_ttt, impl="loop")
        size = largest_derivative(layer(keys, values, w_down, 1.0, chunk), source)
        place = torch.ones(n, n).triu(1).nonzero()
        cells = {("position", "future"): (place[:, 0], place[:, 1] - place[:, 0])}
        found = size[:, place[:, 0].to(device), place[:, 1].to(device)]
        return rows({"instance": range(self.instances)} | cells, {"chunk": chunk, "jacobian": found})


def written_first(keys: Tensor, values: Tensor, w_down: Tensor, lr: float, chunk: int) -> Tensor:
    """The layer in the order of classical test-time training: a chunk is written, then read."""
    outputs = []
    for one in chunk_grid(keys.shape[1], chunk):
        W = w_down + lr * values[:, : one.stop].mT @ keys[:, : one.stop]
        outputs.append(keys[:, one.start : one.stop] @ W.mT)
    return torch.cat(outputs, dim=1)


def largest_derivative(outputs: Tensor, source: Tensor) -> Tensor:
    """max |d outputs_n / d source_m| over the features of both, (instances, n, m); instances never interact."""
    shape = outputs.shape[1:]
    basis = torch.eye(shape.numel(), dtype=outputs.dtype, device=outputs.device).view(-1, 1, *shape)
    basis = basis.expand(-1, *outputs.shape)
    (blocks,) = torch.autograd.grad(outputs, source, basis, is_grads_batched=True)  # (n d, instances, m, d)
    return blocks.unflatten(0, shape).abs().amax(dim=(1, 4)).transpose(0, 1)


# Claims: IPT-4: what an output depends on, and where the future could leak in, decided by check cells on the page.

CLAIMS = (
    on_page(
        "IPT-4.a",
        source="paper",
        where="Section 3.4; centred taps on each chunk: released code",
        plain="Although it writes what comes next, the layer never sees the future.",
    ),
    on_page("IPT-4.b"),
    on_page("IPT-4.d"),
)


# Figures: Who reads whom, and where the future leaks in: rows in, a figure with its alt text as label out.
#
# mark       meaning
# blue       reads, or depends on
# red        depends on a later input: a leak
# grey line  the diagonal, the token itself

EMPTY = (1.0, 1.0, 1.0, 0.0)


def masks(rows: pd.DataFrame) -> Figure:
    """Squares where a token reads another; rows: panel, reader, read (position), reads (bool)."""
    names = list(dict.fromkeys(rows["panel"]))
    figure, axes = plt.subplots(1, len(names), figsize=(7.6, 2.3), sharey=True, squeeze=False)
    words = []
    for ax, name in zip(axes[0], names, strict=True):
        table = rows[rows["panel"] == name].pivot(index="reader", columns="read", values="reads").to_numpy(dtype=float)
        ax.imshow(table, cmap=ListedColormap([EMPTY, BLUE]), vmin=0, vmax=1)
        ax.plot([-0.5, len(table) - 0.5], [-0.5, len(table) - 0.5], color=MUTED, linewidth=0.8)
        ax.set(xticks=[], yticks=[], xlabel="token $t$")
        panel_label(ax, name)
        words.append(f"{name} {table.mean():.0%}")
    axes[0, 0].set_ylabel("reads, token $n$")
    figure.set_label(f"Square tables of who reads whom. Share of all pairs that are read: {', '.join(words)}.")
    return figure


def chunk_diagram(chunk: int = 5) -> Figure:
    """Two chunks: read with W_i, taps inside the chunk, write, read with W_(i+1)."""
    figure, ax = plt.subplots(figsize=(7.4, 2.7))
    for i in range(2):
        left = i * (chunk + 1.2)
        ax.plot(left + np.arange(chunk), np.zeros(chunk), "o", color=BLUE, markersize=8)
        ax.add_patch(plt.Rectangle((left - 0.5, -0.35), chunk, 0.7, fill=False, edgecolor=MUTED))
        state = f"$W_{{i+{i}}}$" if i else "$W_i$"
        ax.annotate(state, (left + chunk / 2 - 0.5, 1.6), ha="center", va="center", color=INK, fontsize=12)
        ax.annotate("", (left + chunk / 2 - 0.5, 0.4), (left + chunk / 2 - 0.5, 1.35), arrowprops={"arrowstyle": "->"})
        beside(ax, left + chunk / 2 - 0.5, 0.9, "read", INK, (5, 0))
        for k in range(-2, 3):
            at = left + chunk - 1 + k
            inside = k <= 0
            color = BLUE if inside else RED
            ax.annotate(
                "", (left + chunk - 1, -1.0), (at, -0.4), arrowprops={"arrowstyle": "-", "color": color, "lw": 1.2}
            )
            if not inside:
                ax.plot(at - 0.5 * (k if k == 1 else 1.0), -0.62, "x", color=RED, markersize=6)
        beside(ax, left + chunk - 1, -1.1, r"value $\hat v_t$ of the last token", INK, (0, -8), ha="center")
    ax.annotate(
        "", (chunk + 1.2 + chunk / 2 - 1.0, 1.6), (chunk / 2 - 0.1, 1.6), arrowprops={"arrowstyle": "->", "color": RED}
    )
    beside(ax, chunk + 0.1, 1.9, r"write $+\,\eta\,\hat V_{[i]}^\top Z_{[i]}$", RED, (0, 0), ha="center")
    ax.set(xlim=(-1, 2 * chunk + 2.6), ylim=(-1.6, 2.2))
    ax.axis("off")
    figure.set_label(
        f"Two chunks of {chunk} tokens. Each is read with the state above it; after the first is read, its increment "
        "is added to the state for the second. The taps of the last token's value stop at the edge of its chunk."
    )
    return figure


def leak(rows: pd.DataFrame) -> Figure:
    """Which later inputs an output depends on, as cells of a matrix; rows of ``Leaks``: variant, position (n), future
    (m - n), jacobian."""
    rows = largest(rows)
    names = list(dict.fromkeys(rows["variant"]))
    length = int((rows["position"] + rows["future"]).max()) + 1
    figure, axes = plt.subplots(1, len(names), figsize=(7.6, 2.3), sharey=True)
    past, words = np.tri(length), []
    for ax, name in zip(axes, names, strict=True):
        seen = rows[(rows["variant"] == name) & (rows["future"] > 0) & (rows["jacobian"] > 0)]
        ax.pcolormesh(np.where(past > 0, 1.0, np.nan), cmap=ListedColormap([BLUE]), alpha=0.35)
        for n, m in zip(seen["position"], seen["position"] + seen["future"], strict=True):
            ax.add_patch(Rectangle((m, n), 1, 1, color=RED, linewidth=0))
        ax.set(aspect="equal", xticks=[], yticks=[], xlim=(0, length), ylim=(length, 0))
        pairs = seen[["position", "future"]].drop_duplicates()
        ax.set_xlabel(f"{len(pairs)} leaks" if len(pairs) else "no leak", color=RED if len(pairs) else INK)
        panel_label(ax, name)
        words.append(f"{name} {len(pairs)}")
    axes[0].set_ylabel("output $n$")
    figure.set_label(
        f"Inputs across, outputs down, past inputs pale. Pairs of an output and a later input that it depends on, by "
        f"variant: {', '.join(words)}."
    )
    return figure
