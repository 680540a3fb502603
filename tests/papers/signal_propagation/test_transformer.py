"""The random transformer against independent implementations, and the tokens that the theory is exact for."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import layer_norm, scaled_dot_product_attention

from derived.lab.rng import stream
from derived.papers.signal_propagation.model.kernels import ErfKernel, LayerNormKernel, TanhKernel
from derived.papers.signal_propagation.model.transformer import (
    RandomTransformer,
    Sigmas,
    equiangular_tokens,
    token_moments,
)

examples = settings(derandomize=True, max_examples=15, deadline=None, database=None)
KERNELS = {"layernorm": LayerNormKernel(), "erf": ErfKernel(1.0), "tanh": TanhKernel(1.0)}
TINY = {"width": 6, "depth": 3, "num_heads": 2, "mlp_ratio": 2, "dtype": torch.float64}
STRONG = Sigmas(q=1.5, k=1.5, v=1.0, o=1.2, one=1.1, two=1.3)
EPS = torch.finfo(torch.float64).eps


def tiny(norm: str = "erf", num_networks: int = 2, **changes) -> RandomTransformer:
    arguments = TINY | {"sigmas": STRONG, "num_networks": num_networks, "generator": stream(1, "tiny")} | changes
    return RandomTransformer(norm=norm, **arguments)


def prompt(num_networks: int = 2, n: int = 3, d: int = 6, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.randn(num_networks, n, d, generator=stream(2, "prompt", n), dtype=dtype)


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


def test_weights_have_the_variance_asked_for():
    model = RandomTransformer(width=64, depth=1, norm="erf", sigmas=STRONG, num_networks=8, generator=stream(0, "w"))
    for W, sigma in zip(model.weights[0], STRONG, strict=True):
        ratio = float(W.square().mean()) * W.shape[-1] / sigma**2
        assert abs(ratio - 1) < 4 * math.sqrt(2 / W.numel())
        assert not W.requires_grad
    assert [tuple(W.shape) for W in model.weights[0]] == [(8, 64, 64)] * 4 + [(8, 256, 64), (8, 64, 256)]


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


UNIFORM = Sigmas(q=0.0, k=0.0, v=1.0, o=1.0, one=1.0, two=1.0)
TOKENS, DEPTH = 4, 3


def network(norm: str, width: int, num: int) -> tuple[RandomTransformer, torch.Tensor]:
    """Networks with uniform attention, and prompts whose channels are i.i.d. of variance 1 and covariance 0.3."""
    g = stream(50, norm, width)
    model = RandomTransformer(
        width=width, depth=DEPTH, norm=norm, sigmas=UNIFORM, num_networks=num, generator=g, dtype=torch.float64
    )
    own, common = (torch.randn(num, k, width, generator=g, dtype=torch.float64) for k in (TOKENS, 1))
    return model, math.sqrt(0.7) * own + math.sqrt(0.3) * common


def test_fresh_weights():
    """`sp-fresh`: all covariances of two columns of X W^T within 5 standard errors; the columns are uncorrelated."""
    X = torch.tensor([[1.0, 2.0, -1.0], [0.5, 0.0, 2.0]], dtype=torch.float64)
    W = 1.3 * torch.randn(200_000, 2, 3, generator=stream(51, "W"), dtype=torch.float64) / 3**0.5
    columns = (X @ W.mT).mT.flatten(1)
    products = columns[:, :, None] * columns[:, None, :]
    expected = torch.block_diag(*[1.3**2 / 3 * X @ X.T] * 2)
    assert ((products.mean(0) - expected).abs() < 5 * products.std(0) / len(W) ** 0.5).all()


def test_two_numbers_suffice():
    """`sp-forward`: wider networks have all overlaps closer to one number, and their channels are Gaussian."""
    spreads = []
    for width in (32, 256):
        model, x = network("erf", width, 16)
        h = model(x)
        spreads.append(float(token_moments(h)[2].mean()))
    assert spreads[1] < 0.5 * spreads[0]  # of order d^{-1/2}: 0.35
    q = h.square().mean(dim=-1, keepdim=True)
    assert abs(float((h**4 / q**2).mean()) - 3) < 0.1


G = torch.Generator()
MODEL = {"width": 8, "depth": 1, "norm": "erf", "generator": G}
BAD = [
    (lambda: RandomTransformer(**MODEL | {"depth": 0}), "depth = 0; give an integer >= 1"),
    (lambda: RandomTransformer(**MODEL | {"norm": "rms"}), "norm = 'rms'; give 'layernorm', 'tanh' or 'erf'"),
    (lambda: RandomTransformer(**MODEL | {"num_heads": 3}), "num_heads = 3 does not divide width = 8"),
    (lambda: RandomTransformer(**MODEL | {"alpha": [0.5, 1.0]}), "give one finite number > 0, or one per network (1)"),
    (lambda: RandomTransformer(**MODEL | {"alpha": math.nan}), "alpha = nan; give one finite number > 0"),
    (lambda: RandomTransformer(**MODEL | {"sigmas": Sigmas(q=math.nan)}), "that are finite and not negative"),
    (lambda: tiny()(prompt(3)), "x has shape (3, 3, 6); give (R, *batch, n, d) with R = 2, d = 6"),
    (lambda: RandomTransformer(**MODEL | {"dtype": torch.int64}), "dtype = torch.int64; give a floating-point type"),
    (lambda: equiangular_tokens(3, 4, 1.0, 0.2, generator=G, dtype=torch.int32), "dtype = torch.int32; give"),
    (lambda: tiny()(prompt().long()), "x has the dtype torch.int64; give a floating torch.Tensor"),
    (lambda: tiny()(prompt().half()), "x has the dtype torch.float16, the weights have torch.float"),
    (lambda: equiangular_tokens(1, 4, 1.0, 0.0, generator=G), "n = 1; give an integer >= 2"),
    (lambda: equiangular_tokens(5, 4, 1.0, 0.0, generator=G), "d = 4 < n = 5"),
    (lambda: equiangular_tokens(3, 4, 1.0, 1.1, generator=G), "is no covariance"),
    (lambda: equiangular_tokens(3, 4, 1.0, -0.51, generator=G), "is no covariance"),
    (lambda: equiangular_tokens(3, 4, -1.0, 0.0, generator=G), "q = -1"),
    (lambda: token_moments(torch.ones(1, 4)), "n = 1; give an integer >= 2"),
    (lambda: tiny("layernorm")(torch.full((2, 3, 6), 0.1).double()), "a token whose features are all equal"),
    (lambda: tiny("layernorm")(prompt() * math.nan), "or not finite; give tokens that vary"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
