"""What the chapter's functions refuse, in words that name the cure, and the shapes that their annotations promise."""

import importlib
import math
import re
import sys
import types

import numpy as np
import pytest
import torch
from jaxtyping import install_import_hook

from derived.lab.rng import stream
from derived.papers.homogenized.model import checks, cloud, flows, moments, overlaps, two_token
from derived.papers.homogenized.model.chain import post_norm_block, simulate_chain
from derived.papers.homogenized.model.gram import psd_factor, simulate_gram
from derived.papers.homogenized.model.heads import (
    HeadLaw,
    attention_field,
    equiangular_tokens,
    layer_step,
    matched_law,
    simplex_gram,
    uniform_tokens,
)

F64 = {"dtype": torch.float64}
G = stream(70, "arguments")
LAW = HeadLaw(d=4, sigma_a=1.0)
X = uniform_tokens(3, 4, generator=G, replicas=2)
GRAM, HALF = X @ X.mT, X.bfloat16()
HEADS = LAW.draw(G, (2, 1), beta=1.0)


def chain(X=X, L=2, eta=0.1, H=1, law=LAW, beta=1.0, **options):
    return simulate_chain(X, L, eta, H, law, beta, generator=G, **options)


def gram(G0=GRAM, L=2, eta=0.1, H=1, law=LAW, **options):
    return simulate_gram(G0, L, eta, H, law, 1.0, generator=G, **options)


def gram_beta(beta):
    return simulate_gram(GRAM, 2, 0.1, 1, LAW, beta, generator=G)


