"""Drift, bracket and flows of the overlaps: against drawn layers, quadrature and each other."""

import math

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.homogenized.model import gram, moments, two_token
from derived.papers.homogenized.model.chain import overlaps
from derived.papers.homogenized.model.heads import (
    HeadLaw,
    Heads,
    barycentre,
    equiangular_tokens,
    layer_step,
    matched_law,
    normalise,
    simplex_gram,
    uniform_tokens,
)
from derived.papers.homogenized.model.overlaps import (
    logistic_overlap,
    moment_curves,
    odds_after,
    overlap_bracket,
    overlap_drift,
    simplex_drift,
    simplex_flow,
    time_to_overlap,
    wide_layer,
)

F64 = {"dtype": torch.float64}


def one_layer(
    X: torch.Tensor, h: float, law: HeadLaw, beta: float, num: int, *names
) -> tuple[torch.Tensor, torch.Tensor]:
    """Changes of the overlaps per unit tau over one layer, averaged over V and -V, and their squares."""
    heads = law.draw(stream(40, *names), (num, 1), beta=beta)
    start = X.expand(num, *X.shape).clone()
    both = [overlaps(layer_step(start, math.sqrt(h), Heads(sign * heads.V, heads.A, beta))) for sign in (1, -1)]
    before = overlaps(X)
    return ((both[0] + both[1]) / 2 - before) / h, ((both[0] - before) ** 2 + (both[1] - before) ** 2) / (2 * h)


def test_moment_curves_and_flow():
    """The interpolated curves between their nodes; the flow against the quadrature of its time; logistic when hot."""
    curves = moment_curves(16, 8.0)
    gamma = np.linspace(-0.06, 0.99, 17)
    exact = np.array([moments.attention_moments(float(x), 16, 8.0)[:2] for x in gamma])
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


def test_overlap_drift_and_bracket():
    """`ht-overlap`: E dR and E dR^2 of one small layer, V and -V, against H5; tr P_x P_y = d - 2 + R^2."""
    d, h = 4, 1e-4
    X = uniform_tokens(3, d, generator=stream(47, "X"))[0]
    drift, squares = one_layer(X, h, HeadLaw(d=d, sigma_a=1.0), 1.3, 100_000, "overlap")
    A = HeadLaw(d=d, sigma_a=1.0).draw(stream(47, "s"), (200_000,), beta=1.3).A
    m = barycentre(X, A, 1.3)
    s, error = (m @ m.mT).mean(dim=0), (m @ m.mT).std(dim=0) / len(A) ** 0.5
    for values, form in ((drift, overlap_drift), (squares, overlap_bracket)):
        expected = form(overlaps(X), s, d)
        spread = values.std(0) / math.sqrt(len(values)) + 2 * error + 10 * h
        assert ((values.mean(0) - expected).abs() < 5 * spread).all()
        assert ((values.mean(0) - form(overlaps(X), s, 2 * d)).abs() > 5 * spread).any()
    assert torch.equal(overlap_bracket(overlaps(X), s, d).diagonal(), torch.zeros(3, **F64))
    assert overlap_drift(overlaps(X), s, d).diagonal().abs().max() < 1e-15
    P = torch.eye(d, **F64) - X[:, :, None] * X[:, None, :]
    assert torch.trace(P[0] @ P[1]).item() == pytest.approx(d - 2 + (X[0] @ X[1]).item() ** 2, rel=1e-13)
    r = np.linspace(-1, 1, 2001)  # the largest bracket: coinciding s, at R = -1/3
    assert ((1 - r**2) * (2 - 2 * r)).max() == pytest.approx(64 / 27, rel=1e-5)


def test_simplex_drift():
    """`ht-simplex`: at d = 4 one layer agrees with the exact drift and is over 20 standard errors from b."""
    d, n, gamma, logit_std = 4, 3, 0.3, 3.0
    law = matched_law(d, logit_std)
    drift, squares = one_layer(equiangular_tokens(n, d, gamma)[0], 1e-4, law, 1.0, 100_000, "simplex")
    pairs = torch.stack([x[:, [0, 0, 1], [1, 2, 2]].mean(1) for x in (drift, squares)], 1)
    X, A = equiangular_tokens(n, d, gamma)[0], law.draw(stream(50, "fg"), (200_000,), beta=1.0).A
    Pi = ((X @ A.mT) @ X.T).softmax(dim=-1)
    f, g = Pi.square().sum(dim=-1).mean().item(), (Pi[:, 0] * Pi[:, 1]).sum(dim=-1).mean().item()
    f_error = g_error = 1 / 200_000**0.5
    P, S = gamma + (1 - gamma) * f, gamma + (1 - gamma) * g
    exact = [float(simplex_drift(gamma, f, g, d)), 2 / d * (1 - gamma**2) * (P - gamma * S)]
    spread = pairs.std(0) / math.sqrt(len(pairs)) + f_error + g_error
    assert abs(pairs[:, 0].mean() - exact[0]) < 5 * spread[0]
    assert abs(pairs[:, 1].mean() - exact[1]) < 5 * spread[1]
    assert abs(pairs[:, 0].mean() - float(simplex_drift(gamma, f, g))) > 20 * spread[0]
    assert exact[0] == pytest.approx((d - 2 + gamma**2) / d * S - (d - 1) / d * gamma * P, rel=1e-13)


