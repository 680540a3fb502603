"""Races of the random-head chain: ``python bench/homogenized.py [--quick] [--threads 1] [--output FILE]``.

The peer is the layer as it is written down: in every layer and replica fresh W, W' and V, (d, d) each, filled in place
by torch's float32 normals (the fastest that it has), batched products, softmax, normalisation; replicas go through in
blocks small enough for the cache, the fastest of the block sizes that were tried. Against it, in the same dtype:

1. the projected chain, which keeps the tokens and draws n d normals a layer;
2. the Gram chain, which keeps the overlaps alone.

Before anything is timed, the mean and the mean square of the overlaps of contender and peer must agree within 3
standard errors of their difference (independent streams). A third race sets the Gram chain at d = 10^6 against itself
at the width of the others: same time and memory, whatever d; it has no peer. How fast normals are made, the limit of
the peer, is printed first. The full run writes results/homogenized/bench.json; a quick run, whose sizes are too small
to report, writes under _build/.
"""

import math
import time
from collections.abc import Iterator

import harness
import torch
from harness import Peer, Race, within

from derived.lab.rng import stream
from derived.papers.homogenized.model.chain import simulate_chain
from derived.papers.homogenized.model.gram import simulate_gram
from derived.papers.homogenized.model.heads import equiangular_tokens, matched_law, simplex_gram

LOGIT_STD, GAMMA, TARGET, AGREE = 2.0, 0.1, 8.0, 3.0
BLOCK = 4  # replicas at a time in the peer: 4 x 3 x 256 kB at d = 256; blocks of 32 and 256 were slower
NORMALS = 5_000_000


def build(d: int, n: int, replicas: int, layers: int) -> tuple:
    """Equiangular tokens, the law, the step and the depth; tau = 1 at the end."""
    d = max(d, n, 2)  # the warm-up divides the sizes
    tokens = equiangular_tokens(n, d, GAMMA, replicas=max(replicas, 2), dtype=torch.float32)
    return tokens, matched_law(d, LOGIT_STD), 1 / math.sqrt(max(layers, 4)), layers


def projected(inputs: tuple) -> torch.Tensor:
    """simulate_chain, projected"""
    X, law, eta, layers = inputs
    return simulate_chain(X, layers, eta, 1, law, 1.0, generator=stream(0, "bench projected")).gram[-1]


def gram(inputs: tuple) -> torch.Tensor:
    """simulate_chain, gram"""
    X, law, eta, layers = inputs
    return simulate_chain(X, layers, eta, 1, law, 1.0, generator=stream(0, "bench gram"), method="gram").gram[-1]


def full_matrices(inputs: tuple) -> torch.Tensor:
    """a loop over layers with full matrices"""
    X, law, eta, layers = inputs
    generator, ends = stream(0, "bench full"), []
    scale, step = law.sigma_a**2, eta * law.value_std
    for block in X.split(BLOCK):
        W, W_, V = (torch.empty(len(block), law.d, law.d) for _ in range(3))
        x = block
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
    n = G.shape[-1]
    i, j = torch.triu_indices(n, n, 1)
    pairs = G[:, i, j].double()
    return torch.stack([pairs.mean(dim=1), pairs.square().mean(dim=1)], dim=1)


def same_moments(_: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """The larger of the two distances of moments, in standard errors; replicas are independent."""
    a, b = moments(ours), moments(peer)
    error = (a.var(dim=0) / len(a) + b.var(dim=0) / len(b)).sqrt()
    gap = float(((a.mean(dim=0) - b.mean(dim=0)).abs() / error).max())
    return within(gap, AGREE)


def build_overlaps(d: int, n: int, replicas: int, layers: int) -> tuple:
    """The same start as overlaps alone, so that no tokens are made at any width."""
    start = simplex_gram(n, GAMMA, dtype=torch.float32).expand(max(replicas, 2), n, n).contiguous()
    return start, matched_law(max(d, n, 2), LOGIT_STD), 1 / math.sqrt(max(layers, 4)), layers


def wide(inputs: tuple) -> torch.Tensor:
    """simulate_gram at d = 10^6"""
    G, _, eta, layers = inputs
    law = matched_law(10**6, LOGIT_STD)
    return simulate_gram(G, layers, eta, 1, law, 1.0, generator=stream(0, "bench wide")).gram[-1]


def narrow(inputs: tuple) -> torch.Tensor:
    """simulate_gram at the width of the other races"""
    G, law, eta, layers = inputs
    return simulate_gram(G, layers, eta, 1, law, 1.0, generator=stream(0, "bench narrow")).gram[-1]


def same_flow(inputs: tuple, ours: torch.Tensor, peer: torch.Tensor) -> float:
    """Two widths share their flow up to O(1/d): mean overlaps within 3 standard errors and 3/d."""
    a, b = moments(ours)[:, 0], moments(peer)[:, 0]
    error = float((a.var() / len(a) + b.var() / len(b)).sqrt())
    gap = float((a.mean() - b.mean()).abs())
    return within(gap, AGREE * error + 3 / inputs[1].d)


def normals_per_second() -> dict[str, float]:
    """How many normals a second torch makes in place, the best of five."""
    rates = {}
    for dtype in (torch.float32, torch.float64):
        buffer, g, best = torch.empty(NORMALS, dtype=dtype), stream(0, "bench normals"), math.inf
        for _ in range(5):
            start = time.perf_counter()
            buffer.normal_(generator=g)
            best = min(best, time.perf_counter() - start)
        rates[str(dtype).removeprefix("torch.")] = NORMALS / best
    return rates


def races(quick: bool) -> Iterator[Race]:
    for dtype, rate in normals_per_second().items():
        print(f"{dtype} normals, in place: {rate:.3g} a second", flush=True)
    sizes = {"d": 256, "n": 16, "replicas": 256, "layers": 10}
    if quick:
        sizes = {"d": 64, "n": 8, "replicas": 64, "layers": 4}
    name = "{layers} layers, d = {d}, {n} tokens, {replicas} replicas".format(**sizes)
    literal = (Peer(run=full_matrices, gap=same_moments, target=TARGET),)
    for what, ours in (("projected", projected), ("Gram", gram)):
        yield Race(name=f"{what} chain, {name}", build=build, sizes=sizes, ours=ours, peers=literal)
    same = (Peer(run=narrow, gap=same_flow, role="plain", target=0.8),)
    yield Race(name=f"widths, {name}", build=build_overlaps, sizes=sizes, ours=wide, peers=same)


if __name__ == "__main__":
    harness.command("homogenized", harness.contests(races), rounds=11, quick_rounds=6, dtype="float32")
