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
from derived.papers.homogenized.two_token import (
    two_token_attention_moments,
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
    """`ht-clock`: the error of the chain at fixed tau is O(h): halved with h; with attention, small for many heads."""
    for d in (2, 3, 16):
        limit = np.array(sphere_rates(d))
        errors = [np.abs(np.array(one_token_rates(h, d)) - limit) for h in (0.02, 0.01, 0.005)]
        assert np.allclose(errors[0] / errors[1], 2, atol=0.1)
        assert np.allclose(errors[1] / errors[2], 2, atol=0.05)
    G, law, gaps = simplex_gram(2, 0.0).expand(20_000, 2, 2), matched_law(8, 2.0), []
    pde = two_token_pde(8, 1.0, law.sigma_a, 0.0, [1.92]).first[0]
    for h, H in ((0.64, 1), (0.12, 1), (0.12, 8)):
        chain = simulate_gram(G, round(1.92 / h), math.sqrt(h * H), H, law, 1.0, generator=stream(43, h, H))
        R = chain.gram[1][:, 0, 1]
        gaps.append(((R.mean() - pde).item(), (R.std() / math.sqrt(len(R))).item()))
    assert abs(gaps[0][0]) > 5 * gaps[0][1]  # three large layers
    assert all(abs(gap) < abs(gaps[0][0]) / 2 for gap, _ in gaps[1:])
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
    assert order("retold", False) == pytest.approx(1, abs=0.1)
    assert order("retold", True) == pytest.approx(2, abs=0.1)
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
    """`ht-ode`: the deviation falls like 1/sqrt(d); at d = 10^8 the bound is below 0.04 and excludes other curves."""
    n, tau, T, h = 4, 0.3, 0.4, 0.01
    worst = []
    for d in (100, 10_000, 10**8):
        G = simplex_gram(n, 0.2).expand(64, n, n)
        chain = simulate_gram(G, round(T / h), math.sqrt(h), 1, matched_law(d, tau), 1.0, generator=stream(52, d))
        gamma = simplex_flow(0.2, [0.0, T], n, tau, d)[1]
        off = (chain.gram[1] - gamma)[:, *np.triu_indices(n, 1)].abs().amax(1)
        bound = math.exp((4 + 18 * tau**2) * T) * math.sqrt(8 * T / d * math.log(n**2 / 0.01))
        assert (off <= bound).all()
        worst.append(off.mean().item())
    assert 7 < worst[0] / worst[1] < 13  # 10 = sqrt(10^4 / 100)
    assert bound < 0.04
    for wrong in (0.2, simplex_flow(0.2, [T], n, tau, 4)[0]):  # tokens that stay, and the terms in 1/d of another width
        assert ((chain.gram[1] - wrong)[:, *np.triu_indices(n, 1)].abs().amax(1) > bound).all()
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
    """`ht-hot`: |m - u| falls with d; at d = 10^7 the bound is below 0.01 and excludes other curves; ln(n + 1)."""
    n, T, h = 6, 0.8, 0.01
    deviations = []
    for d in (50, 5000, 10**7):
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
    assert bound < 0.01
    for wrong in (
        1 / n,
        float(logistic_overlap(0.9 * T, 1 / n)),
    ):  # tokens that stay, and a clock that is slow by a tenth
        assert ((chain.mean_overlap[1] - wrong).abs() > bound).all()
    m = (n + 1) / (2 * n)  # overlap 1/2
    assert logistic_overlap(math.log(n + 1), 1 / n) == pytest.approx(m, rel=1e-13)
    t = np.linspace(0, 3, 7)
    u = logistic_overlap(t, 0.2)
    rate = (logistic_overlap(t + 1e-5, 0.2) - logistic_overlap(t - 1e-5, 0.2)) / 2e-5
    assert np.allclose(rate, u * (1 - u), rtol=1e-8)
