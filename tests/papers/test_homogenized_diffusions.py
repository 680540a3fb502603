"""Two tokens, low temperature and many tokens: the diffusions of the chapter, each numbered result on its own."""

import math

import numpy as np
import pytest
import torch

from derived.lab.experiment import run_experiment
from derived.lab.rng import stream
from derived.papers.homogenized.chain import overlaps, simulate_chain
from derived.papers.homogenized.experiments import FiniteBeta
from derived.papers.homogenized.flows import observed_order
from derived.papers.homogenized.gram import simulate_gram
from derived.papers.homogenized.heads import (
    HeadLaw,
    Heads,
    barycentre,
    equiangular_tokens,
    layer_step,
    matched_law,
    normalise,
    simplex_gram,
    tangent,
    uniform_tokens,
)
from derived.papers.homogenized.moments import attention_moments, vmf_mean_ratio
from derived.papers.homogenized.overlaps import overlap_bracket, overlap_drift, simplex_drift
from derived.papers.homogenized.slow import (
    mean_cosine,
    return_probability,
    slow_bracket,
    slow_drift,
    slow_overlap_sde,
)
from derived.papers.homogenized.two_token import (
    flux_matrix,
    fokker_planck,
    two_token_attention_moments,
    two_token_coefficients,
    two_token_pde,
)

F64 = {"dtype": torch.float64}


def standard_z(values: torch.Tensor, expected: torch.Tensor | float) -> torch.Tensor:
    """Distance of the mean over the first axis from ``expected``, in standard errors."""
    return ((values.mean(0) - expected) / (values.std(0) / math.sqrt(len(values)))).abs()


# --- two tokens -----------------------------------------------------------------------------------------------------


