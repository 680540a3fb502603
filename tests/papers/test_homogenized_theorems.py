"""Each numbered result of the chapter on its own: one layer to second order, overlaps, limits, corrections."""

import itertools
import math

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.homogenized.chain import literal_step, overlaps, simulate_chain
from derived.papers.homogenized.flows import (
    modified_drift,
    observed_order,
    one_token_rates,
    sa_rate,
    self_attention,
    sphere_euler,
    sphere_flow,
    sphere_rates,
)
from derived.papers.homogenized.gram import simulate_gram
from derived.papers.homogenized.heads import (
    HeadLaw,
    Heads,
    attention_field,
    barycentre,
    equiangular_tokens,
    layer_step,
    matched_law,
    normalise,
    simplex_gram,
    tangent,
    uniform_tokens,
)
from derived.papers.homogenized.moments import attention_moments, sampled_moments
from derived.papers.homogenized.overlaps import (
    barycenter_correlation,
    gram_flow,
    logistic_overlap,
    overlap_bracket,
    overlap_drift,
    simplex_drift,
    simplex_flow,
    uniform_correlation,
)
from derived.papers.homogenized.regimes import layers_for, scaling_regime
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


def one_layer(
    X: torch.Tensor, h: float, law: HeadLaw, beta: float, num: int, *names
) -> tuple[torch.Tensor, torch.Tensor]:
    """Changes of the overlaps per unit tau over one layer, averaged over V and -V, and their squares."""
    heads = law.draw(stream(40, *names), (num, 1), beta=beta)
    start = X.expand(num, *X.shape).clone()
    both = [overlaps(layer_step(start, math.sqrt(h), Heads(sign * heads.V, heads.A, beta))) for sign in (1, -1)]
    before = overlaps(X)
    return ((both[0] + both[1]) / 2 - before) / h, ((both[0] - before) ** 2 + (both[1] - before) ** 2) / (2 * h)


# --- one layer ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1e-4, 1e-2, 0.3, 0.8])
def test_layer_to_second_order(size):
    """`ht-layer`: N(x + v) = x + t - |t|^2 x / 2 - c t + r, |r| <= |v|^3 / (2 (1 - |v|)^3)."""
    x = uniform_tokens(400, 3, generator=stream(41, "x"))[0]
    v = size * uniform_tokens(400, 3, generator=stream(41, "v"))[0]
    t, c = tangent(x, v), (x * v).sum(-1, keepdim=True)
    rest = normalise(x + v) - (x + t - t.square().sum(-1, keepdim=True) * x / 2 - c * t)
    bound = size**3 / (2 * (1 - size) ** 3) + 4e-16
    assert (rest.norm(dim=-1) <= bound).all()
    assert rest.norm(dim=-1).max() > size**3 / 8  # and the order is sharp


def test_generator_of_one_layer():
    """`ht-generator`: E phi(X^1) - phi(X) over all choices of heads from a list, exactly; the rest is O(eta^3)."""
    X = uniform_tokens(2, 3, generator=stream(42, "X"))[0]
    V, A = torch.randn(2, 3, 3, 3, generator=stream(42, "heads"), **F64)
    V = V + torch.eye(3, **F64)
    a = torch.randn(2, 3, generator=stream(42, "a"), **F64)

    def phi(Y):
        return (a * Y).sum() * (Y[0] @ Y[1]) + (a[1] @ Y[1]) ** 3

    B = attention_field(X.expand(3, 2, 3), V, A, 1.2)
    mean = B.mean(0)
    b, xi = tangent(X, mean), B - mean
    G = tangent(X, xi)
    slope = torch.func.grad(phi)(X)
    second = torch.autograd.functional.hessian(phi, X)

    def hess(v):
        return torch.einsum("ia,iajb,jb", v, second, v) - ((X * slope).sum(-1) * v.square().sum(-1)).sum()

    noise = sum(hess(g) for g in G) / 3
    coupling = ((X * xi).sum(-1, keepdim=True) * G).mean(0)
    ratios = {}
    for H, wrong in itertools.product((1, 2), (False, True)):
        rest = []
        for eta in (0.01, 0.005):
            after = [
                phi(layer_step(X, eta, Heads(V[list(h)], A[list(h)], 1.2)))
                for h in itertools.product(range(3), repeat=H)
            ]
            drift = eta * (slope * b).sum() + eta**2 / (2 * H) * noise + eta**2 * hess(b) / 2
            drift -= eta**2 * (slope * ((X * mean).sum(-1, keepdim=True) * b)).sum()
            drift -= 0 if wrong else eta**2 / H * (slope * coupling).sum()
            rest.append((sum(after) / len(after) - phi(X) - drift).item())
        ratios[H, wrong] = rest[0] / rest[1]
    assert all(7 < ratios[H, False] < 9 for H in (1, 2))
    assert all(3.5 < ratios[H, True] < 5 for H in (1, 2))  # without the coupling the rest is O(eta^2)


