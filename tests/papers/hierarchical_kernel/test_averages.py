"""Averages: how Gaussian means become, how fast they lose variance, and what dropping coarse levels changes."""

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from derived.lab.rng import stream
from derived.papers.hierarchical_kernel.model import information, theory
from derived.papers.hierarchical_kernel.model.attention import causal_mask, mix
from derived.papers.hierarchical_kernel.model.information import (
    mardia_kurtosis,
    mardia_rounding,
    mean_negentropy,
)
from derived.papers.hierarchical_kernel.model.pyramid import pyramid

examples = settings(derandomize=True, max_examples=25, deadline=None, database=None)
EPS = torch.finfo(torch.float64).eps
TOLERANCE = 1e-12  # sums of at most 10^3 products of numbers of order one, each rounded a few times


def normal(*shape: int, name: object = "x") -> torch.Tensor:
    return torch.randn(*shape, generator=stream(0, str(name), *shape), dtype=torch.float64)


def test_negentropy_of_means():
    """`hkt-cumulants`: closed forms for one and two terms, a convolution on a grid for more, and the limits."""
    log = math.log(2 * math.pi * math.e)
    assert mean_negentropy("uniform", 1) == pytest.approx((log - math.log(12)) / 2, abs=1e-13)
    assert mean_negentropy("uniform", 2) == pytest.approx((log - math.log(6)) / 2 - 0.5, abs=1e-10)  # a triangle
    assert mean_negentropy("exponential", 1) == pytest.approx(log / 2 - 1, abs=1e-13)
    step = 1e-3
    uniform = np.ones(int(1 / step))
    p = uniform.copy()
    for n in range(2, 9):
        p = np.convolve(p, uniform) * step
        q = p[p > 0] / (p.sum(axis=0) * step)
        h = -np.sum(q * np.log(q), axis=0) * step
        assert mean_negentropy("uniform", n) == pytest.approx(math.log(2 * math.pi * math.e * n / 12) / 2 - h, abs=2e-6)
    for n in (3, 16):
        assert mean_negentropy("exponential", n) == pytest.approx(
            math.log(2 * math.pi * math.e * n) / 2 - float(stats.gamma(n).entropy()), abs=1e-9
        )
    symmetric = [mean_negentropy("uniform", 2**l) for l in range(7)]
    skewed = [mean_negentropy("exponential", 2**l) for l in range(12)]
    leading = [J / ((1.2 / 2**l) ** 2 / 48) for l, J in enumerate(symmetric)]
    assert leading == sorted(leading, reverse=True)
    assert 1 < leading[-1] < 1.02
    assert abs(symmetric[6] / symmetric[5] - 1 / 4) < 0.005 < abs(symmetric[2] / symmetric[1] - 1 / 4)
    assert abs(skewed[11] / skewed[10] - 1 / 2) < 5e-4
    assert skewed[11] * 3 * 2**11 == pytest.approx(1, abs=1e-3)  # gamma^2 / (12 n), gamma = 2


def test_kurtosis_of_means():
    """`hkt-cumulants`: skewness gamma / 2^{l/2} and excess kurtosis kappa / 2^l, exactly, on a law with four atoms."""
    values, weights = np.array([-1.0, 0.0, 2.0, 3.0]), np.array([0.1, 0.5, 0.3, 0.1])
    law, atoms = weights.copy(), values.copy()

    def standard(atoms, law):
        mean = np.sum(law * atoms, axis=0)
        m2, m3, m4 = (np.sum(law * (atoms - mean) ** r, axis=0) for r in (2, 3, 4))
        return m3 / m2**1.5, m4 / m2**2 - 3

    gamma, kappa = standard(atoms, law)
    for l in range(1, 4):
        sums = atoms[:, None] + atoms
        atoms, inverse = np.unique(sums.round(9), return_inverse=True)
        law = np.bincount(inverse.ravel(), weights=np.outer(law, law).ravel())
        np.testing.assert_allclose(standard(atoms, law), (gamma / 2 ** (l / 2), kappa / 2**l), rtol=1e-9)


def test_measured_kurtosis_by_level():
    """`hkt-cumulants` on exponential tokens (kappa = 6) and against scipy; kappa without the 2^l is rejected."""
    x = torch.empty(400, 4096, 1, dtype=torch.float64).exponential_(generator=stream(0, "exponential"))
    found = information.excess_kurtosis_by_level(x, 4)
    assert found.shape == (4, 400, 1)
    for l in range(4):
        samples = found[l, :, 0]
        error = float(samples.std()) / 20
        bias = (
            60 * 2**l / 4096
        )  # of the statistic at 4096 / 2^l rows: of the order of the sixth cumulants over the number
        assert abs(float(samples.mean()) - 6 / 2**l) < 4.5 * error + bias
        assert l == 0 or abs(float(samples.mean()) - 6) > 4.5 * error + bias
    rows = x[0].mT
    assert float(information.excess_kurtosis(rows)[0]) == pytest.approx(float(stats.kurtosis(rows[0])), rel=1e-10)


def test_mardia_against_its_formula():
    X = normal(3, 50, 4)
    found = mardia_kurtosis(X)
    for each, b, z in zip(X.numpy(), found.b, found.z, strict=True):
        centred = each - each.mean(axis=0)
        distances = np.einsum("ni,ij,nj->n", centred, np.linalg.inv(np.cov(each.T, bias=True)), centred)
        assert float(b) == pytest.approx(float((distances**2).mean()), rel=1e-10)
        assert float(z) == pytest.approx((float(b) - 24 * 49 / 51) / math.sqrt(8 * 24 / 50), rel=1e-9)


@examples
@given(st.integers(1, 20))
def test_mardia_says_nothing_at_n_equal_p_plus_one(p):
    """`hkt-mardia`: every squared distance is p, so b = p^2 and z = 0 for any data."""
    for X in (normal(p + 1, p), normal(p + 1, p).exp(), normal(p + 1, p).sign() + 0.01 * normal(p + 1, p, name="e")):
        found = mardia_kurtosis(X)
        assert abs(float(found.b) - p**2) <= float(mardia_rounding(X)) < 1e-6 * p**2
        assert abs(float(found.z)) < 1e-8 * p**2


def test_rounding_of_mardia_covers_single_precision():
    X = normal(40, 21, 20)
    gap = (mardia_kurtosis(X.float()).b - 400).abs()
    assert bool((gap <= mardia_rounding(X.float())).all())
    assert float(gap.max()) > float(mardia_rounding(X).max())  # and not that of double precision


def test_mardia_mean_and_level():
    """Mean p (p+2)(n-1)/(n+1) for normal data; far from it for exponential data of the same size."""
    n, p = 60, 3
    b = mardia_kurtosis(normal(20_000, n, p)).b
    assert abs(float(b.mean()) - p * (p + 2) * (n - 1) / (n + 1)) < 4.5 * float(b.std()) / math.sqrt(20_000)
    assert float(mardia_kurtosis(normal(400, n, p).abs().log()).z.mean()) > 3


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
