"""A pair in a uniform cloud: Bessel ratios, cosines, one layer and the slow overlap."""

import math

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.homogenized.model import overlaps
from derived.papers.homogenized.model.cloud import (
    cloud_layer,
    image_cosine,
    mean_cosine,
    return_probability,
    slow_bracket,
    slow_drift,
)

F64 = {"dtype": torch.float64}


@pytest.mark.parametrize("factors", [1, 2, 3])
def test_mean_cosine(factors):
    """Quadrature against full matrices, the next number of factors rejected; wide tokens keep what they share."""
    r, d = 0.5, 6
    exact = float(mean_cosine(r, d, factors))
    pair = torch.zeros(60_000, d, 2, dtype=torch.float64)
    pair[:, 0] = torch.tensor([1.0, r], dtype=torch.float64)
    pair[:, 1, 1] = math.sqrt(1 - r * r)
    g = stream(27, "full", factors)
    for _ in range(factors):
        pair = torch.randn(60_000, d, d, generator=g, dtype=torch.float64) @ pair
    cosine = torch.nn.functional.cosine_similarity(pair[..., 0], pair[..., 1], dim=-1)
    assert abs(cosine.mean() - exact) < 5 * cosine.std() / math.sqrt(len(cosine))
    both = torch.full((60_000,), r, dtype=torch.float64)
    drawn = image_cosine(both, d, factors, generator=stream(28, "law", factors))
    assert abs(drawn.mean() - exact) < 5 * drawn.std() / math.sqrt(len(drawn))
    assert abs(cosine.mean() - float(mean_cosine(r, d, factors + 1))) > 5 * cosine.std() / math.sqrt(len(cosine))
    for width in (d, 40, 400):  # F(1/2, 1/2; c; x) is a series of our own from c = 20 on
        assert mean_cosine([-1.0, 0.0, 1.0], width, factors) == pytest.approx([-1, 0, 1], abs=1e-5)


def literal_cloud_layer(R: float, h: float, d: int, paths: int, generator) -> torch.Tensor:
    """The layer with all its matrices, for A = W W'^T."""
    facts = {"generator": generator, "dtype": torch.float64}
    x, y = torch.zeros(2, d, dtype=torch.float64)
    x[0], y[0], y[1] = 1.0, R, math.sqrt(1 - R**2)
    W, W_, V = (torch.randn(paths, d, d, **facts) for _ in range(3))
    a, b = ((W @ (W_.mT @ z).unsqueeze(-1)).squeeze(-1) for z in (x, y))
    a, b = (V @ (each / each.norm(dim=-1, keepdim=True)).unsqueeze(-1) for each in (a, b))
    x, y = (z + (h / d) ** 0.5 * each.squeeze(-1) for z, each in ((x, a), (y, b)))
    return (x * y).sum(dim=-1) / x.norm(dim=-1) / y.norm(dim=-1)


@pytest.mark.parametrize("d", [4, 7])
def test_a_cloud_layer_has_the_law_of_the_literal_one(d):
    paths, R = 40_000, 0.4
    slow = literal_cloud_layer(R, 0.5, d, paths, stream(3, "literal", d))
    fast = cloud_layer(torch.full((paths,), R, dtype=torch.float64), 0.5, d, 2, generator=stream(3, "fast", d))
    for power in (1, 2, 3):
        one, two = slow**power, fast**power
        error = ((one.var() + two.var()) / paths).sqrt()
        assert abs(one.mean() - two.mean()) <= 5 * error


def test_coinciding_tokens_stay_together_in_a_cloud():
    ones = torch.ones(50, dtype=torch.float64)
    moved = cloud_layer(ones, 0.5, 8, 2, generator=stream(4, "ones"))
    assert torch.allclose(moved, torch.ones_like(moved), atol=1e-12)


@pytest.mark.parametrize(("d", "factors"), [(1, 2), (5, -1)])
def test_a_cloud_refuses_bad_sizes(d, factors):
    with pytest.raises(ValueError, match="give an integer"):
        image_cosine(torch.zeros(1), d, factors, generator=stream(0, "bad"))
    with pytest.raises(ValueError, match="d = 3; give an integer >= 4"):
        cloud_layer(torch.zeros(1), 0.1, 3, 2, generator=stream(0, "bad"))


