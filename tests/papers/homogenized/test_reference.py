"""The reference program against the package."""

import math
import random

import numpy as np
import pytest
import torch

from derived.papers import homogenized as package
from derived.papers.homogenized import reference
from derived.papers.homogenized.model.heads import Heads, uniform_tokens


@pytest.mark.parametrize("seed", range(3))
def test_a_layer_is_that_of_the_package(seed, monkeypatch):
    """`ht-model`: the same push, of one head, at beta = 0."""
    x = uniform_tokens(4, 5, generator=torch.Generator().manual_seed(seed))
    V = torch.randn(5, 5, generator=torch.Generator().manual_seed(seed + 9), dtype=torch.float64)
    given = iter(V.flatten().tolist())
    monkeypatch.setattr(random.Random, "gauss", lambda self, mean, deviation: next(given))
    plain = reference.layer(x[0].tolist(), 0.7, 1, random.Random(0))
    heads = Heads(V=V[None, None] / 5**0.5, A=torch.zeros(1, 1, 5, 5, dtype=torch.float64), beta=0.0)
    torch.testing.assert_close(torch.tensor(plain, dtype=torch.float64), package.layer_step(x, 0.7, heads)[0])


def test_a_wide_layer_is_that_of_the_package():
    """`ht-wide`"""
    X = uniform_tokens(5, 4, generator=torch.Generator().manual_seed(1))[0]
    R, P = X @ X.T, torch.rand(5, 5, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    Q = P @ R @ P.T
    plain = torch.tensor(reference.wide_layer(R.tolist(), Q.tolist(), 0.8), dtype=torch.float64)
    torch.testing.assert_close(plain, package.wide_layer(R, Q, 0.8))


def test_odds_grow_in_plain_layers():
    """`ht-odds`, `ht-private`: 32 stacks of four layers at width 48; with a push for each token the odds stay."""
    grown = {}
    for shared in (True, False):
        ends = []
        for seed in range(32):
            x = reference.axes(4, 48)
            for _ in range(4):
                x = reference.layer(x, 1.0, 1, random.Random(f"{seed} {len(ends)} {x[0][0]}"), shared)
            ends.append(math.log(3 * reference.odds(reference.mean_overlap(x))) / math.log(2) / 4)
        grown[shared] = np.mean(ends), np.std(ends, ddof=1) / 32**0.5
    law = float(package.odds_after(0.25, 1.0, 4))
    assert abs(grown[True][0] - math.log2(3 * law / (1 - law)) / 4) < 5 * grown[True][1] + 0.06
    assert abs(grown[False][0]) < 5 * grown[False][1] + 0.06


def test_the_hand_example():
    """`ht-odds`: the overlap 0 becomes 1/5, and the odds 1 of the mean 3/2."""
    R = reference.wide_layer(reference.axes(2, 2), [[0.5, 0.5], [0.5, 0.5]], 0.5)
    assert R[0][1] == pytest.approx(0.2)
    assert reference.odds((1 + R[0][1]) / 2) == pytest.approx(1.5 * reference.odds(0.5))
