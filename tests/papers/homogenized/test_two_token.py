"""Two tokens: attention at finite width by quadrature, and the diffusion of their overlap."""

import math

import numpy as np
import pytest

from derived.lab.rng import stream
from derived.papers.homogenized.model import flows, gram, heads, overlaps, two_token


@pytest.mark.parametrize("R", [-1.0, -0.6, 0.2, 0.9])
def test_two_tokens_at_finite_width(R):
    """The quadrature over chi^2 against drawn matrices; f + g = 1 for antipodal tokens; beta = 0 and R = 1 give 1/2."""
    d, beta, sigma_a = 5, 1.5, 1.1
    f, g = two_token.two_token_attention_moments(R, d, beta, sigma_a)
    X = heads.equiangular_tokens(2, d, R)[0]
    A = heads.HeadLaw(d=d, sigma_a=sigma_a).draw(stream(24, "two"), (100_000,), beta=beta).A
    Pi = (beta * (X @ A.mT) @ X.T).softmax(dim=-1)
    for drawn, exact in ((Pi.square().sum(dim=-1).mean(dim=-1), f), ((Pi[:, 0] * Pi[:, 1]).sum(dim=-1), g)):
        assert abs(drawn.mean() - exact) < 5 * drawn.std() / len(A) ** 0.5
    if R == -1:
        assert f + g == pytest.approx(1.0, abs=1e-13)
    assert two_token.two_token_attention_moments(np.array([R, 1.0]), d, 0.0, 1.0) == (
        pytest.approx([0.5, 0.5], abs=1e-14),
        pytest.approx([0.5, 0.5], abs=1e-14),
    )


def test_two_tokens_are_a_diffusion():
    """`ht-clock`: E R and E R^2 of the chain, H = 1 and 3, against Fokker-Planck; beta = 0 in closed form."""
    y = np.linspace(-5, 5, 41)
    drift, variance = two_token.two_token_coefficients(6, 0.0, 1.0)
    assert np.allclose(drift(y), (4 + np.tanh(y)) / 12, atol=1e-9)
    assert np.allclose(variance(y), 1 / 6, atol=1e-12)
    cold = two_token.two_token_coefficients(6, 1.5, 1.0)
    for R in (-0.7, 0.2, 0.9):
        f, g = two_token.two_token_attention_moments(R, 6, 1.5, 1.0)
        D, bracket = overlaps.simplex_drift(R, f, g, 6), 2 / 6 * (1 - R**2) * (1 - R) * (R + f - R * g)
        place = np.array([math.atanh(R)])
        assert cold[1](place)[0] == pytest.approx(bracket / (1 - R**2) ** 2, rel=1e-6)
        assert cold[0](place)[0] == pytest.approx(D / (1 - R**2) + R * bracket / (1 - R**2) ** 2, rel=1e-6)
    law = two_token.two_token_pde(6, 1.5, 1.0, 0.2, [0.6, 1.8])
    G = heads.simplex_gram(2, 0.2).expand(10_000, 2, 2)
    for H in (1, 3):
        chain = gram.simulate_gram(
            G,
            45,
            math.sqrt(0.04 * H),
            H,
            heads.HeadLaw(d=6, sigma_a=1.0),
            1.5,
            generator=stream(56, H),
            record=[15, 45],
        )
        R = chain.gram[:, :, 0, 1]
        for k in (0, 1):
            for values, expected in ((R[k], law.first[k]), (R[k] ** 2, law.second[k])):
                spread = values.std() / 100
                assert abs(values.mean() - expected) < 5 * spread + 0.01  # h = 0.04 costs up to 0.01
                if k:
                    assert abs(values.mean() - law.first[0]) > 5 * spread + 0.01


def test_fokker_planck_against_exact_laws():
    """Brownian motion with drift: mean and variance, second order in the cells; mass kept to rounding."""
    errors = []
    for cells in (140, 280, 560):
        y, density, mass = two_token.fokker_planck(
            lambda y: 0.3 + 0 * y, lambda y: 0.5 + 0 * y, 0.2, [1.0, 2.0], cells=cells, steps=4 * cells
        )
        assert np.abs(mass - 1).max() < 1e-11
        exact = np.exp(-((y - 0.8) ** 2) / 2) / math.sqrt(2 * math.pi)
        errors.append(np.abs(density[1] - exact).max())
        assert (y[1] - y[0]) * density[1] @ y == pytest.approx(0.8, abs=1e-9)
    assert flows.observed_order([4, 2, 1], errors) == pytest.approx(2, abs=0.2)
    first = [
        two_token.fokker_planck(lambda y: -y, lambda y: 1 + 0 * y, 1.0, [1.0], cells=400, steps=k)
        for k in (20, 40, 80, 1280)
    ]
    means = [(y[1] - y[0]) * density[0] @ y for y, density, _ in first]
    order = flows.observed_order([4, 2, 1], [abs(m - means[3]) for m in means[:3]])
    assert order == pytest.approx(2, abs=0.4)
    assert means[3] == pytest.approx(math.exp(-1), abs=1e-4)
    bands = two_token.flux_matrix(np.tanh, lambda y: 1 + y**2, y, y[1] - y[0])
    columns = bands[1].copy()
    columns[1:] += bands[0, 1:]
    columns[:-1] += bands[2, :-1]
    assert np.abs(columns).max() < 1e-12 * np.abs(bands).max()
