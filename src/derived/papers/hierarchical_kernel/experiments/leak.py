"""Does a layer read the future: its Jacobian, and a negative control, a leak that looks like a result."""

import math
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd
import torch
from torch import Tensor

from derived.lab.experiment import Experiment, rows
from derived.lab.rng import stream

from ..data.sequences import Data, stack
from ..model.classifier import SequenceClassifier
from ..model.layers import HKTAttention
from ..model.pyramid import Pooling
from .instances import normal, random_layers
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
    """HKT-3, the negative control: the next of i.i.d. uniform symbols, which nobody can predict without looking.

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

    tiers: ClassVar = {
        "ci": {"replicates": 8, "steps": 250, "num_test": 500},
        "cpu": {},
    }
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
