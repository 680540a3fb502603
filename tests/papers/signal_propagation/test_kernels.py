"""SP-1: Gaussian moments of LayerNorm, Derf, DyT and ReLU, each from a closed form, a quadrature and a simulation."""

import math
import re
import warnings

import numpy as np
import pytest
import torch
from scipy import integrate, special

from derived.lab.rng import stream
from derived.papers.signal_propagation.model import kernels
from derived.papers.signal_propagation.model.asymptotics import stretch_constant
from derived.papers.signal_propagation.model.transformer import equiangular_tokens, normalise, token_moments

MAPS = {
    "erf": (special.erf, lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x), kernels.ErfKernel),
    "tanh": (np.tanh, lambda x: 1 - np.tanh(x) ** 2, kernels.TanhKernel),
}


def close(left, right, tolerance):
    np.testing.assert_allclose(
        np.stack(np.broadcast_arrays(*left)), np.stack(np.broadcast_arrays(*right)), tolerance, 0
    )


def nested(fn, q: float, p: float) -> float:
    """E fn(u) fn(v) by scipy's adaptive quadrature of E[fn(u) E(fn(v) | u)], both on |z| <= 9."""
    rho, root = p / q, math.sqrt(q)

    def density(z):
        return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

    def inner(z):
        spread = math.sqrt(max(1 - rho * rho, 0))
        return integrate.quad(lambda y: fn(root * (rho * z + spread * y)) * density(y), -9, 9, limit=200)[0]

    return integrate.quad(lambda z: fn(root * z) * inner(z) * density(z), -9, 9, limit=200)[0]


@pytest.mark.parametrize("kind", MAPS)
@pytest.mark.parametrize(("alpha", "q", "rho"), [(0.5, 1.0, 0.2), (1.3, 2.0, -0.7), (0.9, 4.0, 0.95)])
def test_moments_against_nested_adaptive_quadrature(kind, alpha, q, rho):
    """`sp-moments`, and the same for DyT."""
    fn, dfn, kernel = MAPS[kind]
    exact = [nested(lambda x: fn(alpha * x), q, p) for p in (q, rho * q)]
    exact += [nested(lambda x: alpha * dfn(alpha * x), q, p) for p in (q, rho * q)]
    close(kernel(alpha).moments(q, rho * q), exact, 1e-7)  # quad's own request is 1.5e-8 at each level


def test_layernorm_moments_are_those_of_a_division_by_the_root():
    q, p = np.array([0.5, 2.0]), np.array([-0.1, 1.5])
    close(kernels.LayerNormKernel().moments(q, p), (np.ones(2), p / q, 1 / q, 1 / q), 1e-15)


@pytest.mark.parametrize(("kind", "slope"), [("erf", 4 / np.pi), ("tanh", 1.0)])
def test_small_and_large_alpha(kind, slope):
    """`sp-slope`: q^ sqrt(q) -> C as q grows, p~ the arcsine of signs. As alpha -> 0 phi'^2 is slope alpha^2."""
    small = MAPS[kind][2](1e-4).moments(2.0, 0.5)
    close(small, (slope * 2e-8, slope * 5e-9, slope * 1e-8, slope * 1e-8), 1e-6)
    large = MAPS[kind][2](0.7).moments(1e12, 0.3e12)
    signs = 2 / np.pi * math.asin(0.3)
    np.testing.assert_allclose(large[:2], (1.0, signs), rtol=1e-5)
    np.testing.assert_allclose(large.q_hat * 1e6, stretch_constant(kind, 0.7), rtol=1e-5)


