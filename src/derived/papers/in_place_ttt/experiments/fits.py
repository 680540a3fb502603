"""Training of R small models side by side on generated texts, the same texts for every arm and rate.

symbol   name       meaning                                                       axes
R        networks   independently initialised models; a replicate is one model    leading axis
-        history    loss and what else is noted of each training batch            (R, steps)
"""

import math
from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from derived.lab import training
from derived.lab.nets import Draws

from ..model.network import Size, SmallLM


def build(size: Size, networks: int, seed: int, device, dtype) -> SmallLM:
    """Fresh models; arms of one seed share every weight that they both have."""
    return SmallLM(size, Draws(num_networks=networks, seed=seed, layer="layer", dtype=dtype, device=device))


def as_many_parameters(size: Size, as_in: Size) -> Size:
    """The size with the inner width that brings its parameters nearest to those of another."""
    one, two = (SmallLM(each, Draws()).parameters_each for each in (size, as_in))
    return replace(size, inner=size.inner + round((two - one) / (3 * size.width * size.depth)))


def fit(model: SmallLM, loss: Callable[[int], Tensor], *, steps: int, rate: float) -> Tensor:
    """AdamW with warm-up for a tenth of the steps, then a cosine to zero: the loss before each step, (R, steps).

    Nothing is clipped, since a norm over all models would let them interact.
    """
    optimiser = training.adamw(model, betas=(0.9, 0.98), weight_decay=0.01)
    return training.train(loss, optimiser, steps=steps, rate=lambda step: schedule(step, steps, rate))


def schedule(step: int, steps: int, rate: float) -> float:
    """The learning rate at a step."""
    return rate * min(1.0, 10 * (step + 1) / steps) * 0.5 * (1 + math.cos(math.pi * step / steps))
