"""One plain training loop for R small models side by side, each on data of its own.

symbol     name     meaning                                                      axes
s          tokens   symbols, 0 is padding on the right                           (R, items, T) integers
n          lengths  real symbols                                                 (R, items)
y          labels   a class per item, or a symbol per token                      (R, items) or (R, items, T)
lr(t)      rate     linear warm-up over the first tenth, then a cosine to zero
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from ..data.sequences import Data
from ..model.checks import check_count
from ..model.classifier import SequenceClassifier


def rate(step: int, steps: int) -> float:
    """The learning rate's factor at a step: up over the first tenth, then half a cosine down to zero."""
    warmup = max(1, steps // 10)
    if step < warmup:
        return (step + 1) / warmup
    return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))


def per_network_loss(logits: Tensor, labels: Tensor) -> Float[Tensor, "R"]:
    """The mean cross-entropy of each network, over its items and, where there are any, its tokens."""
    each = cross_entropy(logits.flatten(0, -2), labels.flatten(), reduction="none")
    return each.view(len(logits), -1).mean(dim=-1)


def train(
    model: SequenceClassifier,
    data: Data,
    *,
    steps: int,
    batch_size: int,
    lr: float,
    weight_decay: float = 0.01,
    generator: torch.Generator,
) -> Float[Tensor, "R steps"]:
    """AdamW on the sum of the networks' losses, which never interact; returns each network's loss at each step.

    Weight decay acts on all weights but the logits ``a`` of the levels. Batches are drawn with replacement from
    ``generator``: models trained with equal generators and data see the same items in the same order.
    """
    check_count("steps", steps)
    check_count("batch_size", batch_size)
    groups = ([], [])
    for name, weight in model.named_parameters():
        groups[name.endswith(".a")].append(weight)
    optimiser = torch.optim.AdamW(
        [{"params": groups[0], "weight_decay": weight_decay}, {"params": groups[1], "weight_decay": 0.0}],
        lr=lr,
        betas=(0.9, 0.99),
    )
    items, device = data.tokens.shape[1], data.tokens.device
    losses = []
    for step in range(steps):
        index = torch.randint(items, (len(data.tokens), batch_size), generator=generator, device=generator.device)
        batch = data.take(index.to(device))
        for group in optimiser.param_groups:
            group["lr"] = lr * rate(step, steps)
        loss = per_network_loss(model(batch.tokens, batch.lengths), batch.labels)
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
        losses.append(loss.detach())
    return torch.stack(losses, dim=-1).double().cpu()


@torch.no_grad()
def evaluate(model: SequenceClassifier, data: Data, *, batch_size: int = 256) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and share of right answers of each network, (R,) each, in float64 on the CPU."""
    loss, right, items = 0.0, 0.0, data.tokens.shape[1]
    for index in torch.arange(items, device=data.tokens.device).split(batch_size):
        batch = data.take(index.expand(len(data.tokens), -1))
        logits = model(batch.tokens, batch.lengths)
        hits = (logits.argmax(dim=-1) == batch.labels).double().flatten(1).mean(dim=-1)
        loss = loss + len(index) * per_network_loss(logits, batch.labels).double()
        right = right + len(index) * hits
    return (loss / items).cpu(), (right / items).cpu()
