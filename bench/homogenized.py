"""Race of the random-head chain: ``python bench/homogenized.py [--quick] [--keep]``.

The projected chain, which keeps the tokens and draws n d normals a layer, against the layer as it is written down: in
every layer and replica fresh W, W' and V, (d, d) each, filled in place by float32 normals, batched products, softmax,
normalisation; replicas go through in blocks that fit the cache.
"""

import math

import torch
from race import Race, command, require

from derived.lab.rng import stream
from derived.papers.homogenized.model.chain import simulate_chain
from derived.papers.homogenized.model.heads import equiangular_tokens, matched_law

BLOCK = 4  # replicas at a time in the peer: blocks of 32 and 256 were slower


def build(d: int, n: int, replicas: int, layers: int) -> tuple:
    """Equiangular tokens, the law, the step and the depth; tau = 1 at the end."""
    tokens = equiangular_tokens(n, d, 0.1, replicas=replicas, dtype=torch.float32)
    return tokens, matched_law(d, 2.0), 1 / math.sqrt(layers), layers


def ours(inputs: tuple) -> torch.Tensor:
    """simulate_chain, projected"""
    X, law, eta, layers = inputs
    return simulate_chain(X, layers, eta, 1, law, 1.0, generator=stream(0, "bench projected")).gram[-1]


def peer(inputs: tuple) -> torch.Tensor:
    """a loop over layers with full matrices"""
    X, law, eta, layers = inputs
    generator, ends = stream(0, "bench full"), []
    scale, step = law.sigma_a**2, eta * law.value_std
    for x in X.split(BLOCK):
        W, W_, V = (torch.empty(len(x), law.d, law.d) for _ in range(3))
        for _ in range(layers):
            for matrix in (W, W_, V):
                matrix.normal_(generator=generator)
            attention = torch.softmax(scale * (x @ W_) @ (x @ W).mT, dim=-1)
            x = x + step * (attention @ x) @ V.mT
            x = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        ends.append(x @ x.mT)
    return torch.cat(ends)


def moments(G: torch.Tensor) -> torch.Tensor:
    """(R, 2): mean and mean square of the overlaps of each replica, float64."""
    i, j = torch.triu_indices(*G.shape[-2:], 1)
    pairs = G[:, i, j].double()
    return torch.stack([pairs.mean(dim=1), pairs.square().mean(dim=1)], dim=1)


def check(_: tuple, mine: torch.Tensor, theirs: torch.Tensor) -> None:
    """Mean and mean square of the overlaps agree within 3 standard errors; the streams are independent."""
    a, b = moments(mine), moments(theirs)
    error = (a.var(dim=0) / len(a) + b.var(dim=0) / len(b)).sqrt()
    gap = float(((a.mean(dim=0) - b.mean(dim=0)).abs() / error).max())
    require(gap <= 3, f"moments of the overlaps differ by {gap:.3g} standard errors")


NAME = "projected chain, 10 layers, d = 256, 16 tokens, 256 replicas"
SIZES = {"d": 256, "n": 16, "replicas": 256, "layers": 10}
TOY = {"d": 64, "n": 8, "replicas": 64, "layers": 4}
RACE = Race(NAME, build, ours, peer, check, SIZES, TOY, "float32")

if __name__ == "__main__":
    command("homogenized", RACE)
