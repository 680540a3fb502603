"""The generated pairs of laws."""

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.cactus.data import pairs
from derived.papers.cactus.model import divergences


def test_random_pairs_are_laws_and_noised_ones_are_nearer():
    distance = {}
    for kind in pairs.KINDS:
        p, q = pairs.random_pairs(200, 9, kind, stream(4, kind))
        for law in (p, q):
            assert (law >= 0).all()
            assert torch.allclose(law.sum(dim=-1), torch.ones(200).double(), rtol=0, atol=1e-13)
        distance[kind] = divergences.divergence(p, q, "tv").mean(dim=0)
    assert distance["noised"] < 0.6 * distance["independent"]
    with pytest.raises(ValueError, match="kind"):
        pairs.random_pairs(2, 3, "other", stream(0, "x"))
