"""One layer and the three simulators: against loops with full matrices, against each other, and their symmetries."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from derived.lab.rng import stream
from derived.papers.homogenized.chain import literal_step, overlaps, projected_step, simulate_chain
from derived.papers.homogenized.gram import (
    bartlett,
    default_record,
    gram_step,
    pivoted_factor,
    psd_factor,
    simulate_gram,
    value_factor,
)
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
    uniform_tokens,
)

examples = settings(derandomize=True, max_examples=20, deadline=None, database=None)
EPS = torch.finfo(torch.float64).eps
STEPS = {"literal": literal_step, "projected": projected_step}
SIZES = st.tuples(st.integers(1, 6), st.integers(2, 5), st.integers(0, 10_000))


def rotation(d: int, *names) -> torch.Tensor:
    return torch.linalg.qr(torch.randn(d, d, generator=stream(1, "rotation", *names), dtype=torch.float64))[0]


def draws(method: str, R: int, n: int, d: int, H: int, *, law=None, beta=1.3, gamma=None, common=True) -> torch.Tensor:
    """Overlaps (R, n, n) after one large layer, from one start for all replicas."""
    law, g = law or HeadLaw(d=d, sigma_a=1.1), stream(7, method, n, d, H)
    if gamma is None:
        X = uniform_tokens(n, d, generator=stream(7, "start", n, d)).expand(R, n, d).clone()
    else:
        X = equiangular_tokens(n, d, gamma, replicas=R)
    if method == "gram":
        return gram_step(overlaps(X), math.sqrt(0.6 * H), H, law, beta, generator=g, common=common)
    return overlaps(STEPS[method](X, math.sqrt(0.6 * H), H, law, beta, generator=g, common=common))


def agree(a: torch.Tensor, b: torch.Tensor) -> float:
    """The largest two-sample z over first, second and mixed moments of all overlaps (R, n, n)."""
    i, j = np.triu_indices(a.shape[-1], 1)
    pairs = [x[:, i, j] for x in (a, b)]
    features = [
        torch.cat([x, (x[:, :, None] * x[:, None, :]).flatten(1), x.square().prod(1, keepdim=True)], 1) for x in pairs
    ]
    (m, v), (m_, v_) = ((f.mean(0), f.var(0) / len(f)) for f in features)
    return ((m - m_).abs() / (v + v_).sqrt()).max().item()


# --- one head, one layer --------------------------------------------------------------------------------------------


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


@examples
@given(SIZES)
def test_layer_keeps_the_sphere_and_commutes_with_rotations_and_permutations(sizes):
    """|x| = 1; rotating tokens and heads together, or permuting tokens, does the same to the layer's result."""
    n, d, seed = sizes
    X = uniform_tokens(n, d, generator=stream(seed, "X"))
    heads = HeadLaw(d=d, sigma_a=1.0).draw(stream(seed, "heads"), (1, 3), beta=1.5)
    Q, order = rotation(d, seed), torch.randperm(n, generator=stream(seed, "order"))
    for projected in (False, True):
        Y = layer_step(X, 0.5, heads, projected=projected)
        assert (Y.norm(dim=-1) - 1).abs().max() < 4 * d * EPS
        turned = Heads(Q @ heads.V @ Q.T, Q @ heads.A @ Q.T, heads.beta)
        assert torch.allclose(layer_step(normalise(X @ Q.T), 0.5, turned, projected=projected), Y @ Q.T, atol=1e-12)
        assert torch.allclose(layer_step(X[:, order], 0.5, heads, projected=projected), Y[:, order], atol=1e-13)


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


def test_law_of_a_head():
    """Means, variances, rank and logits: 5 standard errors, and the wrong variances are rejected."""
    A_bar = torch.diag(torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64))
    law = HeadLaw(d=4, sigma_a=0.8, V_bar=0.3, A_bar=A_bar, rank=2)
    heads = law.draw(stream(3, "heads"), (40_000,), beta=1.7)
    V, A = heads.V - 0.3 * torch.eye(4), heads.A - A_bar
    assert torch.linalg.matrix_rank(A[:50]).eq(2).all()
    for M, variance in ((V, 1 / 4), (A, 2 * 0.8**4)):
        z = (M.square().mean(0) - variance) / (M.square().std(0) / 200)
        assert z.abs().max() < 5
        assert (M.mean(0) / (M.std(0) / 200)).abs().max() < 5
        assert ((M.square().mean(0) - 1.1 * variance) / (M.square().std(0) / 200)).abs().max() > 5
    x, y = uniform_tokens(2, 4, generator=stream(3, "xy"))[0]
    logits = 1.7 * torch.einsum("i,rij,j->r", y, A, x)
    assert abs(logits.square().mean() - law.logit_std(1.7) ** 2) < 5 * logits.square().std() / 200
    assert matched_law(9, 2.5, 0.5, rank=4).logit_std(0.5) == pytest.approx(2.5, rel=1e-14)


