"""What tests of the layers share: random tensors, shaken weights, features of levels, and who depends on whom."""

import torch

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.model.pyramid import num_rows

TOLERANCE = 1e-12  # sums of at most 10^3 products of numbers of order one, each rounded a few times
F64 = {"dtype": torch.float64}


def normal(*shape: int, name: object = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, str(name), *shape), dtype=torch.float64)


def shaken(layer: torch.nn.Module) -> torch.nn.Module:
    """The layer with every parameter moved away from its start, so that averages and equal alphas hide nothing."""
    with torch.no_grad():
        for i, (name, parameter) in enumerate(layer.named_parameters()):
            noise = torch.randn(parameter.shape, generator=stream(7, name, i), dtype=torch.float64)
            parameter += 0.5 * noise.to(parameter)
    return layer


def features(T: int, levels: int, d_k: int = 4, lead: tuple[int, ...] = (2, 3)):
    """Queries and keys of each level, values, and weights of the levels."""
    q, k = ([normal(*lead, num_rows(T, l), d_k, name=f"{side}{l}") for l in range(levels)] for side in "qk")
    alpha = torch.softmax(normal(lead[-1], levels, name="alpha"), dim=-1)
    return q, k, normal(*lead, T, 5, name="v"), alpha


def dependence(outputs, x: torch.Tensor) -> torch.Tensor:
    """(rows, T): the largest |d output_i / d x_t| over features; outputs maps (T, d) to (rows, anything)."""
    return torch.autograd.functional.jacobian(outputs, x).abs().amax(dim=(1, 3))