def test_clock_of_gaussian_heads():
    """`ht-clock`: the error of the chain at fixed tau is O(h): halved with h, and h = eta^2/H is all that counts."""
    for d in (2, 3, 16):
        limit = np.array(sphere_rates(d))
        errors = [np.abs(np.array(one_token_rates(h, d)) - limit) for h in (0.02, 0.01, 0.005)]
        assert np.allclose(errors[0] / errors[1], 2, atol=0.1)
        assert np.allclose(errors[1] / errors[2], 2, atol=0.05)
    pde = two_token_pde(4, 0.0, 1.0, 0.2, [0.5]).first[0]
    G = simplex_gram(2, 0.2).expand(20_000, 2, 2)
    gaps = []
    for h, H in ((0.5, 1), (0.05, 1), (0.05, 8)):
        chain = simulate_gram(
            G, round(0.5 / h), math.sqrt(h * H), H, HeadLaw(d=4, sigma_a=1.0), 0.0, generator=stream(43, h, H)
        )
        R = chain.gram[1][:, 0, 1]
        gaps.append(((R.mean() - pde).item(), (R.std() / math.sqrt(len(R))).item()))
    assert abs(gaps[0][0]) > 5 * gaps[0][1]  # one large layer
    assert all(abs(gap) < 5 * error + 0.02 * 0.5 for gap, error in gaps[1:])
    assert layers_for(0.5, math.sqrt(0.4), 8) == 10


def test_deterministic_heads_follow_the_drift():
    """`ht-weak`: layers of size eta stay within O(eta) of the flow at grid times; the order is measured."""
    X = uniform_tokens(4, 3, generator=stream(44, "X"))[0]
    V, A = torch.randn(2, 3, 3, generator=stream(44, "VA"), **F64)

    def field(Y):
        return attention_field(Y, V, A, 1.0)

    exact = sphere_flow(modified_drift(field, 0.0, "none"), X, 1.0, steps=200)
    errors = [(sphere_euler(field, X, 1.0, steps=k) - exact).norm().item() for k in (40, 80, 160)]
    assert observed_order([1 / 40, 1 / 80, 1 / 160], errors) == pytest.approx(1, abs=0.1)
    steps = [
        (sphere_flow(modified_drift(field, 0.0, "none"), X, 1.0, steps=k) - exact).norm().item() for k in (5, 10, 20)
    ]
    assert observed_order([1 / 5, 1 / 10, 1 / 20], steps) == pytest.approx(4, abs=0.4)


def test_self_attention_flow():
    """The rate of equiangular tokens under V = A = I, against the derivative of their overlap along the field."""
    for n, gamma, beta in ((2, 0.3, 1.0), (5, -0.1, 2.0), (5, 0.8, 0.0)):
        X = equiangular_tokens(n, 6, gamma)[0]
        velocity = tangent(X, self_attention(X, beta))
        rate = (velocity[0] @ X[1] + velocity[1] @ X[0]).item()
        assert sa_rate(gamma, beta, n) == pytest.approx(rate, rel=1e-12)
    gamma = 0.3
    assert sa_rate(gamma, 1.0) == pytest.approx(2 * math.exp(0.3) * (1 - 0.09) / (math.e + math.exp(0.3)), rel=1e-14)


def test_corrector_that_restores_order_two():
    """`ht-modified`: order 2 needs -eta <x, b_rho> b; so does a projected velocity without it."""
    X = uniform_tokens(5, 4, generator=stream(45, "X"))[0]

    def field(Y):
        return self_attention(Y, 1.0)

    def order(corrector, projected):
        errors = []
        for k in (20, 40, 80):
            chain = sphere_euler(field, X, 1.0, steps=k, projected=projected)
            errors.append(
                (chain - sphere_flow(modified_drift(field, 1 / k, corrector), X, 1.0, steps=100)).norm().item()
            )
        return observed_order([1 / 20, 1 / 40, 1 / 80], errors)

    assert order("full", False) == pytest.approx(2, abs=0.1)
    assert order("printed", False) == pytest.approx(1, abs=0.1)
    assert order("projected", True) == pytest.approx(2, abs=0.1)
    assert order("full", True) == pytest.approx(1, abs=0.1)
    assert order("none", False) == pytest.approx(1, abs=0.1)


