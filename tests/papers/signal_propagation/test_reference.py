"""The recurrences of moments and gradients, by the reference program and by the package."""

import math

import numpy as np
import pytest

from derived.papers import signal_propagation as package
from derived.papers.signal_propagation import reference

KERNELS = [(reference.layer_norm, package.LayerNormKernel()), (reference.erf(0.5), package.ErfKernel(0.5))]


def exponent(phi, a, s, n, depth, by=math.log):
    """The slope of ln J against by(depth), from half the depth to the depth."""
    one, two = (reference.growth(phi, a, s, n, each) for each in (depth // 2, depth))
    return math.log(two / one) / (by(depth) - by(depth // 2))


@pytest.mark.parametrize("sigma", [0.0, 0.4])
@pytest.mark.parametrize("output", ["independent", "pooled"])
@pytest.mark.parametrize("n", [2, 7, math.inf])
@pytest.mark.parametrize(("mine", "theirs"), KERNELS)
def test_moments_and_gradients_at_every_block(mine, theirs, n, output, sigma):
    """`sp-forward`, `sp-backward`, `sp-pooled`, `sp-softmax` (b)."""
    course = reference.forward(1.0, 0.2, mine, 0.3, 0.8, n, 20, sigma)
    path = package.propagate(1.0, 0.2, kernel=theirs, a=0.3, s=0.8, n=n, depth=20, sigma=sigma, output_gradient=output)
    np.testing.assert_allclose([q for q, _ in course[::2]], path.q, rtol=1e-12)
    np.testing.assert_allclose([p for _, p in course[::2]], path.p, rtol=1e-12)
    J = reference.backward(course, mine, 0.3, 0.8, n, output == "pooled", sigma)
    np.testing.assert_allclose(J, path.J_backward, rtol=1e-11)


@pytest.mark.parametrize(("a", "s"), [(1.0, 1.0), (0.25, 1.0), (0.5, 4.0)])
def test_layer_norm_grows_like_a_power(a, s):
    """`sp-ln`: the exponent is (s / 2) / (s / 2 + a); attention lowers it from one."""
    zeta = s / 2 / (s / 2 + a)
    assert exponent(reference.layer_norm, a, s, math.inf, 40_000) == pytest.approx(zeta, abs=0.01)
    assert float(package.zeta(a, s)) == pytest.approx(zeta)
    assert exponent(reference.layer_norm, 0.0, s, math.inf, 40_000) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_erf_grows_like_a_stretched_exponential(alpha):
    """`sp-stretched`, `sp-slope`: ln J has the slope 1 / sqrt(lambda) in the root, to a hundredth; LayerNorm fails."""
    a, s = 0.5, 1.0
    slope = float(package.lambda_stretched(a, s, package.stretch_constant("erf", alpha))) ** -0.5
    assert exponent(reference.erf(alpha), a, s, math.inf, 20_000, math.sqrt) == pytest.approx(slope, rel=0.01)
    assert exponent(reference.layer_norm, a, s, math.inf, 20_000, math.sqrt) < 0.1 * slope
