"""Deterministic limits, their order, single tokens, the clock and the regimes."""

import math

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.homogenized.model import flows, heads
from derived.papers.homogenized.model.chain import simulate_chain
from derived.papers.homogenized.model.gram import simulate_gram
from derived.papers.homogenized.model.two_token import two_token_pde

F64 = {"dtype": torch.float64}


def standard_z(values: torch.Tensor, expected: torch.Tensor | float) -> torch.Tensor:
    """Distance of the mean over the first axis from ``expected``, in standard errors."""
    return ((values.mean(0) - expected) / (values.std(0) / math.sqrt(len(values)))).abs()


def test_one_token_rates_against_simulated_layers():
    """The factor of one layer by quadrature against drawn layers; the sphere's rates are its limit."""
    h, d = 0.3, 4
    x = torch.zeros(400_000, d, dtype=torch.float64)
    x[:, 0] = 1
    y = x + math.sqrt(h / d) * torch.randn(400_000, d, generator=stream(28, "z"), dtype=torch.float64)
    c = y[:, 0] / y.norm(dim=-1)
    for values, rate, limit in zip(
        (c, (d * c**2 - 1) / (d - 1)), flows.one_token_rates(h, d), flows.sphere_rates(d), strict=True
    ):
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - math.exp(-rate * h)) < 5 * error
        assert abs(values.mean() - math.exp(-limit * h)) > 5 * error


def test_one_token():
    """`ht-one`: E <x, x0> and E <x, x0>^2 of a simulated chain of one token; sphere's rates are their limits."""
    d, h, L = 3, 0.1, 10
    X = heads.uniform_tokens(1, d, generator=stream(48, "X")).expand(40_000, 1, d).clone()
    chain = simulate_chain(
        X, L, math.sqrt(2 * h), 2, heads.HeadLaw(d=d, sigma_a=1.0), 3.0, generator=stream(48, "c"), keep_tokens=True
    )
    c = (chain.tokens[1] * X).sum(-1)[:, 0]
    first, second = flows.one_token_rates(h, d)
    assert standard_z(c, math.exp(-first * h * L)) < 5
    assert standard_z(c**2, 1 / d + (1 - 1 / d) * math.exp(-second * h * L)) < 5
    assert standard_z(c, math.exp(-0.5 * h * L)) > 5  # (d - 1)/(2d) is not 1/2
    assert flows.sphere_rates(d).first == (d - 1) / (2 * d)


def test_clock_of_gaussian_heads():
    """`ht-clock`: the error of the chain at fixed tau is O(h): halved with h; with attention, small for many heads."""
    for d in (2, 3, 16):
        limit = np.array(flows.sphere_rates(d))
        errors = [np.abs(np.array(flows.one_token_rates(h, d)) - limit) for h in (0.02, 0.01, 0.005)]
        assert np.allclose(errors[0] / errors[1], 2, atol=0.1)
        assert np.allclose(errors[1] / errors[2], 2, atol=0.05)
    G, law, gaps = heads.simplex_gram(2, 0.0).expand(20_000, 2, 2), heads.matched_law(8, 2.0), []
    pde = two_token_pde(8, 1.0, law.sigma_a, 0.0, [1.92]).first[0]
    for h, H in ((0.64, 1), (0.12, 1), (0.12, 8)):
        chain = simulate_gram(G, round(1.92 / h), math.sqrt(h * H), H, law, 1.0, generator=stream(43, h, H))
        R = chain.gram[1][:, 0, 1]
        gaps.append(((R.mean() - pde).item(), (R.std() / math.sqrt(len(R))).item()))
    assert abs(gaps[0][0]) > 5 * gaps[0][1]  # three large layers
    assert all(abs(gap) < abs(gaps[0][0]) / 2 for gap, _ in gaps[1:])
    assert flows.layers_for(0.5, math.sqrt(0.4), 8) == 10


def test_deterministic_heads_follow_the_drift():
    """`ht-weak`: layers of size eta stay within O(eta) of the flow at grid times; the order is measured."""
    X = heads.uniform_tokens(4, 3, generator=stream(44, "X"))[0]
    V, A = torch.randn(2, 3, 3, generator=stream(44, "VA"), **F64)

    def field(Y):
        return heads.attention_field(Y, V, A, 1.0)

    exact = flows.sphere_flow(flows.modified_drift(field, 0.0, "none"), X, 1.0, steps=200)
    errors = [(flows.sphere_euler(field, X, 1.0, steps=k) - exact).norm().item() for k in (40, 80, 160)]
    assert flows.observed_order([1 / 40, 1 / 80, 1 / 160], errors) == pytest.approx(1, abs=0.1)
    steps = [
        (flows.sphere_flow(flows.modified_drift(field, 0.0, "none"), X, 1.0, steps=k) - exact).norm().item()
        for k in (5, 10, 20)
    ]
    assert flows.observed_order([1 / 5, 1 / 10, 1 / 20], steps) == pytest.approx(4, abs=0.4)