def test_regimes():
    """`ht-regimes`: which of ballistic, modified, diffusive, from eta L, eta^2 varsigma^2 L / H and eta^3 L."""
    fast = scaling_regime(1e-3, 1000, 8, None, 64)
    assert (fast.name, fast.drift_time) == ("ballistic", 1.0)
    assert fast.noise_time == pytest.approx(1e-6 * 63 / 64 * 1000 / 8, rel=1e-12)
    assert fast.alpha == pytest.approx(1e-3 * 63 / 64 / 8, rel=1e-12)
    assert scaling_regime(1e-2, 5000, 100, None, 64).name == "modified"
    assert scaling_regime(1e-2, 5000, 1, None, 64).name == "diffusive"
    assert scaling_regime(1e-2, 5000, 1, 1.0, 64).name == "none"
    assert "eta^3 L" in scaling_regime(0.1, 1000, 1, None, 64).reason
    assert scaling_regime(0.3, 30, 1, None, 64, centred=True).name == "none"
    assert scaling_regime(0.1, 100, 1, None, 64, centred=True).name == "diffusive"
    assert scaling_regime(0.1, 0, 1, None, 64).noise_time == 0


# --- Gaussian heads -------------------------------------------------------------------------------------------------


def test_gaussian_heads():
    """`ht-gauss`: E B = 0, E B(x) B(y)^T = s(x, y) I / d; E |P_x B|^2 <= (d - 1)/d, equal at coincidence."""
    d, n = 4, 3
    X = uniform_tokens(n, d, generator=stream(46, "X"))[0]
    heads = HeadLaw(d=d, sigma_a=1.0).draw(stream(46, "h"), (60_000,), beta=1.2)
    B = attention_field(X.expand(60_000, n, d), heads.V, heads.A, 1.2)
    assert standard_z(B, 0.0).max() < 5
    m = barycentre(X.expand(60_000, n, d), heads.A, 1.2)
    products = torch.einsum("ria,rjb->rijab", B, B)
    expected = torch.einsum("rij,ab->rijab", m @ m.mT, torch.eye(d, **F64)) / d
    assert standard_z(products - expected, 0.0).max() < 5
    assert standard_z(products - 1.2 * expected, 0.0).max() > 5
    assert (tangent(X, B).square().sum(-1).mean(0) < (d - 1) / d).all()
    Y = equiangular_tokens(n, d, 1.0)[0]
    size = tangent(Y, attention_field(Y.expand(60_000, n, d), heads.V, heads.A, 1.2)).square().sum(-1)
    assert standard_z(size, (d - 1) / d).max() < 5


def test_overlap_drift_and_bracket():
    """`ht-overlap`: E dR and E dR^2 of one small layer, V and -V, against H5; tr P_x P_y = d - 2 + R^2."""
    d, h = 4, 1e-4
    X = uniform_tokens(3, d, generator=stream(47, "X"))[0]
    drift, squares = one_layer(X, h, HeadLaw(d=d, sigma_a=1.0), 1.3, 100_000, "overlap")
    s, error = (
        x[0] for x in barycenter_correlation(overlaps(X)[None], 1.3, 1.0, d, samples=200_000, generator=stream(47, "s"))
    )
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


def test_one_token():
    """`ht-one`: E <x, x0> and E <x, x0>^2 of a simulated chain of one token; sphere's rates are their limits."""
    d, h, L = 3, 0.1, 10
    X = uniform_tokens(1, d, generator=stream(48, "X")).expand(40_000, 1, d).clone()
    chain = simulate_chain(
        X, L, math.sqrt(2 * h), 2, HeadLaw(d=d, sigma_a=1.0), 3.0, generator=stream(48, "c"), keep_tokens=True
    )
    c = (chain.tokens[1] * X).sum(-1)[:, 0]
    first, second = one_token_rates(h, d)
    assert standard_z(c, math.exp(-first * h * L)) < 5
    assert standard_z(c**2, 1 / d + (1 - 1 / d) * math.exp(-second * h * L)) < 5
    assert standard_z(c, math.exp(-0.5 * h * L)) > 5  # (d - 1)/(2d) is not 1/2
    assert sphere_rates(d).first == (d - 1) / (2 * d)


