"""Moments of attention, cosines and Bessel ratios: quadrature against samples, exact cases and scipy."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, special

from derived.lab.rng import stream
from derived.papers.homogenized import moments
from derived.papers.homogenized.flows import one_token_rates, sphere_rates
from derived.papers.homogenized.gram import bartlett
from derived.papers.homogenized.heads import HeadLaw, barycentre, equiangular_tokens, uniform_tokens
from derived.papers.homogenized.moments import (
    attention_moments,
    rem_participation,
    sampled_moments,
    vmf_mean_ratio,
)
from derived.papers.homogenized.overlaps import barycenter_correlation, moment_curves, simplex_flow, time_to_overlap
from derived.papers.homogenized.slow import mean_cosine
from derived.papers.homogenized.two_token import gamma_nodes, two_token_attention_moments

examples = settings(derandomize=True, max_examples=25, deadline=None, database=None)
CASES = [(0.0, 8, 1.0), (0.3, 32, 4.0), (-0.05, 16, 4.0), (0.9, 40, 8.0), (0.5, 2, 3.0), (-1.0, 2, 2.0), (1e-4, 5, 6.0)]


# --- equiangular tokens at d = infinity -----------------------------------------------------------------------------


@pytest.mark.parametrize(("gamma", "n", "logit_std"), CASES)
def test_quadrature_against_samples(gamma, n, logit_std):
    """f and g within 5 standard errors of antithetic samples, which reject values that are 5 % off."""
    exact = attention_moments(gamma, n, logit_std)
    drawn = sampled_moments(gamma, n, logit_std, samples=20_000, generator=stream(20, n))
    for which in ("f", "g"):
        value, estimate, error = (getattr(m, w) for m, w in ((exact, which), (drawn, which), (drawn, which + "_error")))
        assert abs(value - estimate) < 5 * error
        assert abs(1.05 * value - estimate) > 5 * error


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


def test_agreement_of_independent_rows():
    """g(0) = 1/n exactly at d = infinity; at finite width the shared lengths of the keys raise it by O(1/d)."""
    for tau in (0.5, 4.0, math.inf):
        assert attention_moments(0.0, 7, tau).g == pytest.approx(1 / 7, rel=1e-8)
    excess = [sampled_moments(0.0, 4, 3.0, d, samples=60_000, rows=4, generator=stream(21, d)) for d in (4, 16)]
    assert excess[0].g - 0.25 > 10 * excess[0].g_error
    assert 2 < (excess[0].g - 0.25) / (excess[1].g - 0.25) < 8  # 4, the ratio of the widths; sqrt would be 2


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
    assert attention_moments(0.999, 512, math.inf).g < 1
    # Bivariate orthants, n = 2: P(both differences have one sign) = 1/2 + arcsin(gamma) / pi.
    for gamma in (-0.9, 0.0, 0.7):
        assert attention_moments(gamma, 2, math.inf).g == pytest.approx(0.5 + math.asin(gamma) / math.pi, abs=1e-9)


def test_random_energy_model():
    """All phases within 30 % of f by quadrature at n = 10^6 away from freezing, 2 % in the hot and the frozen ends."""
    sigma = np.array([0.5, 1.0, 2.0, 2.4, 3.0, 4.0, 8.0, 12.0])
    exact = np.array([attention_moments(0.0, 10**6, s).f for s in sigma])
    gap = np.abs(rem_participation(10**6, sigma) / exact - 1)
    assert (gap < 0.3).all()
    assert (gap[[0, 1, 2, 3, 4, 6, 7]] < 0.02).all()
    assert rem_participation(10**6, 1.0) == pytest.approx(math.e / 10**6, rel=1e-4)
    edge = math.sqrt(2 * math.log(10**6))
    # e^{sigma^2} / n holds up to sigma^2 = (2/3) ln n; a typical draw leaves it at (1/2) ln n.
    assert exact[4] < 0.5 * math.exp(9) / 10**6
    assert exact[2] == pytest.approx(math.exp(4) / 10**6, rel=0.01)
    assert rem_participation(4096, 6.0) == pytest.approx(attention_moments(0.0, 4096, 6.0).f, rel=0.02)
    assert (np.diff(rem_participation(4096, np.linspace(edge, 40, 50))) > 0).all()


# --- finite width -----------------------------------------------------------------------------------------------------


def test_samples_at_finite_width_against_full_matrices():
    """d = 3: f and g from drawn (d, d) matrices and from Bartlett's factors; the f of d = infinity is rejected."""
    X = equiangular_tokens(3, 3, 0.3)[0]
    g = stream(23, "W")
    W, W_ = torch.randn(2, 40_000, 3, 3, generator=g, dtype=torch.float64)
    Pi = torch.softmax(4.0 / math.sqrt(3) * (X @ W) @ (X @ W_).mT, -1)
    f, agreement = Pi.square().sum((-2, -1)) / 3, (Pi[:, 0] * Pi[:, 1]).sum(-1)
    drawn = sampled_moments(0.3, 3, 4.0, 3, samples=20_000, generator=stream(23, "B"))
    for values, estimate, error in ((f, drawn.f, drawn.f_error), (agreement, drawn.g, drawn.g_error)):
        assert abs(values.mean() - estimate) < 5 * math.hypot(error, float(values.std()) / 200)
    assert abs(attention_moments(0.3, 3, 4.0).f - f.mean()) > 5 * f.std() / 200


