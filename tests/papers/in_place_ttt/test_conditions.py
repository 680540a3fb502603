"""The four conditions: a whole model meets all, a broken one fails its own, and the first where the future enters."""

import pytest
import torch

from derived.lab.rng import stream
from derived.papers.in_place_ttt.conditions import BREAKS, Text, reader, self_tests

IDS = torch.randint(5, (14,), generator=stream(0, "conditions"))
CONDITIONS = {"causal", "normalised", "scored before updated", "one pass"}
FAILS = {
    "": set(),
    "taps cross by two": {"causal"},
    "not normalised": {"normalised"},
    "written first": {"causal", "scored before updated"},
    "read twice": {"causal", "scored before updated", "one pass"},
}


@pytest.mark.parametrize("broken", BREAKS)
def test_each_break_fails_its_own_condition(broken):
    """`ipt-causal`, `ipt-cross`."""
    found = self_tests(reader(vocabulary=5, chunk=3, broken=broken), IDS, 5)
    assert {*found} == CONDITIONS
    assert {name for name, kept in found.items() if not kept} == FAILS[broken]


def test_a_model_of_another_shape_or_with_negative_scores_is_not_normalised():
    whole = reader(vocabulary=5, chunk=3)
    for model in (lambda text: whole(text)[:, :4], lambda text: 2 * whole(text) - 0.2):
        assert not self_tests(model, IDS, 5)["normalised"]


def test_reading_ahead_or_leaving_out_is_not_one_pass():
    for spans in (((3, 6), (0, 3), (6, 14)), ((0, 14), (3, 4)), ((0, 13),)):

        def model(text: Text, spans=spans) -> torch.Tensor:
            for span in spans:
                text.read(*span)
            return torch.full((14, 5), 0.2)

        assert self_tests(model, IDS, 5) == dict.fromkeys(CONDITIONS, True) | {"one pass": False}


def test_the_reader_is_the_layer_without_a_lag_of_its_own():
    """Against the package's layer: embeddings as keys, next tokens as values, one tap that crosses the edge."""
    from derived.papers.in_place_ttt import depthwise_target, in_place_ttt

    one = torch.eye(5, dtype=torch.float64)[IDS]
    values = depthwise_target(one, torch.tensor([[0.0, 0.0, 1.0]]).double().expand(5, 3), chunk=3)
    scores = in_place_ttt(one, values, torch.zeros(5, 5).double(), 2.0, 3).softmax(dim=-1)
    assert torch.allclose(reader(vocabulary=5, chunk=3)(Text(IDS)), scores, atol=1e-12)
