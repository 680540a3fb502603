"""Random transformers against the recurrences (SP-2, 3, 4, 18), and each estimator against torch's own Jacobian."""

import math
import re

import numpy as np
import pytest
import torch
from beartype import beartype
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import jaxtyped
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from derived.lab.rng import stream
from derived.papers.signal_propagation import jacobian, transformer
from derived.papers.signal_propagation.jacobian import apjn_exact, apjn_hutchinson, apjn_jvp, gmfe, gradient_moments
from derived.papers.signal_propagation.kernels import ErfKernel, LayerNormKernel, TanhKernel
from derived.papers.signal_propagation.meanfield import propagate
from derived.papers.signal_propagation.transformer import (
    RandomTransformer,
    Sigmas,
    attention_weights,
    equiangular_tokens,
    normalise,
    token_moments,
)

examples = settings(derandomize=True, max_examples=15, deadline=None, database=None)
KERNELS = {"layernorm": LayerNormKernel(), "erf": ErfKernel(1.0), "tanh": TanhKernel(1.0)}
TINY = {"width": 6, "depth": 3, "num_heads": 2, "mlp_ratio": 2, "dtype": torch.float64}
STRONG = Sigmas(q=1.5, k=1.5, v=1.0, o=1.2, one=1.1, two=1.3)
EPS = torch.finfo(torch.float64).eps


def tiny(norm: str = "erf", num_networks: int = 2, **changes) -> RandomTransformer:
    facts = TINY | {"sigmas": STRONG, "num_networks": num_networks, "generator": stream(1, "tiny")} | changes
    return RandomTransformer(norm=norm, **facts)


