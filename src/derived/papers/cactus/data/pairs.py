"""Random pairs of distributions.

symbol   name    meaning                                             axes
p, q     p, q    distributions of draft and verifier at a position   (pairs, V)
"""

import torch
from jaxtyping import Float
from scipy import special
from torch import Tensor

KINDS = ("noised", "independent")


def dirichlet(concentration: Float[Tensor, "pairs"], V: int, generator: torch.Generator) -> Float[Tensor, "pairs V"]:
    """Symmetric Dirichlet distributions, one per concentration: normalised gamma variables, by inversion."""
    u = torch.rand(len(concentration), V, generator=generator, dtype=torch.float64)
    gamma = torch.from_numpy(special.gammaincinv(concentration.unsqueeze(-1).numpy(), u.numpy()))
    return gamma / gamma.sum(dim=-1, keepdim=True)


def random_pairs(pairs: int, V: int, kind: str, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """(p, q): q Dirichlet with log-uniform concentration in [0.1, 10]; p tempered and noised from it, or unrelated.

    "noised": p proportional to q^beta e^{noise}, beta uniform in [0.6, 1.4], noise N(0, 0.5^2). "independent": p is
    another draw of the same Dirichlet distribution.
    """
    if kind not in KINDS:
        raise ValueError(f"kind {kind!r} is unknown: give one of {', '.join(KINDS)}")
    concentration = 10 ** (2 * torch.rand(pairs, generator=generator, dtype=torch.float64) - 1)
    q = dirichlet(concentration, V, generator)
    if kind == "independent":
        return dirichlet(concentration, V, generator), q
    beta = 0.6 + 0.8 * torch.rand(pairs, 1, generator=generator, dtype=torch.float64)
    noise = 0.5 * torch.randn(pairs, V, generator=generator, dtype=torch.float64)
    return torch.softmax(beta * q.log() + noise, dim=-1), q