BAD = {
    "layers of no step": (lambda: overlaps.layers_for(1.0, 0.0, 2), "eta = 0; give"),
    "odds above one": (lambda: overlaps.odds_after(1.1, 0.5, 1), "u = 1.1; give"),
    "odds of a negative step": (lambda: overlaps.odds_after(0.5, -0.5, 1), "h = -0.5; give"),
    "a wide layer backwards": (lambda: overlaps.wide_layer(GRAM, GRAM, -1.0), "h = -1; give"),
    "a block of odd heads": (lambda: post_norm_block(X, 1.0, 3, generator=G), "d a multiple of H"),
    "a block of a negative scale": (lambda: post_norm_block(X, -1.0, 2, generator=G), "scale = -1; give"),
    "a block of whole numbers": (lambda: post_norm_block(X.long(), 1.0, 2, generator=G), "x is a tensor of"),
    "tokens off the sphere": (lambda: chain(1.001 * X), "tokens live on the unit sphere"),
    "tokens off the sphere, one layer": (lambda: layer_step(2 * X, 0.1, HEADS), "unit sphere"),
    "a token that is not a number": (lambda: chain(X * math.nan), "unit sphere"),
    "one vector": (lambda: flows.sphere_flow(lambda Y: Y, X[0, 0], 1.0, steps=2), "one token a row"),
    "noise overshoots": (lambda: chain(eta=1.5), "eta^2 sigma_v^2 d / H = 2.25 exceeds 1"),
    "noise overshoots, cure": (lambda: chain(eta=1.5), "take eta <= 1 or H >= 3"),
    "noise overshoots, by a whole factor": (lambda: gram(eta=2.0, H=2, law=HeadLaw(d=12, sigma_a=1.0)), "or H >= 4"),
    "negative step": (lambda: chain(eta=-0.1), "eta = -0.1"),
    "width one": (lambda: HeadLaw(d=1, sigma_a=1.0), "sphere of dimension 0"),
    "no head": (lambda: chain(H=0), "H = 0"),
    "half a layer": (lambda: chain(L=1.5), "L = 1.5"),
    "negative deviation": (lambda: HeadLaw(d=4, sigma_a=-1.0), "sigma_a = -1; give"),
    "another width": (lambda: chain(law=HeadLaw(d=5, sigma_a=1.0)), "the law's d = 5"),
    "one prompt without replicas": (lambda: chain(X[0]), "give (replicas, n, d)"),
    "unknown method": (lambda: chain(method="exact"), "give one of 'literal', 'projected', 'gram'"),
    "tokens of overlaps": (lambda: chain(method="gram", keep_tokens=True), "overlaps only"),
    "layers beyond the end": (lambda: chain(record=[3]), "layers between 0 and L = 2"),
    "overlaps above one": (lambda: gram(2 * GRAM - torch.eye(3, **F64)), "no vectors have these overlaps"),
    "no unit diagonal": (lambda: gram(2 * GRAM), "symmetric with unit diagonal"),
    "too many directions": (lambda: gram(torch.eye(5, **F64)[None]), "need width d >= 5, but d = 4"),
    "one Gram matrix": (lambda: gram(GRAM[0]), "give (R, n, n)"),
    "logits without temperature": (lambda: matched_law(4, 1.0, 0.0), "beta = 0 makes every logit 0"),
    "overlap below the simplex": (lambda: simplex_gram(4, -0.4), "only in [-0.333333, 1]"),
    "too many equiangular tokens": (lambda: equiangular_tokens(5, 3, 0.2), "need d >= 5, but d = 3"),
    "logits too cold": (lambda: moments.attention_moments(0.2, 5, 1e6), "math.inf for hardmax"),
    "logits not a number": (lambda: moments.attention_moments(0.2, 5, math.nan), "math.inf for hardmax"),
    "moments below the simplex": (lambda: moments.attention_moments(-0.5, 5, 1.0), "unit vectors can share it"),
    "overlap of two beyond one": (lambda: two_token.two_token_attention_moments(1.2, 3, 1.0, 1.0), "R = 1.2; give"),
    "two tokens, negative beta": (lambda: two_token.two_token_attention_moments(0.2, 3, -1.0, 1.0), "beta = -1; give"),
    "slow overlap beyond one": (lambda: cloud.slow_drift(1.5), "u = 1.5; give"),
    "slow overlap below minus one": (lambda: cloud.slow_drift(-1.5), "u = -1.5; give"),
    "coinciding start": (lambda: two_token.two_token_pde(3, 1.0, 1.0, 1.0, [1.0]), "the tokens coincide"),
    "late times": (lambda: two_token.two_token_pde(3, 0.0, 1.0, 0.0, [40.0], cells=200, steps=50), "raise reach"),
    "times that fall": (lambda: two_token.two_token_pde(3, 0.0, 1.0, 0.0, [2.0, 1.0]), "from 0 upwards"),
    "times that fall, flow": (lambda: overlaps.simplex_flow(0.0, [1.0, 0.5], 4, 1.0), "from 0 upwards"),
    "overlap that falls": (lambda: overlaps.time_to_overlap(4, 1.0, start=0.6), "need start <= target"),
    "overlap never reached": (lambda: overlaps.time_to_overlap(4, 0.0, 2, start=0.05, target=0.9), "never reached"),
    "mean overlap above one": (lambda: overlaps.logistic_overlap(1.0, 1.1), "u0 = 1.1; give"),
    "width of a drift": (lambda: overlaps.simplex_drift(0.1, 0.5, 0.5, 1), "math.inf for the limit"),
    "unknown corrector": (lambda: flows.modified_drift(abs, 0.1, "half"), "give one of 'none', 'first', 'full'"),
    "finite return": (lambda: cloud.return_probability(1.0, 0.0, 3.0), "closed form at kappa = 1 only"),
    "a temperature that is no number": (lambda: chain(beta=math.nan), "beta = nan; give"),
    "negative temperature": (lambda: gram_beta(-1.0), "beta = -1; give"),
    "step of one layer": (lambda: layer_step(X, math.nan, HEADS), "eta = nan; give"),
    "overlap of a drift": (lambda: overlaps.simplex_drift(3.0, 0.5, 0.5), "gamma = 3; give"),
    "moments of a drift": (lambda: overlaps.simplex_drift(0.1, 1.5, 0.5), "f = 1.5; give"),
    "factor of nothing": (lambda: psd_factor(GRAM * math.nan, 3), "not positive semidefinite"),
    "factor of a negative matrix": (lambda: psd_factor(-torch.eye(3, **F64), 3), "not positive semidefinite"),
    "factor of too few columns": (lambda: psd_factor(torch.eye(3, **F64), 2), "of rank <= 2"),
    "a return from nowhere": (lambda: cloud.return_probability(math.nan), "|y0| = nan; give"),
    "a return before the start": (lambda: cloud.return_probability(1.0, 1.0, -1.0), "time = -1.0; give"),
    "a slow overlap above one": (lambda: cloud.slow_drift(3.0), "u = 3; give"),
    "a time without end": (lambda: overlaps.simplex_flow(0.0, [math.inf], 4, 0.0), "finite numbers from 0 upwards"),
    "tokens of whole numbers": (lambda: chain(torch.ones(1, 1, 4, dtype=torch.int64)), "a tensor of torch.int64"),
    "tokens of half precision": (lambda: chain(HALF), "X0 has the dtype torch.bfloat16"),
    "tokens in an array": (lambda: layer_step(X.numpy(), 0.1, HEADS), "tokens is a ndarray"),
    "tokens of another dtype": (lambda: layer_step(X.float(), 0.1, HEADS), "X has the dtype torch.float32 and A"),
    "a field of whole numbers": (lambda: attention_field(GRAM.long(), GRAM, GRAM, 1.0), "X is a tensor of torch.int64"),
    "heads of whole numbers": (lambda: LAW.draw(G, (1,), beta=1.0, dtype=torch.int64), "dtype = torch.int64; give"),
    "equiangular whole numbers": (lambda: equiangular_tokens(2, 3, 0.2, dtype=torch.int64), "dtype = torch.int64"),
    "uniform whole numbers": (lambda: uniform_tokens(2, 3, generator=G, dtype=np.float64), "give a floating-point"),
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


@pytest.fixture
def typed():
    """The names of the chapter's model, imported with their annotations checked by beartype."""
    package = "derived.papers.homogenized.model"
    names = ("checks", "heads", "gram", "chain", "moments", "overlaps", "two_token", "cloud", "flows")
    saved = {name: sys.modules.pop(f"{package}.{name}") for name in names}
    try:
        with install_import_hook([f"{package}.{name}" for name in names], "beartype.beartype"):
            modules = [importlib.import_module(f"{package}.{name}") for name in names]
            yield types.SimpleNamespace(**{key: value for module in modules for key, value in vars(module).items()})
    finally:
        sys.modules.update({f"{package}.{name}": module for name, module in saved.items()})


def test_annotated_shapes_hold(typed):
    """Every annotated function once, and a wrong shape refused."""
    law = typed.HeadLaw(d=4, sigma_a=1.0)
    with pytest.raises(TypeError, match=r"(?s)."):
        typed.gram_step(GRAM[0], 0.1, 1, law, 1.0, generator=G)
    for method in ("literal", "projected", "gram"):
        for common in (True, False):
            assert typed.simulate_chain(
                X, 2, 0.1, 2, law, 1.0, generator=G, method=method, common=common
            ).mean_overlap.shape == (2, 2)
    heads = law.draw(G, (2, 3), beta=1.0)
    typed.layer_step(X, 0.1, heads)
    typed.post_norm_block(X, 0.1, 2, generator=G)
    typed.wide_layer(GRAM, GRAM, 0.5)
    typed.equiangular_tokens(2, 4, 0.1)
    typed.overlap_bracket(GRAM, GRAM, 4)
    typed.cloud_layer(torch.zeros(3, dtype=torch.float64), 0.1, 8, 2, generator=G)
    field = typed.modified_drift(lambda Y: typed.self_attention(Y, 1.0), 0.1)
    typed.sphere_euler(field, typed.sphere_flow(field, X, 0.1, steps=2), 0.1, steps=2)
    assert np.isfinite(typed.two_token_pde(3, 0.5, 1.0, 0.1, [0.1], cells=200, steps=10).first).all()


@pytest.mark.parametrize("d", [1, 8])
def test_a_norm_may_miss_one_by_the_rounding_of_a_normalisation_alone(d):
    tokens, eps = torch.eye(d, dtype=torch.float64), torch.finfo(torch.float64).eps
    checks.check_on_sphere(tokens * (1 + (d + 4) * eps))
    with pytest.raises(ValueError, match="a token has a norm that differs from 1"):
        checks.check_on_sphere(tokens * (1 + (d + 5) * eps))
