"""R1 to R5: the engine against n x n matrices without symmetry, its limits and invariances, and the three regimes."""

import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.papers.signal_propagation.model.kernels import (
    ErfKernel,
    LayerNormKernel,
    TanhKernel,
    arccos_kernel,
    arccos_kernel_prime,
)
from derived.papers.signal_propagation.model.meanfield import propagate
from derived.papers.signal_propagation.networks import annealed

examples = settings(derandomize=True, max_examples=25, deadline=None, database=None)
KERNELS = {"layernorm": lambda alpha: LayerNormKernel(), "erf": ErfKernel, "tanh": TanhKernel}


@st.composite
def networks(draw) -> dict:
    """A kernel, variances, tokens and a feasible start."""
    n, kind = draw(st.integers(2, 7)), draw(st.sampled_from(sorted(KERNELS)))
    q0, mix = draw(st.floats(0.1, 5)), draw(st.floats(0, 0.99))  # arccos is ill-conditioned at 1
    low = -q0 / (n - 1) * (1 - 1e-9)
    arguments = {"a": draw(st.floats(0, 3)), "s": draw(st.floats(0, 5)), "n": n, "depth": draw(st.integers(1, 5))}
    return {"q0": q0, "p0": low + mix * (q0 - low), "kernel": KERNELS[kind](draw(st.floats(0.1, 2))), **arguments}


def token_matrices(q0, p0, kernel, a, s, n, depth, weights=None):
    """Covariance Sigma (n, n) forward and gradient covariance G (n, n) backward, token by token, for any fixed A.

    Sigma += a A Sigma~ A^T, then Sigma += s q~ kappa; G += s kappa' Sigma^ o G, then G += a Sigma^ o (A^T G A).
    """
    A = np.full((n, n), 1 / n) if weights is None else weights
    eye = np.eye(n, dtype=bool)

    def moments(Sigma):
        q, p = Sigma.diagonal().mean(), Sigma[~eye].mean()
        tilde_q, tilde_p, hat_q, hat_p = kernel.moments(q, p)
        return np.where(eye, tilde_q, tilde_p), np.where(eye, hat_q, hat_p)

    Sigma, path, back = np.where(eye, q0, p0), [], []
    path.append(Sigma)
    for _ in range(depth):
        tilde, hat = moments(Sigma)
        Sigma = Sigma + a * A @ tilde @ A.T
        middle, hat_middle = moments(Sigma)
        rho = np.clip(middle / middle[0, 0], -1, 1)
        np.fill_diagonal(rho, 1.0)
        Sigma = Sigma + s * middle[0, 0] * arccos_kernel(rho)
        both = (np.pi - np.arccos(rho)) / (2 * np.pi)
        back.append((hat, hat_middle * both))
        path.append(Sigma)

    def pull(G):
        out = [G]
        for hat, joint in reversed(back):
            G = G + s * joint * G
            G = G + a * hat * (A.T @ G @ A)
            out.append(G)
        return out[::-1]

    return path, pull(np.eye(n)), pull(np.ones((n, n)))


