"""Does a layer read the future: its Jacobian, and a negative control, a leak that looks like a result."""

import math
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from derived.lab.claims import at_most, statistic
from derived.lab.experiment import Experiment, rows
from derived.lab.measure import mean
from derived.lab.plot import INK, RED, SEQUENTIAL, THEORY, beside, largest, panel_label
from derived.lab.rng import stream

from .data.sequences import Data, stack
from .instances import normal, random_layers
from .marks import KIND_COLOURS, POOLINGS, as_matrix
from .model.classifier import SequenceClassifier
from .model.layers import HKTAttention
from .model.pyramid import Pooling
from .training import evaluate, train


def jacobian(layers: HKTAttention, x: Tensor) -> Tensor:
    """|dY_i / dx_t|, the Frobenius norm of a d x d block, for each of the instances: (instances, T, T)."""
    x = x.requires_grad_()
    Y = layers(x)
    # one backward pass for each of the T d outputs of an instance; instances share it, since they never interact
    basis = torch.eye(Y[0].numel(), dtype=x.dtype, device=x.device).view(-1, 1, *Y.shape[1:]).expand(-1, *Y.shape)
    blocks = torch.autograd.grad(Y, x, basis, is_grads_batched=True)[0].unflatten(0, Y.shape[1:])
    return blocks.square().sum(dim=(1, 4)).sqrt().transpose(0, 1)  # (T, d, instances, T, d) summed over both d


def jacobians(pooling: Pooling, T: int, seed: int, *, instances: int = 24, d: int = 4, levels: int = 3) -> Tensor:
    """|dY_i / dx_t| of random layers with one head at random tokens: (instances, T, T)."""
    draw = stream(seed, "causality", pooling, T)
    options = {"pooling": pooling, "impl": "reference", "dtype": torch.float64}
    layers = random_layers(instances, d, 1, levels, generator=draw, **options)
    return jacobian(layers, normal((instances, T, d), draw)).detach()


@dataclass(frozen=True, kw_only=True)
class Leak(Experiment):
    """The negative control: the next of i.i.d. uniform symbols, which nobody can predict without looking.

    No causal layer has an expected loss below ln V. Rows: kind, replicate, loss and accuracy on fresh data, chance
    (ln V).
    """

    kinds: tuple[str, ...] = ("plain", "hkt", "hkt-block")
    replicates: int = 12
    vocabulary: int = 4
    T: int = 16
    width: int = 32
    heads: int = 2
    levels: int = 2
    steps: int = 600
    batch_size: int = 32
    lr: float = 3e-3
    num_test: int = 1_000

    tiers: ClassVar = {"ci": {"replicates": 8, "steps": 250, "num_test": 500}, "cpu": {}}
    tiny: ClassVar = {"replicates": 2, "steps": 2, "num_test": 20}
    dtype: ClassVar = torch.float32

    def conditions(self) -> list[dict]:
        return [{"kind": kind} for kind in self.kinds]

    def task(self, generator: torch.Generator, num: int) -> Data:
        """i.i.d. uniform symbols 1 .. V, each labelled by its successor less one."""
        drawn = torch.randint(self.vocabulary, (num, self.T + 1), generator=generator)
        return Data(1 + drawn[:, :-1], torch.full((num,), self.T), drawn[:, 1:])

    def run(self, condition, *, seed, device, dtype) -> pd.DataFrame:
        sizes = {"width": self.width, "depth": 1, "heads": self.heads, "levels": self.levels}
        sizes |= {"vocabulary": 1 + self.vocabulary, "classes": self.vocabulary, "max_length": self.T}
        options = {"attention": condition["kind"], "num_networks": self.replicates, "read_out": "every"}
        model = SequenceClassifier(**sizes, **options, impl="reference", seed=seed, dtype=dtype, device=device)
        num = self.steps * self.batch_size  # as many as are taken: a repeated sequence could be learned by heart
        sets = [
            stack([self.task(stream(seed, name, r), items) for r in range(self.replicates)]).to(device)
            for name, items in (("leak", num), ("leak test", self.num_test))
        ]
        schedule = {"steps": self.steps, "batch_size": self.batch_size, "lr": self.lr}
        train(model, sets[0], **schedule, generator=stream(seed, "leak batches"))
        loss, accuracy = evaluate(model, sets[1])
        columns = {"loss": loss, "accuracy": accuracy, "chance": math.log(self.vocabulary)}
        return rows({"replicate": range(self.replicates)}, columns)