def test_two_tokens_are_a_diffusion():
    """`ht-two`: E R and E R^2 of the chain, H = 1 and 3, against Fokker-Planck; beta = 0 in closed form."""
    y = np.linspace(-5, 5, 41)
    drift, variance = two_token_coefficients(6, 0.0, 1.0)
    assert np.allclose(drift(y), (4 + np.tanh(y)) / 12, atol=1e-9)
    assert np.allclose(variance(y), 1 / 6, atol=1e-12)
    cold = two_token_coefficients(6, 1.5, 1.0)
    for R in (-0.7, 0.2, 0.9):
        f, g = two_token_attention_moments(R, 6, 1.5, 1.0)
        D, bracket = simplex_drift(R, f, g, 6), 2 / 6 * (1 - R**2) * (1 - R) * (R + f - R * g)
        place = np.array([math.atanh(R)])
        assert cold[1](place)[0] == pytest.approx(bracket / (1 - R**2) ** 2, rel=1e-6)
        assert cold[0](place)[0] == pytest.approx(D / (1 - R**2) + R * bracket / (1 - R**2) ** 2, rel=1e-6)
    law = two_token_pde(6, 1.5, 1.0, 0.2, [0.6, 1.8])
    assert np.abs(law.mass - 1).max() < 1e-12
    G = simplex_gram(2, 0.2).expand(10_000, 2, 2)
    for H in (1, 3):
        chain = simulate_gram(
            G, 45, math.sqrt(0.04 * H), H, HeadLaw(d=6, sigma_a=1.0), 1.5, generator=stream(56, H), record=[15, 45]
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
        y, density, mass = fokker_planck(
            lambda y: 0.3 + 0 * y, lambda y: 0.5 + 0 * y, 0.2, [1.0, 2.0], cells=cells, steps=4 * cells
        )
        assert np.abs(mass - 1).max() < 1e-11
        exact = np.exp(-((y - 0.8) ** 2) / 2) / math.sqrt(2 * math.pi)
        errors.append(np.abs(density[1] - exact).max())
        assert (y[1] - y[0]) * density[1] @ y == pytest.approx(0.8, abs=1e-9)
    assert observed_order([4, 2, 1], errors) == pytest.approx(2, abs=0.2)
    first = [
        fokker_planck(lambda y: -y, lambda y: 1 + 0 * y, 1.0, [1.0], cells=400, steps=k) for k in (20, 40, 80, 1280)
    ]
    means = [(y[1] - y[0]) * density[0] @ y for y, density, _ in first]
    order = observed_order([4, 2, 1], [abs(m - means[3]) for m in means[:3]])
    assert order == pytest.approx(2, abs=0.4)
    assert means[3] == pytest.approx(math.exp(-1), abs=1e-4)
    bands = flux_matrix(np.tanh, lambda y: 1 + y**2, y, y[1] - y[0])
    columns = bands[1].copy()
    columns[1:] += bands[0, 1:]
    columns[:-1] += bands[2, :-1]
    assert np.abs(columns).max() < 1e-12 * np.abs(bands).max()


# --- the end of a collapse, and its levels ----------------------------------------------------------------------


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
    chain = simulate_gram(G, round(T / h), math.sqrt(h), 1, matched_law(d, 4.0), 1.0, generator=stream(55, "end"))
    rate = torch.log((1 - chain.gram[1][:, 0, 1]) / 0.001) / T
    spread = rate.std() / math.sqrt(len(rate))
    assert abs(rate.mean() + (1 - 1 / d)) < 5 * spread + h
    assert abs(rate.mean() + (d - 3) / d) > 5 * spread + h


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


# --- low temperature ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factors", [1, 2, 3])
def test_cosine_under_gaussian_factors(factors):
    """`ht-delta`: d (r - E cos) / (r (1 - r^2)) -> factors / 2 with error O(1/d); the neighbours are 0.4 away."""
    r = np.array([0.2, 0.5, 0.8])
    gaps = [np.abs(d * (r - mean_cosine(r, d, factors)) / (r * (1 - r**2)) - factors / 2) for d in (100, 200)]
    assert (gaps[1] < 0.05).all()
    assert np.allclose(gaps[0] / gaps[1], 2, atol=0.2)


def test_slow_overlap():
    """`ht-slow`: d D -> -(1 + kappa) u (1 - u^2) and d bracket -> 2 (1 - u^2)^2; y has drift (1 - kappa) u."""
    u = np.array([-0.8, 0.1, 0.6])
    R, one = torch.from_numpy(u), torch.ones(3, **F64)
    for factors in (0, 1, 2, 3):
        kappa, gaps = factors / 2, []
        for d in (100, 200):
            s = torch.from_numpy(mean_cosine(u, d, factors)) if factors else R
            pair = [torch.stack([torch.stack([one, x], -1), torch.stack([x, one], -1)], -2) for x in (R, s)]
            gaps.append(np.abs(d * overlap_drift(*pair, d)[:, 0, 1].numpy() - slow_drift(u, kappa)).max())
            assert np.abs(d * overlap_bracket(*pair, d)[:, 0, 1].numpy() - slow_bracket(u)).max() < 3 / d
        assert gaps[1] < 0.03
        assert factors == 0 or 1.7 < gaps[0] / gaps[1] < 2.3
        ito = (1 - u**2) * (1 - kappa) * u - 2 * u * (1 - u**2)
        assert np.allclose(ito, slow_drift(u, kappa), atol=1e-15)
    assert np.abs(slow_drift(np.linspace(-1, 1, 4001))).max() == pytest.approx(4 / (3 * math.sqrt(3)), rel=1e-6)


def test_finite_temperature():
    """`ht-finite`: |A(t) - A(t')| <= (d-1)/2 |1/t - 1/t'|; at beta_eff = 100 d a part near -3/100 is missing."""
    t = np.geomspace(0.05, 1e5, 80)
    for d in (3, 8, 100):
        ratio = vmf_mean_ratio(d, t)
        rounding = 16 * np.finfo(float).eps
        assert (np.diff(t * (1 - ratio)) > -rounding * t[1:]).all()
        assert (np.diff(ratio) > 0).all()
        assert (np.diff(ratio) <= (d - 1) / 2 * -np.diff(1 / t) + rounding).all()
        assert (np.diff(ratio)[-40:] > (d - 1) / 2 * -np.diff(1 / t)[-40:] / 3).all()  # and not much less
    found = FiniteBeta(widths=(24, 96), ratios=(100.0,), replicates=16, samples=4000)
    rows = run_experiment(found, seed=63, device="cpu")
    for _, part in rows.groupby("d"):
        missing = 100 * (part["drift"] - part["coldest"])
        assert abs(missing.mean() + 3) < 5 * missing.std() / 4 + 0.15  # 3/d and 100/beta_eff


def test_one_layer_at_low_temperature():
    """The drift -2 u (1 - u^2) itself: one layer with m = A x / |A x|, over 5 standard errors from -u (1 - u^2)."""
    d, u, h, num = 40, 0.5, 1e-4, 100_000
    X = equiangular_tokens(2, d, u)[0]
    A = [torch.randn(num, d, 2, generator=stream(57, "W"), **F64) @ torch.linalg.cholesky(simplex_gram(2, u)).T]
    G = A[0].mT @ A[0]  # W'^T x, then W by Bartlett's factor in two dimensions
    L = torch.linalg.cholesky(G)
    image = L @ torch.randn(num, 2, d, generator=stream(57, "W2"), **F64)
    m = normalise(image)
    Z = math.sqrt(h / d) * torch.randn(num, 2, d, generator=stream(57, "V"), **F64)
    move = torch.linalg.cholesky(m @ m.mT) @ Z
    both = [overlaps(normalise(X + sign * move))[:, 0, 1] for sign in (1, -1)]
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
    z, density, _ = fokker_planck(
        lambda y: (1 - kappa) * np.tanh(y), lambda y: 2 + 0 * y, 0.3, [60.0], cells=800, steps=1500, reach=25.0
    )
    stationary = np.cosh(z) ** (1 - kappa)
    stationary /= (z[1] - z[0]) * stationary.sum()
    assert np.abs(density[0] - stationary).max() < 1e-3
    paths = slow_overlap_sde(kappa, [30.0], paths=20_000, generator=stream(58, 3))[0]
    assert standard_z(torch.tanh(paths).square(), float((z[1] - z[0]) * stationary @ np.tanh(z) ** 2)) < 5


def test_heun_step_has_weak_order_two():
    """E tanh^2 y at t = 1 for steps 1, 1/2, 1/20, against Fokker-Planck: errors below h^2 / 40."""
    z, density, _ = fokker_planck(
        lambda y: np.tanh(y), lambda y: 2 + 0 * y, 0.5, [1.0], cells=1400, steps=800, reach=12.0
    )
    exact = float((z[1] - z[0]) * density[0] @ np.tanh(z) ** 2)
    for h in (1.0, 0.5, 0.05):
        y = slow_overlap_sde(0.0, [1.0], y0=0.5, paths=400_000, step=h, generator=stream(59, "h"))[0]
        values = torch.tanh(y).square()
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - exact) < 5 * error + h**2 / 40
        assert abs(values.mean() - exact - 0.05) > 5 * error + h**2 / 40


