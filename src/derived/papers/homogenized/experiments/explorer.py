"""Rows for the two figures with sliders: tokens on a sphere, and the collapse over three parameters.

Small, live in every build, and the evidence of no claim.
"""

import itertools
import math

import numpy as np
import pandas as pd
import torch

from derived.lab.experiment import rows
from derived.lab.rng import stream

from ..model.chain import simulate_chain
from ..model.gram import default_record, gram_step
from ..model.heads import HeadLaw, matched_law, normalise, simplex_gram
from ..model.overlaps import simplex_flow

GRID = {
    "d": (8, 12, 16, 24, 32, 48, 64, 128, 256, 1024),
    "logit_std": (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0),
    "eta": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
}


def sphere_rows(
    seed: int, n: int = 60, L: int = 480, h: float = 0.05, bias: float = 0.6, every: int = 12
) -> pd.DataFrame:
    """Tokens of R^3 over L layers: one prompt under two draws of weights, another prompt under the first draw.

    The prompts are i.i.d. from one distribution. Rows: panel, layer, token, x, y, z.
    """
    law, tables = matched_law(3, 1.0), []
    centre = torch.tensor([0.0, -bias, 0.0], dtype=torch.float64)
    for panel, prompt, weights in (
        ("prompt A, weights 1", "A", 1),
        ("prompt A, weights 2", "A", 2),
        ("prompt B, weights 1", "B", 1),
    ):
        noise = torch.randn(1, n, 3, generator=stream(seed, "sphere", prompt), dtype=torch.float64)
        X, layers = normalise(centre + noise / math.sqrt(3)), list(range(0, L + 1, every))
        g = stream(seed, "sphere weights", weights)
        chain = simulate_chain(
            X, L, math.sqrt(h), 1, law, 1.0, generator=g, method="literal", record=layers, keep_tokens=True
        )
        index = {"panel": panel, "layer": layers, "token": range(n)}
        tables.append(rows(index, dict(zip("xyz", chain.tokens[:, 0].unbind(dim=-1), strict=True))))
    return pd.concat(tables, ignore_index=True)


def collapse_rows(
    seed: int, n: int = 8, H: int = 1, L: int = 96, paths: int = 3, points: int = 13, grid: dict = GRID
) -> pd.DataFrame:
    """Mean overlap of n initially orthogonal tokens over layers: the ODE (path -1) and sampled chains of overlaps.

    All steps are run in one batch. Rows: the names of ``grid``, path, layer, gamma.
    """
    tables, layers = [], np.array(default_record(L, points))
    steps = torch.tensor(grid["eta"], dtype=torch.float64).repeat_interleave(paths).reshape(-1, 1, 1)
    clocks = {eta: eta**2 / H * layers for eta in grid["eta"]}
    times = np.unique(np.concatenate(list(clocks.values())))
    for d, s in itertools.product(grid["d"], grid["logit_std"]):
        flow = simplex_flow(0.0, times, n, s, d)
        sampled = sampled_overlaps(n, matched_law(d, s), steps, H, layers, stream(seed, "collapse", n, d, str(s), H))
        for eta, chains in zip(grid["eta"], sampled.unflatten(-1, (-1, paths)).unbind(dim=1), strict=True):
            curves = np.column_stack([flow[np.searchsorted(times, clocks[eta])], chains.numpy()])
            setting = {"d": d, "logit_std": s, "eta": eta}
            tables.append(rows(setting | {"layer": layers, "path": range(-1, paths)}, {"gamma": curves}))
    return pd.concat(tables, ignore_index=True)


def sampled_overlaps(n: int, law: HeadLaw, steps: torch.Tensor, H: int, layers, generator) -> torch.Tensor:
    """Mean overlaps (layers, replicas) of pairs of initially orthogonal tokens, each replica with a step of its own."""
    G, kept = simplex_gram(n, 0.0).expand(len(steps), n, n), []
    for layer in range(layers[-1] + 1):
        G = gram_step(G, steps, H, law, 1.0, generator=generator) if layer else G
        if layer in layers:
            kept.append((G.sum(dim=(-2, -1)) / n - 1) / (n - 1))
    return torch.stack(kept)
