"""What the chapter's functions refuse, in words that name the cure, and their smallest sizes."""

import math
import re

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.homogenized.model import checks, cloud, flows, moments, overlaps, two_token
from derived.papers.homogenized.model.chain import post_norm_block, simulate_chain
from derived.papers.homogenized.model.gram import psd_factor, simulate_gram
from derived.papers.homogenized.model.heads import (
    HeadLaw,
    equiangular_tokens,
    layer_step,
    simplex_gram,
    uniform_tokens,
)

F64 = {"dtype": torch.float64}
G = stream(70, "arguments")
LAW = HeadLaw(d=4, sigma_a=1.0)
X = uniform_tokens(3, 4, generator=G, replicas=2)
GRAM = X @ X.mT
HEADS = LAW.draw(G, (2, 1), beta=1.0)


def chain(X=X, L=2, eta=0.1, H=1, law=LAW, beta=1.0, **options):
    return simulate_chain(X, L, eta, H, law, beta, generator=G, **options)


def gram(G0=GRAM, L=2, eta=0.1, H=1, law=LAW, **options):
    return simulate_gram(G0, L, eta, H, law, 1.0, generator=G, **options)


BAD = {
    "layers of no step": (lambda: overlaps.layers_for(1.0, 0.0, 2), "eta = 0; give"),
    "odds above one": (lambda: overlaps.odds_after(1.1, 0.5, 1), "u = 1.1; give"),
    "odds of a negative step": (lambda: overlaps.odds_after(0.5, -0.5, 1), "h = -0.5; give"),
    "a block of odd heads": (lambda: post_norm_block(X, 1.0, 3, generator=G), "d a multiple of H"),
    "tokens off the sphere": (lambda: chain(1.001 * X), "tokens live on the unit sphere"),
    "a token that is not a number": (lambda: chain(X * math.nan), "unit sphere"),
    "noise overshoots": (lambda: chain(eta=1.5), "h = eta^2 / H = 2.25 exceeds 1"),
    "noise overshoots, by a whole factor": (lambda: gram(eta=2.0, H=2, law=HeadLaw(d=12, sigma_a=1.0)), "or H >= 4"),
    "negative step": (lambda: chain(eta=-0.1), "eta = -0.1"),
    "width one": (lambda: HeadLaw(d=1, sigma_a=1.0), "sphere of dimension 0"),
    "no head": (lambda: chain(H=0), "H = 0"),
    "negative deviation": (lambda: HeadLaw(d=4, sigma_a=-1.0), "sigma_a = -1; give"),
    "another width": (lambda: chain(law=HeadLaw(d=5, sigma_a=1.0)), "with d = 5"),
    "one prompt without replicas": (lambda: chain(X[0]), "give (replicas, n, d)"),
    "unknown method": (lambda: chain(method="exact"), "give one of 'literal', 'projected', 'gram'"),
    "tokens of overlaps": (lambda: chain(method="gram", keep_tokens=True), "overlaps only"),
    "layers beyond the end": (lambda: chain(record=[3]), "layers between 0 and L = 2"),
    "overlaps above one": (lambda: gram(2 * GRAM - torch.eye(3, **F64)), "no vectors have these overlaps"),
    "no unit diagonal": (lambda: gram(2 * GRAM), "symmetric with unit diagonal"),
    "too many directions": (lambda: gram(torch.eye(5, **F64)[None]), "need width d >= 5, but d = 4"),
    "one Gram matrix": (lambda: gram(GRAM[0]), "give (R, n, n)"),
    "overlap below the simplex": (lambda: simplex_gram(4, -0.4), "only in [-0.333333, 1]"),
    "too many equiangular tokens": (lambda: equiangular_tokens(5, 3, 0.2), "need d >= 5, but d = 3"),
    "logits too cold": (lambda: moments.attention_moments(0.2, 5, 1e6), "math.inf for hardmax"),
    "moments below the simplex": (lambda: moments.attention_moments(-0.5, 5, 1.0), "unit vectors can share it"),
    "two tokens, negative beta": (lambda: two_token.two_token_attention_moments(0.2, 3, -1.0, 1.0), "beta = -1; give"),
    "coinciding start": (lambda: two_token.two_token_pde(3, 1.0, 1.0, 1.0, [1.0]), "the tokens coincide"),
    "late times": (lambda: two_token.two_token_pde(3, 0.0, 1.0, 0.0, [40.0]), "give earlier times"),
    "times that fall": (lambda: two_token.two_token_pde(3, 0.0, 1.0, 0.0, [2.0, 1.0]), "from 0 upwards"),
    "overlap that falls": (lambda: overlaps.time_to_overlap(4, 1.0, start=0.6), "need start <= target"),
    "overlap never reached": (lambda: overlaps.time_to_overlap(4, 0.0, 2, start=0.05, target=0.9), "never reached"),
    "mean overlap above one": (lambda: overlaps.logistic_overlap(1.0, 1.1), "u0 = 1.1; give"),
    "width of a drift": (lambda: overlaps.simplex_drift(0.1, 0.5, 0.5, 1), "math.inf for the limit"),
    "unknown corrector": (lambda: flows.modified_drift(abs, 0.1, "half"), "give one of 'none', 'first', 'full'"),
    "finite return": (lambda: cloud.return_probability(1.0, 0.0, 3.0), "closed form at kappa = 1 only"),
    "step of one layer": (lambda: layer_step(X, math.nan, HEADS), "eta = nan; give"),
    "moments of a drift": (lambda: overlaps.simplex_drift(0.1, 1.5, 0.5), "f = 1.5; give"),
    "factor of too few columns": (lambda: psd_factor(torch.eye(3, **F64), 2), "of rank <= 2"),
    "a return from nowhere": (lambda: cloud.return_probability(math.nan), "|y0| = nan; give"),
    "tokens of half precision": (lambda: chain(X.bfloat16()), "X0 has the dtype torch.bfloat16"),
    "tokens of another dtype": (lambda: layer_step(X.float(), 0.1, HEADS), "X has the dtype torch.float32 and A"),
    "heads of whole numbers": (lambda: LAW.draw(G, (1,), beta=1.0, dtype=torch.int64), "dtype = torch.int64; give"),
    "cosine above one": (lambda: cloud.mean_cosine(1.5, 4), "r = 1.5; give"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_named(case):
    """Each error says what was given and what would be right."""
    call, message = BAD[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize("method", ["literal", "projected", "gram"])
@pytest.mark.parametrize(("n", "d", "H"), [(1, 2, 1), (2, 2, 1), (6, 2, 3), (3, 4, 2)])
def test_smallest_sizes(method, n, d, H):
    """One token, two dimensions, more tokens than dimensions, one replica, no layer: shapes and unit norms hold."""
    start = uniform_tokens(n, d, generator=stream(71, n, d))
    run = simulate_chain(start, 3, 0.5, H, HeadLaw(d=d, sigma_a=1.0), 1.0, generator=stream(71, "g"), method=method)
    assert run.gram.shape == (2, 1, n, n)
    assert run.gram.isfinite().all()
    assert (run.gram.abs() <= 1 + 1e-12).all()
    assert torch.linalg.matrix_rank(run.gram[1, 0], tol=1e-6) <= d
    still = simulate_chain(start, 0, 0.5, H, HeadLaw(d=d, sigma_a=1.0), 1.0, generator=stream(71, "g"), method=method)
    assert still.layers == (0,)


@pytest.mark.parametrize("d", [1, 8])
def test_a_norm_may_miss_one_by_the_rounding_of_a_normalisation_alone(d):
    tokens, eps = torch.eye(d, dtype=torch.float64), torch.finfo(torch.float64).eps
    checks.check_on_sphere(tokens * (1 + (d + 4) * eps))
    with pytest.raises(ValueError, match="a token has a norm that differs from 1"):
        checks.check_on_sphere(tokens * (1 + (d + 5) * eps))