# Claims: a leak that looks like a result.

CLAIMS = (
    statistic(
        "HKT-3.e",
        "With means of blocks a layer predicts i.i.d. symbols better than chance by at least $0.1$ nats: the leak looks"
        " like a result.",
        Leak,
        mean("loss - chance", "kind == 'hkt-block'"),
        r"test loss less $\ln V$",
        at_most(-0.1),
        unit="nats",
        where="attention without summaries and the causal layer stay at chance",
        control=mean("loss - chance", "kind == 'plain'"),  # attention without summaries
    ),
)


# Figures: Jacobians of the layer, and the loss of layers that leak.


def jacobian_maps(rows: pd.DataFrame) -> Figure:
    """|dY_i/dx_t| for several poolings; rows: pooling, i, t, size. Sizes below 100 eps are left empty: rounding."""
    names = list(dict.fromkeys(rows["pooling"]))
    figure, axes = plt.subplots(1, len(names), figsize=(6.6, 3.7))
    tables = [as_matrix(rows[rows["pooling"] == name], "size", "i", "t") for name in names]
    for ax, name, table in zip(axes, names, tables, strict=True):
        seen = table > 100 * np.finfo(float).eps
        ax.imshow(np.log10(np.where(seen, table, np.nan)), cmap=SEQUENTIAL, vmin=-4, vmax=0.5)
        ax.plot([-0.5, len(table) - 0.5], [-0.5, len(table) - 0.5], color=RED, linewidth=1)
        panel_label(ax, f"{POOLINGS[name]}: {'sees ahead' if np.triu(seen, 1).any() else 'nothing ahead'}")
        ax.set(xticks=[], yticks=[], xlabel="token $t$")
    axes[0].set_ylabel("output $i$")
    words = (f"{POOLINGS[name]} {np.triu(table, 1).max():.2g}" for name, table in zip(names, tables, strict=True))
    figure.set_label(f"Jacobian, outputs by tokens. Largest entry above the diagonal: {', '.join(words)}.")
    return figure


def leak(rows: pd.DataFrame) -> Figure:
    """Loss of each network on fresh i.i.d. symbols, by kind, against what is possible; rows of Leak."""
    rows = largest(rows)
    kinds = {"plain": "tokens", "hkt": "and past\nsummaries", "hkt-block": "and block means:\nthey see the answer"}
    figure, ax = plt.subplots(figsize=(5.4, 2.55))
    chance, words = rows["chance"].iloc[0], []
    for place, kind in enumerate(kinds):
        part = rows[rows["kind"] == kind]
        spread = np.linspace(-0.22, 0.22, len(part))
        ax.plot(place + spread, part["loss"], "o", color=KIND_COLOURS[kind], markersize=5)
        words.append(f"{kind} {(part['loss'] - chance).mean():+.3f}, accuracy {part['accuracy'].mean():.2f}")
    below = float(rows.loc[rows["kind"] == "hkt-block", "loss"].mean())
    ax.axhline(chance, **THEORY)
    panel_label(ax, "Summaries that look ahead predict pure noise")
    beside(ax, -0.45, chance, "chance: best without the answer", INK, (0, 13))
    ax.annotate("", (2.4, below), (2.4, chance), arrowprops={"arrowstyle": "<->", "color": RED, "linewidth": 1.4})
    beside(ax, 2.4, (below + chance) / 2, f"{chance - below:.2f} nats", RED, (5, 0))
    ax.set(xticks=range(len(kinds)), xticklabels=kinds.values(), ylabel="test loss [nats]", xlim=(-0.5, 2.95))
    ax.set_ylim(min(below, rows["loss"].min()) - 0.08, chance + 0.17)
    figure.set_label(f"Loss on symbols that nobody can predict, less that of chance: {'; '.join(words)}.")
    return figure
