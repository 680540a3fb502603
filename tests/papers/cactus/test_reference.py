"""Draft and verify, by the reference program and by the package."""

import math

import pytest
import torch

from derived.papers import cactus as package
from derived.papers.cactus import reference

RULES = [
    (reference.exact, package.SpS()),
    (reference.cactus(0.02), package.Cactus(0.02)),
    (reference.cactus(0.7), package.Cactus(0.7)),
]


@pytest.fixture
def pair(law):
    p, q = law(6), law(6)
    return p, q, torch.tensor(p, dtype=torch.float64), torch.tensor(q, dtype=torch.float64)


@pytest.mark.parametrize(("mine", "theirs"), RULES)
def test_what_is_kept_and_what_is_emitted(pair, mine, theirs):
    p, q, one, other = pair
    assert reference.kept(p, q, mine) == pytest.approx(float(package.acceptance_rate(one, other, theirs)), abs=1e-12)
    assert reference.emitted(p, q, mine) == pytest.approx(package.output_law(one, other, theirs).tolist(), abs=1e-12)


def test_exact_sampling_emits_the_verifier(pair):
    """draft and verify writes exactly the target."""
    p, q, *_ = pair
    assert reference.emitted(p, q, reference.exact) == pytest.approx(q, abs=1e-12)
    assert reference.kept(p, q, reference.exact) == pytest.approx(1 - reference.total_variation(p, q), abs=1e-12)
    assert reference.emitted(p, q, reference.cactus(0.02)) != pytest.approx(q, abs=1e-4)


def test_samples(pair, draw):
    """20,000 tokens of the sampler against the distribution that it should have, within five standard errors."""
    p, q, *_ = pair
    rule, size = reference.cactus(0.1), 20_000
    tokens = [reference.sample(p, q, rule, draw)[0] for _ in range(size)]
    for token, w in enumerate(reference.emitted(p, q, rule)):
        assert abs(tokens.count(token) / size - w) < 5 * math.sqrt(w * (1 - w) / size)


@pytest.mark.parametrize("delta", [0.003, 0.05, 0.4, 6.0])
def test_the_best_target_within_a_budget(pair, delta):
    """the root of the divergence along the two-cell family, by bisection."""
    _, q, _, other = pair
    best = package.gamma_constrained(other, delta)
    assert [reference.optimal(q, n, delta) for n in range(6)] == pytest.approx(best.tolist(), abs=1e-9)


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.75])
def test_the_budget_is_exceeded(delta):
    """Targets cost more than delta, but never more than ln(1 + 2 delta), which they reach."""
    sharp = math.log(1 + 2 * delta)
    assert delta < reference.largest_divergence(delta) <= sharp + 1e-12
    q = [1 / (1 + 2 * delta), 2 * delta / (1 + 2 * delta)]
    assert reference.cactus(delta)(q, 0) == pytest.approx(1)
    assert reference.kl(reference.target(q, 0, 1.0), q) == pytest.approx(sharp)
