"""How the classifiers are trained and judged: every network on data of its own, by the laboratory's loop.

symbol     name     meaning                                                      axes
s, n, y    data     symbols, lengths, labels of each network's set               as in ``data.sequences``
eta(t)     rate     linear warm-up over the first tenth, then a cosine to zero
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from derived.lab import training
from derived.lab.checks import check_count

from ..data.sequences import Data
from ..model.classifier import SequenceClassifier


def rate(step: int, steps: int) -> float:
    """The learning rate's factor at a step: up over the first tenth, then half a cosine down to zero."""
    warmup = max(1, steps // 10)
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def train(
    model: SequenceClassifier,
    data: Data,
    *,
    steps: int,
    batch_size: int,
    lr: float,
    weight_decay: float = 0.01,
    generator: torch.Generator,
    watch: Callable[[int], None] = lambda step: None,
) -> Float[Tensor, "R steps"]:
    """AdamW on the sum of the networks' losses; returns each network's loss at each step.

    Weight decay acts on all weights but the logits ``a`` of the levels. Batches are drawn with replacement from
    ``generator``: models trained with equal generators and data see the same items in the same order. ``watch`` is
    called with the number of each step before that step.
    """
    check_count("batch_size", batch_size)
    networks, items, _ = data.tokens.shape

    def loss(step: int) -> Tensor:
        watch(step)
        index = torch.randint(items, (networks, batch_size), generator=generator, device=generator.device)
        batch = data.take(index.to(data.tokens.device))
        return training.mean_cross_entropy(model(batch.tokens, batch.lengths), batch.labels)

    # a, the logits of the levels, are spared: decay would pull them towards equal weights
    optimiser = training.adamw(
        model, betas=(0.9, 0.99), weight_decay=weight_decay, decays=lambda name, _: not name.endswith(".a")
    )
    return training.train(loss, optimiser, steps=steps, rate=lambda step: lr * rate(step, steps))


def evaluate(model: SequenceClassifier, data: Data, *, batch_size: int = 256) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and share of right answers of each network, (R,) each, in float64 on the CPU."""
    items = torch.arange(data.tokens.shape[1], device=data.tokens.device)
    batches = (data.take(index.expand(len(data.tokens), -1)) for index in items.split(batch_size))
    return training.evaluate((model(batch.tokens, batch.lengths), batch.labels) for batch in batches)