def test_private_noise():
    """`ht-private`: a value matrix for each token: the drift is -(d-1) R (s_ii + s_jj)/(2d), no synchronisation."""
    d, h, gamma = 4, 0.02, 0.5
    X = equiangular_tokens(3, d, gamma, replicas=100_000)
    change = {}
    for common in (True, False):
        R = literal_step(X, math.sqrt(h), 1, HeadLaw(d=d, sigma_a=0.0), 0.0, generator=stream(49, "p"), common=common)
        change[common] = (overlaps(R)[:, 0, 1] - gamma) / h
    m = (1 + 2 * gamma) / 3
    private = -(d - 1) / d * gamma * m
    shared = float(overlap_drift(overlaps(X[0]), uniform_correlation(overlaps(X[0])), d)[0, 1])
    for common, own, other in ((True, shared, private), (False, private, shared)):
        spread = change[common].std() / math.sqrt(len(X)) + h  # the bias of one step is below h
        assert abs(change[common].mean() - own) < 5 * spread
        assert abs(change[common].mean() - other) > 5 * spread
    long = simulate_gram(simplex_gram(4, 0.0).expand(500, 4, 4), 60, 0.3, 1, HeadLaw(d=16, sigma_a=0.0), 0.0,
                         generator=stream(49, "long"), common=False).gram[1]  # fmt: skip
    assert standard_z(long[:, 0, 1], 0.0) < 5


# --- equiangular tokens ---------------------------------------------------------------------------------------------


def test_simplex_drift():
    """`ht-simplex`: at d = 4 one layer agrees with the exact drift and is over 20 standard errors from b."""
    d, n, gamma, logit_std = 4, 3, 0.3, 3.0
    law = matched_law(d, logit_std)
    drift, squares = one_layer(equiangular_tokens(n, d, gamma)[0], 1e-4, law, 1.0, 100_000, "simplex")
    pairs = torch.stack([x[:, [0, 0, 1], [1, 2, 2]].mean(1) for x in (drift, squares)], 1)
    f, g, f_error, g_error = sampled_moments(
        gamma, n, logit_std, d, samples=200_000, rows=3, generator=stream(50, "fg")
    )
    P, S = gamma + (1 - gamma) * f, gamma + (1 - gamma) * g
    exact = [float(simplex_drift(gamma, f, g, d)), 2 / d * (1 - gamma**2) * (P - gamma * S)]
    spread = pairs.std(0) / math.sqrt(len(pairs)) + f_error + g_error
    assert abs(pairs[:, 0].mean() - exact[0]) < 5 * spread[0]
    assert abs(pairs[:, 1].mean() - exact[1]) < 5 * spread[1]
    assert abs(pairs[:, 0].mean() - float(simplex_drift(gamma, f, g))) > 20 * spread[0]
    assert exact[0] == pytest.approx((d - 2 + gamma**2) / d * S - (d - 1) / d * gamma * P, rel=1e-13)


def test_correlation_is_lipschitz():
    """`ht-lipschitz`: |s_ij(R) - s_ij(R')| <= (1 + 9 tau_l^2) max |R - R'|, by quadrature and sampled."""
    R = np.linspace(-1, 1, 81)
    for d, tau in ((3, 0.2), (3, 1.0), (50, 4.0)):
        f, g = two_token_attention_moments(R, d, 1.0, math.sqrt(tau / math.sqrt(d)))
        for s in (R + (1 - R) * f, R + (1 - R) * g):
            assert (np.abs(np.diff(s)) <= (1 + 9 * tau**2) * np.diff(R)).all()
    for k in range(6):
        X = uniform_tokens(4, 5, generator=stream(51, k))
        Y = normalise(X + 0.2 * uniform_tokens(4, 5, generator=stream(51, k, "move")))
        tau = (0.5, 2.0)[k % 2]
        s, t = (
            barycenter_correlation(Z @ Z.mT, 1.0, math.sqrt(tau / 5**0.5), 5, samples=5000, generator=stream(51, "A"))
            for Z in (X, Y)
        )
        noise = 5 * (s.error + t.error).max()
        assert (s.s - t.s).abs().max() <= (1 + 9 * tau**2) * (X @ X.mT - Y @ Y.mT).abs().max() + noise


