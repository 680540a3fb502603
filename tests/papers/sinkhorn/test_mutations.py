"""What breaks it: the half-steps as they are keep four properties, and every mutation loses one that the page names."""

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.sinkhorn.model.mutations import MUTATIONS, damage

LOST = {
    "columns first": {"softmax"},
    "no column step": {"columns"},
    "both potentials at once": {"softmax", "rows", "columns", "offsets"},
    "weights forgotten": {"softmax", "rows", "columns"},
    "a small number added": {"offsets"},
}


@pytest.fixture(scope="module")
def harm():
    generator = stream(0, "mutations")
    scores = 2 * torch.randn(20, 5, 6, generator=generator, dtype=torch.float64)
    a, b = (torch.randn(20, size, generator=generator, dtype=torch.float64).softmax(dim=-1) for size in (5, 6))
    return {name: damage(steps, scores, a, b) for name, steps in MUTATIONS.items()}


def test_without_a_mutation_nothing_is_lost(harm):
    assert max(harm["none"][:2]) < 1e-14
    assert max(harm["none"]) < 1e-9


@pytest.mark.parametrize("name", LOST)
def test_each_mutation_loses_what_the_page_says_and_nothing_else(harm, name):
    lost = {field for field, value in harm[name]._asdict().items() if value > 1e-4}
    assert lost == LOST[name]


def test_every_mutation_is_listed():
    assert {*LOST, "none"} == {*MUTATIONS}