def test_warm_attention_is_nearly_even():
    """`ht-odds`: |s - m| <= 6 (1 + ln n) lambda^2, and <= 3 d lambda^2 at finite width (two tokens)."""
    for n in (2, 8, 100):
        for tau in (0.05, 0.2, 0.5):
            for gamma in (0.0, 0.3, 0.8):
                f, g, *_ = moments.attention_moments(gamma, n, tau)
                m = gamma + (1 - gamma) / n
                for s in (gamma + (1 - gamma) * f, gamma + (1 - gamma) * g):
                    assert abs(s - m) <= 6 * (1 + math.log(n)) * tau**2
    R = np.linspace(-1, 1, 41)
    f, g = two_token.two_token_attention_moments(R, 3, 1.0, 0.4)
    for s in (R + (1 - R) * f, R + (1 - R) * g):
        assert (np.abs(s - (1 + R) / 2) <= 3 * 9 * 0.4**4).all()


def test_the_logistic_curve_solves_its_equation():
    """u' = u (1 - u), by differences; from tokens at right angles it is at overlap 1/2 after ln(n + 1)."""
    t, h = np.linspace(0, 3, 7), 1e-5
    u = logistic_overlap(t, 0.2)
    rate = (logistic_overlap(t + h, 0.2) - logistic_overlap(t - h, 0.2)) / (2 * h)
    assert np.allclose(rate, u * (1 - u), rtol=1e-8)
    assert logistic_overlap(math.log(7), 1 / 6) == pytest.approx(7 / 12, rel=1e-13)


def test_a_wide_layer():
    """`ht-wide`: against layers of width 200,000 with random attention, several heads, and the step 1; without
    the lengths, and with the overlaps of one head, it would miss."""
    n, d, H, h = 4, 200_000, 2, 1.0
    g = stream(70, "wide")
    X = uniform_tokens(n, n, generator=g)[0]
    Pi = (2 * torch.randn(H, n, n, generator=g, **F64)).softmax(dim=-1)
    noise = torch.randn(H, n, d, generator=g, **F64) * (h / H / d) ** 0.5  # V_a X, for tokens in n of the d dimensions
    moved = torch.nn.functional.pad(X, (0, d - n)) + sum(Pi[a] @ X @ noise[a] for a in range(H))
    drawn, R = overlaps(normalise(moved)), X @ X.T
    mixed = (Pi @ R @ Pi.mT).mean(dim=0)
    assert (drawn - wide_layer(R, mixed, h)).abs().max() < 6 * d**-0.5
    for wrong in (wide_layer(R, Pi[0] @ R @ Pi[0].T, h), (R + h * mixed) / (1 + h), wide_layer(R, mixed, h / 2)):
        assert (drawn - wrong).abs().max() > 6 * d**-0.5


@pytest.mark.parametrize("h", [0.04, 0.5, 1.0, 4.0])
def test_odds_are_multiplied(h):
    """`ht-odds`: layer by layer by the map of a wide layer, for any overlaps; the mean without the diagonal has another
    law, w/(1-w) + 1/n, and small steps have e^{h L}."""
    n, L = 6, 5
    R = overlaps(uniform_tokens(n, 3, generator=stream(71, "R"))[0])
    u = R.mean().item()
    for layer in range(1, L + 1):
        R = wide_layer(R, R.mean().expand(n, n), h)
        assert R.mean().item() == pytest.approx(float(odds_after(u, h, layer)), rel=1e-12)
    w0, w = ((n * n * each - n) / (n * (n - 1)) for each in (u, R.mean().item()))
    assert w / (1 - w) + 1 / n == pytest.approx((w0 / (1 - w0) + 1 / n) * (1 + h) ** L, rel=1e-10)
    assert float(odds_after(u, h, L)) < float(logistic_overlap(h * L, u))
    assert odds_after([0.0, 1.0], h, L).tolist() == [0.0, 1.0]


def test_end_of_a_collapse():
    """`ht-final`: D_ij in terms of |m_i - m_j|^2 and its bound; ln(1 - R) falls at 1 - 1/d, not at (d - 3)/d."""
    d, n, beta, sigma_a = 5, 3, 1.5, 0.8
    X = normalise(equiangular_tokens(n, d, 1.0)[0] + 0.1 * uniform_tokens(n, d, generator=stream(55, "X"))[0])
    R = overlaps(X)
    A = HeadLaw(d=d, sigma_a=sigma_a).draw(stream(55, "A"), (20_000,), beta=beta).A
    m = barycentre(X.expand(20_000, n, d), A, beta)
    s = (m @ m.mT).mean(0)
    apart = (m[:, :, None] - m[:, None]).square().sum(-1).mean(0)
    other = s * (1 - R) * (1 - (2 + R) / d) - (d - 1) / (2 * d) * R * apart
    assert torch.allclose(overlap_drift(R, s, d), other, atol=1e-13)
    eps = 1 - R
    assert (apart <= 2 * beta**2 * d**2 * sigma_a**4 * eps * eps.max() ** 2 + 1e-15).all()
    h, T = 0.02, 4.0
    G = simplex_gram(n, 0.999).expand(1000, n, n)
    chain = gram.simulate_gram(G, round(T / h), math.sqrt(h), 1, matched_law(d, 4.0), 1.0, generator=stream(55, "end"))
    rate = torch.log((1 - chain.gram[1][:, 0, 1]) / 0.001) / T
    spread = rate.std() / math.sqrt(len(rate))
    assert abs(rate.mean() + (1 - 1 / d)) < 5 * spread + h
    assert abs(rate.mean() + (d - 3) / d) > 5 * spread + h