def test_slow_overlap():
    """`ht-slow`: d D -> -(1 + kappa) u (1 - u^2) and d bracket -> 2 (1 - u^2)^2; y has drift (1 - kappa) u."""
    u = np.array([-0.8, 0.1, 0.6])
    R, one = torch.from_numpy(u), torch.ones(3, **F64)
    for factors in (0, 1, 2, 3):
        kappa, gaps = factors / 2, []
        for d in (100, 200):
            s = torch.from_numpy(mean_cosine(u, d, factors)) if factors else R
            pair = [torch.stack([torch.stack([one, x], -1), torch.stack([x, one], -1)], -2) for x in (R, s)]
            gaps.append(np.abs(d * overlaps.overlap_drift(*pair, d)[:, 0, 1].numpy() - slow_drift(u, kappa)).max())
            assert np.abs(d * overlaps.overlap_bracket(*pair, d)[:, 0, 1].numpy() - slow_bracket(u)).max() < 3 / d
        assert gaps[1] < 0.03
        assert factors == 0 or 1.7 < gaps[0] / gaps[1] < 2.3
        ito = (1 - u**2) * (1 - kappa) * u - 2 * u * (1 - u**2)
        assert np.allclose(ito, slow_drift(u, kappa), atol=1e-15)
    assert np.abs(slow_drift(np.linspace(-1, 1, 4001))).max() == pytest.approx(4 / (3 * math.sqrt(3)), rel=1e-6)


def test_recurrence():
    """`ht-slow`: kappa = 1 is Brownian and returns, kappa < 1 leaves: the probabilities by another quadrature."""
    assert return_probability(3.2, 1.0, 100.0) == pytest.approx(0.821, abs=1e-3)
    assert return_probability(3.2, 0.0) == pytest.approx(0.052, abs=1e-3)
    assert return_probability(1.0) == return_probability(1.0, 1.5) == 1.0
    for kappa in (0.0, 0.5, 0.9):  # 1 - s(y)/s(inf) by quadrature of the scale function
        grid = np.linspace(0, 60 / (1 - kappa), 2_000_001)
        scale = np.cosh(np.minimum(grid, 700.0)) ** (kappa - 1)
        total, part = (np.trapezoid(scale[grid <= top], grid[grid <= top]) for top in (math.inf, 1.5))
        assert return_probability(1.5, kappa) == pytest.approx(1 - part / total, abs=1e-4)
    y = torch.full((20_000,), 0.5, dtype=torch.float64)  # dy = sqrt(2) dB: first passage by small steps
    back, g = torch.zeros(20_000, dtype=torch.bool), stream(58, "paths")
    for _ in range(1000):
        y = y + 0.002**0.5 * torch.randn(20_000, generator=g, dtype=torch.float64)
        back |= y <= 0
    assert 0 < return_probability(0.5, 1.0, 1.0) - back.double().mean() < 0.03  # steps miss some returns


def test_displacement_of_a_cold_pair():
    """`ht-slow`: with probability 1 - delta the overlap stays within (4/(3 sqrt 3)) T/d + sqrt((4T/d) ln(2/delta))."""
    T, h, paths = 4.0, 0.05, 2000
    for d in (64, 256):
        R, g = torch.full((paths,), 0.3, dtype=torch.float64), stream(59, d)
        farthest = torch.zeros_like(R)
        for _ in range(round(T / h)):
            R = cloud_layer(R, h, d, 2, generator=g)
            farthest = torch.maximum(farthest, (R - 0.3).abs())
        for delta in (0.5, 0.1):
            bound = 4 / (3 * math.sqrt(3)) * T / d + math.sqrt(4 * T / d * math.log(2 / delta))
            assert (farthest > bound).double().mean() < delta
        assert (farthest > bound / 3).double().mean() > 0.5  # and it moves on that scale
