"""Moments of attention: quadrature against samples, exact cases and limits."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.homogenized.model import moments
from derived.papers.homogenized.model.moments import attention_moments

examples = settings(derandomize=True, max_examples=25, deadline=None, database=None)
CASES = [(0.0, 8, 1.0), (0.3, 32, 4.0), (-0.05, 16, 4.0), (0.9, 40, 8.0), (0.5, 2, 3.0), (-1.0, 2, 2.0), (1e-4, 5, 6.0)]


def test_two_keys_by_another_quadrature():
    """n = 2 at d = infinity: f = 1/2 + E tanh^2 / 2 and g from two logistics, by Gauss and Hermite's nodes."""
    gamma, tau = 0.4, 1.2
    x, w = np.polynomial.hermite_e.hermegauss(160)
    w = w / w.sum()
    scale = tau * math.sqrt(2 * (1 - gamma)) / 2  # half the difference of two logits
    first = np.tanh(scale * x)
    second = np.tanh(scale * (gamma * x[:, None] + math.sqrt(1 - gamma**2) * x))
    exact = attention_moments(gamma, 2, tau)
    assert exact.f == pytest.approx(0.5 + 0.5 * float(w @ first**2), rel=1e-8)
    assert exact.g == pytest.approx(0.5 + 0.5 * float((w * first) @ second @ w), rel=1e-8)


@pytest.mark.parametrize("n", [2, 9, 512, 10**6])
def test_quadrature_is_converged(n, monkeypatch):
    """Half the steps and a longer range change f and g by less than the declared 1e-8."""
    cases = [(gamma, n, tau) for gamma in (-0.5 / (n - 1), 0.0, 1e-5, 0.5, 0.999) for tau in (0.1, 1.0, 8.0)]
    coarse = [attention_moments(*case) for case in cases]
    monkeypatch.setattr(moments, "STEP", 0.25)
    monkeypatch.setattr(moments, "FINE", 0.125)
    monkeypatch.setattr(moments, "REACH", 7.5)
    for case, value in zip(cases, coarse, strict=True):
        fine = attention_moments(*case)
        assert abs(value.f - fine.f) < value.f_error
        assert abs(value.g - fine.g) < value.g_error


@pytest.mark.parametrize(("gamma", "n"), [(-0.5, 2), (-1.0, 2), (-0.4, 3), (0.3, 2)])
def test_the_coldest_attention_is_a_number_near_hardmax(gamma, n):
    """Negative overlaps at the coldest finite temperatures, where e^logit exceeds all numbers."""
    limit = attention_moments(gamma, n, math.inf)
    gaps = [np.abs(np.subtract(attention_moments(gamma, n, tau)[:2], limit[:2])) for tau in (25.0, 50.0)]
    assert (gaps[1] < 0.03).all()
    assert (gaps[1] <= 0.6 * gaps[0] + 1e-8).all()


@examples
@given(st.integers(2, 60), st.floats(0, 1), st.floats(0.01, 12))
def test_inequalities(n, share, logit_std):
    """1/n <= f <= 1 and g <= f; g >= 1/n for gamma >= 0; both are 1/n where the logits cannot tell the keys apart."""
    gamma = -1 / (n - 1) + share * (1 + 1 / (n - 1))
    f, g, *_ = attention_moments(gamma, n, logit_std)
    slack = 1e-8
    assert (1 - slack) / n <= f <= 1 + slack
    assert g <= f * (1 + slack)
    if gamma >= 0:
        assert g >= (1 - slack) / n
    assert attention_moments(gamma, n, 0.0)[:2] == (1 / n, 1 / n)
    assert attention_moments(1.0, n, logit_std)[:2] == (1 / n, 1 / n)


def test_hardmax():
    """f = 1, g by sampling the largest logits; the limit of cold attention; g(-1) of two tokens is 0."""
    for gamma, n in ((0.5, 6), (-0.2, 6)):
        z = torch.randn(2, 200_000, n, generator=stream(22, n), dtype=torch.float64)
        other = gamma * z[0] + math.sqrt(1 - gamma**2) * z[1]
        same = (z[0].argmax(-1) == other.argmax(-1)).double()
        g = attention_moments(gamma, n, math.inf).g
        assert abs(g - same.mean()) < 5 * same.std() / math.sqrt(len(same))
        assert abs(g - attention_moments(gamma, n, 16.0).g) < 0.05
    assert attention_moments(0.5, 6, math.inf).f == 1
    assert attention_moments(1.0, 6, math.inf) == (1, 1, 0, 0)  # tokens that coincide choose one key
    assert attention_moments(0.999, 512, math.inf).g < 1
    # Bivariate orthants, n = 2: P(both differences have one sign) = 1/2 + arcsin(gamma) / pi.
    for gamma in (-0.9, 0.0, 0.7):
        assert attention_moments(gamma, 2, math.inf).g == pytest.approx(0.5 + math.asin(gamma) / math.pi, abs=1e-9)


def test_levels():
    """`ht-levels`: n f -> exp(tau^2 (1 - gamma)), n g -> exp(tau^2 gamma (1 - gamma)) as n grows; frozen rows."""
    tau, gamma = 1.2, 0.4
    limits = np.array([math.exp(tau**2 * (1 - gamma)), math.exp(tau**2 * gamma * (1 - gamma))])
    gaps = [np.abs(n * np.array(attention_moments(gamma, n, tau)[:2]) / limits - 1) for n in (100, 10_000, 1_000_000)]
    assert (gaps[2] < 1e-4).all()
    assert (gaps[0] > 10 * gaps[1]).all()
    for tau in (20.0, 40.0):  # frozen: the correction is of order ln ln n / sqrt(2 ln n), so a wide band
        f = attention_moments(0.0, 1000, tau).f
        assert 0.5 < (1 - f) / (math.sqrt(2 * math.log(1000)) / tau) < 1.0