def prompt(num_networks: int = 2, n: int = 3, d: int = 6, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(num_networks, n, d, generator=stream(2, "prompt", n), dtype=dtype)


# --- the architecture ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", KERNELS)
def test_block_against_an_independent_implementation(norm):
    """Token by token and head by head, with torch's LayerNorm and fused attention."""
    model, x = tiny(norm, alpha=0.7), prompt(n=4)
    maps = {"layernorm": lambda h: layer_norm(h, (6,), eps=0.0), "erf": lambda h: torch.erf(0.7 * h)}
    phi = maps.get(norm, lambda h: torch.tanh(0.7 * h))
    for r in range(2):
        W_Q, W_K, W_V, W_O, W_1, W_2 = (W[r] for W in model.weights[0])
        normed, heads = phi(x[r]), []
        for rows in (slice(0, 3), slice(3, 6)):
            q, k, v = (normed @ W[rows].T for W in (W_Q, W_K, W_V))
            heads.append(scaled_dot_product_attention(q[None], k[None], v[None])[0])
        half = x[r] + torch.cat(heads, dim=-1) @ W_O.T
        out = torch.stack([h + W_2 @ torch.relu(W_1 @ phi(h)) for h in half])
        torch.testing.assert_close(model.block(x, 0)[r], out, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(model.attend(x, 0)[r], half, rtol=1e-12, atol=1e-12)


def test_attention_weights_are_averages():
    model, x = tiny(), prompt(n=5)
    A = attention_weights(model.normalise(x), model.weights[0], 2)
    assert A.shape == (2, 2, 5, 5)
    torch.testing.assert_close(A.sum(dim=-1), torch.ones(2, 2, 5, dtype=torch.float64), rtol=0, atol=20 * EPS)
    assert bool((A > 0).all())


@pytest.mark.parametrize("norm", KERNELS)
def test_states_are_equivariant_and_take_any_batch(norm):
    model, x = tiny(norm), prompt(n=4)
    states = model.states(x)
    assert len(states) == 4
    order = [2, 0, 3, 1]
    for h, moved in zip(states, model.states(x[:, order]), strict=True):
        torch.testing.assert_close(moved, h[:, order], rtol=1e-11, atol=1e-11)
    both = model(torch.stack([x, 2 * x], dim=1))
    torch.testing.assert_close(both[:, 0], states[-1], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(both[:, 1], model(2 * x), rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(model.states(states[1], start=1)[-1], states[-1], rtol=0, atol=0)


def test_one_alpha_per_network_and_networks_do_not_mix():
    x = prompt()
    model = tiny("tanh", alpha=[0.3, 1.4])
    for r, alpha in enumerate((0.3, 1.4)):
        torch.testing.assert_close(model(x)[r], tiny("tanh", alpha=alpha)(x)[r], rtol=0, atol=0)
    shaken = x.clone()
    shaken[1] += 1
    torch.testing.assert_close(model(shaken)[0], model(x)[0], rtol=0, atol=0)
    torch.testing.assert_close(
        tiny(alpha=0.2, norm="layernorm")(x), tiny(alpha=2.0, norm="layernorm")(x), rtol=0, atol=0
    )


@examples
@given(st.floats(0.2, 5))
def test_only_products_of_deviations_count(t):
    """(sigma_O, sigma_V) -> (t sigma_O, sigma_V / t), and (sigma_2, sigma_1): the same network."""
    x = prompt()
    other = STRONG._replace(o=STRONG.o * t, v=STRONG.v / t, one=STRONG.one / t, two=STRONG.two * t)
    torch.testing.assert_close(tiny(sigmas=other)(x), tiny()(x), rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose((other.a, other.s, other.qk), (STRONG.a, STRONG.s, STRONG.qk), rtol=1e-13)


def test_default_deviations_are_vit_base():
    sigmas = Sigmas()
    np.testing.assert_allclose((sigmas.a, sigmas.s, sigmas.qk), (0.09437184, 0.37748736, 0.3072), rtol=1e-12)
    doubled = sigmas.scaled(attn_mult=2, mlp_mult=3)
    np.testing.assert_allclose(
        (doubled.a, doubled.s, doubled.qk), (16 * sigmas.a, 81 * sigmas.s, sigmas.qk), rtol=1e-12
    )


def test_weights_have_the_variance_asked_for():
    model = RandomTransformer(width=64, depth=1, norm="erf", sigmas=STRONG, num_networks=8, generator=stream(0, "w"))
    for W, sigma in zip(model.weights[0], STRONG, strict=True):
        ratio = float(W.square().mean()) * W.shape[-1] / sigma**2
        assert abs(ratio - 1) < 4 * math.sqrt(2 / W.numel())
        assert not W.requires_grad
    assert [tuple(W.shape) for W in model.weights[0]] == [(8, 64, 64)] * 4 + [(8, 256, 64), (8, 64, 256)]


def test_layernorm_has_mean_zero_and_unit_scale():
    x = normalise(prompt() + 3, "layernorm")
    torch.testing.assert_close(x.mean(dim=-1), torch.zeros(2, 3, dtype=torch.float64), rtol=0, atol=1e-14)
    torch.testing.assert_close(x.square().mean(dim=-1), torch.ones(2, 3, dtype=torch.float64), rtol=1e-14, atol=0)


# --- tokens -------------------------------------------------------------------------------------------------------


@examples
@given(st.integers(2, 9), st.integers(0, 20), st.floats(0.1, 5), st.floats(0, 1))
def test_equiangular_tokens_have_their_gram_matrix(n, extra, q, mix):
    d, low = n + extra, -q / (n - 1)
    p = min(low + mix * (q - low), q)
    h = equiangular_tokens(n, d, q, p, batch=(2, 3), generator=stream(0, "tokens", n, extra), dtype=torch.float64)
    gram = torch.full((n, n), p, dtype=torch.float64).fill_diagonal_(q).expand(2, 3, n, n)
    torch.testing.assert_close(h @ h.mT / d, gram, rtol=0, atol=50 * n * q * EPS)
    measured = token_moments(h)
    for value, target in zip(measured, (q, p, 0.0), strict=True):
        torch.testing.assert_close(value, torch.full((2, 3), target, dtype=torch.float64), rtol=0, atol=1e-7 * q)


def test_equiangular_tokens_are_rotated():
    """Every coordinate is N(0, q) and coordinates of two tokens have covariance p; without rotation neither holds."""
    n, d, q, p = 8, 64, 1.5, 0.6
    h = equiangular_tokens(n, d, q, p, batch=(4000,), generator=stream(0, "rotated"))
    second = h.square().mean(dim=0)
    cross = (h[:, 0] * h[:, 1]).mean(dim=0)
    error = q * math.sqrt(2 / 4000)
    assert float((second - q).abs().max()) < 5 * error
    assert float((cross - p).abs().max()) < 5 * error
    fourth = float(h.pow(4).mean()) / q**2
    assert abs(fourth - 3 * d / (d + 2)) < 0.02  # a coordinate of a uniform point on the sphere
    assert abs(float(h.mean())) < 5 * math.sqrt(q / h.numel() * n)


def test_token_moments_against_loops():
    h = torch.randn(2, 5, 7, generator=stream(0, "moments"))
    q, p, spread = token_moments(h)
    for r in range(2):
        pairs = [float(h[r, a].double() @ h[r, c].double()) / 7 for a in range(5) for c in range(5) if a != c]
        assert float(q[r]) == pytest.approx(float(h[r].square().sum()) / 35, rel=1e-6)
        assert (float(p[r]), float(spread[r])) == pytest.approx((np.mean(pairs), np.std(pairs)), rel=1e-12)


# --- estimators ---------------------------------------------------------------------------------------------------


def jacobians(model: RandomTransformer, x: torch.Tensor) -> list[torch.Tensor]:
    """dh^B_r / dh^b_r for every b, by torch.func.jacrev of the rest of the network: (R, n, d, n, d)."""
    states = model.states(x)

    def single(r: int, b: int) -> torch.Tensor:
        rest = lambda h: model.states(torch.cat([states[b][:r], h[None], states[b][r + 1 :]]), b)[-1][r]  # noqa: E731
        return torch.func.jacrev(rest)(states[b][r])

    return [torch.stack([single(r, b) for r in range(len(x))]) for b in range(model.depth + 1)]


def moments_of(full: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """J and K from a Jacobian (R, n, d, n, d) by the definitions of the dossier's table."""
    R, n, d = full.shape[:3]
    J = full.square().sum(dim=(1, 2, 3, 4)) / (n * d)
    K = torch.zeros(R, dtype=full.dtype)
    for a in range(n):
        for c in range(n):
            if a != c:
                K += (full[:, :, :, a] * full[:, :, :, c]).sum(dim=(1, 2, 3))
    return J, K / (n * (n - 1) * d)


@pytest.mark.parametrize("norm", KERNELS)
def test_exact_norm_against_jacrev(norm):
    model, x = tiny(norm), prompt()
    full = jacobians(model, x)
    J, K = apjn_exact(model, x)
    pooled = apjn_exact(model, x, output_gradient="pooled")
    for b, each in enumerate(full):
        exact = moments_of(each)
        torch.testing.assert_close(J[:, b], exact[0], rtol=1e-11, atol=0)
        torch.testing.assert_close(K[:, b], exact[1], rtol=1e-10, atol=1e-12)
        summed = each.sum(dim=1)  # sum over output tokens: the same gradient on all
        torch.testing.assert_close(pooled.J[:, b], summed.square().sum(dim=(1, 2, 3)) / 18, rtol=1e-11, atol=0)
    torch.testing.assert_close(J[:, -1], torch.ones(2, dtype=torch.float64), rtol=1e-14, atol=0)
    torch.testing.assert_close(K[:, -1], torch.zeros(2, dtype=torch.float64), rtol=0, atol=1e-14)
    torch.testing.assert_close(pooled.K[:, -1], torch.ones(2, dtype=torch.float64), rtol=1e-14, atol=0)


@pytest.mark.parametrize("gradient", ["independent", "pooled"])
def test_hutchinson_is_unbiased_and_a_wrong_value_is_rejected(gradient):
    """`sp-probe`: the mean over probes is the exact J and K of each depth."""
    model, x = tiny("tanh"), prompt()
    exact = apjn_exact(model, x, output_gradient=gradient)
    probes = 3000
    draws = apjn_hutchinson(model, x, num_probes=probes, generator=stream(0, "hutch"), output_gradient=gradient)
    assert draws.J.shape == draws.K.shape == (2, probes, 4)
    for sample, value in zip(draws, exact, strict=True):
        error = sample.std(dim=1) / math.sqrt(probes)
        assert bool(((sample.mean(dim=1) - value).abs() <= 4.5 * error).all())
    error = draws.J.std(dim=1) / math.sqrt(probes)
    assert bool(((draws.J.mean(dim=1) - 1.2 * exact.J).abs() > 4.5 * error).all())


@pytest.mark.parametrize("norm", KERNELS)
def test_forward_mode_against_exact_norms(norm):
    """One tangent gives all targets; for each the exact value is that of the network cut there."""
    model, x, probes = tiny(norm), prompt(), 3000
    draws = apjn_jvp(model, x, num_probes=probes, generator=stream(0, "jvp"))
    assert draws.J.shape == (2, probes, 4)
    weights = model.weights
    for b in range(1, 4):
        model.weights, model.depth = weights[:b], b
        exact, pooled = apjn_exact(model, x).J[:, 0], apjn_exact(model, x, output_gradient="pooled").J[:, 0]
        for sample, value in ((draws.J[..., b], exact), ((draws.J + draws.K)[..., b], pooled)):
            error = sample.std(dim=1) / math.sqrt(probes)
            assert bool(((sample.mean(dim=1) - value).abs() < 4.5 * error).all())


@pytest.mark.parametrize("norm", KERNELS)
def test_tangents_against_jacrev(norm):
    """push_forward through all blocks is the Jacobian from block 0 times the tangent, and carries the stream along."""
    model, x = tiny(norm, alpha=[0.6, 1.3]), prompt()
    v = torch.randn(2, 4, 3, 6, generator=stream(0, "tangent"), dtype=torch.float64)
    h, u = x.unsqueeze(1), v
    for b in range(3):
        h, u = jacobian.push_forward(model, h, u, b)
    full = jacobians(model, x)[0]
    torch.testing.assert_close(u, torch.einsum("rndmi,rpmi->rpnd", full, v), rtol=1e-11, atol=1e-11)
    torch.testing.assert_close(h[:, 0], model(x), rtol=1e-12, atol=1e-12)


def test_one_backward_pass_equals_one_per_layer_and_probe():
    model, x, probes = tiny(), prompt(), 3
    found = apjn_hutchinson(model, x, num_probes=probes, generator=stream(0, "one"))
    xi = torch.randn(2, probes, 3, 6, generator=stream(0, "one"), dtype=torch.float64)
    for i in range(probes):
        states = model.states(x.clone().requires_grad_())
        for b, h in enumerate(states):
            (g,) = torch.autograd.grad((states[-1] * xi[:, i]).sum(), h, retain_graph=True)
            torch.testing.assert_close(found.J[:, i, b], g.square().sum(dim=(1, 2)) / 18, rtol=1e-12, atol=0)
            pairs = sum((g[:, a] * g[:, c]).sum(dim=-1) for a in range(3) for c in range(3) if a != c)
            torch.testing.assert_close(found.K[:, i, b], pairs / (3 * 2 * 6), rtol=1e-10, atol=1e-12)


def test_prompts_ride_along_and_a_later_start_is_a_shorter_network():
    model, x = tiny(), prompt()
    several = apjn_exact(model, torch.stack([x, 2 * x, 3 * x], dim=1))
    assert several.J.shape == (2, 3, 4)
    torch.testing.assert_close(several.J[:, 1], apjn_exact(model, 2 * x).J, rtol=1e-12, atol=0)
    later = apjn_hutchinson(model, model.states(x)[1], num_probes=4, generator=stream(0, "late"), start=1)
    whole = apjn_hutchinson(model, x, num_probes=4, generator=stream(0, "late"))
    torch.testing.assert_close(later.J, whole.J[..., 1:], rtol=1e-12, atol=0)
    assert not x.requires_grad
    assert apjn_jvp(model, torch.stack([x, x], dim=1), num_probes=2, generator=stream(0, "j")).K.shape == (2, 2, 2, 4)


def test_fold_error():
    assert gmfe([1.0, 2.0], [1.0, 2.0]) == 1
    assert gmfe([2.0, 0.5], [1.0, 1.0]) == pytest.approx(2)  # too large and too small do not cancel
    np.testing.assert_allclose(gmfe(np.array([[1.1, 1.1], [2.0, 1.0]]), 1.0, axis=-1), [1.1, math.sqrt(2)])


# --- the theorem --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", KERNELS)
@pytest.mark.parametrize("num_heads", [1, 4])
def test_recurrences_describe_networks_sp2_sp3_sp4_sp18(norm, num_heads):
    """`sp-forward`, `sp-backward`, `sp-pooled`: 24 networks of width 128, 12 tokens, 6 blocks, a = s = 1.

    What must miss is checked to miss.
    """
    n, depth, R = 12, 6, 24
    sigmas = Sigmas(v=1, o=1, one=1, two=1)
    facts = {"width": 128, "depth": depth, "sigmas": sigmas, "num_heads": num_heads, "num_networks": R}
    model = RandomTransformer(norm=norm, generator=stream(0, "nets", num_heads), **facts)
    x = equiangular_tokens(n, 128, 1.0, 0.2, batch=(R,), generator=stream(0, "x", num_heads))
    states = model.states(x)
    q, p, _ = (torch.stack(m, dim=-1).mean(dim=0) for m in zip(*map(token_moments, states), strict=True))
    alone = apjn_hutchinson(model, x, num_probes=2, generator=stream(0, "alone"))
    pooled = apjn_hutchinson(model, x, num_probes=4, generator=stream(0, "pooled"), output_gradient="pooled")
    J, K, P = (m.mean(dim=(0, 1)).numpy() for m in (alone.J, alone.K, pooled.J))
    common = {"kernel": KERNELS[norm], "s": 1.0, "n": n, "depth": depth}
    course = propagate(1.0, 0.2, a=1.0, **common)
    assert gmfe(q, course.q) < 1.03
    assert gmfe(p, course.p) < 1.06
    assert gmfe(J, course.J_backward) < 1.03
    assert gmfe(K[:-1], course.K_backward[:-1]) < 1.12
    assert gmfe(P, propagate(1.0, 0.2, a=1.0, output_gradient="pooled", **common).J_backward) < 1.06
    assert P[0] > 1.5 * course.J_backward[0]  # the head matters
    without = propagate(1.0, 0.2, a=1.0, cross_token=False, **common)
    assert gmfe(J, without.J_backward) > 1.035  # dropping K
    assert J[0] / without.J_backward[0] > 1.08
    assert gmfe(p, propagate(1.0, 0.2, a=1.0, **(common | {"n": math.inf})).p) > 1.04  # 1/n against 0


# --- bad input ----------------------------------------------------------------------------------------------------

G = torch.Generator()
MODEL = {"width": 8, "depth": 1, "norm": "erf", "generator": G}
BAD = [
    (lambda: RandomTransformer(**MODEL | {"depth": 0}), "depth = 0; give an integer >= 1"),
    (lambda: RandomTransformer(**MODEL | {"norm": "rms"}), "norm = 'rms'; give one of 'layernorm', 'tanh', 'erf'"),
    (lambda: RandomTransformer(**MODEL | {"num_heads": 3}), "num_heads = 3 does not divide width = 8"),
    (lambda: RandomTransformer(**MODEL | {"alpha": [0.5, 1.0]}), "give one finite number > 0, or one per network (1)"),
    (lambda: RandomTransformer(**MODEL | {"alpha": 0.0}), "give one finite number > 0"),
    (lambda: RandomTransformer(**MODEL | {"alpha": math.inf}), "alpha = inf; give one finite number > 0"),
    (lambda: RandomTransformer(**MODEL | {"alpha": math.nan}), "alpha = nan; give one finite number > 0"),
    (lambda: RandomTransformer(**MODEL | {"sigmas": Sigmas(q=math.nan)}), "that are finite and not negative"),
    (lambda: RandomTransformer(**MODEL | {"sigmas": Sigmas(v=-1.0)}), "give standard deviations that are finite"),
    (lambda: tiny()(prompt(3)), "x has shape (3, 3, 6); give (R, *batch, n, d) with R = 2, d = 6"),
    (lambda: tiny().states(prompt(), start=4), "start = 4; give a block between 0 and depth = 3"),
    (lambda: equiangular_tokens(1, 4, 1.0, 0.0, generator=G), "n = 1; give an integer >= 2"),
    (lambda: equiangular_tokens(5, 4, 1.0, 0.0, generator=G), "d = 4 < n = 5"),
    (lambda: equiangular_tokens(3, 4, 1.0, 1.1, generator=G), "is no covariance"),
    (lambda: equiangular_tokens(3, 4, 1.0, -0.51, generator=G), "is no covariance"),
    (lambda: equiangular_tokens(3, 4, -1.0, 0.0, generator=G), "q = -1.0"),
    (lambda: token_moments(torch.ones(1, 4)), "n = 1; give an integer >= 2"),
    (lambda: apjn_hutchinson(tiny(), prompt(n=1), generator=G), "give (R, *batch, n, d), prompts of n >= 2 tokens"),
    (lambda: apjn_hutchinson(tiny(), prompt(), num_probes=0, generator=G), "num_probes = 0"),
    (lambda: apjn_hutchinson(tiny(), prompt(), generator=G, output_gradient="cls"), "output_gradient = 'cls'"),
    (lambda: apjn_exact(tiny(), prompt(), output_gradient="cls"), "output_gradient = 'cls'"),
    (lambda: apjn_jvp(tiny(), prompt()[0], generator=G), "x has shape (3, 6)"),
    (lambda: gmfe([1.0, 0.0], [1.0, 1.0]), "a fold error needs positive numbers"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_shapes_are_as_annotated():
    checked = jaxtyped(typechecker=beartype)
    model, x = tiny(), prompt()
    weights = model.weights[0]
    assert checked(transformer.attend)(x, weights, 2).shape == x.shape
    assert checked(transformer.feed_forward)(x, weights).shape == x.shape
    assert checked(transformer.attention_weights)(x, weights, 2).shape == (2, 2, 3, 3)
    assert checked(jacobian.apjn_exact)(model, x).J.shape == (2, 4)
    draws = checked(equiangular_tokens)(3, 5, 1.0, 0.1, batch=(2,), generator=stream(0, "shapes"))
    assert draws.dtype == torch.float32
    assert gradient_moments([x, x]).K.shape == (2, 2)
    single = RandomTransformer(norm="tanh", generator=stream(0, "f32"), **TINY | {"dtype": torch.float32})
    found = apjn_hutchinson(single, prompt(1, dtype=torch.float32), num_probes=1, generator=stream(0, "p"))
    assert found.J.dtype == torch.float64