def test_self_attention_flow():
    """The rate of equiangular tokens under V = A = I, against the derivative of their overlap along the field."""
    for n, gamma, beta in ((2, 0.3, 1.0), (5, -0.1, 2.0), (5, 0.8, 0.0)):
        X = heads.equiangular_tokens(n, 6, gamma)[0]
        velocity = heads.tangent(X, flows.self_attention(X, beta))
        rate = (velocity[0] @ X[1] + velocity[1] @ X[0]).item()
        assert flows.sa_rate(gamma, beta, n) == pytest.approx(rate, rel=1e-12)
    gamma = 0.3
    assert flows.sa_rate(gamma, 1.0) == pytest.approx(
        2 * math.exp(0.3) * (1 - 0.09) / (math.e + math.exp(0.3)), rel=1e-14
    )


def test_corrector_that_restores_order_two():
    """`ht-modified`: order 2 needs -eta <x, b_rho> b; so does a projected velocity without it."""
    X = heads.uniform_tokens(5, 4, generator=stream(45, "X"))[0]

    def field(Y):
        return flows.self_attention(Y, 1.0)

    def order(corrector, projected):
        errors = []
        for k in (20, 40, 80):
            chain = flows.sphere_euler(field, X, 1.0, steps=k, projected=projected)
            errors.append(
                (chain - flows.sphere_flow(flows.modified_drift(field, 1 / k, corrector), X, 1.0, steps=100))
                .norm()
                .item()
            )
        return flows.observed_order([1 / 20, 1 / 40, 1 / 80], errors)

    assert order("full", False) == pytest.approx(2, abs=0.1)
    assert order("retold", False) == pytest.approx(1, abs=0.1)
    assert order("retold", True) == pytest.approx(2, abs=0.1)
    assert order("full", True) == pytest.approx(1, abs=0.1)


def test_layers_without_a_corrector_and_between_grid_points():
    """`ht-ballistic`, `ht-between`: the error at grid times is eta times a number, and half a step later at least as
    large as half a step, with the corrector as without."""
    X, etas = heads.uniform_tokens(5, 4, generator=stream(46, "X"))[0], (1 / 20, 1 / 40, 1 / 80)

    def field(Y):
        return flows.self_attention(Y, 1.0)

    for corrector, later, order in (("none", 0.0, 1), ("full", 0.0, 2), ("none", 0.5, 1), ("full", 0.5, 1)):
        errors = []
        for eta in etas:
            flow = flows.sphere_flow(flows.modified_drift(field, eta, corrector), X, 1 + later * eta, steps=100)
            errors.append((flows.sphere_euler(field, X, 1.0, steps=round(1 / eta)) - flow).norm().item())
        assert flows.observed_order(etas, errors) == pytest.approx(order, abs=0.15)
        if later and corrector == "full":
            velocity = heads.tangent(flow, field(flow)).norm().item()
            assert errors[-1] == pytest.approx(etas[-1] / 2 * velocity, rel=0.05)


def test_regimes():
    """`ht-regimes`: which of ballistic, modified, diffusive, from eta L, eta^2 varsigma^2 L / H and eta^3 L."""
    fast = flows.scaling_regime(1e-3, 1000, 8, None, 64)
    assert (fast.name, fast.drift_time) == ("ballistic", 1.0)
    assert fast.noise_time == pytest.approx(1e-6 * 63 / 64 * 1000 / 8, rel=1e-12)
    assert fast.alpha == pytest.approx(1e-3 * 63 / 64 / 8, rel=1e-12)
    assert flows.scaling_regime(1e-2, 5000, 100, None, 64).name == "modified"
    assert flows.scaling_regime(1e-2, 5000, 1, None, 64).name == "diffusive"
    assert flows.scaling_regime(1e-2, 5000, 1, 1.0, 64).name == "none"
    assert "eta^3 L" in flows.scaling_regime(0.1, 1000, 1, None, 64).reason
    assert flows.scaling_regime(0.3, 30, 1, None, 64, centred=True).name == "none"
    assert flows.scaling_regime(0.1, 100, 1, None, 64, centred=True).name == "diffusive"
    assert flows.scaling_regime(0.1, 0, 1, None, 64).noise_time == 0
