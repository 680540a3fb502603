"""Draft and verify, by the reference program and by the package."""

import math
import random

import pytest
import torch

from derived.papers import cactus as package
from derived.papers.cactus import reference

RULES = [
    (reference.exact, package.SpS()),
    (reference.cactus(0.02), package.Cactus(0.02)),
    (reference.cactus(0.7), package.Cactus(0.7)),
]


@pytest.fixture(params=range(6))
def pair(request):
    generator = random.Random(request.param)
    weights = [[generator.expovariate(1) + 0.01 for _ in range(6)] for _ in "pq"]
    p, q = ([w / sum(row) for w in row] for row in weights)
    return p, q, torch.tensor(p, dtype=torch.float64), torch.tensor(q, dtype=torch.float64)


@pytest.mark.parametrize(("mine", "theirs"), RULES)
def test_what_is_kept_and_what_is_emitted(pair, mine, theirs):
    """`cac-price`: kept and emitted by both, and the gain is the total variation that is spent."""
    p, q, one, other = pair
    out = reference.emitted(p, q, mine)
    assert reference.kept(p, q, mine) == pytest.approx(float(package.acceptance_rate(one, other, theirs)), abs=1e-12)
    assert out == pytest.approx(package.output_law(one, other, theirs).tolist(), abs=1e-12)
    gained = reference.kept(p, q, mine) - reference.kept(p, q, reference.exact)
    assert gained == pytest.approx(reference.total_variation(out, q), abs=1e-12)
    spent = package.divergence(torch.tensor(out, dtype=torch.float64), other)
    assert reference.kl(out, q) == pytest.approx(float(spent), abs=1e-12)


def test_exact_sampling_emits_the_verifier(pair):
    """`cac-sps`: draft and verify writes exactly the target."""
    p, q, *_ = pair
    assert reference.emitted(p, q, reference.exact) == pytest.approx(q, abs=1e-12)
    assert reference.kept(p, q, reference.exact) == pytest.approx(1 - reference.total_variation(p, q), abs=1e-12)
    assert reference.emitted(p, q, reference.cactus(0.02)) != pytest.approx(q, abs=1e-4)


def test_samples(pair):
    """20,000 tokens of the sampler against the distribution that it should have, within five standard errors."""
    p, q, *_ = pair
    rule, size, generator = reference.cactus(0.1), 20_000, random.Random(1)
    tokens = [reference.sample(p, q, rule, generator)[0] for _ in range(size)]
    for token, w in enumerate(reference.emitted(p, q, rule)):
        assert abs(tokens.count(token) / size - w) < 5 * math.sqrt(w * (1 - w) / size)


def test_the_budget_of_a_promise(pair):
    """`cac-calibrated`: at the calibrated delta the plain program spends epsilon, and keeps as much more."""
    p, q, one, other = pair
    epsilon = 0.5 * reference.total_variation(p, q)
    (delta,) = package.Calibrated(epsilon).summaries(one, other)
    rule = reference.cactus(float(delta))
    assert reference.total_variation(reference.emitted(p, q, rule), q) == pytest.approx(epsilon, abs=1e-9)
    assert reference.kept(p, q, rule) == pytest.approx(reference.kept(p, q, reference.exact) + epsilon, abs=1e-9)
