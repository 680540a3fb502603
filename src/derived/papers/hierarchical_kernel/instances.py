"""Random instances and their rounding, for check cells and experiments."""

from collections.abc import Sequence

import torch
from torch import Tensor

from .model.layers import HKTAttention


def normal(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Standard normal numbers in float64, drawn where the generator lives."""
    return torch.randn(*shape, generator=generator, dtype=torch.float64, device=generator.device)


def random_layers(num: int, d: int, heads: int, levels: int, *, generator: torch.Generator, **options) -> HKTAttention:
    """``num`` layers with every weight drawn: matrices N(0, 1/columns), logits of the levels N(0, 1)."""
    layers = HKTAttention(d, heads, levels, num_networks=num, **options)
    with torch.no_grad():
        for weight in layers.parameters():
            columns = weight[0, 0].numel() if weight.shape[-1] == d else 1  # logits a have L entries, and variance 1
            weight.copy_(normal(weight.shape, generator) / columns**0.5)
    return layers


def worst_entry(gap: Tensor) -> Tensor:
    """The largest entry in absolute value of each instance: (instances, ...) -> (instances,)."""
    return gap.abs().flatten(1).amax(dim=1)