# --- tokens to start from -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "d", "gamma"), [(1, 2, 0.0), (2, 2, -1.0), (3, 2, -0.5), (4, 4, 0.3), (7, 2, 1.0), (5, 9, -0.25)]
)
def test_equiangular_tokens(n, d, gamma):
    X = equiangular_tokens(n, d, gamma, replicas=2)
    assert X.shape == (2, n, d)
    assert torch.allclose(X @ X.mT, simplex_gram(n, gamma).expand(2, n, n), atol=1e-13)


def test_uniform_tokens():
    """Mean 0 and covariance I/d."""
    X = uniform_tokens(1, 3, generator=stream(4, "u"), replicas=20_000)[:, 0]
    assert (X.mean(0) * math.sqrt(3 * len(X))).abs().max() < 5
    square = X.square()
    assert ((square.mean(0) - 1 / 3) / (square.std(0) / math.sqrt(len(X)))).abs().max() < 5


# --- factors ----------------------------------------------------------------------------------------------------------


@examples
@given(st.integers(1, 7), st.integers(1, 7), st.integers(0, 10_000))
def test_factors_of_singular_matrices(n, rank, seed):
    """C C^T = S up to rounding whatever the rank, with as many columns as asked; regular ones by Cholesky."""
    rank = min(n, rank)
    Y = torch.randn(3, n, rank, generator=stream(seed, "Y"), dtype=torch.float64)
    Y[0] = Y[0, :1]  # coinciding rows
    S = Y @ Y.mT
    for C in (pivoted_factor(S, rank), psd_factor(S, n)):
        assert (C @ C.mT - S).abs().max() < 20 * n * EPS * S.abs().max()


def test_factor_uses_cholesky_where_it_can():
    S = simplex_gram(4, 0.5).expand(2, 4, 4)
    assert torch.equal(psd_factor(S, 4), torch.linalg.cholesky(S))


@pytest.mark.parametrize(("q", "dof"), [(1, 1), (1, 9), (3, 3), (3, 8), (4, 2)])
def test_bartlett_factor_is_a_wishart_factor(q, dof):
    """First and second moments of T T^T against sums over normals: E W = dof I, E W_ij W_kl = dof^2 d_ij d_kl + dof
    (d_ik d_jl + d_il d_jk); one more degree of freedom is rejected."""
    T = bartlett((60_000,), q, dof, generator=stream(5, q, dof))
    assert T.shape == (60_000, q, min(q, dof))
    W = T @ T.mT
    I = torch.eye(q, dtype=torch.float64)
    expected = dof**2 * torch.einsum("ij,kl->ijkl", I, I) + dof * (
        torch.einsum("ik,jl->ijkl", I, I) + torch.einsum("il,jk->ijkl", I, I)
    )
    second = torch.einsum("rij,rkl->rijkl", W, W)
    z = (second.mean(0) - expected) / (second.std(0) / math.sqrt(len(W)))
    assert z.abs().max() < 5
    trace = W.diagonal(dim1=-2, dim2=-1).sum(-1)
    assert abs(trace.mean() - q * dof) < 5 * trace.std() / math.sqrt(len(W))
    assert abs(trace.mean() - q * (dof + 1)) > 5 * trace.std() / math.sqrt(len(W))


def test_value_factor_against_a_loop_over_heads():
    """F F^T = sum_h Pi_h G Pi_h^T for one, few and many heads; without common noise its diagonal."""
    C = psd_factor(simplex_gram(3, 0.2).expand(2, 3, 3), 3)
    for H in (1, 2, 7):
        Pi = torch.softmax(torch.randn(2, H, 3, 3, generator=stream(6, H), dtype=torch.float64), -1)
        S = sum(Pi[:, h] @ C @ C.mT @ Pi[:, h].mT for h in range(H))
        F = value_factor(C, Pi, common=True)
        assert F.shape[-1] == 3
        assert torch.allclose(F @ F.mT, S, atol=1e-13)
        F = value_factor(C, Pi, common=False)
        assert torch.allclose(F @ F.mT, torch.diag_embed(S.diagonal(dim1=-2, dim2=-1)), atol=1e-13)


