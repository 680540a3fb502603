"""One plain training loop for R vision transformers side by side, and the gradient amplification of a loss.

symbol     name        meaning                                               axes
loss       losses      mean cross-entropy of each network at each step       (R, steps)
lr(t)      lr, warmup  lr min(1, (t + 1)/warmup), then constant
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from .checks import check_at_least, check_count, check_positive
from .images import LabelledImages
from .vit import VisionTransformer


class Trained(NamedTuple):
    """What ``train`` returns; a network that diverged shows NaN or infinity, nothing is clipped."""

    losses: Tensor  # (R, steps), in float64 on the CPU
    test_loss: Tensor  # (R,)
    test_accuracy: Tensor  # (R,)


def per_network_loss(logits: Float[Tensor, "R num classes"], labels: Tensor) -> Float[Tensor, "R"]:
    """The mean cross-entropy of each network."""
    each = cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits)), reduction="none")
    return each.view(len(logits), -1).mean(dim=-1)


def train(
    model: VisionTransformer,
    data: LabelledImages,
    test: LabelledImages,
    *,
    steps: int,
    batch_size: int = 128,
    lr: float = 3e-4,
    warmup: int = 0,
    weight_decay: float = 0.05,
    generator: torch.Generator,
) -> Trained:
    """AdamW, betas (0.9, 0.999), linear warm-up over ``warmup`` steps, then a constant rate. [repo]

    The networks share batches and never interact: the loss is the sum of theirs, so one that diverges leaves the others
    alone. Weight decay acts on the weight matrices, not on positions, biases or normalisers. The batches are drawn from
    ``generator`` with replacement.
    """
    check_count("steps", steps)
    check_count("batch_size", batch_size)
    check_count("warmup", warmup, 0)
    check_positive("lr", lr)
    check_at_least("weight_decay", weight_decay, 0.0)
    decayed, plain = [], []
    for name, parameter in model.named_parameters():
        is_matrix = parameter.ndim == 3 and name not in ("positions", "head_bias")  # one per network: (R, out, in)
        (decayed if is_matrix else plain).append(parameter)
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": plain, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.999))
    batches = torch.randint(len(data.labels), (steps, batch_size), generator=generator, device=generator.device)
    losses = []
    for step, batch in enumerate(batches.to(data.images.device)):
        for group in optimiser.param_groups:
            group["lr"] = lr * min(1.0, (step + 1) / max(warmup, 1))
        loss = per_network_loss(model(data.images[batch]), data.labels[batch])
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
        losses.append(loss.detach())
    loss, accuracy = evaluate(model, test, batch_size=batch_size)
    return Trained(torch.stack(losses, dim=-1).double().cpu(), loss, accuracy)


@torch.no_grad()
def evaluate(model: VisionTransformer, test: LabelledImages, *, batch_size: int = 128) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and accuracy of each network over a set, (R,) each, in float64 on the CPU."""
    loss, right = 0.0, 0.0
    for images, labels in zip(test.images.split(batch_size), test.labels.split(batch_size), strict=True):
        logits = model(images)
        loss = loss + len(labels) * per_network_loss(logits, labels).double()
        right = right + (logits.argmax(dim=-1) == labels).double().sum(dim=-1)
    return (loss / len(test.labels)).cpu(), (right / len(test.labels)).cpu()


def gradient_amplification(model: VisionTransformer, data: LabelledImages) -> Float[Tensor, "R layers"]:
    """sum |dL/dh^b|^2 / sum |dL/dh^B|^2 for b = 0 .. B, L the mean cross-entropy: (R, B + 1), float64 on the CPU.

    Behind global average pooling the recurrence from (J, K)^B = (1, 1) predicts it. [repo; the prediction ours]
    """
    states = model.states(data.images)
    loss = per_network_loss(model.read_out(states[-1]), data.labels).sum()
    squares = [g.double().square().sum(dim=(1, 2, 3)) for g in torch.autograd.grad(loss, states)]
    return (torch.stack(squares, dim=-1) / squares[-1].unsqueeze(-1)).cpu()
