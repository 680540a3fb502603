"""What is lost when coarse levels are dropped, and how fast means of a sequence lose variance (HKT-8)."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel import theory
from derived.papers.hierarchical_kernel.mechanism import causal_mask, mix, pyramid

examples = settings(derandomize=True, max_examples=25, deadline=None, database=None)
EPS = torch.finfo(torch.float64).eps
TOLERANCE = 1e-12  # sums of at most 10^3 products of numbers of order one, each rounded a few times


def normal(*shape: int, name: object = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, str(name), *shape), dtype=torch.float64)


def test_softmax_is_lipschitz():
    """`hkt-lipschitz`: |softmax(s) - softmax(s + d)|_1 <= max |d|; reached as d -> 0 at weights 1/2, 1/2."""
    s, d = 3 * normal(4000, 6, name="s"), normal(4000, 6, name="d") * torch.rand(4000, 1, generator=stream(0, "u")) * 3
    change = (torch.softmax(s + d, dim=-1) - torch.softmax(s, dim=-1)).abs().sum(dim=-1)
    assert bool((change <= d.abs().amax(dim=-1) * (1 + 1e-12)).all())
    tight = torch.tensor([1e-5, -1e-5], dtype=torch.float64)
    change = (torch.softmax(tight, dim=-1) - 0.5).abs().sum(dim=-1)
    assert float(change) / 1e-5 == pytest.approx(1, abs=1e-9)
    half = torch.tensor([1.0, 1.0, 0.0, 0.0], dtype=torch.float64)  # shifts are free: half the spread is the right size
    assert float((torch.softmax(half * 1e-6, dim=-1) - 0.25).abs().sum(dim=-1)) == pytest.approx(5e-7, rel=1e-5)


@examples
@given(st.floats(0.2, 1.0), st.integers(1, 5))
def test_dropping_levels_changes_little(rho, kept):
    """`hkt-decay`: rows change by at most B rho^L sum alpha in l_1, outputs by that times max |v_j|."""
    T, levels = 32, 6
    tables = [rho**l * normal(T >> l, T >> l, name=l) for l in range(levels)]
    alpha, v = torch.softmax(normal(levels, name="a"), dim=-1), normal(T, 3, name="v")
    B = theory.score_bound(tables, rho)
    for l, table in enumerate(tables):
        assert float(table.abs().max()) <= float(B) * rho**l * (1 + 4 * EPS)
    bound = float(theory.tail_bound(float(B), rho, alpha, kept))
    rest = alpha.clone()
    rest[kept:] = 0
    A, cut = (torch.softmax(causal_mask(mix(tables, weights)), dim=-1) for weights in (alpha, rest))
    change = (A - cut).abs().sum(dim=-1)
    assert 0 < float(change.max()) <= bound
    assert float(((A - cut) @ v).norm(dim=-1).max()) <= bound * float(v.norm(dim=-1).max())
    worst = (mix(tables, alpha) - mix(tables, rest)).abs().max()
    assert float(change.max()) <= float(worst) <= bound * (1 + TOLERANCE)
    signs = [rho**l * table.sign() for l, table in enumerate(tables)]  # B = 1 on every level
    alone = torch.zeros_like(alpha)
    alone[kept] = 0.4
    tight = float(theory.tail_bound(1.0, rho, alone, kept))
    assert float(mix(signs, alone).abs().max()) == pytest.approx(tight, rel=1e-12)


@examples
@given(st.floats(0.05, 0.95), st.integers(0, 7))
def test_means_of_fractional_noise(H, level):
    """`hkt-variance`: closed form against the covariance summed, which is that of the motion's steps."""
    covariance = theory.fgn_covariance(128, H)
    found = float(theory.block_variance(covariance, level))
    assert found == pytest.approx(theory.fgn_variance(level, H), rel=1e-9)
    t = torch.arange(9, dtype=torch.float64)
    motion = (t.unsqueeze(-1) ** (2 * H) + t ** (2 * H) - (t.unsqueeze(-1) - t).abs() ** (2 * H)) / 2
    steps = torch.diff(torch.diff(motion, dim=0), dim=1)
    torch.testing.assert_close(covariance[:8, :8], steps, rtol=0, atol=1e-12)


def test_score_variance_falls_with_the_fourth_power():
    """`hkt-variance` on scores: products of two independent means have variance 2^{-4 l (1 - H)}; by simulation."""
    H, num = 0.8, 200_000
    factor = torch.linalg.cholesky(theory.fgn_covariance(8, H))
    x, y = (normal(num, 8, name=name) @ factor.mT for name in "xy")
    for level in range(4):
        a, b = (pyramid(each.mT, level + 1, "block")[level][0] for each in (x, y))
        expected = 2.0 ** (-4 * level * (1 - H))
        square = (a * b).square()
        error = float(square.std()) / math.sqrt(num)
        assert abs(float(square.mean()) - expected) < 4.5 * error < expected / 10
        assert level == 0 or abs(float(square.mean()) - 2.0 ** (-2 * level * (1 - H))) > 4.5 * error


def test_short_memory_halves_the_variance():
    """AR(1): the ratio of successive levels tends to 1/2."""
    lag = torch.arange(1024, dtype=torch.float64)
    covariance = 0.5 ** (lag.unsqueeze(-1) - lag).abs()
    variances = [float(theory.block_variance(covariance, level)) for level in range(11)]
    ratios = [b / a for a, b in itertools.pairwise(variances)]
    assert abs(ratios[-1] - 0.5) < 0.002 < abs(ratios[0] - 0.5)
    assert theory.fgn_variance(1, 0.5) == 0.5