# --- three simulators, one law --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "d", "H"), [(1, 4, 2), (2, 2, 1), (3, 2, 2), (5, 2, 3), (2, 5, 3), (3, 7, 1), (5, 3, 1), (4, 6, 6)]
)
def test_methods_agree_in_law(n, d, H):
    """One large layer: two-sample z of the moments of the overlaps below 5, n > d, n = d and d - n < n included."""
    literal = draws("literal", 20_000, n, d, H)
    if n == 1:
        assert torch.equal(literal, torch.ones_like(literal))
        return
    for method in ("projected", "gram"):
        assert agree(literal, draws(method, 20_000, n, d, H)) < 5


@pytest.mark.parametrize("change", [{"beta": 0.4}, {"gamma": 0.5}, {"common": False}])
def test_methods_comparison_rejects_other_laws(change):
    """The same comparison sees another temperature, start or noise."""
    assert agree(draws("literal", 20_000, 3, 7, 1), draws("gram", 20_000, 3, 7, 1, **change)) > 5


@pytest.mark.parametrize("law", [
    HeadLaw(d=4, sigma_a=0.9, V_bar=0.5, A_bar=-0.7),
    HeadLaw(d=4, sigma_a=0.9, sigma_v=0.2, V_bar=0.9, rank=1),
    HeadLaw(d=4, sigma_a=0.0, V_bar=1.0, A_bar=1.0),
    HeadLaw(d=4, sigma_a=1.2, sigma_v=0.0, V_bar=-1.0, rank=6),
], ids=["means", "rank 1", "random values", "random keys"])  # fmt: skip
@pytest.mark.parametrize("common", [True, False])
def test_methods_agree_for_other_laws(law, common):
    """Means, low rank, deterministic values or keys; two heads, so that averages over heads count."""
    a, b, c = (draws(m, 12_000, 3, 4, 2, law=law, common=common) for m in ("literal", "projected", "gram"))
    assert agree(a, b) < 5
    assert agree(a, c) < 5


def test_matrix_means():
    """V_bar and A_bar as matrices: literal and projected agree with each other and with the layer of drawn heads."""
    V_bar, A_bar = 0.3 * torch.randn(2, 4, 4, generator=stream(8, "means"), dtype=torch.float64)
    law = HeadLaw(d=4, sigma_a=0.9, V_bar=V_bar, A_bar=4 * A_bar)
    literal = draws("literal", 20_000, 3, 4, 1, law=law)
    assert agree(literal, draws("projected", 20_000, 3, 4, 1, law=law)) < 5
    X = uniform_tokens(3, 4, generator=stream(7, "start", 3, 4)).expand(20_000, 3, 4)
    heads = law.draw(stream(8, "heads"), (20_000, 1), beta=1.3)
    assert agree(literal, overlaps(layer_step(X, math.sqrt(0.6), heads))) < 5
    wrong = HeadLaw(d=4, sigma_a=0.9, V_bar=V_bar.T, A_bar=4 * A_bar)
    assert agree(literal, draws("projected", 20_000, 3, 4, 1, law=wrong)) > 5


@pytest.mark.parametrize("method", ["literal", "projected"])
def test_tokens_agree_with_drawn_heads(method):
    """The tokens themselves, not just overlaps: mean and covariance of a displaced token against ``layer_step``."""
    X = uniform_tokens(2, 3, generator=stream(9, "X")).expand(40_000, 2, 3).clone()
    law = HeadLaw(d=3, sigma_a=1.0)
    Y = STEPS[method](X, 0.7, 1, law, 1.0, generator=stream(9, method))
    Z = layer_step(X, 0.7, law.draw(stream(9, "drawn"), (40_000, 1), beta=1.0))
    for feature in (lambda T: T.flatten(1), lambda T: (T.flatten(1)[:, :, None] * T.flatten(1)[:, None]).flatten(1)):
        a, b = feature(Y), feature(Z)
        z = (a.mean(0) - b.mean(0)) / ((a.var(0) + b.var(0)) / len(a)).sqrt()
        assert z.abs().max() < 5


