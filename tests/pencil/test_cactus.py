"""Draft and verify, by the pencil and by the package."""

import math

import pytest
import torch
from pencil import cactus as pencil

from derived.papers import cactus as package

RULES = [
    (pencil.exact, package.SpS()),
    (pencil.cactus(0.02), package.Cactus(0.02)),
    (pencil.cactus(0.7), package.Cactus(0.7)),
]


@pytest.fixture
def pair(law):
    p, q = law(6), law(6)
    return p, q, torch.tensor(p, dtype=torch.float64), torch.tensor(q, dtype=torch.float64)


@pytest.mark.parametrize(("mine", "theirs"), RULES)
def test_what_is_kept_and_what_is_emitted(pair, mine, theirs):
    p, q, one, other = pair
    assert pencil.kept(p, q, mine) == pytest.approx(float(package.acceptance_rate(one, other, theirs)), abs=1e-12)
    assert pencil.emitted(p, q, mine) == pytest.approx(package.output_law(one, other, theirs).tolist(), abs=1e-12)


def test_exact_sampling_emits_the_verifier(pair):
    """`CAC-2.a`: draft and verify writes exactly the target."""
    p, q, *_ = pair
    assert pencil.emitted(p, q, pencil.exact) == pytest.approx(q, abs=1e-12)
    assert pencil.emitted(p, q, pencil.cactus(0.02)) != pytest.approx(q, abs=1e-4)


def test_samples(pair, draw):
    """20,000 tokens of the sampler against the distribution that it should have, within five standard errors."""
    p, q, *_ = pair
    rule, size = pencil.cactus(0.1), 20_000
    tokens = [pencil.sample(p, q, rule, draw)[0] for _ in range(size)]
    for token, w in enumerate(pencil.emitted(p, q, rule)):
        assert abs(tokens.count(token) / size - w) < 5 * math.sqrt(w * (1 - w) / size)


@pytest.mark.parametrize("delta", [0.003, 0.05, 0.4])
def test_the_best_target_within_a_budget(pair, delta):
    """`CAC-3`: the root of the divergence along the two-cell family, by bisection."""
    _, q, _, other = pair
    best = package.gamma_constrained(other, delta)
    assert [pencil.optimal(q, n, delta) for n in range(6)] == pytest.approx(best.tolist(), abs=1e-9)


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.75])
def test_the_budget_is_exceeded(delta):
    """`CAC-5.a` fails: targets cost more than delta, and never more than ln(1 + 2 delta)."""
    assert delta < pencil.largest_divergence(delta) <= math.log(1 + 2 * delta) + 1e-12


def test_never_farther_than_the_draft(pair):
    """`CAC-6.b`: what is emitted is no farther from the verifier than the draft."""
    p, q, *_ = pair
    assert pencil.kl(pencil.emitted(p, q, pencil.cactus(0.3)), q) <= pencil.kl(p, q)


def test_an_acceptance_costs_total_variation(pair):
    p, q, *_ = pair
    gained = pencil.kept(p, q, pencil.cactus(0.05)) - pencil.kept(p, q, pencil.exact)
    assert gained == pytest.approx(pencil.total_variation(pencil.emitted(p, q, pencil.cactus(0.05)), q), abs=1e-12)
