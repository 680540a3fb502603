"""R3 to R5: zeta, c_*, lambda, mu and the small-alpha window, against roots, flows, quadrature and the recurrences."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from derived.papers.signal_propagation.model import asymptotics
from derived.papers.signal_propagation.model.kernels import ErfKernel, LayerNormKernel, TanhKernel, arccos_kernel
from derived.papers.signal_propagation.model.meanfield import propagate

examples = settings(derandomize=True, max_examples=25, deadline=None, database=None)


@examples
@given(st.floats(0, 20), st.floats(0.01, 20), st.sampled_from([2, 5, 100, math.inf]))
def test_overlap_fixed_point_is_the_only_root(a, s, n):
    def excess(c):
        p = 2 / np.pi * np.arcsin(c)
        m = p + (1 - p) / n
        return a * m + s * arccos_kernel(p) - c * (a * m + s / 2)

    root = float(asymptotics.overlap_fixed_point(a, s, n))
    assert 0 < root < 1
    assert abs(excess(root)) < 1e-13 * (a + s)
    values = excess(np.cos(np.geomspace(1e-5, np.pi / 2, 2000)))
    signs = np.sign(values[np.abs(values) > 1e-14 * (a + s)])  # above rounding
    assert (np.diff(signs) != 0).sum() == 1


@examples
@given(st.floats(0.01, 5), st.floats(0.05, 5))
def test_attention_lowers_zeta_and_raises_lambda_sp11(a, s):
    assert asymptotics.zeta(a, s) < asymptotics.zeta(0.0, s) == 1
    assert asymptotics.lambda_stretched(a, s, 1.0) > asymptotics.lambda_stretched(0.0, s, 1.0)
    np.testing.assert_allclose(asymptotics.lambda_stretched(0.0, s, 1.0), 1 / (2 * s), rtol=1e-13)
    np.testing.assert_allclose(
        asymptotics.lambda_stretched(a, s, 2.0), asymptotics.lambda_stretched(a, s, 1.0) / 4, rtol=1e-13
    )


@examples
@given(st.floats(0, 5), st.floats(0.05, 5))
def test_relaxation_exponent_is_minus_the_slope_of_the_flow(a, s):
    """b dc/db = F(c) = [a p + s kappa(p) - c (a p + s/2)] / v; mu = -F'(c_*), by a central difference."""
    c, v = float(asymptotics.overlap_fixed_point(a, s)), float(asymptotics.growth_rate(a, s))

    def flow(c):
        p = asymptotics.sign_overlap(c)
        return (a * p + s * arccos_kernel(p) - c * (a * p + s / 2)) / v

    h = 1e-4 * (1 - c)
    slope = (flow(c + h) - flow(c - h)) / (2 * h)
    assert abs(float(asymptotics.relaxation_exponent(a, s)) + slope) < 1e-6
    assert 0 < asymptotics.relaxation_exponent(a, s) < 1


SLOPES = {
    "erf": lambda x: 2 / np.sqrt(np.pi) * np.exp(-np.square(x)),
    "tanh": lambda x: 4 * np.exp(-2 * np.abs(x)) / np.square(1 + np.exp(-2 * np.abs(x))),
    "isru": lambda x: (1 + np.square(x)) ** -1.5,
}


@pytest.mark.parametrize("kind", SLOPES)
def test_stretch_constants_against_quadrature(kind):
    exact = integrate.quad(lambda x: SLOPES[kind](x) ** 2, -np.inf, np.inf)[0] / math.sqrt(2 * np.pi)
    np.testing.assert_allclose(asymptotics.stretch_constant(kind), exact, rtol=1e-9)
    np.testing.assert_allclose(asymptotics.stretch_constant(SLOPES[kind], 0.4), 0.4 * exact, rtol=1e-9)
    np.testing.assert_allclose(asymptotics.stretch_constant("hard_tanh"), 2 / math.sqrt(2 * np.pi), rtol=1e-15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: asymptotics.vit_variances(width=0), "width = 0; give an integer >= 1"),
        (lambda: asymptotics.vit_variances(attn_mult=[1.0, -2.0]), "attn_mult[1] = -2; give a finite number >= 0"),
        (lambda: asymptotics.vit_variances(attn_mult=-1.0), "attn_mult = -1"),
        (lambda: asymptotics.zeta(-1.0, 1.0), "a = -1"),
        (lambda: asymptotics.zeta(1.0, 0.0), "s = 0; give a finite number > 0"),
        (lambda: asymptotics.lambda_stretched(1.0, 1.0, 0.0), "C = 0"),
        (lambda: asymptotics.overlap_fixed_point(1.0, 1.0, 1), "n = 1"),
        (lambda: asymptotics.stretch_constant("gelu"), "kind = 'gelu'; give one of 'erf', 'tanh', 'isru', 'hard_tanh'"),
        (lambda: asymptotics.stretch_constant("erf", -1.0), "alpha = -1"),
        (lambda: asymptotics.sign_overlap(1.2), "c = 1.2; give a number from -1 to 1"),
    ],
)
def test_bad_input_of_the_asymptotics_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def deep(kernel, n: float = math.inf, depth: int = 20_000, **arguments):
    given = {"a": 0.5, "s": 1.0} | arguments
    return propagate(1.0, 0.2, kernel=kernel, n=n, depth=depth, **given)