@pytest.mark.parametrize("R", [-1.0, -0.6, 0.2, 0.9])
def test_two_tokens_at_finite_width(R):
    """The quadrature over chi^2 against samples; f + g = 1 for antipodal tokens; beta = 0 and R = 1 give 1/2."""
    d, beta, sigma_a = 5, 1.5, 1.1
    f, g = two_token_attention_moments(R, d, beta, sigma_a)
    logit_std = beta * sigma_a**2 * math.sqrt(d)
    drawn = sampled_moments(R, 2, logit_std, d, samples=40_000, generator=stream(24, "two"))
    assert abs(f - drawn.f) < 5 * drawn.f_error
    assert abs(g - drawn.g) < 5 * drawn.g_error
    if R == -1:
        assert f + g == pytest.approx(1.0, abs=1e-13)
    assert two_token_attention_moments(np.array([R, 1.0]), d, 0.0, 1.0) == (
        pytest.approx([0.5, 0.5], abs=1e-14),
        pytest.approx([0.5, 0.5], abs=1e-14),
    )


def test_two_tokens_approach_infinite_width():
    """d = 10^4 at fixed logit standard deviation against the quadrature of d = infinity, error O(1/d)."""
    gaps = []
    for d in (100, 10_000):
        f, g = two_token_attention_moments(0.3, d, 1.0, math.sqrt(2.0 / math.sqrt(d)))
        exact = attention_moments(0.3, 2, 2.0)
        gaps.append(max(abs(f / exact.f - 1), abs(g / exact.g - 1)))
    assert gaps[1] < 1e-4
    assert 50 < gaps[0] / gaps[1] < 200


def test_barycentre_correlation():
    """s on the equiangular line is gamma + (1 - gamma) f or g; at beta = 0 every s_ij is the mean overlap."""
    X = equiangular_tokens(2, 4, 0.3)
    s, error = barycenter_correlation(X @ X.mT, 1.5, 1.0, 4, samples=20_000, generator=stream(25, "s"))
    f, g = two_token_attention_moments(0.3, 4, 1.5, 1.0)
    assert abs(s[0, 0, 0] - (0.3 + 0.7 * f)) < 5 * error[0, 0, 0]
    assert abs(s[0, 0, 1] - (0.3 + 0.7 * g)) < 5 * error[0, 0, 1]
    X = uniform_tokens(5, 3, generator=stream(25, "X"), replicas=2)
    s, error = barycenter_correlation(X @ X.mT, 0.0, 1.0, 3, samples=2, generator=stream(25, "0"))
    assert torch.allclose(s, (X @ X.mT).mean((-2, -1), keepdim=True).expand(2, 5, 5), atol=1e-14)
    s, error = barycenter_correlation(X @ X.mT, 1.2, 0.9, 3, samples=20_000, generator=stream(25, "five"))
    A = HeadLaw(d=3, sigma_a=0.9).draw(stream(25, "A"), (2, 20_000), beta=1.2).A
    m = barycentre(X[:, None], A, 1.2)
    drawn = m @ m.mT
    assert ((s - drawn.mean(1)).abs() < 5 * (error**2 + drawn.var(1) / 20_000).sqrt()).all()


# --- curves -----------------------------------------------------------------------------------------------------------


def test_moment_curves_and_flow():
    """The interpolated curves between their nodes; the flow against the quadrature of its time; logistic when hot."""
    curves = moment_curves(16, 8.0)
    gamma = np.linspace(-0.06, 0.99, 17)
    exact = np.array([attention_moments(float(x), 16, 8.0)[:2] for x in gamma])
    assert np.allclose(np.stack(curves(gamma), 1), exact, rtol=1e-5)
    for start, n, tau, d in ((0.0, 16, 8.0, math.inf), (0.1, 5, 2.0, 40.0)):
        half = time_to_overlap(n, tau, d, start=start)
        assert simplex_flow(start, [0.0, half], n, tau, d)[1] == pytest.approx(0.5, abs=1e-6)
    assert simplex_flow(1.0, [0.0, 3.0], 4, 2.0) == pytest.approx([1.0, 1.0], abs=1e-12)


@pytest.mark.parametrize(
    ("n", "row"), [(8, (2.21, 2.29, 2.50, 2.77, 2.99, 3.3)), (128, (4.87, 5.08, 6.36, 9.22, 12.9, 24.8))]
)
def test_times_to_half(n, row):
    """ln(n + 1) when hot, and a table that was made by Monte Carlo: within 2 % (hardmax 3 %)."""
    assert time_to_overlap(n, 0.0) == pytest.approx(math.log(n + 1), rel=1e-8)
    times = [time_to_overlap(n, tau) for tau in (1.0, 2.0, 4.0, 8.0, 16.0, math.inf)]
    assert np.allclose(times[:-1], row[:-1], rtol=0.02)
    assert times[-1] == pytest.approx(row[-1], rel=0.03)
    assert (np.diff([math.log(n + 1), *times]) > 0).all()