def test_gram_matrix_follows_the_simplex_flow():
    """`ht-ode`: the deviation from the flow is below the bound and falls like 1/sqrt(d); chain at d = 100 and 10^4."""
    n, tau, T, h = 4, 0.3, 0.4, 0.01
    worst = []
    for d in (100, 10_000):
        G = simplex_gram(n, 0.2).expand(64, n, n)
        chain = simulate_gram(G, round(T / h), math.sqrt(h), 1, matched_law(d, tau), 1.0, generator=stream(52, d))
        gamma = simplex_flow(0.2, [0.0, T], n, tau, d)[1]
        off = (chain.gram[1] - gamma)[:, *np.triu_indices(n, 1)].abs().amax(1)
        bound = math.exp((4 + 18 * tau**2) * T) * math.sqrt(8 * T / d * math.log(n**2 / 0.01))
        assert (off <= bound).all()
        worst.append(off.mean().item())
    assert 7 < worst[0] / worst[1] < 13  # 10 = sqrt(10^4 / 100)
    flow = gram_flow(simplex_gram(n, 0.2), [0.0, 1.0], 7)
    line = simplex_flow(0.2, [0.0, 1.0], n, 0.0, 7.0)
    assert flow[1][0, 1].item() == pytest.approx(line[1], abs=1e-8)
    assert torch.allclose(flow[1], simplex_gram(n, float(line[1])), atol=1e-8)


def test_gram_flow_has_order_four():
    """Steps of Runge and Kutta on a general Gram matrix, against a fine solution."""
    G = overlaps(uniform_tokens(4, 3, generator=stream(53, "G"))[0])
    fine = gram_flow(G, [1.0], 5, step=1 / 160)[0]
    errors = [(gram_flow(G, [1.0], 5, step=1 / k)[0] - fine).norm().item() for k in (2, 4, 8)]
    assert observed_order([1 / 2, 1 / 4, 1 / 8], errors) == pytest.approx(4, abs=0.4)


def test_warm_attention_is_nearly_even():
    """`ht-even`: |s - m| <= 6 (1 + ln n) tau_l^2, and <= 3 d tau_l^2 at finite width (two tokens)."""
    for n in (2, 8, 100):
        for tau in (0.05, 0.2, 0.5):
            for gamma in (0.0, 0.3, 0.8):
                f, g, *_ = attention_moments(gamma, n, tau)
                m = gamma + (1 - gamma) / n
                for s in (gamma + (1 - gamma) * f, gamma + (1 - gamma) * g):
                    assert abs(s - m) <= 6 * (1 + math.log(n)) * tau**2
    R = np.linspace(-1, 1, 41)
    f, g = two_token_attention_moments(R, 3, 1.0, 0.4)
    for s in (R + (1 - R) * f, R + (1 - R) * g):
        assert (np.abs(s - (1 + R) / 2) <= 3 * 9 * 0.4**4).all()


def test_hot_mean_overlap_is_logistic():
    """`ht-hot`: |m - u| below the bound; 1/d of it goes away at larger d; ln(n + 1) from orthogonal tokens to 1/2."""
    n, T, h = 6, 0.8, 0.01
    deviations = []
    for d in (50, 5000):
        G = simplex_gram(n, 0.0).expand(100, n, n)
        chain = simulate_gram(
            G, round(T / h), math.sqrt(2 * h), 2, HeadLaw(d=d, sigma_a=0.0), 0.0, generator=stream(54, d)
        )
        u = float(logistic_overlap(T, 1 / n))
        gap = (chain.mean_overlap[1] - u).abs()
        bound = math.exp(T) * (3 / d * T + math.sqrt(8 * T / d * math.log(2 / 0.01)))
        assert (gap <= bound).all()
        deviations.append(gap.mean().item())
    assert deviations[0] > 5 * deviations[1]
    m = (n + 1) / (2 * n)  # overlap 1/2
    assert logistic_overlap(math.log(n + 1), 1 / n) == pytest.approx(m, rel=1e-13)
    t = np.linspace(0, 3, 7)
    u = logistic_overlap(t, 0.2)
    rate = (logistic_overlap(t + 1e-5, 0.2) - logistic_overlap(t - 1e-5, 0.2)) / 2e-5
    assert np.allclose(rate, u * (1 - u), rtol=1e-8)


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
