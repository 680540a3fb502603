"""Knobs that are set to an acceptance rate."""

import pytest

from derived.lab.rng import stream
from derived.papers.cactus import matching
from derived.papers.cactus.data import pairs
from derived.papers.cactus.model import exact
from derived.papers.cactus.model.rules import SpS


@pytest.mark.parametrize("name", [*matching.KNOBS, "topk"])
def test_match_sets_the_knob_to_the_acceptance(name):
    p, q = pairs.random_pairs(200, 8, "noised", stream(6, "pairs"))
    span = exact.acceptance_rate(p, q, SpS()).mean(dim=0).item()
    target = span + 0.4 * (1 - span)
    knob = matching.match(name, p, q, target)
    found = exact.acceptance_rate(p, q, matching.rule_of(name, knob)).mean(dim=0).item()
    assert abs(found - target) < (0.2 if name == "topk" else 0.01 if name == "tas" else 1e-5)
