"""One head and one layer: against loops with full matrices, symmetries, laws, and the tokens to start from."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.homogenized.model.heads import (
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

examples = settings(derandomize=True, max_examples=20, deadline=None, database=None)
SIZES = st.tuples(st.integers(1, 6), st.integers(2, 5), st.integers(0, 10_000))
F64 = {"dtype": torch.float64}


def standard_z(values: torch.Tensor, expected: torch.Tensor | float) -> torch.Tensor:
    """Distance of the mean over the first axis from ``expected``, in standard errors."""
    return ((values.mean(0) - expected) / (values.std(0) / math.sqrt(len(values)))).abs()


@examples
@given(SIZES)
def test_attention_field_against_a_loop(sizes):
    """Token by token: B(x_i) = sum_k exp(beta <A x_i, x_k>) V x_k / sum_k exp(beta <A x_i, x_k>)."""
    n, d, seed = sizes
    X = uniform_tokens(n, d, generator=stream(seed, "X"))[0]
    V, A = torch.randn(2, d, d, generator=stream(seed, "VA"), dtype=torch.float64)
    field = attention_field(X, V, A, 0.7)
    for i in range(n):
        weights = [math.exp(0.7 * float(X[k] @ (A @ X[i]))) for k in range(n)]
        expected = sum(w * (V @ X[k]) for k, w in enumerate(weights)) / sum(weights)
        assert torch.allclose(field[i], expected, rtol=1e-12, atol=1e-13)


def test_layer_averages_its_heads():
    """Two equal heads are one; a head and its negative value matrix leave the tokens where they are."""
    X, heads = (
        uniform_tokens(4, 3, generator=stream(2, "X")),
        HeadLaw(d=3, sigma_a=1.0).draw(stream(2, "h"), (1, 1), beta=2.0),
    )
    double = Heads(heads.V.repeat(1, 2, 1, 1), heads.A.repeat(1, 2, 1, 1), 2.0)
    assert torch.allclose(layer_step(X, 0.4, double), layer_step(X, 0.4, heads), atol=1e-14)
    opposite = Heads(torch.cat([heads.V, -heads.V], 1), double.A, 2.0)
    assert torch.allclose(layer_step(X, 0.4, opposite), X, atol=1e-14)


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


def test_law_of_a_head():
    """Means, variances and logits: 5 standard errors, and the wrong variances are rejected."""
    law = HeadLaw(d=4, sigma_a=0.8)
    heads = law.draw(stream(3, "heads"), (40_000,), beta=1.7)
    for M, variance in ((heads.V, 1 / 4), (heads.A, 4 * 0.8**4)):
        assert (M.mean(0) / (M.std(0) / 200)).abs().max() < 5
        z = (M.square().mean(0) - variance) / (M.square().std(0) / 200)
        assert z.abs().max() < 5
        assert ((M.square().mean(0) - 1.1 * variance) / (M.square().std(0) / 200)).abs().max() > 5
    x, y = uniform_tokens(2, 4, generator=stream(3, "xy"))[0]
    logits = 1.7 * torch.einsum("i,rij,j->r", y, heads.A, x)
    assert abs(logits.square().mean() - law.logit_std(1.7) ** 2) < 5 * logits.square().std() / 200
    assert matched_law(9, 2.5).logit_std(1.0) == pytest.approx(2.5, rel=1e-14)


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


@pytest.mark.parametrize(
    ("n", "d", "gamma"), [(1, 2, 0.0), (2, 2, -1.0), (3, 2, -0.5), (4, 4, 0.3), (7, 2, 1.0), (5, 9, -0.25)]
)
def test_equiangular_tokens(n, d, gamma):
    X = equiangular_tokens(n, d, gamma, replicas=2)
    assert X.shape == (2, n, d)
    assert torch.allclose(X @ X.mT, simplex_gram(n, gamma).expand(2, n, n), atol=1e-13)