@examples
@given(networks())
def test_engine_against_token_matrices(net):
    """`sp-forward`, `sp-backward`: no symmetry, no (n-1)/n, the weights 1/n and (n-1)/n come out of the matrices."""
    n = net["n"]
    eye = np.eye(n, dtype=bool)
    path, alone, together = token_matrices(**net)
    course, pooled = propagate(**net), propagate(**net, output_gradient="pooled")
    kind = {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(course.q, [m[eye].mean() for m in path], **kind)
    np.testing.assert_allclose(course.p, [m[~eye].mean() for m in path], **kind)
    for trajectory, G in ((course, alone), (pooled, together)):
        np.testing.assert_allclose(trajectory.J_backward, [m[eye].mean() for m in G], **kind)
        np.testing.assert_allclose(trajectory.K_backward, [m[~eye].mean() for m in G], **kind)


@examples
@given(networks())
def test_ends_agree_sp5(net):
    """J^{B,0} is the same backward and forward; with a common gradient it is J + K of the forward pass."""
    course, pooled = propagate(**net), propagate(**net, output_gradient="pooled")
    assert abs(course.log_J_backward[0] - course.log_J_forward[-1]) < 1e-12
    np.testing.assert_allclose(pooled.J_backward[0], (course.J_forward * (1 + course.ratio_forward))[-1], rtol=1e-12)
    assert (course.log_J_backward[-1], course.ratio_backward[-1], pooled.ratio_backward[-1]) == (0, 0, 1)
    assert (course.log_J_forward[0], course.ratio_forward[0]) == (0, 0)


def test_dropping_k_leaves_a_product():
    kernel, n = ErfKernel(0.9), 3
    course = propagate(1.0, 0.2, kernel=kernel, a=1.0, s=0.9, n=n, depth=1)
    alone = propagate(1.0, 0.2, kernel=kernel, a=1.0, s=0.9, n=n, depth=1, cross_token=False)
    query = kernel.moments(1.0, 0.2)
    q_half = 1 + query.p_tilde + (query.q_tilde - query.p_tilde) / n
    half = kernel.moments(q_half, 0.2 + q_half - 1)
    np.testing.assert_allclose(alone.J_backward[0], (1 + query.q_hat / n) * (1 + 0.45 * half.q_hat), rtol=1e-13)
    deep = {"kernel": kernel, "a": 1.0, "s": 0.9, "n": 12, "depth": 8}
    assert propagate(1.0, 0.2, **deep).J_backward[0] > 1.15 * propagate(1, 0.2, cross_token=False, **deep).J_backward[0]
    assert course.J_backward[0] == pytest.approx(alone.J_backward[0])  # K needs a second block
    dropped = propagate(1, 0.2, cross_token=False, **deep)
    assert not dropped.ratio_backward.any()
    assert not dropped.ratio_forward.any()


def test_curves_broadcast():
    alpha, n, s = np.array([0.3, 1.0, 1.7])[:, None, None], np.array([2, 9, 50, 300])[:, None], np.linspace(0.1, 2, 5)
    arguments = {"a": 0.4, "depth": 7}
    course = propagate(1.0, 0.3, kernel=ErfKernel(alpha), s=s, n=n, **arguments)
    assert course.q.shape == course.K_backward.shape == (3, 4, 5, 8)
    single = propagate(1.0, 0.3, kernel=ErfKernel(1.7), s=s[2], n=9, **arguments)
    assert single.q.shape == (8,)
    for name in ("q", "p", "rho", "J_backward", "K_backward", "J_forward", "ratio_forward"):
        np.testing.assert_allclose(getattr(course, name)[2, 1, 2], getattr(single, name), rtol=1e-13)


def test_logarithms_survive_where_j_does_not():
    course = propagate(1.0, 0.2, kernel=ErfKernel(2.0), a=1.0, s=60.0, n=8, depth=6000)
    assert np.isfinite(course.log_J_backward).all()
    assert course.log_J_backward[0] > 710
    assert course.J_backward[0] == math.inf
    assert np.isfinite(course.ratio_backward).all()
    assert (np.abs(course.ratio_backward) <= 1).all()
    assert (course.K_backward[-1], course.J_backward[-1]) == (0, 1)


@pytest.mark.parametrize("gradient", ["independent", "pooled"])
def test_given_weights_of_attention_are_taken_block_by_block(gradient):
    """Three blocks with the public code's weights, J and K at each of them by hand."""
    n, sigma, a, s, kernel = 5, 1.5, 0.8, 0.6, ErfKernel(1.2)
    arguments = {"kernel": kernel, "a": a, "s": s, "n": n, "depth": 3, "sigma": sigma, "weights": annealed}
    course = propagate(1.0, 0.2, **arguments, output_gradient=gradient)
    J, K = 1.0, float(gradient == "pooled")
    for b in (2, 1, 0):
        tilde_q, tilde_p, hat_q, hat_p = kernel.moments(course.q[b], course.p[b])
        f, g = annealed(tilde_q, tilde_p, n, sigma)[:2]
        q = course.q[b] + a * (tilde_p + (tilde_q - tilde_p) * f)
        p = course.p[b] + a * (tilde_p + (tilde_q - tilde_p) * g)
        middle_q, middle_p, half_q, half_p = kernel.moments(q, p)
        J, K = J * (1 + s / 2 * half_q), K * (1 + s * arccos_kernel_prime(middle_p / middle_q) * half_p)
        own, other = J * f + K * (n - 1) * g, J * (1 - f) / (n - 1) + K * (1 - g)
        J, K = J + a * hat_q * own, K + a * hat_p * other
        np.testing.assert_allclose([course.J_backward[b], course.K_backward[b]], [J, K], rtol=1e-13)
    assert abs(f - g) > 0.02


# --- bad input ----------------------------------------------------------------------------------------------------

GOOD = {"q0": 1.0, "p0": 0.2, "kernel": LayerNormKernel(), "a": 0.1, "s": 0.4, "n": 5, "depth": 3}
BAD = [
    ({"depth": 0}, "depth = 0; give an integer >= 1"),
    ({"depth": 2.0}, "depth = 2.0"),
    ({"n": 1}, "n = 1.0; give a number of tokens >= 2"),
    ({"n": math.nan}, "n = nan"),
    ({"a": -0.1}, "a = -0.1"),
    ({"s": [1.0, -1.0]}, "s[1] = -1"),
    ({"p0": 1.01}, "is no covariance; need -q / (n - 1) <= p <= q"),
    ({"p0": -0.2501}, "is no covariance"),
    ({"p0": -0.01, "n": math.inf}, "is no covariance"),
    ({"q0": 0.0, "p0": 0.0}, "q = 0; give a finite number > 0"),
    ({"p0": math.nan}, "p = nan; give finite overlaps"),
    ({"output_gradient": "mean"}, "output_gradient = 'mean'"),
    ({"sigma": -1.0}, "sigma = -1"),
    ({"output_gradient": "pooled", "cross_token": False}, "a pooled output gradient lives in K"),
]


@pytest.mark.parametrize(("wrong", "message"), BAD)
def test_bad_input_is_named(wrong, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        propagate(**(GOOD | wrong))


def test_extreme_overlaps_are_allowed():
    for n in (2, 3, 197):
        for kind in KERNELS:
            course = propagate(1.0, -1 / (n - 1), kernel=KERNELS[kind](1.0), a=1.0, s=1.0, n=n, depth=3)
            assert np.isfinite(course.J_backward).all()
            assert (course.ratio_backward >= -1 / (n - 1)).all()
