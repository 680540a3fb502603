"""Race of the hierarchical kernel: ``python bench/hierarchical_kernel.py [--quick] [--keep]``.

One causal layer of three levels and width 64: coarse tables, tile by tile, against torch's fused attention on wide
features, which computes the same layer.
"""

import torch
from race import Race, command, require
from torch.nn.functional import pad, scaled_dot_product_attention

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.model.attention import attend_tables, concatenated_features
from derived.papers.hierarchical_kernel.model.pyramid import num_rows

LEVELS, WIDTH = 3, 64


def build(T: int) -> tuple:
    """Queries and keys of every level, values, and equal weights of the levels."""
    g = stream(0, "attention inputs", T)
    q, k = ([torch.randn(1, 1, num_rows(T, l), WIDTH, generator=g) for l in range(LEVELS)] for _ in range(2))
    return q, k, torch.randn(1, 1, T, WIDTH, generator=g), torch.full((LEVELS,), 1 / LEVELS)


@torch.no_grad()
def ours(inputs: tuple) -> torch.Tensor:
    """coarse tables, tile by tile"""
    return attend_tables(*inputs)


@torch.no_grad()
def peer(inputs: tuple) -> torch.Tensor:
    """SDPA on wide features"""
    q, k, v, alpha = inputs
    padded = pad(v, (0, (LEVELS - 1) * WIDTH))  # the kernel asks for equal widths
    output = scaled_dot_product_attention(*concatenated_features(q, k, alpha), padded, is_causal=True, scale=1.0)
    return output[..., :WIDTH]


def check(_: tuple, mine: torch.Tensor, theirs: torch.Tensor) -> None:
    """Scores of at most 3 x 64 products in float32: rounding of sqrt(192) 64 eps, passed on by a Lipschitz softmax."""
    gap, bound = float((mine - theirs).abs().max()), (LEVELS * WIDTH) ** 0.5 * 64 * torch.finfo(torch.float32).eps
    require(gap <= bound, f"the layers differ by {gap:.3g}, more than {bound:.3g}")


SIZES, TOY = {"T": 4096}, {"T": 256}
RACE = Race("coarse tables, T = 4096, 3 levels, width 64", build, ours, peer, check, SIZES, TOY, "float32")

if __name__ == "__main__":
    command("hierarchical_kernel", RACE)