# --- cosines, Bessel ratios, nodes ----------------------------------------------------------------------------------


def test_bessel_ratio():
    """Against scipy's Bessel functions, the defining integral, and the tails d / kappa -> 1 - (d-1) / (2 kappa)."""
    for d in (2, 3, 10, 100):
        kappa = np.array([1e-3, 0.5, 3.0, 40.0, 900.0])
        expected = special.ive(d / 2, kappa) / special.ive(d / 2 - 1, kappa)
        assert np.allclose(vmf_mean_ratio(d, kappa), expected, rtol=1e-12)
        assert vmf_mean_ratio(d, 1e8) == pytest.approx(1 - (d - 1) / 2e8, abs=1e-12)
        assert vmf_mean_ratio(d, 1e-9) == pytest.approx(1e-9 / d, rel=1e-12)
    assert vmf_mean_ratio(5, 0.0) == 0
    density = [lambda t, k=k: t**k * math.exp(2.0 * t) * (1 - t * t) for k in (0, 1)]  # d = 5
    weight, mean = (integrate.quad(p, -1, 1)[0] for p in density)
    assert vmf_mean_ratio(5, 2.0) == pytest.approx(mean / weight, rel=1e-12)


def test_vmf_barycentre_is_that_of_many_uniform_tokens():
    """`ht-vmf`: m = A_d(beta |z|) z / |z| against attention over 200000 uniform tokens, 5 standard errors."""
    tokens = uniform_tokens(200_000, 3, generator=stream(26, "many"))[0]
    z = torch.tensor([0.3, -1.2, 0.8], dtype=torch.float64)
    weights = torch.exp(2.0 * tokens @ z)
    mean = (weights[:, None] * tokens).sum(0) / weights.sum()
    residual = weights[:, None] * (tokens - mean) / weights.mean()
    error = residual.std(0) / math.sqrt(len(tokens))
    along = z / z.norm()
    assert ((float(vmf_mean_ratio(3, 2.0 * z.norm())) * along - mean).abs() < 5 * error).all()
    assert ((float(vmf_mean_ratio(3, 2.2 * z.norm())) * along - mean).abs() > 5 * error).any()
    for d in (3, 9):  # 1 - A_d(kappa) = (d-1) / (2 kappa) + O(kappa^-2): ten times kappa, a hundredth of the rest
        rest = [float(1 - vmf_mean_ratio(d, k) - (d - 1) / (2 * k)) for k in (1e3, 1e4)]
        assert 80 < rest[0] / rest[1] < 120 or max(map(abs, rest)) < 1e-12


@pytest.mark.parametrize("factors", [1, 2, 3])
def test_mean_cosine(factors):
    """Quadrature against full matrices; the next number of factors is rejected."""
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
    assert abs(cosine.mean() - float(mean_cosine(r, d, factors + 1))) > 5 * cosine.std() / math.sqrt(len(cosine))
    assert mean_cosine([-1.0, 0.0, 1.0], d, factors) == pytest.approx([-1, 0, 1], abs=1e-5)


def test_gamma_nodes():
    """Gauss nodes integrate x^k against a Gamma density exactly, k < 2 count."""
    nodes, weights = gamma_nodes(2.5, 6)
    for k in range(12):
        assert weights @ nodes**k == pytest.approx(special.gamma(2.5 + k) / special.gamma(2.5), rel=1e-11)


def test_one_token_rates_against_simulated_layers():
    """The factor of one layer by quadrature against drawn layers; the sphere's rates are its limit."""
    h, d = 0.3, 4
    x = torch.zeros(400_000, d, dtype=torch.float64)
    x[:, 0] = 1
    y = x + math.sqrt(h / d) * torch.randn(400_000, d, generator=stream(28, "z"), dtype=torch.float64)
    c = y[:, 0] / y.norm(dim=-1)
    for values, rate, limit in zip((c, (d * c**2 - 1) / (d - 1)), one_token_rates(h, d), sphere_rates(d), strict=True):
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - math.exp(-rate * h)) < 5 * error
        assert abs(values.mean() - math.exp(-limit * h)) > 5 * error


def test_bartlett_is_what_a_key_sees():
    """Lengths of W'^T x: chi of ``rank`` degrees, as the two-token quadrature takes them."""
    T = bartlett((50_000,), 1, 7, generator=stream(29, "T"))[:, 0, 0]
    nodes, weights = gamma_nodes(3.5, 32)
    length = np.sqrt(2 * nodes) @ weights
    assert abs(T.mean() - length) < 5 * T.std() / math.sqrt(len(T))
