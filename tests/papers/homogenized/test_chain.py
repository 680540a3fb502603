"""The three simulators: one law, their symmetries, and what common noise does to clouds."""

import math

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.homogenized.model.chain import (
    literal_step,
    overlaps,
    post_norm_block,
    projected_step,
    simulate_chain,
)
from derived.papers.homogenized.model.gram import gram_step, simulate_gram
from derived.papers.homogenized.model.heads import (
    HeadLaw,
    Heads,
    barycentre,
    equiangular_tokens,
    layer_step,
    matched_law,
    simplex_gram,
    uniform_tokens,
)
from derived.papers.homogenized.model.overlaps import overlap_drift

EPS = torch.finfo(torch.float64).eps
STEPS = {"literal": literal_step, "projected": projected_step}
F64 = {"dtype": torch.float64}


def standard_z(values: torch.Tensor, expected: torch.Tensor | float) -> torch.Tensor:
    """Distance of the mean over the first axis from ``expected``, in standard errors."""
    return ((values.mean(0) - expected) / (values.std(0) / math.sqrt(len(values)))).abs()


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
    shared = float(overlap_drift(overlaps(X[0]), torch.full((3, 3), m, **F64), d)[0, 1])
    for common, own, other in ((True, shared, private), (False, private, shared)):
        spread = change[common].std() / math.sqrt(len(X)) + h  # the bias of one step is below h
        assert abs(change[common].mean() - own) < 5 * spread
        assert abs(change[common].mean() - other) > 5 * spread
    long = simulate_gram(simplex_gram(4, 0.0).expand(500, 4, 4), 60, 0.3, 1, HeadLaw(d=16, sigma_a=0.0), 0.0,
                         generator=stream(49, "long"), common=False).gram[1]  # fmt: skip
    assert standard_z(long[:, 0, 1], 0.0) < 5


def test_two_prompts_end_together_or_opposite():
    """`ht-ends`: a layer is odd; two points have the drift -R (1 - R^2) / d and the bracket 2 (1 - R^2)^2 / d at any
    width: so they end opposite with the probability 1/2 - arcsin(u_0) / pi."""
    X, law = uniform_tokens(4, 5, generator=stream(64, "X"), replicas=8), matched_law(5, 3.0)
    ends = [
        simulate_chain(Z, 6, 0.3, 2, law, 1.0, generator=stream(64, "w"), method="literal", keep_tokens=True).tokens[1]
        for Z in (X, -X)
    ]
    torch.testing.assert_close(ends[1], -ends[0])
    paths, step = 4000, 0.1
    for d in (2, 7):  # one matrix V for two points of overlap 0.6
        g = stream(64, "points", d)
        x, y = (each.expand(paths, d) for each in equiangular_tokens(2, d, 0.6)[0])
        for _ in range(round(8 * d / step)):
            V = torch.randn(paths, d, d, generator=g, dtype=x.dtype) * (step / d) ** 0.5
            x, y = (torch.nn.functional.normalize(z + torch.einsum("rde,re->rd", V, z), dim=-1) for z in (x, y))
        opposite = ((x * y).sum(dim=-1) < 0).double()
        assert standard_z(opposite, 0.5 - math.asin(0.6) / math.pi) < 5
        assert standard_z(opposite, 0.2) > 5  # (1 - u_0) / 2, the probability of a martingale u


def test_generator_of_the_cloud():
    """`ht-spde`: E d<mu, phi> = <mu, s(x,x) Laplace phi / (2d)> dtau for phi = <a, x> and <a, x>^2."""
    d, n, h = 3, 4, 1e-3
    X = uniform_tokens(n, d, generator=stream(62, "X"))[0]
    a = X.sum(0)
    heads = HeadLaw(d=d, sigma_a=1.0).draw(stream(62, "h"), (60_000, 1), beta=1.0)
    start = X.expand(60_000, n, d).clone()
    ends = [layer_step(start, math.sqrt(h), Heads(sign * heads.V, heads.A, 1.0)) for sign in (1, -1)]
    own = barycentre(start, heads.A[:, 0], 1.0).square().sum(-1).mean(0)  # s(x_i, x_i)
    c = X @ a
    for phi, laplace in ((lambda t: t, -(d - 1) * c), (lambda t: t**2, 2 * (a @ a) - 2 * d * c**2)):
        change = ((phi(ends[0] @ a) + phi(ends[1] @ a)) / 2 - phi(c)).mean(1) / h
        expected = (own * laplace / (2 * d)).mean()
        spread = change.std() / math.sqrt(len(change)) + 5 * h
        assert abs(change.mean() - expected) < 5 * spread
        assert abs(change.mean() - 2 * expected) > 5 * spread


def plain_block(x, scale, H, weights, causal):
    """One replica of the block, head by head and token by token."""
    q, k, v = (x @ W for W in weights[:3])
    n, d = x.shape
    mixed = torch.zeros_like(x)
    for head in range(H):
        part = slice(head * d // H, (head + 1) * d // H)
        for i in range(n):
            seen = i + 1 if causal else n
            weight = (q[i, part] @ k[:seen, part].T / (d // H) ** 0.5).softmax(dim=-1)
            mixed[i, part] = weight @ v[:seen, part]
    moved = x + scale * mixed @ weights[3]
    return (moved - moved.mean(dim=-1, keepdim=True)) / (moved.var(dim=-1, correction=0, keepdim=True) + 1e-5).sqrt()


@pytest.mark.parametrize(("H", "causal"), [(1, False), (4, False), (2, True)])
def test_a_post_norm_block_against_loops(H, causal):
    x = torch.randn(2, 5, 8, generator=stream(73, "x"), **F64).transpose(0, 1).contiguous().transpose(0, 1)
    g = stream(73, "weights")
    weights = [torch.randn(2, 8, 8, generator=g, **F64) / 8**0.5 for _ in range(4)]
    block = post_norm_block(x, 0.7, H, generator=stream(73, "weights"), causal=causal)
    for one, tokens, *each in zip(block, x, *weights, strict=True):
        torch.testing.assert_close(one, plain_block(tokens, 0.7, H, each, causal))
    x = x.detach().requires_grad_()
    run = lambda y: post_norm_block(y, 0.7, H, generator=stream(73, "weights"), causal=causal)  # noqa: E731
    assert torch.autograd.gradcheck(run, (x,))
    assert torch.allclose(post_norm_block(x, 0.0, H, generator=stream(73, 0)).mean(dim=-1), torch.zeros(2, 5, **F64))
