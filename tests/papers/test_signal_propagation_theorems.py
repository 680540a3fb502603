"""Each numbered result of the chapter on its own, against quadrature, random networks or the recurrences."""

import math

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.signal_propagation import asymptotics
from derived.papers.signal_propagation.kernels import (
    ErfKernel,
    LayerNormKernel,
    TanhKernel,
    arccos_kernel,
    arccos_kernel_prime,
)
from derived.papers.signal_propagation.meanfield import propagate
from derived.papers.signal_propagation.transformer import RandomTransformer, Sigmas, token_moments

NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()
UNIFORM = Sigmas(q=0.0, k=0.0, v=1.0, o=1.0, one=1.0, two=1.0)
TOKENS, DEPTH = 4, 3


def gaussian(f, g, q: float, p: float) -> float:
    """E f(u) g(v) for variances q and covariance p, by a product rule."""
    u = math.sqrt(q) * NODES[:, None]
    v = p / q * u + math.sqrt(max(q - p * p / q, 0.0)) * NODES
    return float(WEIGHTS @ (f(u) * g(v)) @ WEIGHTS)


def network(norm: str, width: int, num: int) -> tuple[RandomTransformer, torch.Tensor]:
    """Networks with uniform attention, and prompts whose channels are i.i.d. of variance 1 and covariance 0.3."""
    g = stream(50, norm, width)
    model = RandomTransformer(
        width=width, depth=DEPTH, norm=norm, sigmas=UNIFORM, num_networks=num, generator=g, dtype=torch.float64
    )
    own, common = (torch.randn(num, k, width, generator=g, dtype=torch.float64) for k in (TOKENS, 1))
    return model, math.sqrt(0.7) * own + math.sqrt(0.3) * common


def theory(kernel, **facts):
    return propagate(1.0, 0.3, kernel=kernel, a=1.0, s=1.0, **{"n": TOKENS, "depth": DEPTH} | facts)


def deep(kernel, n: float = math.inf, depth: int = 20_000, **facts):
    attention = "uniform" if np.all(np.isfinite(n)) else "infinite"
    given = {"a": 0.5, "s": 1.0} | facts
    return propagate(1.0, 0.2, kernel=kernel, n=n, depth=depth, attention=attention, **given)


def test_fresh_weights():
    """`sp-fresh`: all covariances of two columns of X W^T within 5 standard errors; the columns are uncorrelated."""
    X = torch.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 2.0]], dtype=torch.float64)
    W = 1.3 * torch.randn(200_000, 2, 3, generator=stream(51, "W"), dtype=torch.float64) / 3**0.5
    columns = (X @ W.mT).mT.flatten(1)
    products = columns[:, :, None] * columns[:, None, :]
    expected = torch.block_diag(*[1.3**2 / 3 * X @ X.T] * 2)
    assert ((products.mean(0) - expected).abs() < 5 * products.std(0) / len(W) ** 0.5).all()


def test_two_numbers_suffice():
    """`sp-closure`: wider networks have all overlaps closer to one number, and their channels are Gaussian."""
    spreads = []
    for width in (32, 256):
        model, x = network("erf", width, 16)
        h = model(x)
        spreads.append(float(token_moments(h)[2].mean()))
    assert spreads[1] < 0.5 * spreads[0]  # of order d^{-1/2}: 0.35
    q = h.square().mean(dim=-1, keepdim=True)
    assert abs(float((h**4 / q**2).mean()) - 3) < 0.1


def test_price():
    """`sp-price` for two different functions, by a central difference."""
    q, p, h = 1.2, 0.4, 1e-4
    f, df = (lambda x: x**3 + np.sin(x)), (lambda x: 3 * x**2 + np.cos(x))
    g, dg = (lambda x: np.exp(x / 2)), (lambda x: np.exp(x / 2) / 2)
    slope = (gaussian(f, g, q, p + h) - gaussian(f, g, q, p - h)) / (2 * h)
    assert slope == pytest.approx(gaussian(df, dg, q, p), rel=1e-6)


def test_relu_kernel():
    """`sp-relu`: in polar coordinates the radius gives 2 and the angle a mean over the circle."""
    angle = (np.arange(200_000) + 0.5) * 2 * np.pi / 200_000
    for rho in (-0.8, 0.0, 0.5, 1.0):
        one, two = np.cos(angle), np.cos(angle - math.acos(rho))
        kappa = 2 * np.mean(np.maximum(one, 0) * np.maximum(two, 0))
        assert arccos_kernel(rho) == pytest.approx(kappa, abs=1e-8)
        assert arccos_kernel_prime(rho) == pytest.approx(np.mean((one > 0) & (two > 0)), abs=1e-5)
    values = arccos_kernel(np.linspace(0, 1, 101))
    assert (np.diff(values) > 0).all()
    assert (np.diff(values, 2) > 0).all()