def test_dyt_stays_accurate_where_quadrature_fails():
    """alpha sqrt(q) = 300: q~ and q^ from scipy's quadrature in x = alpha u, whose density is then flat."""
    alpha, q = 3.0, 1e4
    s = alpha * math.sqrt(q)

    def mean(fn):
        density = lambda x: math.exp(-((x / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))  # noqa: E731
        return 2 * integrate.quad(lambda x: fn(x) * density(x), 0, 40, epsabs=1e-14, limit=500)[0]

    complement = mean(lambda x: 1 - math.tanh(x) ** 2)
    moments = kernels.TanhKernel(alpha).moments(q, 0.5 * q)
    np.testing.assert_allclose(1 - moments.q_tilde, complement, rtol=1e-9)
    np.testing.assert_allclose(moments.q_hat, alpha**2 * mean(lambda x: (1 / math.cosh(x)) ** 4), rtol=1e-9)


def test_tanh_is_an_average_of_error_functions():
    beta, weight = kernels.tanh_mixture()
    x = np.linspace(-30, 30, 4001)
    assert (weight > 0).all()
    assert abs(weight.sum() - 1) < 3e-13
    assert np.abs(special.erf(beta * x[:, None]) @ weight - np.tanh(x)).max() < 3e-13
    coarse = [
        np.abs(special.erf(kernels.tanh_mixture(m)[0] * x[:, None]) @ kernels.tanh_mixture(m)[1] - np.tanh(x)).max()
        for m in (12, 16)
    ]
    assert coarse[1] < coarse[0] / 30  # geometric in the number of nodes


def test_kernels_broadcast_and_a_linear_map_is_exact():
    kernel = kernels.ElementwiseKernel(lambda x: x, np.ones_like, np.array([[0.5], [2.0]]))
    q, p = np.array([1.0, 2.0, 3.0]), np.array([0.5, -0.2, 3.0])
    square = np.array([[0.25], [4.0]])
    close(kernel.moments(q, p), (square * q, square * p, square + 0 * q, square + 0 * q), 1e-12)
    for each in (kernels.ErfKernel(kernel.alpha), kernels.TanhKernel(kernel.alpha)):
        table = each.moments(q, p)
        assert [m.shape for m in table] == [(2, 3)] * 4
        single = type(each)(2.0).moments(2.0, -0.2)
        np.testing.assert_allclose([m[1, 1] for m in table], single, rtol=1e-13)


def test_quadrature_warns_with_a_bound_that_its_error_keeps():
    fn, dfn, exact = MAPS["tanh"]
    for alpha in (1.0, 2.0, 4.0, 6.0, 12.0):
        kernel = kernels.ElementwiseKernel(fn, dfn, alpha, 65)
        bound = kernel.error_bound(1.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            moments = kernel.moments(1.0, 0.3)
        assert bool(caught) == (bound > kernels.TOLERABLE)
        for quadrature, true, power in zip(moments, exact(alpha).moments(1.0, 0.3), (0, 0, 2, 2), strict=True):
            assert abs(quadrature - true) < (1.5 * bound + 1e-12) * alpha**power
    with pytest.warns(RuntimeWarning, match=r"alpha sqrt\(q\) = 60 is large for 129 nodes: .* bound is"):
        kernels.ElementwiseKernel(fn, dfn, 60.0).moments(1.0, 0.3)


@pytest.mark.parametrize(
    "kernel", [kernels.ErfKernel, kernels.TanhKernel, lambda alpha: kernels.ElementwiseKernel(np.tanh, np.cosh, alpha)]
)
@pytest.mark.parametrize("alpha", [0.0, -1.0, math.nan, math.inf, [0.5, -0.5]])
def test_alpha_must_be_positive(kernel, alpha):
    with pytest.raises(ValueError, match=r"alpha.* = .*; give a finite number > 0"):
        kernel(alpha)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernels.arccos_kernel(1.5), "rho = 1.5; give a number from -1 to 1"),
        (lambda: kernels.arccos_kernel_prime([0.3, -1.1]), "rho[1] = -1.1; give a number from -1 to 1"),
        (lambda: kernels.arccos_kernel(math.nan), "rho = nan"),
    ],
)
def test_impossible_correlations_are_refused(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_a_correlation_of_one_may_be_off_by_its_rounding():
    assert kernels.arccos_kernel(1 + np.finfo(float).eps) == 0.5


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def gaussian(f, g, q: float, p: float) -> float:
    """E f(u) g(v) for variances q and covariance p, by a product rule."""
    u = math.sqrt(q) * NODES[:, None]
    v = p / q * u + math.sqrt(max(q - p * p / q, 0.0)) * NODES
    return float(WEIGHTS @ (f(u) * g(v)) @ WEIGHTS)


def test_price():
    """`sp-moments` (a) for two different functions, by a central difference."""
    q, p, h = 1.2, 0.4, 1e-4
    f, df = (lambda x: x**3 + np.sin(x)), (lambda x: 3 * x**2 + np.cos(x))
    g, dg = (lambda x: np.exp(x / 2)), (lambda x: np.exp(x / 2) / 2)
    slope = (gaussian(f, g, q, p + h) - gaussian(f, g, q, p - h)) / (2 * h)
    assert slope == pytest.approx(gaussian(df, dg, q, p), rel=1e-6)


def test_relu_kernel():
    """`sp-moments` (c): in polar coordinates the radius gives 2 and the angle a mean over the circle."""
    angle = (np.arange(200_000) + 0.5) * 2 * np.pi / 200_000
    for rho in (-0.8, 0.0, 0.5, 1.0):
        one, two = np.cos(angle), np.cos(angle - math.acos(rho))
        kappa = 2 * np.mean(np.maximum(one, 0) * np.maximum(two, 0))
        assert kernels.arccos_kernel(rho) == pytest.approx(kappa, abs=1e-8)
        assert kernels.arccos_kernel_prime(rho) == pytest.approx(np.mean((one > 0) & (two > 0)), abs=1e-5)
    values = kernels.arccos_kernel(np.linspace(0, 1, 101))
    assert (np.diff(values) > 0).all()
    assert (np.diff(values, 2) > 0).all()


@pytest.mark.parametrize("norm", ["layernorm", "erf", "tanh"])
def test_the_kernel_of_a_normaliser_is_that_of_its_map(norm):
    """q~ and p~ of wide tokens, pushed through the network's own normaliser."""
    x = equiangular_tokens(2, 4096, 1.0, 0.4, batch=(40,), generator=stream(0, "map"), dtype=torch.float64)
    q_tilde, p_tilde, _ = (each.mean().item() for each in token_moments(normalise(x, norm, 1.3)))
    expected = kernels.kernel_of(norm, 1.3).moments(np.array(1.0), np.array(0.4))
    np.testing.assert_allclose((q_tilde, p_tilde), expected[:2], rtol=0.01)
