"""Training of R small models side by side, each on texts of its own, which are the same for every arm and rate.

symbol   name       meaning                                                       axes
R        networks   independently initialised models; a replicate is one model    leading axis
-        history    loss and what else is noted of each training batch            (R, steps)
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from torch import Tensor, nn

from derived.lab import training
from derived.lab.experiment import Experiment
from derived.lab.nets import Draws

from .model.network import Memory, Size, SmallLM

RATES = (3e-3, 1e-2, 3e-2, 1e-1)
FINE = (6.3e-3, 1e-2, 1.6e-2)  # a factor of 1.6 apart, around the best of these


@dataclass(frozen=True, kw_only=True)
class Trained(Experiment):
    """What the runs share; a condition is an arm at a rate."""

    networks: int = 16
    rates: tuple[float, ...] = RATES
    steps: int = 2000
    batch: int = 32
    length: int = 512
    width: int = 128
    inner: int = 384
    heads: int = 4
    window: int = 32
    chunk: int = 16
    judged: int = 256  # texts to validate, and as many to test

    dtype: ClassVar = torch.float32

    def size(self, vocabulary: int, depth: int, memories: Mapping[int, Memory], **facts) -> Size:
        sizes = {"width": self.width, "inner": self.inner, "heads": self.heads, "window": self.window}
        return Size(vocabulary, depth=depth, memories=memories, **{**sizes, **facts})

    def own(self, texts: Tensor) -> Tensor:
        """Texts for all networks, one after another (R B, ...), as each network's own: (R, B, ...)."""
        return texts.unflatten(0, (self.networks, -1))


CI = {"networks": 2, "rates": (1e-2,), "steps": 3, "batch": 2, "length": 32, "width": 8, "inner": 12, "heads": 1}
CI |= {"window": 4, "chunk": 4, "judged": 2}
CPU = {"networks": 8, "batch": 4, "length": 64, "width": 32, "inner": 96, "heads": 2, "window": 8, "chunk": 8}
CPU |= {"judged": 64}


def build(size: Size, networks: int, seed: int, device, dtype) -> SmallLM:
    """Fresh models; arms of one seed share every weight that they both have."""
    return SmallLM(size, Draws(num_networks=networks, seed=seed, layer="layer", dtype=dtype, device=device))


def as_many_parameters(size: Size, as_in: Size) -> Size:
    """The size with the inner width that brings its parameters nearest to those of another."""
    one, two = (SmallLM(each, Draws()).parameters_each for each in (size, as_in))
    return replace(size, inner=size.inner + round((two - one) / (3 * size.width * size.depth)))


def fit(model: nn.Module, loss: Callable[[int], Tensor], *, steps: int, rate: float) -> Tensor:
    """AdamW with warm-up for a tenth of the steps, then a cosine to zero: the loss before each step, (R, steps).

    Nothing is clipped, since a norm over all models would let them interact.
    """
    optimiser = training.adamw(model, betas=(0.9, 0.98), weight_decay=0.01)
    return training.train(loss, optimiser, steps=steps, rate=lambda step: schedule(step, steps, rate))


def schedule(step: int, steps: int, rate: float) -> float:
    """The learning rate at a step."""
    return rate * min(1.0, 10 * (step + 1) / steps) * 0.5 * (1 + math.cos(math.pi * step / steps))


def ends_of(losses: Tensor) -> dict[str, Tensor]:
    """The mean training loss (R,) of the last tenth of the steps (late) and of the tenth before it (before)."""
    tenth = max(1, losses.shape[-1] // 10)
    return {"late": losses[:, -tenth:].mean(dim=-1), "before": losses[:, -2 * tenth : -tenth].mean(dim=-1)}