@pytest.mark.parametrize(("a", "s"), [(0.5, 1.0), (0.2, 1.5), (1.0, 0.6)])
def test_layernorm_power_law(a, s):
    """`sp-ln`: q/b -> v, and q - p, 1 - rho and J over their powers of b stay within a factor."""
    course, b, zeta = deep(LayerNormKernel(), a=a, s=s), np.arange(1000, 20_001), (s / 2) / (s / 2 + a)
    assert (np.diff(course.rho) > 0).all()
    assert course.q[-1] / 20_000 == pytest.approx(a + s / 2, rel=0.02)
    J = course.J_forward[1000:]
    for found, power in ((course.q - course.p, zeta), (1 - course.rho, zeta - 1), (course.J_forward, zeta)):
        ratio = found[1000:] / b**power
        assert ratio.max() < 1.3 * ratio.min()
        assert np.ptp(np.log(found[1000:] / b ** (power + 0.2))) > math.log(1.3)
    np.testing.assert_allclose(course.J_backward[1000:], J[-1] / J, rtol=1e-2)


def test_tokens_stay_apart():
    """`sp-overlap`: F has one sign change, below 1 and above c_0; H increases on a grid."""
    c = 1 - np.geomspace(1 - 1e-6, 1e-7, 4000)
    p = 2 / np.pi * np.arcsin(c)
    N = c / 2 - arccos_kernel(p)
    c0 = c[np.flatnonzero(np.diff(np.sign(N)))]
    assert c0 == pytest.approx([0.505], abs=2e-3)
    assert (np.diff((N / ((1 - c) * p))[c > c0 + 1e-3]) > 0).all()
    for a, s in ((0.0, 1.0), (0.5, 1.0), (3.0, 0.5)):
        F = a * p * (1 - c) - s * N
        (change,) = np.flatnonzero(np.diff(np.sign(F)))
        assert F[0] > 0 > F[-1]  # positive below the zero, negative up to 1: c = 1 repels
        assert asymptotics.overlap_fixed_point(a, s) == pytest.approx(c[change], abs=3e-3)
        assert c[change + 1] >= c0


@pytest.mark.parametrize("n", [math.inf, 4, 16])
@pytest.mark.parametrize(
    ("kernel", "C"), [(ErfKernel(1.0), 2 / math.pi), (TanhKernel(1.0), 4 / (3 * math.sqrt(2 * math.pi)))]
)
def test_stretched_exponential(kernel, C, n):
    """`sp-stretched` and, at fixed n, `sp-finite-derf`: the slope of ln J in sqrt(b), and q/b, tend to the law's."""
    a, s = 0.5, 1.0
    course = deep(kernel, n)
    c = float(asymptotics.overlap_fixed_point(a, s, n))
    p = 2 / math.pi * math.asin(c)
    v = a * (p + (1 - p) / n) + s / 2
    assert course.rho[-1] == pytest.approx(c, abs=0.02)
    assert course.q[-1] / 20_000 == pytest.approx(v, rel=0.03)
    slope = C * (s + 2 * a / n) / math.sqrt(v)
    assert asymptotics.growth_rate(a, s, n) == pytest.approx(v, rel=1e-12)
    assert asymptotics.lambda_stretched(a, s, C, n) ** -0.5 == pytest.approx(slope, rel=1e-12)
    points = np.array([100, 1000, 10_000, 20_000])
    errors = np.abs(asymptotics.stretched_slope(course.log_J_forward[points], points) / slope - 1)
    assert errors[-1] < min(0.03, errors[0])
    between = course.log_J_backward[5000] / (math.sqrt(20_000) - math.sqrt(5000))
    assert between == pytest.approx(slope, rel=0.04)


def test_linear_window():
    """`sp-window`: J between its bounds at every depth; alpha^2 p = 1 is reached at about b_*."""
    for alpha in (0.03, 0.05):
        a, s, b = 0.5, 1.0, np.arange(8001)
        course = propagate(1.0, 0.99, kernel=ErfKernel(alpha), a=a, s=s, n=math.inf, depth=8000, attention="infinite")
        linear = 4 * alpha**2 / math.pi
        low = b * np.log1p(s / 2 * linear / np.sqrt(1 + 4 * alpha**2 * course.q))
        assert (low <= course.log_J_forward + 1e-9).all()
        assert (course.log_J_forward <= b * np.log1p(s / 2 * linear) + 1e-9).all()
        predicted = -math.log(alpha**2 * 0.99) / (np.log1p(s / 2 * linear) + np.log1p(a * linear))
        early = int(0.3 * predicted)
        growth = math.log(course.p[early] / course.p[0]) / early
        assert growth == pytest.approx(np.log1p(s / 2 * linear) + np.log1p(a * linear), rel=0.1)
        assert 0.7 < np.flatnonzero(alpha**2 * course.p >= 1)[0] / predicted < 2


def test_layernorm_at_fixed_n():
    """`sp-finite`: J over b^zeta + b/n within one factor for all n and b; at fixed n the exponent tends to 1."""
    n, b = np.array([2.0, 8.0, 64.0, 1024.0]), np.arange(1, 20_001)
    J = deep(LayerNormKernel(), n).J_forward[:, 1:]
    ratio = J / (b**0.5 + b / n[:, None])
    assert ratio.max() < 3 * ratio.min()
    ends = np.array([10_000, 20_000])
    exponents = asymptotics.local_exponent(np.log(J[:, ends - 1]), ends)[:, 0]
    assert exponents[0] > 0.97
    assert (np.diff(exponents) < 0).all()
    assert exponents[-1] < 0.65
