"""The slow twins: they agree with the package, and see what is wrong."""

import numpy as np
import pytest
import torch

from derived.lab.rng import stream
from derived.papers.cactus import witness
from derived.papers.cactus.data import pairs
from derived.papers.cactus.matching import rule_of
from derived.papers.cactus.model import divergences, exact, mutations, theory


def test_drafted_law_is_the_output_law_and_sees_a_wrong_gamma():
    p, q = pairs.random_pairs(40, 7, "noised", stream(3, "pairs"))
    gamma = divergences.gamma_constrained(q, 0.3, "chi2")
    rule = rule_of("cactus", 0.15)
    assert torch.allclose(witness.drafted_law(p, q, gamma), exact.output_law(p, q, rule), rtol=0, atol=1e-14)
    assert not torch.allclose(witness.drafted_law(p, q, 1.1 * gamma), exact.output_law(p, q, rule), rtol=0, atol=1e-3)


def test_best_coupling_of_equal_and_of_disjoint_laws():
    law = np.array([0.2, 0.5, 0.3])
    assert witness.best_coupling(law, law) == pytest.approx(1.0, abs=1e-9)
    assert witness.best_coupling(np.array([1.0, 0, 0]), np.array([0, 0.5, 0.5])) == pytest.approx(0.0, abs=1e-9)


def test_the_largest_rate_sees_a_band_of_another_budget():
    p, q = (each[0] for each in pairs.random_pairs(1, 4, "noised", stream(3, "band")))
    rates = [float(torch.minimum(p, theory.mentored_law(p, q, budget)).sum(dim=0)) for budget in (0.01, 0.012)]
    found = witness.largest_rate(p.numpy(), q.numpy(), 0.01)
    assert abs(found - rates[0]) <= 1e-7 < 1e-4 < abs(found - rates[1])


@pytest.mark.parametrize("name", mutations.MUTATIONS)
def test_mutations_are_seen_by_the_definition_of_the_law(name):
    """`cac-emitted`, `cac-lenience`: each changed line changes the law; two of four leave exactness and price whole."""
    p, q = pairs.random_pairs(100, 7, "noised", stream(9, "pairs"))
    rule, law = mutations.MUTATIONS[name], witness.drafted_law(p, q, theory.gamma_cactus(q, 0.02))
    seen = (exact.output_law(p, q, rule(0.02)) - law).abs().max() > 1e-3
    assert bool(seen) == (name != "none")
    found = mutations.damage(rule, p, q)
    harmless = name not in ("recover from $q$", "raise $p_n$ for $q_n$")
    assert (found.inexact < 1e-12) == harmless
    assert (max(found.outside, found.unpaid) < 1e-12) == (name != "recover from $q$")