def test_layernorm_power_law():
    """`sp-ln`: q/b -> v, and q - p, 1 - rho and J over their powers of b stay within a factor."""
    a, s, b = np.array([0.5, 0.2, 1.0]), np.array([1.0, 1.5, 0.6]), np.arange(1000, 20_001)
    course, zeta = deep(LayerNormKernel(), a=a, s=s), ((s / 2) / (s / 2 + a))[:, None]
    assert (np.diff(course.rho) > 0).all()
    np.testing.assert_allclose(course.q[:, -1] / 20_000, a + s / 2, rtol=0.02)
    J = course.J_forward[:, 1000:]
    for curve, power in ((course.q - course.p, zeta), (1 - course.rho, zeta - 1), (course.J_forward, zeta)):
        ratio = curve[:, 1000:] / b**power
        assert (ratio.max(axis=1) < 1.3 * ratio.min(axis=1)).all()
        assert (np.ptp(np.log(curve[:, 1000:] / b ** (power + 0.2)), axis=1) > math.log(1.3)).all()
    np.testing.assert_allclose(course.J_backward[:, 1000:], J[:, -1:] / J, rtol=1e-2)


@pytest.mark.parametrize(
    ("kernel", "C"), [(ErfKernel(1.0), 2 / math.pi), (TanhKernel(1.0), 4 / (3 * math.sqrt(2 * math.pi)))]
)
def test_stretched_exponential(kernel, C):
    """`sp-stretched` and, at fixed n, `sp-finite` (b): the slope of ln J in sqrt(b), and q/b, tend to the law's."""
    a, s, sizes, points = 0.5, 1.0, np.array([math.inf, 4, 16]), np.array([100, 1000, 10_000, 20_000])
    course = deep(kernel, sizes)
    for i, n in enumerate(sizes):
        c = float(asymptotics.overlap_fixed_point(a, s, n))
        p = 2 / math.pi * math.asin(c)
        v = a * (p + (1 - p) / n) + s / 2
        assert course.rho[i, -1] == pytest.approx(c, abs=0.02)
        assert course.q[i, -1] / 20_000 == pytest.approx(v, rel=0.03)
        slope = C * (s + 2 * a / n) / math.sqrt(v)
        assert asymptotics.growth_rate(a, s, n) == pytest.approx(v, rel=1e-12)
        assert asymptotics.lambda_stretched(a, s, C, n) ** -0.5 == pytest.approx(slope, rel=1e-12)
        errors = np.abs(asymptotics.stretched_slope(course.log_J_forward[i, points], points) / slope - 1)
        assert errors[-1] < min(0.03, errors[0])
        between = course.log_J_backward[i, 5000] / (math.sqrt(20_000) - math.sqrt(5000))
        assert between == pytest.approx(slope, rel=0.04)


@pytest.mark.parametrize(("a", "s", "alpha"), [(0.5, 1.0, 1.0), (0.0, 1.0, 2.0), (2.0, 0.4, 1.0)])
def test_overlap_converges(a, s, alpha):
    """`sp-overlap`: from below, from above and near 1, the overlap nears c_*; LayerNorm's only grows."""
    starts = np.array([0.0, 0.9, 0.999])
    arguments = {"a": a, "s": s, "n": math.inf, "depth": 4000}
    rho = propagate(1.0, starts, kernel=ErfKernel(alpha), **arguments).rho
    c = asymptotics.overlap_fixed_point(a, s)
    assert (np.abs(rho[:, -1] - c) < np.maximum(np.abs(rho[:, 300] - c), 0.02)).all()
    assert (rho[:, -1] < 1).all()
    normed = propagate(1.0, starts, kernel=LayerNormKernel(), **arguments | {"depth": 1000}).rho
    assert (np.diff(normed, axis=1) >= 0).all()
    near = 1e6 * (c + 0.5 * (1 - c) * np.array([-1, 1]))  # in a large stream the overlap moves towards c_*
    drift = propagate(1e6, near, kernel=ErfKernel(alpha), **arguments | {"depth": 1}).rho
    assert (np.sign(drift[:, 1] - drift[:, 0]) == [1, -1]).all()


def test_layernorm_at_fixed_n():
    """`sp-finite` (a): J over b^zeta + b/n within one factor for all n and b; at fixed n the exponent tends to 1."""
    n, b = np.array([2.0, 8.0, 64.0, 1024.0]), np.arange(1, 20_001)
    J = deep(LayerNormKernel(), n).J_forward[:, 1:]
    ratio = J / (b**0.5 + b / n[:, None])
    assert ratio.max() < 3 * ratio.min()
    ends = np.array([10_000, 20_000])
    exponents = asymptotics.local_exponent(np.log(J[:, ends - 1]), ends)[:, 0]
    assert exponents[0] > 0.97
    assert (np.diff(exponents) < 0).all()
    assert exponents[-1] < 0.65
