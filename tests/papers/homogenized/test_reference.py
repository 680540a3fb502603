"""The reference program against the package."""

import math
import random

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers import homogenized as package
from derived.papers.homogenized import reference
from derived.papers.homogenized.model.gram import simulate_gram
from derived.papers.homogenized.model.heads import Heads, simplex_gram, uniform_tokens


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


@pytest.mark.parametrize("shared", [True, False])
def test_odds_in_plain_layers_grow_as_those_of_the_exact_chain(shared):
    """`ht-odds`, `ht-private`: 32 stacks of four layers at width 48, against the package's overlaps of that width."""
    plain = []
    for seed in range(32):
        x = reference.axes(4, 48)
        for layer in range(4):
            x = reference.layer(x, 1.0, 1, random.Random(f"{seed} {layer}"), shared)
        plain.append(math.log(reference.odds(reference.mean_overlap(x))))
    start, g = simplex_gram(4, 0.0).expand(20_000, 4, 4), stream(0, "odds", int(shared))
    law = package.HeadLaw(d=48, sigma_a=0.0)
    exact = torch.logit(simulate_gram(start, 4, 1.0, 1, law, 0.0, generator=g, common=shared).mean_overlap[-1]).numpy()
    error = math.hypot(np.std(plain, ddof=1) / 32**0.5, exact.std() / len(exact) ** 0.5)
    assert abs(np.mean(plain) - exact.mean()) < 5 * error
    other = math.log(1 / 3) + (0 if shared else 4 * math.log(2))  # odds that stay; odds times two in each layer
    assert abs(np.mean(plain) - other) > 5 * error


def test_odds_grow_by_the_law_in_plain_layers_of_infinite_width():
    """`ht-odds`, `ht-private`: times 1 + h where all tokens read their mean; private noise leaves the odds alone."""
    for private in (False, True):
        R = reference.axes(4, 4)
        for layer in range(1, 5):
            u = sum(map(sum, R)) / 16
            Q = [[u * (i == j or not private) for j in range(4)] for i in range(4)]
            R = reference.wide_layer(R, Q, 0.7)
            grown = reference.odds(sum(map(sum, R)) / 16) / reference.odds(1 / 4)
            assert grown == pytest.approx(1.0 if private else 1.7**layer, rel=1e-13)
            law = float(package.odds_after(0.25, 0.7, layer))
            assert private or grown == pytest.approx(3 * reference.odds(law), rel=1e-13)


def test_the_hand_example():
    """`ht-odds`: the overlap 0 becomes 1/5, and the odds 1 of the mean 3/2."""
    R = reference.wide_layer(reference.axes(2, 2), [[0.5, 0.5], [0.5, 0.5]], 0.5)
    assert R[0][1] == pytest.approx(0.2)
    assert reference.odds((1 + R[0][1]) / 2) == pytest.approx(1.5 * reference.odds(0.5))