def test_chain_is_its_steps():
    """The recorded layers are those of the loop, the clock is eta^2 layer / H, and layer 0 is the start."""
    law, X = matched_law(5, 2.0), equiangular_tokens(3, 5, 0.1, replicas=4)
    chain = simulate_chain(X, 6, 0.3, 2, law, 1.0, generator=stream(10, "c"), record=[0, 2, 6], keep_tokens=True)
    g, Y = stream(10, "c"), X
    for layer in range(1, 7):
        Y = projected_step(Y, 0.3, 2, law, 1.0, generator=g)
        if layer == 2:
            assert torch.equal(chain.tokens[1], Y)
    assert torch.equal(chain.tokens[2], Y)
    assert torch.equal(chain.tokens[0], X)
    assert torch.equal(chain.gram[2], overlaps(Y))
    assert chain.tau == pytest.approx((0.0, 0.09, 0.27), rel=1e-12)
    assert torch.equal(chain.mean_overlap, chain.gram.mean((-2, -1)))
    again = simulate_chain(X, 6, 0.3, 2, law, 1.0, generator=stream(10, "c"))
    assert again.layers == (0, 6)
    assert torch.equal(again.gram[1], chain.gram[2])
    gram = simulate_chain(X, 6, 0.3, 2, law, 1.0, generator=stream(10, "c"), method="gram")
    assert torch.equal(gram.gram[1], simulate_gram(overlaps(X), 6, 0.3, 2, law, 1.0, generator=stream(10, "c")).gram[1])
    assert gram.tau == again.tau == pytest.approx((0.0, 0.27), rel=1e-12)
    assert default_record(100, 5) == [0, 25, 50, 75, 100]
    assert default_record(1, 5) == [0, 1]


@pytest.mark.parametrize("method", ["literal", "projected", "gram"])
@pytest.mark.parametrize("beta", [0.0, 5.0])
def test_coinciding_tokens_stay_together(method, beta):
    """gamma = 1 is absorbing, to rounding of the Gram matrix; antipodal pairs under uniform attention do not move."""
    X = equiangular_tokens(4, 6, 1.0, replicas=3)
    G = simulate_chain(
        X, 20, 0.5, 2, HeadLaw(d=6, sigma_a=1.0), beta, generator=stream(11, method), method=method
    ).gram[1]
    assert (G - 1).abs().max() < 20 * 4 * 6 * EPS
    X = equiangular_tokens(2, 6, -1.0, replicas=3)
    G = simulate_chain(X, 20, 0.5, 2, HeadLaw(d=6, sigma_a=1.0), 0.0, generator=stream(11, method), method=method).gram[
        1
    ]
    assert (G[:, 0, 1] + 1).abs().max() < 1e-12


def test_gram_is_independent_of_the_width():
    """d = 10^6 in memory of n^2: the overlaps then follow the flow of d = infinity, gamma' = (1-g)(g(1-1/n)+1/n)."""
    G = simplex_gram(4, 0.0).expand(8, 4, 4)
    chain = simulate_gram(G, 100, 0.1, 1, HeadLaw(d=10**6, sigma_a=0.0), 0.0, generator=stream(12, "wide"))
    u0 = 0.25
    u = u0 / (u0 + (1 - u0) * math.exp(-1.0))
    spread = 4 * math.sqrt(
        8 / 10**6
    )  # bracket 4/d per unit tau, 4 standard deviations of 8 replicas and their overlaps
    assert (chain.mean_overlap[1] - u).abs().max() < spread + 0.01 * 0.25  # h = 0.01, first order


def test_float32_and_the_literal_weights_are_shared():
    """dtype follows the start; two prompts under generators of one state feel the same weights."""
    X = equiangular_tokens(3, 5, 0.2, replicas=2, dtype=torch.float32)
    law = matched_law(5, 1.0)
    for method in ("literal", "projected", "gram"):
        assert (
            simulate_chain(X, 3, 0.3, 1, law, 1.0, generator=stream(13, "g"), method=method).gram.dtype == torch.float32
        )
    X = uniform_tokens(6, 5, generator=stream(13, "X"))
    both, part = (
        literal_step(Y, 0.4, 2, HeadLaw(d=5, sigma_a=0.0), 0.0, generator=stream(13, "w")) for Y in (X, X[:, [0] * 3])
    )
    one = literal_step(X[:, :1], 0.4, 2, HeadLaw(d=5, sigma_a=0.0), 0.0, generator=stream(13, "w"))
    assert torch.allclose(part[:, 1:2], one, atol=1e-14)
    assert (both[:, :1] - one).norm() > 1e-3  # another context, another barycentre


def test_barycentre_of_uniform_attention_is_the_mean():
    X = uniform_tokens(5, 3, generator=stream(14, "X"))[0]
    assert torch.allclose(barycentre(X, torch.eye(3, dtype=torch.float64), 0.0), X.mean(0).expand(5, 3), atol=1e-15)