# --- many tokens ----------------------------------------------------------------------------------------------------


def test_fields_of_two_clouds():
    """`ht-fields`: beta = 0: E |G_mu(x) - G_nu(x)|^2 = (d-1)/d |mean mu - mean nu|^2."""
    d = 3
    X, Y = uniform_tokens(5, d, generator=stream(60, "X"), replicas=2)
    x = X[:1]
    V = torch.randn(40_000, d, d, generator=stream(60, "V"), **F64) / math.sqrt(d)
    gap = tangent(x, (X.mean(0) - Y.mean(0))[None] @ V.mT).square().sum(-1)[:, 0]
    expected = (d - 1) / d * (X.mean(0) - Y.mean(0)).square().sum()
    assert standard_z(gap, expected) < 5
    assert standard_z(gap, expected * d / (d - 1)) > 5


def test_clouds_under_common_noise():
    """`ht-chaos`: two prompts under the same weights: n E |mean - mean'|^2 is the same at n = 16 and 64."""
    d, R, values = 4, 400, {}
    law = HeadLaw(d=d, sigma_a=0.8)
    for n in (16, 64):
        ends = [
            simulate_chain(
                uniform_tokens(n, d, generator=stream(61, "prompt", n, k), replicas=R), 8, 0.3, 1, law, 1.0,
                generator=stream(61, "weights"), method="literal", keep_tokens=True,
            ).tokens[1].mean(1)
            for k in (0, 1)
        ]  # fmt: skip
        values[n] = n * (ends[0] - ends[1]).square().sum(-1)
    means, errors = zip(*((v.mean().item(), v.std().item() / math.sqrt(R)) for v in values.values()), strict=True)
    assert abs(means[0] - means[1]) < 5 * math.hypot(*errors)
    assert abs(means[0] - 4 * means[1]) > 5 * math.hypot(errors[0], 4 * errors[1])


def test_generator_of_the_cloud():
    """`ht-spde`: E d<mu, phi> = <mu, s(x,x) Laplace phi / (2d)> dtau for phi = <a, x> and <a, x>^2."""
    d, n, h = 3, 4, 1e-3
    X = uniform_tokens(n, d, generator=stream(62, "X"))[0]
    a = X.sum(0)
    heads = HeadLaw(d=d, sigma_a=1.0).draw(stream(62, "h"), (60_000, 1), beta=1.0)
    start = X.expand(60_000, n, d).clone()
    ends = [layer_step(start, math.sqrt(h), Heads(sign * heads.V, heads.A, 1.0)) for sign in (1, -1)]
    own = barycentre(start, heads.A[:, 0], 1.0).square().sum(-1).mean(0)  # s(x_i, x_i)
    c = X @ a
    for phi, laplace in ((lambda t: t, -(d - 1) * c), (lambda t: t**2, 2 * (a @ a) - 2 * d * c**2)):
        change = ((phi(ends[0] @ a) + phi(ends[1] @ a)) / 2 - phi(c)).mean(1) / h
        expected = (own * laplace / (2 * d)).mean()
        spread = change.std() / math.sqrt(len(change)) + 5 * h
        assert abs(change.mean() - expected) < 5 * spread
        assert abs(change.mean() - 2 * expected) > 5 * spread
