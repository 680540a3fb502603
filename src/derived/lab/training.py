"""Training of R networks side by side: one loop, whose data, optimiser and schedule are the caller's.

symbol   name      meaning                                                           axes
R        networks  independent networks; every weight has them in front              leading axis
L_r      losses    the loss of network r on its batch of a step                      (R,); () for one alone
eta(t)   rate      learning rate at step t, the same for all                         a function of the step

The gradient of sum_r L_r with respect to the weights of network r is that of L_r: the networks never interact, and one
that diverges leaves the others alone.
"""

from collections.abc import Callable, Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from derived.lab.checks import check_at_least, check_count


def adamw(
    model: nn.Module,
    *,
    betas: tuple[float, float],
    weight_decay: float,
    decays: Callable[[str, nn.Parameter], bool] = lambda name, weight: True,
) -> torch.optim.AdamW:
    """AdamW that decays the weights for which ``decays(name, weight)``; ``train`` sets its rate.

    Adam acts on each number alone, so that one optimiser serves all networks. ValueError for weight_decay < 0.

    >>> model = nn.Linear(2, 2)
    >>> optimiser = adamw(model, betas=(0.9, 0.99), weight_decay=0.01, decays=lambda name, _: name == "weight")
    >>> [len(group["params"]) for group in optimiser.param_groups]
    [1, 1]
    """
    check_at_least("weight_decay", weight_decay, 0)
    groups = {True: [], False: []}
    for name, weight in model.named_parameters():
        groups[bool(decays(name, weight))].append(weight)
    decay = {True: weight_decay, False: 0.0}
    parameters = [{"params": groups[key], "weight_decay": decay[key]} for key in groups if groups[key]]
    return torch.optim.AdamW(parameters, betas=betas)


def train(
    loss: Callable[[int], Float[Tensor, "*networks"]],
    optimiser: torch.optim.Optimizer,
    *,
    steps: int,
    rate: Callable[[int], float],
) -> Float[Tensor, "*networks steps"]:
    """``steps`` steps down sum_r L_r at the learning rate ``rate(step)``; returns L_r before each, float64 on the CPU.

    ``loss(step)`` draws its own batch and returns the loss of every network. Nothing is clipped: what must happen
    between gradient and step is a hook of the optimiser's (``register_step_pre_hook``). Nothing leaves the device
    before the end. ValueError for steps < 1.

    >>> w = nn.Parameter(torch.tensor([1.0, -2.0]))  # two networks of one weight
    >>> train(lambda step: w**2, torch.optim.SGD([w]), steps=2, rate=lambda step: 0.25)
    tensor([[1.0000, 0.2500],
            [4.0000, 1.0000]], dtype=torch.float64)
    """
    check_count("steps", steps)
    found = []
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = rate(step)
        losses = loss(step)
        optimiser.zero_grad()
        losses.sum().backward()
        optimiser.step()
        found.append(losses.detach())
    return torch.stack(found, dim=-1).double().cpu()


def mean_cross_entropy(logits: Float[Tensor, "R *items classes"], labels: Tensor) -> Float[Tensor, "R"]:
    """The mean of -ln softmax(logits)[label] of each network over its items; ``labels`` broadcast to (R, *items).

    >>> mean_cross_entropy(torch.zeros(2, 5, 4), torch.arange(4).repeat(2)[:5])
    tensor([1.3863, 1.3863])
    """
    each = cross_entropy(logits.flatten(0, -2), labels.expand(logits.shape[:-1]).flatten(), reduction="none")
    return each.view(len(logits), -1).mean(dim=-1)


@torch.no_grad()
def evaluate(batches: Iterable[tuple[Tensor, Tensor]]) -> tuple[Float[Tensor, "R"], Float[Tensor, "R"]]:
    """Mean cross-entropy and share of right answers of each network over a set, float64 on the CPU.

    ``batches`` yields (logits (R, items, *tokens, classes), labels that broadcast to (R, items, *tokens)); pass a
    generator, whose forward passes then run here, without gradients. ValueError where it yields nothing.

    >>> loss, right = evaluate((torch.eye(3).unsqueeze(0), torch.tensor([0, label, 2])) for label in (1, 0))
    >>> right
    tensor([0.8333], dtype=torch.float64)
    """
    loss, right, items = 0.0, 0.0, 0
    for logits, labels in batches:
        num = logits.shape[1]
        loss = loss + num * mean_cross_entropy(logits, labels).double()
        right = right + num * (logits.argmax(dim=-1) == labels).double().flatten(1).mean(dim=-1)
        items += num
    if not items:
        raise ValueError("no batch was given; give at least one, of (logits, labels)")
    return (loss / items).cpu(), (right / items).cpu()
