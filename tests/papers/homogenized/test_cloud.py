"""A pair in a uniform cloud: Bessel ratios, cosines, one layer and the slow overlap."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, special

from derived.lab.rng import stream
from derived.papers.homogenized.model import chain, heads, overlaps, two_token
from derived.papers.homogenized.model.cloud import (
    cloud_layer,
    image,
    mean_cosine,
    return_probability,
    slow_bracket,
    slow_drift,
    slow_overlap_sde,
    vmf_mean_ratio,
)

F64 = {"dtype": torch.float64}


def standard_z(values: torch.Tensor, expected: torch.Tensor | float) -> torch.Tensor:
    """Distance of the mean over the first axis from ``expected``, in standard errors."""
    return ((values.mean(0) - expected) / (values.std(0) / math.sqrt(len(values)))).abs()


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
    tokens = heads.uniform_tokens(200_000, 3, generator=stream(26, "many"))[0]
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
    assert abs(cosine.mean() - float(mean_cosine(r, d, factors + 1))) > 5 * cosine.std() / math.sqrt(len(cosine))
    for width in (d, 40, 400):  # F(1/2, 1/2; c; x) is a series of our own from c = 20 on
        assert mean_cosine([-1.0, 0.0, 1.0], width, factors) == pytest.approx([-1, 0, 1], abs=1e-5)


@pytest.mark.parametrize("factors", [1, 2, 3])
def test_cosine_under_gaussian_factors(factors):
    """`ht-delta`: d (r - E cos) / (r (1 - r^2)) -> factors / 2 with error O(1/d); the neighbours are 0.4 away."""
    r = np.array([0.2, 0.5, 0.8])
    gaps = [np.abs(d * (r - mean_cosine(r, d, factors)) / (r * (1 - r**2)) - factors / 2) for d in (100, 200)]
    assert (gaps[1] < 0.05).all()
    assert np.allclose(gaps[0] / gaps[1], 2, atol=0.2)


@pytest.mark.parametrize("factors", [0, 1, 2])
def test_images_have_the_exact_mean_cosine_and_controls_of_mean_zero(factors):
    R = torch.full((200_000,), 0.6, dtype=torch.float64)
    found = image(R, 10, factors, generator=stream(1, "image", factors))
    exact = 0.6 if factors == 0 else float(mean_cosine(0.6, 10, factors))
    for values, target in ((found.cosine, exact), (found.control, 0.0), (found.length_x.square(), 1.0)):
        error = values.std().item() / len(R) ** 0.5
        assert abs(values.mean().item() - target) <= 5 * error + 1e-12


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
    fast = cloud_layer(torch.full((paths,), R, dtype=torch.float64), 0.5, d, 2, generator=stream(3, "fast", d))[0]
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
        image(torch.zeros(1), d, factors, generator=stream(0, "bad"))
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


def test_one_layer_at_low_temperature():
    """The drift -2 u (1 - u^2) itself: one layer with m = A x / |A x|, over 5 standard errors from -u (1 - u^2)."""
    d, u, h, num = 40, 0.5, 1e-4, 100_000
    X = heads.equiangular_tokens(2, d, u)[0]
    A = [torch.randn(num, d, 2, generator=stream(57, "W"), **F64) @ torch.linalg.cholesky(heads.simplex_gram(2, u)).T]
    G = A[0].mT @ A[0]  # W'^T x, then W by Bartlett's factor in two dimensions
    L = torch.linalg.cholesky(G)
    image = L @ torch.randn(num, 2, d, generator=stream(57, "W2"), **F64)
    m = heads.normalise(image)
    Z = math.sqrt(h / d) * torch.randn(num, 2, d, generator=stream(57, "V"), **F64)
    move = torch.linalg.cholesky(m @ m.mT) @ Z
    both = [chain.overlaps(heads.normalise(X + sign * move))[:, 0, 1] for sign in (1, -1)]
    drift = d * ((both[0] + both[1]) / 2 - u) / h / (u * (1 - u**2))
    s = float(mean_cosine(u, d))
    exact = d * ((d - 2 + u * u) / d * s - (d - 1) / d * u) / (u * (1 - u**2))
    assert standard_z(drift, exact) < 5
    assert standard_z(drift, -1.0) > 5


def test_recurrence():
    """`ht-recurrent`: kappa = 1 is Brownian and returns, kappa < 1 leaves, kappa > 1 is stationary."""
    y = slow_overlap_sde(1.0, [1.0, 9.0], y0=0.5, paths=40_000, generator=stream(58, 1))
    assert standard_z(y[1], 0.5) < 5
    assert standard_z((y[1] - 0.5) ** 2, 18.0) < 5
    assert return_probability(3.2, 1.0, 100.0) == pytest.approx(0.821, abs=1e-3)
    assert return_probability(3.2, 0.0) == pytest.approx(0.052, abs=1e-3)
    assert return_probability(1.0) == return_probability(1.0, 1.5) == 1.0
    u0 = 0.4
    y = slow_overlap_sde(0.0, [12.0], y0=math.atanh(u0), paths=20_000, generator=stream(58, 0))[0]
    share = (y > 0).double()
    assert standard_z(share, 0.5 + math.asin(u0) / math.pi) < 5
    assert standard_z(share, (1 + u0) / 2) > 5
    for kappa in (0.0, 0.5, 0.9):  # 1 - s(y)/s(inf) by quadrature of the scale function
        grid = np.linspace(0, 60 / (1 - kappa), 2_000_001)
        scale = np.cosh(np.minimum(grid, 700.0)) ** (kappa - 1)
        total, part = (np.trapezoid(scale[grid <= top], grid[grid <= top]) for top in (math.inf, 1.5))
        assert return_probability(1.5, kappa) == pytest.approx(1 - part / total, abs=1e-4)
    kappa = 1.5
    z, density, _ = two_token.fokker_planck(
        lambda y: (1 - kappa) * np.tanh(y), lambda y: 2 + 0 * y, 0.3, [60.0], cells=800, steps=1500, reach=25.0
    )
    stationary = np.cosh(z) ** (1 - kappa)
    stationary /= (z[1] - z[0]) * stationary.sum()
    assert np.abs(density[0] - stationary).max() < 1e-3
    paths = slow_overlap_sde(kappa, [30.0], paths=20_000, generator=stream(58, 3))[0]
    assert standard_z(torch.tanh(paths).square(), float((z[1] - z[0]) * stationary @ np.tanh(z) ** 2)) < 5


def test_heun_step_has_weak_order_two():
    """E tanh^2 y at t = 1 for steps 1, 1/2, 1/20, against Fokker-Planck: errors below h^2 / 40."""
    z, density, _ = two_token.fokker_planck(
        lambda y: np.tanh(y), lambda y: 2 + 0 * y, 0.5, [1.0], cells=1400, steps=800, reach=12.0
    )
    exact = float((z[1] - z[0]) * density[0] @ np.tanh(z) ** 2)
    for h in (1.0, 0.5, 0.05):
        y = slow_overlap_sde(0.0, [1.0], y0=0.5, paths=400_000, step=h, generator=stream(59, "h"))[0]
        values = torch.tanh(y).square()
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - exact) < 5 * error + h**2 / 40
        assert abs(values.mean() - exact - 0.05) > 5 * error + h**2 / 40
